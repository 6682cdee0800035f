"""The rows of a run (peers.json) and the processes behind them.

A server is pinned to one core and the load to another, so that neither takes
time from the other and requests/s are per core. Every process started here is
ended here, by its own id, also when the driver dies: children ask the kernel to
be killed with their parent.
"""
import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.dirname(HERE)
REPO = os.path.dirname(BENCH)
SERVER_CORE, LOAD_CORE = os.environ.get("BENCH_CORES", "0,1").split(",")
START_SECONDS_MAX = 20
PR_SET_PDEATHSIG = 1


def workspace_target():
    return os.path.abspath(os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPO, "target"))


BROWSERS = ("chromium-headless-shell", "google-chrome", "chromium", "chromium-browser", "microsoft-edge")
"""Programs that may be the browser, the first that is there."""


DIST = ["--profile", "dist", "--config", os.path.join(REPO, ".cargo", "dist.toml")]
"""How cargo builds what is distributed."""


def ours(name, target=None):
    """A program of this workspace as it is distributed."""
    return os.path.join(target or workspace_target(), "dist", name)


def small_target():
    """The program with one server only."""
    return os.path.join(workspace_target(), "bench-small")


def peers_target():
    """Comparison programs and the load generator are built apart from the workspace."""
    return os.path.join(workspace_target(), "bench-peers")


MCPLOAD = os.path.join(peers_target(), "release", "mcpload")


def load_peers(path=None, only=None, quick=False, extra=False):
    """The rows wanted; `only` holds names or groups, and always keeps the baselines of what it names."""
    with open(path or os.path.join(HERE, "peers.json")) as f:
        rows = json.load(f)["peers"]
    places = {
        "{peers}": os.path.join(peers_target(), "release"),
        "{ours}": os.path.dirname(ours("linchpin")),
        "{dir}": BENCH,
        "{bench}": BENCH,
    }
    for p in rows:
        for key, value in places.items():
            p["cmd"] = [c.replace(key, value) for c in p["cmd"]]
    by_name = {p["name"]: p for p in rows}
    names = set()
    for p in rows:
        named = bool(only) and p["name"] in only
        if only and not named and p["group"] not in only:
            continue
        if not named and ((quick and not p.get("quick")) or (p.get("extra") and not extra)):
            continue
        names.add(p["name"])
        names.update(p[k] for k in ("baseline", "fanout_baseline") if p.get(k) in by_name)
    return [p for p in rows if p["name"] in names]


def wanted(peer, suite):
    """Does this row take part in this suite?"""
    if "suites" in peer and suite not in ("size", "allocs"):
        return suite in peer["suites"]
    if suite in ("http", "list"):
        return peer["transport"] == "http"
    if suite == "stdio":
        return peer["transport"] == "stdio"
    if suite == "startup":
        return peer.get("startup", True)
    if suite in ("size", "allocs"):
        return peer["group"] == "linchpin"
    return bool(peer.get(suite))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fill(peer, port, tools, mode=None):
    return [c.format(port=port, tools=tools, mode=mode or peer.get("mode", "default")) for c in peer["cmd"]]


def url_of(peer, port):
    return peer.get("url", "http://127.0.0.1:{port}/mcp").format(port=port)


LIBC = ctypes.CDLL(None, use_errno=True)


def tied_to(core):
    """Runs in the child before exec: one core, and death with the parent."""

    def prepare():
        os.sched_setaffinity(0, {int(core)})
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    return prepare


RUNNING = []


def stop_all():
    for server in RUNNING[:]:
        server.stop()


atexit.register(stop_all)


class Server:
    """One HTTP server process on its own core."""

    def __init__(self, peer, tools=5, mode=None):
        self.port = free_port()
        self.url = url_of(peer, self.port)
        self.log = tempfile.NamedTemporaryFile(prefix="bench-", suffix=".log", delete=False)
        self.proc = subprocess.Popen(
            fill(peer, self.port, tools, mode),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            env=dict(os.environ, **peer.get("env", {})),
            preexec_fn=tied_to(SERVER_CORE),
        )
        RUNNING.append(self)
        if not self.listening():
            with open(self.log.name, errors="replace") as f:
                said = f.read()[-400:]
            self.stop()
            raise RuntimeError("did not start: " + said)
        time.sleep(0.2)

    def listening(self):
        end = time.time() + START_SECONDS_MAX
        while time.time() < end and self.proc.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return True
            except OSError:
                time.sleep(0.02)
        return False

    @property
    def pid(self):
        return str(self.proc.pid)

    def stop(self):
        if self not in RUNNING:
            return
        RUNNING.remove(self)
        if self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(3)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        self.log.close()
        os.unlink(self.log.name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def mcpload(*args, limit=16):
    """Run the load generator on the load core. It bounds itself; `limit` seconds is a second fence."""
    proc = subprocess.Popen(
        [MCPLOAD] + [str(a) for a in args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, MCPLOAD_CORES=f"{SERVER_CORE},{LOAD_CORE}"),
        preexec_fn=tied_to(LOAD_CORE),
    )
    try:
        out, err = proc.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        proc.kill()
        proc.communicate()
        return {"failed": f"no result in {limit} s"}
    except BaseException:
        proc.kill()
        raise
    try:
        return json.loads(out)
    except ValueError:
        return {"failed": (out + err)[-300:] or f"exit {proc.returncode}"}


def busy():
    """Busy fraction of each of the two cores over a quarter of a second."""

    def read():
        rows = {}
        with open("/proc/stat") as f:
            for line in f:
                w = line.split()
                if w[0] in ("cpu" + SERVER_CORE, "cpu" + LOAD_CORE):
                    v = [int(x) for x in w[1:9]]
                    rows[w[0]] = (sum(v), v[3] + v[4])
        return rows

    a = read()
    time.sleep(0.25)
    b = read()
    return [1 - (b[k][1] - a[k][1]) / max(1, b[k][0] - a[k][0]) for k in sorted(a)]


def wait_quiet(seconds):
    """Wait for both cores to be idle, at most `seconds`."""
    end = time.time() + seconds
    while time.time() < end:
        if max(busy()) < 0.15:
            return True
        time.sleep(0.5)
    return False
