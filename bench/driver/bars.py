"""The bars this project holds itself to, and whether a run met them.

A bar is a figure of ours with a highest value. Ratios are server CPU per request
over the bare program of the same era in the same run. Where the CPU per request
itself differs too much between the rounds, that is a missed bar of its own.
"""
from samples import median
from suites import STREAMS
from tables import Table, kept_per_session, num

LEGACY, MODERN = "linchpin/2025", "linchpin/2026"
PIPE_LEGACY, PIPE_MODERN = "linchpin-stdio/2025", "linchpin-stdio/2026"
CPU = "cpu_us_per_req"
ROUNDS_MAX = 2
"""How many times the CPU per request of the cheapest round the dearest may take: more, and the run has not decided."""
KEPT_BYTES_MAX = 64
"""What may stay behind per ended session: page-sized noise of the resident set, not a leak."""


class Bar:
    """One line: what it is, its limit, and how it is read from the samples."""

    def __init__(self, work, limit, unit, values, best=None, rounds=None):
        self.work, self.limit, self.unit, self.values, self.best, self.rounds = work, limit, unit, values, best, rounds

    def show(self, x):
        return "-" if x is None else (f"{x:.{2 if self.limit >= 1 else 3}f}x" if self.unit == "x" else f"{num(x)} {self.unit}".strip())

    def judge(self, samples):
        values = self.values(samples)
        got = median(values)
        verdict = "not measured" if got is None else ("pass" if got <= self.limit else "FAIL")
        spread = f"{self.show(min(values))} - {self.show(max(values))}" if len(values) > 1 else ""
        rival = self.show(median(self.best(samples))) if self.best else ""
        return [self.work, f"<= {self.show(self.limit)}", self.show(got), spread, rival, verdict]

    def scatter(self, samples):
        """A row of its own when the rounds differ too much."""
        us = self.rounds(samples) if self.rounds else []
        if len(us) < 2 or max(us) <= ROUNDS_MAX * min(us):
            return None
        spread = f"{num(min(us))} us - {num(max(us))} us"
        return [f"dearest / cheapest round: {self.work}", f"<= {ROUNDS_MAX:.2f}x", f"{max(us) / min(us):.2f}x", spread, "", "FAIL"]


def ratio(row, suite, case, *keys):
    def values(s):
        base = s.baseline(row, suite) if row in s.peers else None
        return s.ratios(row, base, suite, case, *keys) if base else []

    return values


def figures(row, suite, case, key, scale=1.0):
    return lambda s: [x * scale for r in s.good(row, suite, case) for x in [r.get(key)] if x is not None]


def ratio_bar(work, limit, row, rival, suite, case, *keys):
    # With a client that spins the state of the core decides, in which ratios are taken already.
    rounds = None if keys[0] == "spinning" else lambda s: s.values(row, suite, case, *keys)
    return Bar(work, limit, "x", ratio(row, suite, case, *keys), ratio(rival, suite, case, *keys), rounds)


def http_bars():
    yield ratio_bar("HTTP echo, 64 connections, modern", 1.10, MODERN, "rmcp/2026-json", "http", "echo@64", CPU)
    yield ratio_bar("HTTP echo, 64 connections, legacy sessions", 1.15, LEGACY, "rmcp/2025-session-sse", "http", "echo@64", CPU)
    yield ratio_bar("HTTP echo, 64 connections, modern, spans on at info", 1.25, "linchpin-spans/2026", "rmcp/2026-json", "http", "echo@64", CPU)
    for era, row, rival in (("modern", MODERN, "rmcp/2026-json"), ("legacy", LEGACY, "rmcp/2025-session-sse")):
        yield ratio_bar(f"1 MiB argument, {era}", 1.1, row, rival, "http", "blob_arg", CPU)
        yield ratio_bar(f"1 MiB result, {era}", 1.1, row, rival, "http", "blob_result", CPU)
        for n in (1000, 10000):
            yield ratio_bar(f"tools/list, {n:,} tools, {era}", 0.15, row, rival, "list", str(n), CPU)


def stdio_bars():
    rows = (("modern", 1.2, PIPE_MODERN, "rmcp-stdio/2026"), ("legacy", 1.0, PIPE_LEGACY, "rmcp-stdio/2025"))
    for era, alone, row, rival in rows:
        yield ratio_bar(f"stdio, one at a time, {era}", alone, row, rival, "stdio", "all", "pingpong", CPU)
        yield ratio_bar(f"the same, the client spinning, {era}", 1.3, row, rival, "stdio", "all", "spinning", CPU)
        yield ratio_bar(f"stdio, 10,000 pipelined, {era}", 3, row, rival, "stdio", "all", "pipelined", CPU)
        key = ("stdio", "all", "rss_after_kib", 1 / 1024)
        yield Bar(f"resident memory after that, {era}", 8, "MiB", figures(row, *key), figures(rival, *key))


def memory_bars():
    key = ("sessions", "10000", "bytes_per_session")
    yield Bar("idle legacy session, 10,000 open", 1024, "B", figures(LEGACY, *key), figures("rmcp/2025-session-sse", *key))
    kept = lambda row: lambda s: [x for x in [kept_per_session(s, row)] if x is not None]
    yield Bar("kept per ended session, cycles 5-8 of 8", KEPT_BYTES_MAX, "B", kept(LEGACY), kept("rmcp/2025-session-sse"))
    for era, row, rival in (("modern", MODERN, "rmcp/2026-json"), ("legacy", LEGACY, "rmcp/2025-session-sse")):
        yield ratio_bar(f"{STREAMS:,} streams, one list_changed, {era}", 1.3, row, rival, "fanout", str(STREAMS), "cpu_us_per_stream")
        key = ("fanout", str(STREAMS), "rss_per_stream_bytes", 1 / 1024)
        yield Bar(f"memory of an open stream, {era}", 16, "KiB", figures(row, *key), figures(rival, *key))


def program_bars():
    key = ("startup", "cold", "first_answer_ms")
    yield Bar("start to first answer, linchpin serve everything", 5, "ms", figures("linchpin serve everything", *key), figures("rmcp-stdio/2025", *key))
    yield Bar("start to first answer, linchpin serve filesystem", 5, "ms", figures("linchpin serve filesystem", *key))
    yield Bar("start to first answer, bench-server over HTTP", 5, "ms", figures(LEGACY, *key), figures("rmcp/2025-session-sse", *key))
    yield Bar("distributed linchpin", 25, "MB", figures("linchpin", "size", "stripped", "bytes", 1e-6))
    yield Bar("the same with the memory server only", 10, "MB", figures("linchpin", "size", "small", "bytes", 1e-6))


def table(samples):
    t = Table("BARS: ours, and whether it is within the bar (ratios: server CPU per request over the bare program)", "work", "bar", "measured", "lowest - highest round", "rmcp", "verdict")
    for make in (http_bars, stdio_bars, memory_bars, program_bars):
        for bar in make():
            row = bar.judge(samples)
            if row[2] != "-" or row[4] not in ("", "-"):
                t.add(*row)
            scatter = bar.scatter(samples)
            if scatter:
                t.add(*scatter)
    return t


def missed(t):
    return [r[0] for r in t.rows if r[-1] == "FAIL"]
