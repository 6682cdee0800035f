#!/usr/bin/env python3
"""Benchmark `linchpin bridge` beside bare programs and other bridges, in one run.

    cargo xtask bench gateway             everything, about fifteen minutes
    cargo xtask bench gateway --quick     about four minutes
    cargo xtask bench gateway --only linchpin,bare

The bridge has one core; the load and the server behind it share the other. CPU is the bridge's own process: user and system
time per call, without the server's. Where clients have sessions, `pipe` gives each a child of its own, and so does the bare
program; `shared` is one child for all. What a bridge adds to the time of a call is measured with all on one core, as it is without
a bridge: how long the other core takes to wake is the machine's. Rounds are interleaved; figures are medians. A program that cannot do a pass, or answers
wrong, is "-" there: no win and no loss.
"""
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "driver"))
sys.dont_write_bytecode = True

import bench  # noqa: E402
import commandline  # noqa: E402
from peers import LOAD_CORE, Server, mcpload, ours, peers_target, workspace_target  # noqa: E402
from samples import median  # noqa: E402
from tables import Table, num, times  # noqa: E402

PINNED = os.path.join(HERE, "peers", "gateways")
TOOLS = os.path.join(workspace_target(), "tools", "bench-gateways")
# Environments of Python, and what they have: these programs need different versions of the SDK.
PYTHONS = {"py": "requirements.txt", "py-fastmcp": "requirements-fastmcp.txt"}
# How much the bridge may cost beside a bare program of the same work, by pass.
BARS = {"http MM": 2.0, "http LL": 2.2, "http LM": 2.5, "http ML": 2.5, "pipe LL": 1.5, "pipe MM": 1.5, "shared LL": 1.5, "stdio LL": 2.0,
        "stdio MM": 2.0, "1 MiB argument": 1.1, "1 MiB result": 1.1}
PEERS_BAR = 5.0
RATE_BAR = ("pipe LL", 10_000)
ADDED_P50_BAR_US, ADDED_P99_BAR_US = 80, 400
EMPTY_BAR_MIB = 16


def bare(name):
    return os.path.join(peers_target(), "release", name)


def pinned_to(core, *command):
    """The command on another core: what a bridge starts, it starts on its own."""
    return ["taskset", "-c", core, *command]


def install():
    """The pinned bridges of others, once."""
    os.makedirs(TOOLS, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(PINNED, name), TOOLS)
    if not os.path.exists(os.path.join(TOOLS, "node_modules", "supergateway")):
        print("installing bridges of others (npm)", flush=True)
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=TOOLS, check=True)
    for folder, pinned in PYTHONS.items():
        done = os.path.join(TOOLS, folder, "done")
        if not os.path.exists(done):
            print(f"installing bridges of others (PyPI, {pinned})", flush=True)
            subprocess.run([sys.executable, "-m", "venv", os.path.join(TOOLS, folder)], check=True)
            python = os.path.join(TOOLS, folder, "bin", "python")
            subprocess.run([python, "-m", "pip", "install", "-q", "-r", os.path.join(PINNED, pinned)], check=True)
            open(done, "w").close()


