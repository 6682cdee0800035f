"""Prints what a run measured, one table per suite."""
from samples import median
from suites import CONNECTIONS, LIST_SIZES, STREAMS


def num(x, digits=3):
    if x is None:
        return "-"
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    return f"{x:.{digits}g}"


def times(x):
    return "-" if x is None else f"{x:.2f}x"


class Table:
    """Markdown with padded columns: readable in a terminal too."""

    def __init__(self, title, *head):
        self.title, self.head, self.rows = title, list(head), []

    def add(self, *cells):
        self.rows.append([c if isinstance(c, str) else num(c) for c in cells])

    def text(self):
        if not self.rows:
            return ""
        width = [max(len(r[i]) for r in self.rows + [self.head]) for i in range(len(self.head))]

        def line(r):
            return "| " + " | ".join([r[0].ljust(width[0])] + [c.rjust(width[i + 1]) for i, c in enumerate(r[1:])]) + " |"

        rule = "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(width)) + "|"
        return "\n".join([f"\n### {self.title}\n", line(self.head), rule] + [line(r) for r in self.rows]) + "\n"


def echo(s):
    conns = [n for n in CONNECTIONS if any(s.good(p, "http", f"echo@{n}") for p in s.peers)]
    head = [f"req/s @{n}" for n in conns] + [f"{q} us @{n}" for n in (1, 64) if n in conns for q in ("p50", "p99")]
    t = Table("HTTP: echo, keep-alive; server CPU and its ratio to bare hyper at 64 connections", "row", *head, "CPU us/request", "ratio", "RSS MiB", "calm/all")
    for p in s.names("http"):
        cells = [s.median(p, "http", f"echo@{n}", "rps") for n in conns]
        cells += [s.median(p, "http", f"echo@{n}", k) for n in (1, 64) if n in conns for k in ("p50_us", "p99_us")]
        rss = s.median(p, "http", "echo@64", "rss_kib")
        t.add(p, *cells, s.median(p, "http", "echo@64", "cpu_us_per_req"), times(s.ratio(p, "http", "echo@64", "cpu_us_per_req")), rss and rss / 1024, s.calm_count(p, "http", "echo@64"))
    return t


def blobs(s):
    t = Table("HTTP: 1 MiB bodies, 4 connections", "row", "result MB/s", "CPU us/MiB", "ratio", "argument MB/s", "CPU us/MiB", "ratio", "RSS MiB after")
    for p in s.names("http"):
        cells = []
        for case in ("blob_result", "blob_arg"):
            rps = s.median(p, "http", case, "rps")
            cells += [rps and rps * 1.048576, s.median(p, "http", case, "cpu_us_per_req"), times(s.ratio(p, "http", case, "cpu_us_per_req"))]
        rss = s.median(p, "http", "blob_arg", "rss_kib")
        t.add(p, *cells, rss and rss / 1024)
    return t


def lists(s):
    sizes = [n for n in LIST_SIZES if any(s.good(p, "list", str(n)) for p in s.peers)]
    t = Table("HTTP: tools/list, 4 connections", "row", *[f"{n} tools {w}" for n in sizes for w in ("req/s", "CPU us", "ratio")], "KiB at 1000")
    for p in s.names("list"):
        cells = []
        for n in map(str, sizes):
            cells += [s.median(p, "list", n, "rps"), s.median(p, "list", n, "cpu_us_per_req"), times(s.ratio(p, "list", n, "cpu_us_per_req"))]
        body = s.median(p, "list", "1000", "body_bytes")
        t.add(p, *cells, body and body / 1024)
    return t


def stdio(s):
    t = Table(
        "stdio: echo, one at a time; then bursts of 10,000 written without waiting",
        "row", "p50 us", "p99 us", "round trips/s", "CPU us/request", "ratio", "client spinning: p50 us", "CPU us/request", "ratio", "pipelined req/s", "CPU us/request", "ratio", "in order", "RSS MiB idle", "after",
    )
    for p in s.names("stdio"):
        runs = s.good(p, "stdio", "all")
        in_order = all(b["in_order"] for r in runs for b in r["pipelined"])
        of = lambda *keys: s.median(p, "stdio", "all", *keys)
        t.add(
            p, of("pingpong", "p50_us"), of("pingpong", "p99_us"), of("pingpong", "rps"), of("pingpong", "cpu_us_per_req"),
            times(s.ratio(p, "stdio", "all", "pingpong", "cpu_us_per_req")),
            of("spinning", "p50_us"), of("spinning", "cpu_us_per_req"), times(s.ratio(p, "stdio", "all", "spinning", "cpu_us_per_req")), of("pipelined", "rps"), of("pipelined", "cpu_us_per_req"),
            times(s.ratio(p, "stdio", "all", "pipelined", "cpu_us_per_req")), "yes" if in_order else "no", of("rss_idle_kib") / 1024, of("rss_after_kib") / 1024,
        )
    return t


