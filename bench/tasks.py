#!/usr/bin/env python3
"""Benchmark tasks: what making one costs beside a plain call, in process and over HTTP, how many a second a file takes, and their memory.

    cargo xtask bench tasks            everything, about two minutes beside the builds
    cargo xtask bench tasks --quick    short windows

`bench-tasks` runs in process, without a wire; `bench-server` in the mode `tasks` answers plain calls and calls that become tasks in
interleaved windows, the server on one core and the load on the other. Figures are medians of rounds.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
from commandline import InProcess  # noqa: E402
from peers import Server, mcpload, wait_quiet  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num  # noqa: E402

# A task over HTTP beside a call; beside a call of a server without tasks; tasks a second; bytes of an idle task, and of one that runs.
TASK_MAX, PLAIN_MAX, DURABLE_MIN, IDLE_MAX, RUNNING_MAX = 3.0, 1.05, 1_000, 2_048, 4_096
CONNECTIONS = 16


def load(server, opt, op):
    wait_quiet(opt.quiet)
    got = mcpload("http", "--url", server.url, "--era", "2026", "--op", op, "--conns", CONNECTIONS, "--secs", opt.secs, "--warmup", opt.warmup,
                  "--pid", server.pid, limit=40)
    if got.get("failed") or got.get("bad"):
        raise SystemExit(f"{op}: {got.get('failed') or got.get('bad_example')}")
    return got["cpu_us_per_req"]


def measure(run):
    opt = run.opt
    got = {"process": [], "wire": []}
    ours = [run.program("bench-server"), "http", "{port}", "{mode}", "{tools}"]
    rows = {"a call, a server without tasks": ("default", "echo"), "a call, a server with tasks": ("tasks", "echo"), "a task": ("tasks", "task")}
    for round_ in range(1, opt.rounds + 1):
        got["process"].append({row["case"]: row["value"] for row in run.lines("bench-tasks")})
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
            most = RUNNING_MAX if "waits" in case else IDLE_MAX
            bars.append((case, f"<= {num(most)}", num(value), value <= most))
    verdicts = Table("BARS", "what", "bar", "measured", "verdict")
    for what, bar, measured, met in bars:
        verdicts.add(what, bar, measured, "pass" if met else "FAIL")
    about = "\n".join(f"- {key}: {value}" for key, value in bench.meta().items())
    return about + "\n" + "".join(table.text() for table in (process, wire, verdicts)), [bar[0] for bar in bars if not bar[3]]


def main():
    run = InProcess(__doc__)
    got = measure(run)
    return run.end("tasks", got, *report(got))


if __name__ == "__main__":
    sys.exit(main())
