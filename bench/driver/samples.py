"""The rows of one or more result files, and the medians and ratios taken from them.

A ratio is taken within a round (the same case of both rows is measured within
seconds), then the median over the rounds is shown: what slows the machine for a
while slows both.
"""
import json
import statistics

# Windows in which neighbours took more of a core than this, or the cores were further apart (nanoseconds for a cache line to go
# and come back), are set aside, if at least three calm ones are left.
FOREIGN_SERVER_CORE_MAX, FOREIGN_LOAD_CORE_MAX = 0.12, 0.20
LINE_NS_MAX = 150
CALM_MIN = 3
# Under a client that spins, the host puts the server's core to sleep between requests in some windows and not in others; a request then takes
# three or six times as long. Windows further apart than this are not of the same state.
STATE_RATIO_MAX = 1.7


def median(xs):
    xs = [x for x in xs if x is not None]
    return statistics.median(xs) if xs else None


def is_calm(result):
    alone = result.get("foreign_core0", 0) < FOREIGN_SERVER_CORE_MAX and result.get("foreign_core1", 0) < FOREIGN_LOAD_CORE_MAX
    return alone and result.get("line_ns", 0) < LINE_NS_MAX


def calm(pairs, results_of):
    quiet = [p for p in pairs if all(is_calm(r) for r in results_of(p))]
    return quiet if len(quiet) >= CALM_MIN else pairs


def in_one_state(pairs, case):
    """Of pairs of windows under a client that spins, those in which the core slept in both or in neither, if there are any."""
    rps = pick(case, "rps")
    alike = [(a, b) for a, b in pairs if max(rps(a), rps(b)) <= STATE_RATIO_MAX * min(rps(a), rps(b))]
    return alike or pairs


def pick(*keys):
    """A reader of one figure: `pick("pingpong", "rps")`. In a list of runs it takes the median of that figure."""

    def read(result):
        for k in keys:
            if isinstance(result, list):
                result = median([r.get(k) for r in result])
            elif isinstance(result, dict):
                result = result.get(k)
        return median(result) if isinstance(result, list) else result

    return read


class Samples:
    """Windows by row, suite and case."""

    def __init__(self, paths, peers):
        self.peers = {p["name"]: p for p in peers}
        self.rows, self.meta = {}, {}
        for path in paths:
            with open(path) as f:
                for line in f:
                    row = json.loads(line)
                    if row["suite"] == "meta":
                        self.meta = row["result"]
                        continue
                    self.rows.setdefault((row["peer"], row["suite"], row["case"]), []).append((row["round"], row["result"]))

    def good(self, peer, suite, case):
        return [r for _, r in self.rows.get((peer, suite, case), []) if "failed" not in r]

    def failure(self, peer, suite, case):
        bad = [r["failed"] for _, r in self.rows.get((peer, suite, case), []) if "failed" in r]
        return bad[0] if bad else None

    def failures(self):
        return sorted({(p, s, c, r["failed"][:160]) for (p, s, c), rs in self.rows.items() for _, r in rs if "failed" in r})

    def names(self, suite, transport=None):
        """Rows with something measured in this suite, in the order of peers.json."""
        have = {p for (p, s, _), rs in self.rows.items() if s == suite and any("failed" not in r for _, r in rs)}
        return [n for n, p in self.peers.items() if n in have and transport in (None, p["transport"])]

    def values(self, peer, suite, case, *keys):
        """The figure of each calm window, or of all when too few are calm."""
        rows = self.good(peer, suite, case)
        read = pick(*keys)
        return [x for x in (read(r) for r in calm(rows, lambda r: [r])) if x is not None]

    def median(self, peer, suite, case, *keys):
        return median(self.values(peer, suite, case, *keys))

    def distances(self):
        """The least and the most nanoseconds between the two cores, over all windows."""
        ns = [r["line_ns"] for rs in self.rows.values() for _, r in rs if "line_ns" in r]
        return (min(ns), max(ns)) if ns else None

    def calm_count(self, peer, suite, case):
        rows = self.good(peer, suite, case)
        return f"{sum(is_calm(r) for r in rows)}/{len(rows)}"

    def ratios(self, peer, base, suite, case, *keys):
        """One ratio per round that has both rows."""
        read = pick(*keys)
        mine, theirs = ({}, {})
        for name, into in ((peer, mine), (base, theirs)):
            for round_, r in self.rows.get((name, suite, case), []):
                if "failed" not in r and read(r):
                    into.setdefault(round_, []).append(r)
        pairs = [(a, b) for round_ in mine for a in mine[round_] for b in theirs.get(round_, [])]
        pairs = calm(pairs, lambda p: p)
        if keys[0] == "spinning":
            pairs = in_one_state(pairs, keys[0])
        return [read(a) / read(b) for a, b in pairs]

    def baseline(self, peer, suite):
        p = self.peers[peer]
        return (suite == "fanout" and p.get("fanout_baseline")) or p.get("baseline")

    def ratio(self, peer, suite, case, *keys):
        base = self.baseline(peer, suite)
        return median(self.ratios(peer, base, suite, case, *keys)) if base else None
