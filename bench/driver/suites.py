"""What is measured. Each suite measures all its rows once, interleaved.

Servers of one suite stay up side by side (an idle one uses no CPU) and each case
is measured row after row within seconds, in an order shuffled by the round, so that
a row and the row it is compared with meet the same machine. Results are one JSON
object per window, appended to a file: a run that is cut short loses nothing.
"""
import contextlib
import json
import os
import random
import subprocess
import time

from peers import Server, fill, free_port, mcpload, ours, small_target, url_of, wait_quiet, wanted, workspace_target

CONNECTIONS = (1, 16, 64, 256)
LIST_SIZES = (100, 1000, 10000)
# Memory does not scatter like time does, and these suites are long.
ROUNDS_MAX = {"sessions": 3, "fanout": 3, "size": 1, "allocs": 1}
STREAMS = 1000
SESSION_CYCLES = 8


class Options:
    """How long and how often; see run.py for the command line."""

    def __init__(self, quick=False, rounds=None, secs=None, quiet=None):
        self.quick = quick
        self.rounds = rounds or (3 if quick else 5)
        self.secs = secs or (0.4 if quick else 1.5)
        self.warmup = 0.2 if quick else 0.6
        self.quiet = quiet if quiet is not None else (0 if quick else 3)
        self.connections = (64,) if quick else CONNECTIONS
        self.list_sizes = (1000, 10000) if quick else LIST_SIZES
        self.bursts = 2 if quick else 5
        self.starts = 3 if quick else 5
        self.session_counts = (10000,) if quick else (1000, 10000)
        self.fanouts = 4 if quick else 7

    def rounds_of(self, suite):
        most = ROUNDS_MAX.get(suite, self.rounds)
        return min(1 if self.quick and suite in ROUNDS_MAX else most, self.rounds)


class Recorder:
    """Appends one row per window and says so."""

    def __init__(self, path, round_):
        self.path, self.round = path, round_

    def add(self, peer, suite, case, result):
        row = {"t": round(time.time(), 1), "round": self.round, "peer": peer["name"], "suite": suite, "case": case, "result": result}
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")
        print(f"  round {self.round} {peer['name']:30} {suite}/{case:14} {brief(result)}"[:150], flush=True)


def brief(result):
    if "failed" in result:
        return "FAILED " + result["failed"]
    flat = dict(result, **result.get("pingpong", {}))
    keys = ("rps", "p50_us", "cpu_us_per_req", "foreign_core0", "first_answer_ms", "bytes_per_session", "rss_per_stream_bytes", "bytes", "count")
    return " ".join(f"{k}={flat[k]:.4g}" for k in keys if isinstance(flat.get(k), (int, float)))


def run_suite(suite, peers, rec, opt):
    rows = [p for p in peers if wanted(p, suite)]
    random.Random(f"{rec.round}{suite}").shuffle(rows)
    SUITES[suite](rows, rec, opt)


@contextlib.contextmanager
def servers(rows, rec, suite, tools=5):
    """All rows' servers at once; rows that do not start are recorded as failed."""
    with contextlib.ExitStack() as stack:
        up = []
        for p in rows:
            try:
                up.append((p, stack.enter_context(Server(p, tools))))
            except (RuntimeError, OSError) as e:
                rec.add(p, suite, "start", {"failed": str(e)})
        yield up


def http_window(peer, server, opt, op, conns, tools=5):
    wait_quiet(opt.quiet)
    return mcpload(
        "http", "--url", server.url, "--era", peer["era"], "--pid", server.pid, "--secs", opt.secs,
        "--warmup", opt.warmup, "--op", op, "--conns", conns, "--tools", tools,
    )


def suite_http(rows, rec, opt):
    cases = [(f"echo@{n}", "echo", n) for n in opt.connections] + [(op, op, 4) for op in ("blob_result", "blob_arg")]
    with servers(rows, rec, "http") as up:
        for case, op, conns in cases:
            for peer, server in up:
                rec.add(peer, "http", case, http_window(peer, server, opt, op, conns))