def fronts(node):
    """Programs in front of a server: for each pass a command with {url}, {port} and the server's command, or None."""
    js = os.path.join(TOOLS, "node_modules")
    supergateway = [node, os.path.join(js, "supergateway", "dist", "index.js")]
    remote = [node, os.path.join(js, "mcp-remote", "dist", "proxy.js")]
    npm_proxy = [node, os.path.join(js, "mcp-proxy", "dist", "bin", "mcp-proxy.mjs")]
    py_proxy = [os.path.join(TOOLS, "py", "bin", "python"), "-m", "mcp_proxy"]
    bridge = [ours("linchpin"), "bridge"]
    place = ["--http", "127.0.0.1:{port}"]

    def linchpin(pass_):
        kind, eras = pass_.split()
        era = ["--era", {"L": "legacy", "M": "modern"}[eras[1]]]
        if kind == "http":
            return bridge + era + place + ["{url}"]
        if kind == "pipe":
            return bridge + era + place + ["--", "{server}"]
        if kind == "shared":
            return bridge + era + place + ["--isolation", "shared", "--", "{server}"]
        return bridge + era + ["{url}"]

    def of_bare(pass_):
        # Clients with sessions have a child each, and so has the bare program's client.
        each = ["--each"] if pass_ == "pipe LL" else []
        return {
            "http": [bare("bare-proxy"), "{port}", "{url}"],
            "pipe": [bare("bare-http-pipe"), "{port}", *each, "{server}"],
            "shared": [bare("bare-http-pipe"), "{port}", "{server}"],
            "stdio": [bare("bare-pipe-http"), "{url}"],
        }[pass_.split()[0]]

    def of_supergateway(*more):
        def command(pass_):
            if pass_ == "pipe LL":
                return supergateway + ["--stdio", "{line}", "--outputTransport", "streamableHttp", "--port", "{port}", "--logLevel", "none", *more]
            if pass_ == "stdio LL" and more:
                return supergateway + ["--streamableHttp", "{url}", "--logLevel", "none"]
            return None

        return command

    def of_remote(pass_):
        return remote + ["{url}", "--silent", "--allow-http", "--transport", "http-only"] if pass_ == "stdio LL" else None

    def of_npm(pass_):
        return npm_proxy + ["--host", "127.0.0.1", "--port", "{port}", "--", "{server}"] if pass_ == "pipe LL" else None

    def of_py(pass_):
        if pass_ == "pipe LL":
            return py_proxy + ["--host", "127.0.0.1", "--port", "{port}", "--", "{server}"]
        return py_proxy + ["--transport", "streamablehttp", "{url}"] if pass_ == "stdio LL" else None

    def of_fastmcp(pass_):
        run = [os.path.join(TOOLS, "py-fastmcp", "bin", "fastmcp"), "run", "{url}", "--no-banner", "--log-level", "ERROR"]
        if pass_ in ("http LL", "http MM"):
            return run + ["--transport", "http", "--host", "127.0.0.1", "--port", "{port}"]
        return run + ["--transport", "stdio"] if pass_ == "stdio LL" else None

    return {
        "bare": of_bare,
        "linchpin": linchpin,
        "supergateway 4.0.0 --stateful": of_supergateway("--stateful"),
        "supergateway 4.0.0": of_supergateway(),
        "mcp-remote 0.15.1": of_remote,
        "mcp-proxy 6.7.19 (npm)": of_npm,
        "mcp-proxy 0.13.0 (PyPI)": of_py,
        "fastmcp 4.1.6 (PyPI)": of_fastmcp,
    }


def filled(command, **values):
    """The command with its values; {server} stands for several words."""
    out = []
    for word in command:
        if word == "{server}":
            out.extend(values["server"])
        else:
            out.append(word.format(**{k: v for k, v in values.items() if k != "server"}))
    return out


class Upstream(Server):
    """The bare server behind a bridge, on the core of the load."""

    def __init__(self):
        super().__init__({"name": "upstream", "cmd": [*pinned_to(LOAD_CORE), bare("bare-hyper"), "http", "{port}", "default", "{tools}"]})


def one(front, pass_, opt, op="echo", conns=64, core=None):
    """One window; None if the program does not do this pass. `core` is the bridge's, if it has not one of its own."""
    command = front(pass_)
    if command is None:
        return None
    if core:
        command = pinned_to(core, *command)
    kind, eras = pass_.split()
    era = {"L": "2025", "M": "2026"}[eras[0]]
    server = pinned_to(LOAD_CORE, bare("bare-stdio"), "stdio", "5")
    line = " ".join(server)
    if kind == "stdio":
        with Upstream() as upstream:
            words = filled(command, url=upstream.url, server=server, line=line, port=0)
            # Fewer than the 128 calls that a client of ours may have at once.
            got = mcpload("stdio", "--era", era, "--secs", opt.secs, "--pipelined", 100, "--repeat", 1, "--", *words, limit=40)
        if got.get("failed"):
            return got
        return dict(got["pingpong"], rss_kib=got.get("rss_after_kib"))
    upstream = Upstream() if kind == "http" else None
    try:
        words = filled(command, url=upstream.url if upstream else "", server=server, line=line, port="{port}")
        with Server({"name": pass_, "cmd": words}) as bridge:
            if kind in ("pipe", "shared"):
                # Programs of others start what is behind them late.
                time.sleep(1.0)
            empty_kib = resident_kib(bridge.pid)
            got = mcpload("http", "--url", bridge.url, "--era", era, "--op", op, "--conns", conns, "--secs", opt.secs,
                          "--warmup", opt.warmup, "--pid", bridge.pid, limit=40)
            got["empty_kib"] = empty_kib
    except (RuntimeError, OSError) as why:
        return {"failed": str(why)}
    finally:
        if upstream:
            upstream.stop()
    return got


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next((int(line.split()[1]) for line in f if line.startswith("VmRSS:")), None)


