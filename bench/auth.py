#!/usr/bin/env python3
"""Benchmark what authorization costs: the guard, the issuer, and HTTP with a token beside a bare program, in one run.

    cargo xtask bench auth             everything, about three minutes beside the builds
    cargo xtask bench auth --quick     short windows

`bench-guard` and `bench-issuer` run in process, without a wire; `bench-server` in the mode `guard` and `bare-hyper` answer the
same load in interleaved rounds, the server on one core and the load on the other. Figures are medians of rounds.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
from commandline import InProcess  # noqa: E402
from peers import SERVER_CORE, Server, mcpload, peers_target, wait_quiet  # noqa: E402
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


def measure(run):
    opt = run.opt
    got = {"guard": [], "issuer": [], "echo": []}
    bare = [os.path.join(peers_target(), "release", "bare-hyper"), "http", "{port}", "default", "{tools}"]
    ours = [run.program("bench-server"), "http", "{port}", "{mode}", "{tools}"]
    rows = {"token": {"cmd": ours, "mode": "guard"}, "bare": {"cmd": bare}, "no guard": {"cmd": ours}}
    for round_ in range(1, opt.rounds + 1):
        got["guard"].append({row["case"]: row for row in run.lines("bench-guard", SERVER_CORE)})
        got["issuer"].append({row["case"]: row["value"] for row in run.lines("bench-issuer")})
        cpu, token = {}, None
        for name, row in rows.items():
            with Server(row) as server:
                # All rows get the same requests: reading a long header is part of what a bare program does too.
                token = token or token_of(server)
                cpu[name] = echo(server, opt, "--header", f"Authorization: Bearer {token}")
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
    run = InProcess(__doc__, ["bare"])
    got = measure(run)
    return run.end("auth", got, *report(got))


if __name__ == "__main__":
    sys.exit(main())