def suite_list(rows, rec, opt):
    for tools in opt.list_sizes:
        with servers(rows, rec, "list", tools) as up:
            for peer, server in up:
                rec.add(peer, "list", str(tools), http_window(peer, server, opt, "list", 4, tools))


def suite_stdio(rows, rec, opt):
    for peer in rows:
        wait_quiet(opt.quiet)
        args = ["--era", peer["era"], "--secs", opt.secs, "--warmup", opt.warmup, "--repeat", opt.bursts]
        rec.add(peer, "stdio", "all", mcpload("stdio", *args, "--pipelined", peer.get("pipelined", 10000), "--", *fill(peer, 0, 5), limit=16 + 4 * opt.secs))


def suite_startup(rows, rec, opt):
    for _ in range(opt.starts):
        for peer in rows:
            wait_quiet(opt.quiet)
            rec.add(peer, "startup", "cold", start_once(peer))


def start_once(peer):
    if peer["transport"] == "stdio":
        return mcpload("stdio", "--era", peer["era"], "--what", "startup", "--", *fill(peer, 0, 5))
    port = free_port()
    return mcpload("startup", "--url", url_of(peer, port), "--era", peer["era"], "--", *fill(peer, port, 5))


def suite_sessions(rows, rec, opt):
    # Each mcpload run opens for at most 10 s and deletes for at most 3 s.
    # "cycles" opens and deletes on one server again and again: does the memory level off?
    plan = [(str(n), n, 1) for n in opt.session_counts] + [("cycles", 2000, SESSION_CYCLES)]
    for case, count, cycles in plan:
        for peer in rows:
            if case == "cycles" and opt.quick and peer["group"] != "linchpin":
                continue
            with servers([peer], rec, "sessions") as up:
                for _, s in up:
                    for _ in range(cycles):
                        r = mcpload("sessions", "--url", s.url, "--pid", s.pid, "--count", count, "--max-secs", 10, limit=20)
                        rec.add(peer, "sessions", case, r)


def suite_fanout(rows, rec, opt):
    for peer in rows:
        mode = peer.get("fanout_mode") or peer.get("mode", "default")
        with servers([dict(peer, mode=mode)], rec, "fanout") as up:
            for _, s in up:
                wait_quiet(opt.quiet)
                r = mcpload("fanout", "--url", s.url, "--era", peer["era"], "--pid", s.pid, "--streams", STREAMS, "--repeat", opt.fanouts, limit=40)
                rec.add(peer, "fanout", str(STREAMS), r)


OURS = {"name": "linchpin"}


def suite_size(rows, rec, opt):
    """The distributed program: with everything, and with one server only."""
    if any(p["group"] == "linchpin" for p in rows):
        for case, target in (("small", small_target()), ("stripped", workspace_target())):
            path = ours("linchpin", target)
            result = {"bytes": os.path.getsize(path)} if os.path.exists(path) else {"failed": "linchpin-cli is not built"}
            rec.add(OURS, "size", case, result)


def suite_allocs(rows, rec, opt):
    """Allocations per call, counted inside the server by its own allocator."""
    if not any(p["group"] == "linchpin" for p in rows):
        return
    try:
        out = subprocess.run([ours("bench-allocs"), "--json"], capture_output=True, text=True, timeout=60)
        found = [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]
        if out.returncode or not found:
            raise RuntimeError(out.stderr[-300:] or f"exit {out.returncode}")
    except (OSError, ValueError, RuntimeError, subprocess.TimeoutExpired) as e:
        rec.add(OURS, "allocs", "all", {"failed": str(e)})
        return
    for row in found:
        rec.add(OURS, "allocs", row["case"], row)


SUITES = {
    "http": suite_http,
    "list": suite_list,
    "stdio": suite_stdio,
    "startup": suite_startup,
    "sessions": suite_sessions,
    "fanout": suite_fanout,
    "size": suite_size,
    "allocs": suite_allocs,
}
