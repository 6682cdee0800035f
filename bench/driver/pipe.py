"""One MCP server on a pipe: started, spoken to in raw JSON lines, and looked at from outside.

The server has one core and this program the other. A server ends when its standard input ends, so none outlives a run;
the process group of one that does not is killed by its id.
"""
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from peers import LOAD_CORE, SERVER_CORE

TICKS = os.sysconf("SC_CLK_TCK")
REVISION = "2025-11-25"
LIMIT_S = 60
"""No start and no window takes longer; then the server is killed, and the reading ends with it."""


class Broken(RuntimeError):
    """The server did not start, ended, or answered something else than expected."""


def tree(pid):
    """A process and its living descendants."""
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as f:
                    todo += map(int, f.read().split())
        except OSError:
            pass
    return found


def cpu_s(pid):
    """User and system time of the tree, of children that ended and were waited for too."""
    total = 0
    for one in tree(pid):
        try:
            with open(f"/proc/{one}/stat") as f:
                total += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:15]))
        except OSError:
            pass
    return total / TICKS


def rss_kib(pid):
    """Resident memory of the tree."""
    total = 0
    for one in tree(pid):
        try:
            with open(f"/proc/{one}/status") as f:
                total += next((int(line.split()[1]) for line in f if line.startswith("VmRSS:")), 0)
        except OSError:
            pass
    return total


def request(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


class Pipe:
    """A running server. `start_ms` is from before the spawn to the answer to `initialize`."""

    def __init__(self, command, env):
        self.log = tempfile.TemporaryFile(prefix="bench-")
        self.number, self.rest = 0, b""
        # The child inherits the core. No code runs between fork and exec, so that the spawn itself is fast.
        os.sched_setaffinity(0, {int(SERVER_CORE)})
        began = time.perf_counter()
        try:
            self.proc = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env=dict(os.environ, **env),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as e:
            raise Broken(f"{command[0]}: {e.strerror}") from e
        finally:
            os.sched_setaffinity(0, {int(LOAD_CORE)})
        self.out, self.into = self.proc.stdout.fileno(), self.proc.stdin.fileno()
        self.watchdog = threading.Timer(LIMIT_S, self.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        try:
            hello = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            self.greeting = self.ask("initialize", hello)
            self.start_ms = (time.perf_counter() - began) * 1e3
            self.began = began
            self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        except BaseException:
            self.stop()
            raise

    def write(self, data):
        try:
            while data:
                data = data[os.write(self.into, data) :]
        except OSError as e:
            raise Broken(self.last_words()) from e

    def lines(self):
        """Whole lines as they come, at least one; notifications are left out."""
        while True:
            chunk = os.read(self.out, 1 << 18)
            if not chunk:
                raise Broken(self.last_words())
            *whole, self.rest = (self.rest + chunk).split(b"\n")
            whole = [line for line in whole if line and b'"method"' not in line[:80]]
            if whole:
                return whole

    def ask(self, method, params):
        self.number += 1
        self.write(request(self.number, method, params))
        answer = json.loads(self.lines()[-1])
        if "result" not in answer:
            raise Broken(f"{method}: {json.dumps(answer)[:300]}")
        return answer["result"]

    def call(self, tool, arguments, expected):
        """One call whose text must hold `expected`; answers the size of the result in bytes."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        texts = "\n".join(block.get("text", "") for block in result.get("content", []))
        if result.get("isError") or expected not in texts:
            raise Broken(f"{tool} answered {json.dumps(result)[:300]}")
        return len(json.dumps(result))

    def window(self, tool, arguments, seconds, in_flight):
        """Calls for a while with so many waiting for their answers; calls/s and CPU time per call."""
        self.watch(seconds)

        def one():
            self.number += 1
            return request(self.number, "tools/call", {"name": tool, "arguments": arguments(self.number)})

        cpu, began = cpu_s(self.proc.pid), time.perf_counter()
        end, waiting, done = began + seconds, in_flight, 0
        self.write(b"".join(one() for _ in range(in_flight)))
        while waiting:
            lines = self.lines()
            for line in lines:
                if b'"isError":true' in line or b'"isError": true' in line or b'"result"' not in line:
                    raise Broken(f"{tool} answered {line[:300].decode(errors='replace')}")
            waiting -= len(lines)
            done += len(lines)
            if time.perf_counter() < end:
                self.write(b"".join(one() for _ in lines))
                waiting += len(lines)
        took = time.perf_counter() - began
        return {"calls": done, "calls_per_s": done / took, "cpu_us": (cpu_s(self.proc.pid) - cpu) / done * 1e6}

    def rss_mib(self):
        return rss_kib(self.proc.pid) / 1024

    def last_words(self):
        try:
            self.proc.wait(2)
        except subprocess.TimeoutExpired:
            pass
        self.log.seek(0)
        said = self.log.read().decode(errors="replace").strip()
        return f"ended with {self.proc.returncode}: {said[-400:]}"

    def watch(self, seconds):
        """Starts the watchdog anew for what comes next."""
        self.watchdog.cancel()
        self.watchdog = threading.Timer(LIMIT_S + seconds, self.kill)
        self.watchdog.daemon = True
        self.watchdog.start()

    def kill(self):
        try:
            os.killpg(self.proc.pid, signal.SIGKILL)
        except OSError:
            pass

    def stop(self):
        self.watchdog.cancel()
        for stream in (self.proc.stdin, self.proc.stdout):
            stream.close()
        try:
            self.proc.wait(3)
        except subprocess.TimeoutExpired:
            pass
        self.kill()
        self.proc.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
