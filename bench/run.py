#!/usr/bin/env python3
"""Benchmark this project beside other servers and beside bare programs, in one run.

    cargo xtask bench                 everything, about 25 minutes
    cargo xtask bench --quick         about three minutes: the bars, with short windows
    cargo xtask bench --suites http,list --only linchpin
    cargo xtask bench --table bench/results/20261121-040000.jsonl --readme

It builds what it needs, checks that every server answers right, measures in interleaved
rounds, and prints tables and then BARS: each figure this project promises, as measured.
See README.md beside this file.
"""
import argparse
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
from peers import load_peers  # noqa: E402
from suites import SUITES, Options  # noqa: E402


def names(text):
    return [s for s in text.split(",") if s]


def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--quick", action="store_true", help="short windows, few rows")
    ap.add_argument("--suites", type=names, default=list(SUITES), help=f"of {','.join(SUITES)}")
    ap.add_argument("--only", type=names, help="rows or groups (bare, linchpin, rmcp); what they are compared with is kept")
    ap.add_argument("--all", action="store_true", help="also the rows marked extra in driver/peers.json")
    ap.add_argument("--rounds", type=int, help="interleaved rounds (default 5, quick 3)")
    ap.add_argument("--secs", type=float, help="length of one window (default 1.5, quick 0.4)")
    ap.add_argument("--quiet", type=float, help="wait at most this long for both cores to be idle before a window")
    ap.add_argument("--jobs", type=int, help="cargo jobs for the builds")
    ap.add_argument("--no-build", action="store_true", help="use what was built before")
    ap.add_argument("--check", action="store_true", help="build and check only")
    ap.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    ap.add_argument("--out", help="result file (default results/<time>.jsonl)")
    ap.add_argument("--readme", action="store_true", help="also put the tables into bench/README.md")
    ap.add_argument("--table", nargs="+", metavar="FILE", help="print the tables of earlier runs and measure nothing")
    opt = ap.parse_args()
    unknown = [s for s in opt.suites if s not in SUITES]
    if unknown:
        ap.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    return opt


def main():
    opt = arguments()
    if opt.table:
        text, missed = bench.report(opt.table, load_peers(extra=True))
        print(text)
        if opt.readme:
            bench.into_readme(text)
        return 1 if opt.strict and missed else 0
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("The benchmark pins processes to two cores and reads /proc: it needs Linux and two cores.")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    bench.raise_file_limit()
    peers = load_peers(only=opt.only, quick=opt.quick, extra=opt.all)
    if not peers:
        raise SystemExit(f"no row is named {', '.join(opt.only)}; see bench/driver/peers.json")
    if not opt.no_build:
        failed = bench.build({p["group"] for p in peers}, opt.jobs)
        if failed:
            raise SystemExit(f"did not build: {', '.join(failed)} (leave it out with --only)")
    bad = bench.check(peers)
    if bad or opt.check:
        return 1 if bad else 0

    out = opt.out or os.path.join(HERE, "results", time.strftime("%Y%m%d-%H%M%S") + ".jsonl")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    bench.measure(peers, opt.suites, Options(opt.quick, opt.rounds, opt.secs, opt.quiet), out)
    text, missed = bench.report([out], peers)
    with open(os.path.splitext(out)[0] + ".md", "w") as f:
        f.write(text)
    print(text)
    if opt.readme:
        bench.into_readme(text)
    print(f"written to {os.path.relpath(out)} and .md; missed bars: {len(missed)}")
    return 1 if opt.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
