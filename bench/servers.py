#!/usr/bin/env python3
"""Benchmark this project's native servers beside the published ones, in one run.

    cargo xtask bench servers                     everything, about fifteen minutes
    cargo xtask bench servers --quick             about five minutes
    cargo xtask bench servers --only git,memory

Each server and its published counterpart get the same arguments, equal fixtures and the same call over stdio; the server
has one core, this program the other. Rounds are interleaved; figures are medians. A server that does not start or answers
something else is named with what it said.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
import commandline  # noqa: E402
from pairs import PAIRS, pairs  # noqa: E402
from peers import DIST, LOAD_CORE, REPO  # noqa: E402
from pipe import Broken, Pipe  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num  # noqa: E402

SIDES = ("ours", "published")
IN_FLIGHT = 16


def start_once(pair, side, number):
    """Milliseconds to the answer of `initialize` and of the first call."""
    with Pipe(pair.command(side), pair.env(side)) as pipe:
        size = pipe.call(pair.tool, pair.arguments(-number), pair.expected)
        return {"start_ms": pipe.start_ms, "first_call_ms": (time.perf_counter() - pipe.began) * 1e3, "answer_bytes": size}


def load_once(pair, side, opt):
    """Calls one at a time and then several at once; resident memory before and after."""
    with Pipe(pair.command(side), pair.env(side)) as pipe:
        pipe.call(pair.tool, pair.arguments(-1), pair.expected)
        found = {"rss_start_mib": pipe.rss_mib()}
        if not pair.load:
            return found
        pipe.window(pair.tool, pair.arguments, opt.warmup, 1)
        found["single"] = pipe.window(pair.tool, pair.arguments, opt.secs, 1)
        found["many"] = pipe.window(pair.tool, pair.arguments, opt.secs, IN_FLIGHT)
        found["rss_after_mib"] = pipe.rss_mib()
        return found


def measure(ready, opt):
    """Rows by server and side, and the first failure of each side."""
    rows, failed = [], {}
    for number in range(1, opt.rounds + 1):
        for pair in ready:
            # The side that goes first changes from round to round.
            for side in SIDES if number % 2 else SIDES[::-1]:
                if (pair.name, side) in failed or side not in opt.sides:
                    continue
                try:
                    found = [start_once(pair, side, opt.starts * number + n) for n in range(opt.starts)]
                    row = {key: [one[key] for one in found] for key in found[0]}
                    row.update(load_once(pair, side, opt), server=pair.name, side=side, round=number)
                except (Broken, OSError, ValueError) as e:
                    failed[pair.name, side] = str(e)
                    print(f"round {number} {pair.name:20} {side:10} FAILED {str(e)[:200]}", flush=True)
                    continue
                rows.append(row)
                said = f"{median(row['start_ms']):8.1f} ms"
                if pair.load:
                    said += f" {row['single']['calls_per_s']:9,.0f} calls/s {row['single']['cpu_us']:9,.0f} us"
                print(f"round {number} {pair.name:20} {side:10} {said}", flush=True)
    return rows, failed


def figure(rows, server, side, *keys):
    """The median over all rounds of one figure, if it was measured; lists are of several starts."""
    values = []
    for row in rows:
        if (row["server"], row["side"]) == (server, side) and keys[0] in row:
            for key in keys:
                row = row[key]
            values += row if isinstance(row, list) else [row]
    return median(values)


def beside(rows, server, more_is_better, *keys):
    """Ours, the published one's, and how many times better ours is."""
    ours, theirs = (figure(rows, server, side, *keys) for side in SIDES)
    better = None
    if ours and theirs:
        better = ours / theirs if more_is_better else theirs / ours
    return [num(ours), num(theirs), "-" if better is None else f"{better:.1f}x" if better < 10 else f"{better:,.0f}x"]


def report(rows, ready, failed, missing):
    names = [pair.name for pair in ready if any(row["server"] == pair.name for row in rows)]
    start = Table(
        "Start and memory: milliseconds from spawning the process to the answer to initialize, and to that of the first call; resident MiB",
        "server", "start: ours", "published", "better", "first call: ours", "published", "better",
        "MiB then: ours", "published", "better", "MiB after the load: ours", "published", "better",
    )
    calls = Table(
        f"Calls over stdio: one at a time, {IN_FLIGHT} at once, and CPU microseconds of the server per call",
        "server", "tool", "calls/s: ours", "published", "better", f"{IN_FLIGHT} at once: ours", "published", "better",
        "CPU us: ours", "published", "better",
    )
    for pair in ready:
        if pair.name not in names:
            continue
        of = lambda more, *keys: beside(rows, pair.name, more, *keys)
        start.add(pair.name, *of(False, "start_ms"), *of(False, "first_call_ms"), *of(False, "rss_start_mib"), *of(False, "rss_after_mib"))
        if not pair.load:
            continue
        single, many = of(True, "single", "calls_per_s"), of(True, "many", "calls_per_s")
        calls.add(pair.name, pair.tool, *single, *many, *of(False, "single", "cpu_us"))
    lines = [f"- {name}, {side}: {' '.join(why.split())}" for (name, side), why in failed.items()]
    lines += [f"- {name}: not measured: {' '.join(why.split())}" for name, why in missing.items()]
    notes = "\n### Did not start, or answered wrong\n\n" + "\n".join(lines) + "\n" if lines else ""
    return start.text() + calls.text() + notes


def arguments():
    ap = commandline.parser(__doc__, "short windows, three rounds")
    ap.add_argument("--only", type=lambda text: text.split(","), default=list(PAIRS), help=f"of {','.join(PAIRS)}")
    ap.add_argument("--sides", type=lambda text: text.split(","), default=list(SIDES), help="ours, published or both")
    ap.add_argument("--starts", type=int, help="starts per round (default 5, quick 3)")
    ap.add_argument("--out", help="result files without their ending (default results/servers-<time>)")
    opt = commandline.options(ap, rounds=(5, 3), secs=(1.5, 0.5), warmup=(0.6, 0.3))
    unknown = [name for name in opt.only if name not in PAIRS]
    if unknown:
        ap.error(f"no server {', '.join(unknown)}; there are {', '.join(PAIRS)}")
    opt.starts = opt.starts or (3 if opt.quick else 5)
    return opt


def main():
    opt = arguments()
    if "published" in opt.sides and not os.path.isdir(os.environ.get("BENCH_PUBLISHED", "")):
        raise SystemExit("BENCH_PUBLISHED does not name the folder of the published servers (cargo xtask bench servers sets it)")
    if not opt.no_build:
        print("building linchpin", flush=True)
        subprocess.run(["cargo", "build", *DIST, "--quiet", "-p", "linchpin-cli"], cwd=REPO, check=True)
    about = bench.meta()
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    with pairs(opt.only) as (ready, missing):
        rows, failed = measure(ready, opt)
        text = "\n".join(f"- {k}: {v}" for k, v in dict(about, rounds=opt.rounds, secs=opt.secs).items()) + "\n"
        text += report(rows, ready, failed, missing)
    print("\n" + text)
    failures = [{"server": name, "side": side, "why": why} for (name, side), why in failed.items()]
    failures += [{"server": name, "side": None, "why": why} for name, why in missing.items()]
    commandline.keep("servers", text, {"meta": about, "rows": rows, "failed": failures}, opt.out)
    return 1 if any(side == "ours" for _, side in failed) else 0


if __name__ == "__main__":
    sys.exit(main())