def startup(s):
    t = Table("Start: from spawning the process to its first answered request", "row", "first answer ms", "fastest", "RSS MiB", "starts")
    for p in s.names("startup"):
        ms = [r["first_answer_ms"] for r in s.good(p, "startup", "cold")]
        t.add(p, median(ms), min(ms), s.median(p, "startup", "cold", "rss_idle_kib") / 1024, str(len(ms)))
    return t


def cycles_of(s, peer):
    """Resident MiB after each cycle of 2,000 sessions, per round; only whole rounds."""
    by_round = {}
    for round_, r in s.rows.get((peer, "sessions", "cycles"), []):
        if "failed" not in r:
            by_round.setdefault(round_, []).append(r)
    return [rs for rs in by_round.values() if len(rs) == 8]


def kept_per_session(s, peer):
    """Bytes that stay behind per ended session, once the allocator has what it needs (cycles 5 to 8)."""
    kept = [(rs[7]["rss_closed_kib"] - rs[3]["rss_closed_kib"]) * 1024 / max(1, sum(r["opened"] for r in rs[4:8])) for rs in cycles_of(s, peer)]
    return median(kept)


def sessions(s):
    t = Table(
        "Idle legacy sessions; then eight cycles of opening and deleting 2,000 on one server",
        "row", "bytes each @1,000", "@10,000", "opened/s", "RSS MiB idle", "10,000 open", "deleted", "cycle 1", "cycle 4", "cycle 8", "bytes kept each, cycles 5-8", "status after DELETE",
    )
    for p in s.names("sessions"):
        rows = s.good(p, "sessions", "10000")
        of = lambda k: median([r[k] for r in rows])
        mib = lambda k: of(k) / 1024 if rows else None
        whole = cycles_of(s, p)
        at = [median([rs[i]["rss_closed_kib"] for rs in whole]) for i in (0, 3, 7)]
        t.add(
            p, s.median(p, "sessions", "1000", "bytes_per_session"), of("bytes_per_session"), median([r["opened"] / r["open_s"] for r in rows]),
            mib("rss_idle_kib"), mib("rss_open_kib"), mib("rss_closed_kib"), *(a and a / 1024 for a in at), kept_per_session(s, p), str(rows[0]["status_after_delete"]) if rows else "-",
        )
    return t


def fanout(s):
    t = Table(f"Fan-out: one tools/list_changed to {STREAMS:,} open streams", "row", "received", "last ms", "half ms", "first ms", "CPU us/stream", "ratio", "KiB/stream")
    case = str(STREAMS)
    for p in s.names("fanout"):
        of = lambda *keys: s.median(p, "fanout", case, *keys)
        rss = of("rss_per_stream_bytes")
        received = min(r["received_min"] for r in s.good(p, "fanout", case))
        t.add(p, str(received), of("all_ms"), of("half_ms"), of("first_ms"), of("cpu_us_per_stream"), times(s.ratio(p, "fanout", case, "cpu_us_per_stream")), rss and rss / 1024)
    return t


def allocs(s):
    t = Table("Allocations of one call, counted inside the server", "path", "allocations", "reallocations", "bytes", "calls")
    for (_, suite, case), rows in s.rows.items():
        for _, r in rows:
            if suite == "allocs" and "failed" not in r:
                t.add(case, *(r[k] for k in ("count", "reallocs", "bytes")), str(r["calls"]))
    return t


def size(s):
    t = Table("Size of the distributed program", "program", "MB")
    for case, what in (("small", "linchpin, the memory server only"), ("stripped", "linchpin, all servers and clients")):
        for r in s.good("linchpin", "size", case):
            t.add(what, r["bytes"] / 1e6)
    return t


ALL = (echo, blobs, lists, stdio, startup, sessions, fanout, allocs, size)


def text(s):
    parts = [t(s).text() for t in ALL]
    failures = s.failures()
    if failures:
        parts.append("\n### Failures\n\n" + "\n".join("- " + " | ".join(f) for f in failures) + "\n")
    return "".join(parts)
