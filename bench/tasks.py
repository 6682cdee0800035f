#!/usr/bin/env python3
"""Benchmark tasks: what making one costs beside a plain call, in process and over HTTP, how many a second a file takes, and their memory.

    cargo xtask bench tasks            everything, about two minutes beside the builds
    cargo xtask bench tasks --quick    short windows

`bench-tasks` runs in process, without a wire; `bench-server` in the mode `tasks` answers plain calls and calls that become tasks in
interleaved windows, the server on one core and the load on the other. Figures are medians of rounds.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
from peers import REPO, Server, mcpload, wait_quiet, workspace_target  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num  # noqa: E402

# A task over HTTP beside a call; beside a call of a server without tasks; tasks a second; bytes.
TASK_MAX, PLAIN_MAX, DURABLE_MIN, BYTES_MAX = 3.0, 1.05, 1_000, 2_048
CONNECTIONS = 16


def program(name, opt):
    return os.path.join(workspace_target(), opt.profile, name)


def build(opt):
    failed = bench.build(set(), opt.jobs)
    limit = ["-j", str(opt.jobs)] if opt.jobs else []
    done = subprocess.run(["cargo", "build", "--quiet", "--profile", opt.profile, "-p", "linchpin-bench", *limit], cwd=REPO)
    if failed or done.returncode:
        raise SystemExit("not built: " + ", ".join(failed or ["linchpin-bench"]))


def lines(name, opt):
    """What a program prints with --json."""
    wait_quiet(opt.quiet)
    done = subprocess.run([program(name, opt), "--json"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def load(server, opt, op):
    wait_quiet(opt.quiet)
    got = mcpload("http", "--url", server.url, "--era", "2026", "--op", op, "--conns", CONNECTIONS, "--secs", opt.secs, "--warmup", opt.warmup,
                  "--pid", server.pid, limit=40)
    if got.get("failed") or got.get("bad"):
        raise SystemExit(f"{op}: {got.get('failed') or got.get('bad_example')}")
    return got["cpu_us_per_req"]


def measure(opt):
    got = {"process": [], "wire": []}
    ours = [program("bench-server", opt), "http", "{port}", "{mode}", "{tools}"]
    rows = {"a call, a server without tasks": ("default", "echo"), "a call, a server with tasks": ("tasks", "echo"), "a task": ("tasks", "task")}
    for round_ in range(1, opt.rounds + 1):
        got["process"].append({row["case"]: row["value"] for row in lines("bench-tasks", opt)})
        cpu = {}
        for name, (mode, op) in rows.items():
            with Server({"cmd": ours, "mode": mode}) as server:
                cpu[name] = load(server, opt, op)
        got["wire"].append(cpu)
        print(f"round {round_}: " + ", ".join(f"{name} {us:.1f} us" for name, us in cpu.items()), flush=True)
    return got


def report(got):
    """The tables as text, and the bars that were missed."""
    process = Table("In process, through the HTTP service", "case", "median", "lowest - highest round")
    figure = {}
    for case in got["process"][0]:
        values = [round_[case] for round_ in got["process"]]
        figure[case] = median(values)
        process.add(case, num(figure[case]), f"{num(min(values))} - {num(max(values))}")
    plain, without = "a call, a server with tasks", "a call, a server without tasks"
    wire = Table(f"Over HTTP, {CONNECTIONS} connections, server CPU in us per request; a task with its run and its end", "case", "us", "beside a call")
    beside = {}
    for name in got["wire"][0]:
        beside[name] = median([cpu[name] / cpu[plain] for cpu in got["wire"]])
        wire.add(name, num(median([cpu[name] for cpu in got["wire"]])), f"{beside[name]:.2f}x")

    bars = [
        ("a task over HTTP, beside a call", f"<= {TASK_MAX}x", f"{beside['a task']:.2f}x", beside["a task"] <= TASK_MAX),
        ("a call of a tool that is no task, beside a server without tasks", f"<= {PLAIN_MAX}x", f"{1 / beside[without]:.2f}x", 1 / beside[without] <= PLAIN_MAX),
    ]
    for case, value in figure.items():
        if "SQLite" in case:
            bars.append((case, f">= {num(DURABLE_MIN)}", num(value), value >= DURABLE_MIN))
        elif case.startswith("memory"):
            bars.append((case, f"<= {num(BYTES_MAX)}", num(value), value <= BYTES_MAX))
    verdicts = Table("BARS", "what", "bar", "measured", "verdict")
    for what, bar, measured, met in bars:
        verdicts.add(what, bar, measured, "pass" if met else "FAIL")
    about = "\n".join(f"- {key}: {value}" for key, value in bench.meta().items())
    return about + "\n" + "".join(table.text() for table in (process, wire, verdicts)), [bar[0] for bar in bars if not bar[3]]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--quick", action="store_true", help="short windows, one round")
    ap.add_argument("--rounds", type=int, help="interleaved rounds (default 5, quick 1)")
    ap.add_argument("--secs", type=float, help="length of one window (default 1.5, quick 0.4)")
    ap.add_argument("--quiet", type=float, help="wait at most this long for both cores to be idle before a window")
    ap.add_argument("--profile", default="dist", help="cargo's profile of our programs")
    ap.add_argument("--jobs", type=int, help="cargo jobs for the builds")
    ap.add_argument("--no-build", action="store_true", help="use what was built before")
    ap.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    opt = ap.parse_args()
    opt.rounds = opt.rounds or (1 if opt.quick else 5)
    opt.secs = opt.secs or (0.4 if opt.quick else 1.5)
    opt.warmup = 0.2 if opt.quick else 0.6
    opt.quiet = opt.quiet if opt.quiet is not None else (0 if opt.quick else 3)
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("The benchmark pins processes to two cores and reads /proc: it needs Linux and two cores.")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    if not opt.no_build:
        build(opt)
    got = measure(opt)
    text, missed = report(got)
    print("\n" + text)
    results = os.path.join(HERE, "results", time.strftime("tasks-%Y%m%d-%H%M%S"))
    os.makedirs(os.path.dirname(results), exist_ok=True)
    with open(results + ".json", "w") as f:
        json.dump(got, f)
    with open(results + ".md", "w") as f:
        f.write(text)
    return 1 if opt.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
