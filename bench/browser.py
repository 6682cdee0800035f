#!/usr/bin/env python3
"""What the browser server adds to a browser: its calls beside the same commands on the browser's own pipe, and its memory.

    cargo xtask bench browser

Both sides evaluate `1 + 1` in a page of the same browser program, one at a time: `puppeteer_evaluate` through the server over
stdio, and `Runtime.evaluate` by this program. Rounds are interleaved; figures are medians of all calls. The difference holds
two pipes more, the server's work, and the commands that it sends besides. Memory is that of the program with everything, and of one
with this server alone: most of it are pages of the program's file that the kernel maps around those that are used.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

from peers import BROWSERS, DIST, LOAD_CORE, REPO, ours, small_target  # noqa: E402
from pipe import Pipe  # noqa: E402
from samples import median  # noqa: E402

WARM, CALLS = 50, 300


class Raw:
    """A browser, and a page of it, on a pair of pipes."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="bench-browser-")
        flags = [
            "--remote-debugging-pipe", "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
            f"--user-data-dir={self.profile}",
        ]
        script = 'exec 3<&0 4>&1 </dev/null >/dev/null 2>&1 && exec "$@"'
        command = ["/bin/sh", "-c", script, "sh", program, *flags]
        self.proc = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True)
        self.number, self.rest = 0, b""
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def ask(self, method, params, session=None):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self.proc.stdin.write(json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.proc.stdout.fileno(), 1 << 16)
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                return answer["result"]

    def evaluate(self):
        answer = self.ask("Runtime.evaluate", {"expression": "1 + 1", "returnByValue": True, "awaitPromise": True}, self.session)
        assert answer["result"]["value"] == 2, answer

    def stop(self):
        os.killpg(self.proc.pid, 9)
        self.proc.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def samples(call, count):
    for _ in range(WARM):
        call()
    took = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1e3)
    return took


def resident(pid):
    """Resident memory of the process alone, and what of it is not a file's, in MiB."""
    with open(f"/proc/{pid}/status") as f:
        kib = dict(line.split()[:2] for line in f if line.startswith(("VmRSS:", "RssAnon:")))
    return int(kib["VmRSS:"]) / 1024, int(kib["RssAnon:"]) / 1024


def built(opt):
    """The program with everything, and the one with this server alone."""
    name, path = "linchpin", os.path.join(small_target(), "dist", "linchpin")
    if not opt.no_build:
        cargo = ["cargo", "build", *DIST, "--quiet", "-p", "linchpin-cli"]
        subprocess.run(cargo, cwd=REPO, check=True)
        alone = dict(os.environ, CARGO_TARGET_DIR=small_target())
        subprocess.run([*cargo, "--no-default-features", "--features", "browser"], cwd=REPO, env=alone, check=True)
    return os.environ.get("BENCH_LINCHPIN") or ours(name), os.environ.get("BENCH_LINCHPIN_ALONE") or path


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--no-build", action="store_true", help="use what was built before (BENCH_LINCHPIN and BENCH_LINCHPIN_ALONE name other binaries)")
    opt = ap.parse_args()
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if program is None:
        raise SystemExit("there is no browser here")
    whole, alone = built(opt)
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    serve = ["serve", "browser", "--toolsets", "puppeteer", "--no-sandbox", "--executable", program]
    raw, server, memory = [], [], {whole: [], alone: []}
    for number in range(1, opt.rounds + 1):
        browser = Raw(program)
        try:
            plain = samples(browser.evaluate, CALLS)
        finally:
            browser.stop()
        for binary in (whole, alone):
            with Pipe([binary, *serve], {}) as pipe:
                pipe.call("puppeteer_navigate", {"url": "about:blank"}, "Navigated")
                took = samples(lambda: pipe.call("puppeteer_evaluate", {"script": "1 + 1"}, "result:\n2"), CALLS)
                memory[binary].append(resident(pipe.proc.pid))
            if binary == whole:
                with_ours = took
        raw, server = raw + plain, server + with_ours
        print(f"round {number}: raw {median(plain):.2f} ms, server {median(with_ours):.2f} ms", flush=True)
    added = median(server) - median(raw)
    print(f"\nraw {median(raw):.2f} ms, server {median(server):.2f} ms: {added:.2f} ms more")
    for name, binary in (("with everything", whole), ("with this server alone", alone)):
        all_of_it, anonymous = (median(column) for column in zip(*memory[binary]))
        print(f"beside the browser's memory, {name}: {all_of_it:.1f} MiB, {anonymous:.1f} of them not the program's file")
    return 0


if __name__ == "__main__":
    sys.exit(main())
