"""What the drivers beside run.py share: their options, their builds, and where their results go."""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

import bench
from peers import BENCH, DIST, REPO, tied_to, wait_quiet, workspace_target


def parser(doc, quick):
    """The options that every driver has; `quick` says what --quick means."""
    ap = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--quick", action="store_true", help=quick)
    ap.add_argument("--rounds", type=int, help="interleaved rounds")
    ap.add_argument("--secs", type=float, help="length of one window")
    ap.add_argument("--no-build", action="store_true", help="use what was built before")
    return ap


def options(ap, rounds, secs, warmup):
    """The parsed options; each pair is the default of a whole run and that of --quick. Ends where the machine cannot measure."""
    opt = ap.parse_args()
    opt.rounds = opt.rounds or rounds[opt.quick]
    opt.secs = opt.secs or secs[opt.quick]
    opt.warmup = warmup[opt.quick]
    if sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("The benchmark pins processes to two cores and reads /proc: it needs Linux and two cores.")
    for number in (signal.SIGTERM, signal.SIGINT):
        # The fixtures and processes of a run are cleared away when it is stopped.
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    return opt


def keep(name, text, data, out=None):
    """Writes the tables and the raw figures to results/NAME-TIME (or to `out`) and says where."""
    out = out or os.path.join(BENCH, "results", f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out + ".json", "w") as f:
        json.dump(data, f, indent=1)
    with open(out + ".md", "w") as f:
        f.write(text)
    print(f"written to {os.path.relpath(out)}.json and .md")


class InProcess:
    """The drivers whose programs measure in process: the options, the builds and the programs of `linchpin-bench`."""

    def __init__(self, doc, groups=()):
        ap = parser(doc, "short windows, one round")
        ap.add_argument("--quiet", type=float, help="wait at most this long for both cores to be idle before a window")
        ap.add_argument("--profile", default="dist", help="cargo's profile of our programs")
        ap.add_argument("--jobs", type=int, help="cargo jobs for the builds")
        ap.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
        self.opt = options(ap, rounds=(5, 1), secs=(1.5, 0.4), warmup=(0.6, 0.2))
        if self.opt.quiet is None:
            self.opt.quiet = 0 if self.opt.quick else 3
        if not self.opt.no_build:
            self.build(set(groups))

    def build(self, groups):
        failed = bench.build(groups, self.opt.jobs)
        limit = ["-j", str(self.opt.jobs)] if self.opt.jobs else []
        profile = DIST if self.opt.profile == "dist" else ["--profile", self.opt.profile]
        done = subprocess.run(["cargo", "build", "--quiet", *profile, "-p", "linchpin-bench", *limit], cwd=REPO)
        if failed or done.returncode:
            raise SystemExit("not built: " + ", ".join(failed or ["linchpin-bench"]))

    def program(self, name):
        return os.path.join(workspace_target(), self.opt.profile, name)

    def lines(self, name, core=None):
        """What a program prints with --json. One of one thread has a core to itself."""
        wait_quiet(self.opt.quiet)
        pinned = tied_to(core) if core else None
        done = subprocess.run([self.program(name), "--json"], capture_output=True, text=True, timeout=300, preexec_fn=pinned)
        if done.returncode:
            raise SystemExit(f"{name}: {done.stderr[-400:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def end(self, name, got, text, missed):
        """Prints and keeps the tables; the exit status."""
        print("\n" + text)
        keep(name, text, got)
        return 1 if self.opt.strict and missed else 0
