#!/usr/bin/env python3
"""Benchmark this project's client beside the clients of rmcp and of the TypeScript SDK, in one run.

    cargo xtask bench client             everything, about six minutes
    cargo xtask bench client --quick     about two minutes
    cargo xtask bench client --only linchpin,rmcp

All call the same tool on the same bare server (bench/bare), which has a core of its own; the client has the other. CPU
is the client's own: user and system time of its process, per call. Rounds are interleaved; figures are medians.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
import commandline  # noqa: E402
from peers import DIST, LOAD_CORE, REPO, Server, fill, load_peers, ours, peers_target, tied_to  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num, times  # noqa: E402

BAR = 2.0
LIMIT_S = 120


def clients(tools, node):
    linchpin = [ours("bench-client")]
    rmcp = [os.path.join(peers_target(), "release", "peer-rmcp-client")]
    ts = [node, os.path.join(HERE, "peers", "ts-client.mjs")]
    return {"linchpin": (linchpin, {}), "rmcp 3.9": (rmcp, {}), "TypeScript 2.4": (ts, {"INTEROP_TOOLS": tools})}


def build(names):
    apart = dict(os.environ, CARGO_TARGET_DIR=peers_target())
    release = ["--release", "--locked"]
    steps = [("bare", release + ["--manifest-path", os.path.join(HERE, "bare", "Cargo.toml")], apart)]
    if "linchpin" in names:
        steps.append(("linchpin", [*DIST, "-p", "linchpin-bench-client"], os.environ))
    if "rmcp 3.9" in names:
        steps.append(("rmcp", release + ["--manifest-path", os.path.join(HERE, "peers", "rmcp-client", "Cargo.toml")], apart))
    for name, args, env in steps:
        print(f"building {name}", flush=True)
        subprocess.run(["cargo", "build", "--quiet"] + args, cwd=REPO, env=env, check=True)


def run(command, env, *words):
    done = subprocess.run(
        command + [str(w) for w in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, **env),
        preexec_fn=tied_to(LOAD_CORE),
        timeout=LIMIT_S,
    )
    if done.returncode:
        raise SystemExit(f"{command[-1]} {words}: {done.stderr.decode(errors='replace')[-600:]}")
    return json.loads(done.stdout.decode().strip().splitlines()[-1])


def cases(opt):
    for transport in ("http", "stdio"):
        for era in ("2025", "2026"):
            for inflight in (1, 64):
                yield transport, era, inflight
    del opt


def measure(opt, all_clients):
    rows = {p["name"]: p for p in load_peers()}
    got = {}

    def add(key, name, result):
        got.setdefault(key, {}).setdefault(name, []).append(result)

    # Children are held on the other core, as the HTTP server is.
    server_core = ["taskset", "-c", os.environ.get("BENCH_CORES", "0,1").split(",")[0]]
    for number in range(opt.rounds):
        for transport, era, inflight in cases(opt):
            peer = rows[f"bare-hyper/{era}"] if transport == "http" else rows["bare-stdio/2025"]
            for name, (command, env) in all_clients.items():
                if transport == "http":
                    with Server(peer) as server:
                        result = run(command, env, "calls", era, inflight, opt.secs, server.url)
                else:
                    result = run(command, env, "calls", era, inflight, opt.secs, *server_core, *fill(peer, 0, 5))
                add((transport, era, inflight), name, result)
                print(f"round {number + 1} {transport} {era} {inflight:3} {name:15} {result['calls_per_s']:10,.0f} calls/s {result['cpu_us']:8.1f} us", flush=True)
        for name, (command, env) in all_clients.items():
            for era in ("2025", "2026"):
                with Server(rows[f"bare-hyper/{era}"]) as server:
                    add(("idle", era), name, run(command, env, "idle", era, opt.idle, 1, server.url))
                add(("first", era), name, run(command, env, "first", era, opt.starts, 1, *server_core, *fill(rows["bare-stdio/2025"], 0, 5)))
    return got


def report(got, names):
    out, missed = [], []
    table = Table("Calls: client CPU per call, and calls/s with a core of its own", "transport", "era", "in flight",
                  *[f"{n}: calls/s" for n in names], *[f"{n}: CPU us" for n in names], "best peer / linchpin, CPU")
    for key, by_name in got.items():
        if key[0] in ("idle", "first"):
            continue
        cpu = {n: median([r["cpu_us"] for r in by_name[n]]) for n in names}
        rate = {n: median([r["calls_per_s"] for r in by_name[n]]) for n in names}
        rivals = [cpu[n] for n in names if n != "linchpin"]
        ratio = min(rivals) / cpu["linchpin"] if rivals and "linchpin" in cpu else None
        if ratio is not None and ratio < BAR:
            missed.append(f"{key}: {ratio:.2f} x")
        table.add(*key, *[num(rate[n]) for n in names], *[num(cpu[n]) for n in names], times(ratio) if ratio else "-")
    out.append(table.text())
    small = Table("Memory of an idle HTTP connection; from spawning a bare stdio server to its first answer", "era",
                  *[f"{n}: KiB" for n in names], *[f"{n}: ms" for n in names])
    for era in ("2025", "2026"):
        idle = [median([r["bytes_each"] for r in got["idle", era][n]]) / 1024 for n in names]
        first = [median([r["ms"] for r in got["first", era][n]]) for n in names]
        small.add(era, *[num(x) for x in idle], *[num(x) for x in first])
    out.append(small.text())
    out.append(f"**BAR** at least {BAR:g} x the best peer in calls per CPU second: " + ("missed: " + "; ".join(missed) if missed else "pass"))
    return "\n\n".join(out) + "\n", missed


def main():
    ap = commandline.parser(__doc__, "short windows, three rounds")
    ap.add_argument("--only", help="clients, by the first word of their names")
    ap.add_argument("--strict", action="store_true", help="exit 1 when the bar is missed")
    opt = commandline.options(ap, rounds=(5, 3), secs=(1.5, 0.5), warmup=(0.6, 0.3))
    opt.idle, opt.starts = (50, 5) if opt.quick else (200, 9)
    bench.raise_file_limit()
    tools = os.environ.get("BENCH_TS_TOOLS")
    node = os.environ.get("BENCH_NODE", "node")
    chosen = clients(tools or "", node)
    if not tools:
        print("BENCH_TS_TOOLS is not set (cargo xtask bench client sets it): without the TypeScript client")
        del chosen["TypeScript 2.4"]
    if opt.only:
        wanted = opt.only.lower().split(",")
        chosen = {n: c for n, c in chosen.items() if n.lower().split()[0] in wanted}
    if not opt.no_build:
        build(chosen)
    got = measure(opt, chosen)
    text, missed = report(got, list(chosen))
    print("\n" + text)
    commandline.keep("client", text, [[list(k), v] for k, v in got.items()])
    return 1 if opt.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