def direct(opt, era):
    """Latency without a bridge, one call in flight."""
    with Upstream() as upstream:
        return mcpload("http", "--url", upstream.url, "--era", era, "--op", "echo", "--conns", 1, "--secs", opt.secs)


# (name, operation, in flight, pass)
CASES = [
    ("http MM", "echo", 64, "http MM"),
    ("http LL", "echo", 64, "http LL"),
    ("http LM", "echo", 64, "http LM"),
    ("http ML", "echo", 64, "http ML"),
    ("pipe LL", "echo", 8, "pipe LL"),
    ("shared LL", "echo", 8, "shared LL"),
    ("pipe MM", "echo", 8, "pipe MM"),
    ("stdio LL", "echo", 1, "stdio LL"),
    ("stdio MM", "echo", 1, "stdio MM"),
    ("1 MiB argument", "blob_arg", 4, "http MM"),
    ("1 MiB result", "blob_result", 4, "http MM"),
    ("one in flight", "echo", 1, "http MM"),
    ("one in flight, one core", "echo", 1, "http MM"),
]
# Where the bridge is on the core of the load and the server.
ON_ONE_CORE = "one in flight, one core"
# What stands for a bare program where the eras differ: it cannot translate, so it is measured in the client's era.
SAME_ERA = {"http LM": "http LL", "http ML": "http MM"}


def measure(opt, chosen):
    got = {}
    for round_ in range(opt.rounds):
        for case, op, conns, pass_ in CASES:
            if opt.cases and not any(case.startswith(wanted) for wanted in opt.cases):
                continue
            for name, front in chosen.items():
                own = SAME_ERA.get(pass_, pass_) if name == "bare" else pass_
                if op != "echo" and name not in ("bare", "linchpin"):
                    continue
                result = one(front, own, opt, op, conns, LOAD_CORE if case == ON_ONE_CORE else None)
                if not result:
                    continue
                failed = result.get("failed") or (result.get("bad") and f"{result['bad']} wrong answers: {result.get('bad_example', '')}")
                if failed:
                    print(f"round {round_ + 1} {case:23} {name:30} FAILED {str(failed)[:200]}", flush=True)
                    continue
                got.setdefault(case, {}).setdefault(name, []).append(result)
                cpu = result.get("cpu_us_per_req") or 0
                print(f"round {round_ + 1} {case:23} {name:30} {result['rps']:9,.0f} calls/s {cpu:8.1f} us", flush=True)
        if not opt.cases:
            got.setdefault("direct", {}).setdefault("direct", []).append(direct(opt, "2026"))
    return got


def figure(results, key):
    values = [r[key] for r in results or [] if r.get(key) is not None]
    return median(values) if values else None


