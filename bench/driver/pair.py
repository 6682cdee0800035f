"""A native server and the published one: how both are started, and which call they answer."""
import json
import os
import subprocess
import sys

from peers import LOAD_CORE, ours

HERE = os.path.dirname(os.path.abspath(__file__))
START_S_MAX = 30


class Skipped(RuntimeError):
    """What a pair needs is not here."""


class Pair:
    """A server on both sides: arguments and environment by side, the call, and words its answer must hold."""

    def __init__(self, name, program, tool, arguments, expected, args=lambda side: [], env=lambda side: {}, ours=(), load=True):
        self.name, self.program, self.tool, self.expected = name, program, tool, expected
        self.arguments = arguments if callable(arguments) else (lambda _: arguments)
        # A pair without load is started and called once: the published server lets nobody call it more often.
        self.args, self.env, self.ours, self.load = args, env, list(ours), load

    def command(self, side):
        if side == "ours":
            binary = os.environ.get("BENCH_LINCHPIN") or ours("linchpin")
            return [binary, "serve", self.name] + self.ours + self.args(side)
        return [os.path.join(os.environ.get("BENCH_PUBLISHED", ""), self.program)] + self.args(side)


def npm(name):
    return f"node_modules/.bin/mcp-server-{name}"


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_S_MAX * 2, **more)
    if done.returncode:
        raise Skipped(f"{os.path.basename(command[0])}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def double(stack, *answers):
    """A site on loopback with these answers (double.py says which), on the core of the load; its address."""
    command = [sys.executable, os.path.join(HERE, "double.py")]
    site = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    stack.callback(site.wait)
    stack.callback(site.stdin.close)
    os.sched_setaffinity(site.pid, {int(LOAD_CORE)})
    site.stdin.write(json.dumps(answers).encode() + b"\n")
    return f"http://127.0.0.1:{int(site.stdout.readline())}"
