#!/usr/bin/env python3
"""What the browser server adds to a browser: its calls beside the same commands on the browser's own pipe, and its memory.

    cargo xtask bench browser

Both sides evaluate `1 + 1` in a page of the same browser program, one at a time: `puppeteer_evaluate` through the server over
stdio, and `Runtime.evaluate` by this program. Rounds are interleaved; figures are medians of all calls. The difference holds
two pipes more, the server's work, and the commands that it sends besides.
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

from peers import BROWSERS, LOAD_CORE, REPO, ours  # noqa: E402
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


def own_kib(pid):
    """Resident memory of the process alone."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--no-build", action="store_true", help="use what was built before (BENCH_LINCHPIN names another binary)")
    opt = ap.parse_args()
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if program is None:
        raise SystemExit("there is no browser here")
    if not opt.no_build:
        subprocess.run(["cargo", "build", "--profile", "dist", "--quiet", "-p", "linchpin-cli"], cwd=REPO, check=True)
    binary = os.environ.get("BENCH_LINCHPIN") or ours("linchpin")
    os.sched_setaffinity(0, {int(LOAD_CORE)})
    command = [binary, "serve", "browser", "--toolsets", "puppeteer", "--no-sandbox", "--executable", program]
    raw, server, rss = [], [], []
    for number in range(1, opt.rounds + 1):
        browser = Raw(program)
        try:
            plain = samples(browser.evaluate, CALLS)
        finally:
            browser.stop()
        with Pipe(command, {}) as pipe:
            pipe.call("puppeteer_navigate", {"url": "about:blank"}, "Navigated")
            with_ours = samples(lambda: pipe.call("puppeteer_evaluate", {"script": "1 + 1"}, "result:\n2"), CALLS)
            rss.append(own_kib(pipe.proc.pid) / 1024)
        raw, server = raw + plain, server + with_ours
        print(f"round {number}: raw {median(plain):.2f} ms, server {median(with_ours):.2f} ms, {rss[-1]:.1f} MiB", flush=True)
    added = median(server) - median(raw)
    print(f"\nraw {median(raw):.2f} ms, server {median(server):.2f} ms: {added:.2f} ms more; {median(rss):.1f} MiB beside the browser's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