def report(got, names):
    table = Table("CPU of the bridge per call in µs, calls/s, memory", "pass", *[f"{n}: CPU" for n in names], *[f"{n}: calls/s" for n in names],
                  "linchpin / bare", "best peer / linchpin")
    verdicts, notes = [], []
    for case, *_ in CASES:
        by_name = got.get(case, {})
        if not by_name:
            continue
        cpu = {n: figure(by_name.get(n), "cpu_us_per_req") for n in names}
        rate = {n: figure(by_name.get(n), "rps") for n in names}
        ours_, floor = cpu.get("linchpin"), cpu.get("bare")
        rivals = [cpu[n] for n in names if n not in ("linchpin", "bare") and cpu[n]]
        beside = ours_ / floor if ours_ and floor else None
        best = min(rivals) / ours_ if ours_ and rivals else None
        table.add(case, *[num(cpu[n]) if cpu[n] else "-" for n in names], *[num(rate[n]) if rate[n] else "-" for n in names],
                  times(beside) if beside else "-", times(best) if best else "-")
        if beside and case in BARS:
            verdicts.append((f"{case}: at most {BARS[case]} x bare", f"{beside:.2f} x", beside <= BARS[case]))
        if best:
            verdicts.append((f"{case}: at least {PEERS_BAR:g} x less CPU than the best peer", f"{best:.1f} x", best >= PEERS_BAR))
        if case == RATE_BAR[0] and rate.get("linchpin"):
            verdicts.append((f"{case}: at least {RATE_BAR[1]:,} calls/s at 8 in flight", f"{rate['linchpin']:,.0f}", rate["linchpin"] >= RATE_BAR[1]))
    for case, key, bar in ((ON_ONE_CORE, "p50_us", ADDED_P50_BAR_US), (ON_ONE_CORE, "p99_us", ADDED_P99_BAR_US), ("one in flight", "p50_us", None)):
        alone = figure(got.get("direct", {}).get("direct"), key)
        ours_, floor = (figure(got.get(case, {}).get(name), key) for name in ("linchpin", "bare"))
        if not alone or not ours_:
            continue
        value = f"{ours_ - alone:.0f} µs" + (f" (bare: {floor - alone:.0f} µs)" if floor else "")
        what = f"added latency, {case}, {key[:3]}"
        if bar:
            verdicts.append((f"{what}: at most {bar} µs", value, ours_ - alone <= bar))
        else:
            notes.append(f"{what}, with a core for the bridge alone: {value}")
    loaded, empty = [figure(got.get("http MM", {}).get("linchpin"), key) for key in ("rss_kib", "empty_kib")]
    if loaded and empty:
        verdicts.append((f"memory before the first call: at most {EMPTY_BAR_MIB} MiB (with 64 connections under load {loaded / 1024:.1f})",
                         f"{empty / 1024:.1f} MiB", empty <= EMPTY_BAR_MIB * 1024))
    out = [table.text(), "**BARS**\n"]
    out += [f"- {'pass' if fine else 'FAIL'}: {what}: {value}" for what, value, fine in verdicts]
    out += [f"- no bar: {note}" for note in notes]
    return "\n".join(out) + "\n", [what for what, _, fine in verdicts if not fine]


def main():
    ap = commandline.parser(__doc__, "short windows, two rounds")
    ap.add_argument("--only", help="programs, by the first words of their names, with commas between")
    ap.add_argument("--cases", type=lambda text: text.split(","), help="passes, by the beginning of their names")
    ap.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="one more program over HTTP, with {url} and {port}")
    ap.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    opt = commandline.options(ap, rounds=(5, 2), secs=(1.5, 0.5), warmup=(0.6, 0.3))
    bench.raise_file_limit()
    chosen = fronts(os.environ.get("BENCH_NODE", "node"))
    if opt.only:
        wanted = tuple(opt.only.lower().split(","))
        chosen = {n: f for n, f in chosen.items() if n.lower().startswith(wanted)}
    for peer in opt.peer:
        name, _, line = peer.partition("=")
        chosen[name] = lambda pass_, line=line: line.split() if pass_ in ("http MM", "http LL") else None
    if any(n not in ("bare", "linchpin") for n in chosen):
        install()
    if not opt.no_build:
        failed = bench.build([group for name, group in (("bare", "bare"), ("linchpin", "bridge")) if name in chosen])
        if failed:
            raise SystemExit(f"not built: {', '.join(failed)}")
    got = measure(opt, chosen)
    text, missed = report(got, list(chosen))
    print("\n" + text)
    commandline.keep("gateway", text, got)
    return 1 if opt.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
