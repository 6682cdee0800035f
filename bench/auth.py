#!/usr/bin/env python3
"""Benchmark what authorization costs: the guard, the issuer, and HTTP with a token beside a bare program, in one run.

    cargo xtask bench auth             everything, about three minutes beside the builds
    cargo xtask bench auth --quick     short windows

`bench-guard` and `bench-issuer` run in process, without a wire; `bench-server` in the mode `guard` and `bare-hyper` answer the
same load in interleaved rounds, the server on one core and the load on the other. Figures are medians of rounds.
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
from peers import REPO, SERVER_CORE, Server, mcpload, peers_target, tied_to, wait_quiet, workspace_target  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num  # noqa: E402

GUARD = [
    # What is measured, over what (or nothing), microseconds at most, allocations at most.
    ("echo, remembered token", "echo, no guard", 2.0, 2.0),
    ("admit, key", None, 2.0, None),
    ("admit, first sight, ES256", None, 130.0, None),
    ("admit, first sight, EdDSA", None, 130.0, None),
    ("admit, remembered token, new DPoP proof", None, 150.0, None),
]
REFRESHES_MIN, IDLE_KIB_MAX = 500, 3072
ECHO_MAX = 1.25
CONNECTIONS = 64


def program(name, opt):
    return os.path.join(workspace_target(), opt.profile, name)


def build(opt):
    failed = bench.build({"bare"}, opt.jobs)
    limit = ["-j", str(opt.jobs)] if opt.jobs else []
    done = subprocess.run(["cargo", "build", "--quiet", "--profile", opt.profile, "-p", "linchpin-bench", *limit], cwd=REPO)
    if failed or done.returncode:
        raise SystemExit("not built: " + ", ".join(failed or ["linchpin-bench"]))


def lines(name, opt, core=None):
    """What a program prints with --json. One of one thread has a core to itself."""
    wait_quiet(opt.quiet)
    done = subprocess.run([program(name, opt), "--json"], capture_output=True, text=True, timeout=300, preexec_fn=tied_to(core) if core else None)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-400:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def echo(server, opt, *more):
    wait_quiet(opt.quiet)
    got = mcpload("http", "--url", server.url, "--era", "2026", "--op", "echo", "--conns", CONNECTIONS, "--secs", opt.secs, "--warmup", opt.warmup,
                  "--pid", server.pid, *more, limit=40)
    if got.get("failed") or got.get("bad"):
        raise SystemExit(f"echo: {got.get('failed') or got.get('bad_example')}")
    return got["cpu_us_per_req"]


def token_of(server):
    """The token that the server prints when it starts."""
    with open(server.log.name, errors="replace") as f:
        return next(line.split()[1] for line in f if line.startswith("token "))


def measure(opt):
    got = {"guard": [], "issuer": [], "echo": []}
    bare = [os.path.join(peers_target(), "release", "bare-hyper"), "http", "{port}", "default", "{tools}"]
    ours = [program("bench-server", opt), "http", "{port}", "{mode}", "{tools}"]
    rows = {"bare": {"cmd": bare}, "no guard": {"cmd": ours}, "token": {"cmd": ours, "mode": "guard"}}
    for round_ in range(1, opt.rounds + 1):
        got["guard"].append({row["case"]: row for row in lines("bench-guard", opt, SERVER_CORE)})
        got["issuer"].append({row["case"]: row["value"] for row in lines("bench-issuer", opt)})
        cpu = {}
        for name, row in rows.items():
            with Server(row) as server:
                cpu[name] = echo(server, opt, *(["--header", f"Authorization: Bearer {token_of(server)}"] if name == "token" else []))
        got["echo"].append(cpu)
        print(f"round {round_}: " + ", ".join(f"{name} {us:.1f} us" for name, us in cpu.items()), flush=True)
    return got


def report(got):
    """The tables as text, and the bars that were missed."""
    guard = Table("The guard, in process: microseconds and allocations of one request", "case", "us", "lowest - highest round", "allocations")
    for case in got["guard"][0]:
        us = [round_[case]["us"] for round_ in got["guard"]]
        guard.add(case, num(median(us)), f"{num(min(us))} - {num(max(us))}", num(median([round_[case]["allocs"] for round_ in got["guard"]])))
    wire = Table(f"HTTP echo, {CONNECTIONS} connections, server CPU in us per request", "row", "us", "beside bare")
    for name in got["echo"][0]:
        beside = median([cpu[name] / cpu["bare"] for cpu in got["echo"]])
        wire.add(name, num(median([cpu[name] for cpu in got["echo"]])), f"{beside:.2f}x")
    issuer = Table("The issuer, over a SQLite file whose writes reach the disk", "case", "median", "lowest - highest round")
    for case in got["issuer"][0]:
        values = [round_[case] for round_ in got["issuer"]]
        issuer.add(case, num(median(values)), f"{num(min(values))} - {num(max(values))}")

    bars = []
    for case, over, us_max, allocs_max in GUARD:
        def figure(key, case=case, over=over):
            return median([row[case][key] - (row[over][key] if over else 0) for row in got["guard"]])

        what = f"{case}, over no guard" if over else case
        bars.append((what, f"<= {num(us_max)} us", f"{num(figure('us'))} us", figure("us") <= us_max))
        if allocs_max is not None:
            bars.append((what, f"<= {num(allocs_max)} allocations", num(figure("allocs")), figure("allocs") <= allocs_max))
    beside = median([cpu["token"] / cpu["bare"] for cpu in got["echo"]])
    bars.append(("HTTP echo with a JWT, beside bare", f"<= {ECHO_MAX}x", f"{beside:.2f}x", beside <= ECHO_MAX))
    for case in got["issuer"][0]:
        value = median([round_[case] for round_ in got["issuer"]])
        if case.startswith("refreshes"):
            bars.append((case, f">= {REFRESHES_MIN}/s", f"{num(value)}/s", value >= REFRESHES_MIN))
        elif case.startswith("memory"):
            bars.append((case, f"<= {num(IDLE_KIB_MAX)} KiB", f"{num(value)} KiB", value <= IDLE_KIB_MAX))
    verdicts = Table("BARS", "what", "bar", "measured", "verdict")
    for what, bar, measured, met in bars:
        verdicts.add(what, bar, measured, "pass" if met else "FAIL")
    about = "\n".join(f"- {key}: {value}" for key, value in bench.meta().items())
    return about + "\n" + "".join(table.text() for table in (guard, wire, issuer, verdicts)), [bar[0] for bar in bars if not bar[3]]


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
    results = os.path.join(HERE, "results", time.strftime("auth-%Y%m%d-%H%M%S"))
    os.makedirs(os.path.dirname(results), exist_ok=True)
    with open(results + ".json", "w") as f:
        json.dump(got, f)
    with open(results + ".md", "w") as f:
        f.write(text)
    return 1 if opt.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
