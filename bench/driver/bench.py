"""The steps of a benchmark run: build, check, measure, print. run.py is the way in."""
import json
import os
import platform
import resource
import subprocess
import time

import bars
import tables
from peers import BENCH, DIST, LOAD_CORE, REPO, SERVER_CORE, Server, fill, mcpload, peers_target, small_target
from samples import Samples
from suites import SUITES, Recorder, run_suite

FILES_OPEN_MIN = 8192


def build(groups, jobs=None):
    """Optimised builds of what the rows need. Returns the groups whose build failed."""
    limit = ["-j", str(jobs)] if jobs else []
    limit += ["--quiet"]
    apart = dict(os.environ, CARGO_TARGET_DIR=peers_target())

    def locked(*folders):
        return ["--locked", "--manifest-path", os.path.join(BENCH, *folders, "Cargo.toml")]

    release, dist = ["--release"], DIST
    steps = [("mcpload", release + locked("mcpload"), apart)]
    if "bare" in groups:
        steps.append(("bare", release + locked("bare"), apart))
    if "rmcp" in groups:
        steps.append(("rmcp", release + locked("peers", "rmcp"), apart))
    if "linchpin" in groups:
        steps.append(("linchpin", dist + ["-p", "linchpin-bench", "-p", "linchpin-cli"], os.environ))
        small = dist + ["-p", "linchpin-cli", "--no-default-features", "--features", "memory"]
        steps.append(("linchpin, one server only", small, dict(os.environ, CARGO_TARGET_DIR=small_target())))
    if "bridge" in groups:
        steps.append(("linchpin", dist + ["-p", "linchpin-cli"], os.environ))
    failed = []
    for name, args, env in steps:
        print(f"building {name}", flush=True)
        done = subprocess.run(["cargo", "build"] + limit + args, cwd=REPO, env=env)
        if done.returncode:
            failed.append(name)
    return failed


def raise_file_limit():
    """A thousand streams need a thousand descriptors on each side."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = 65536 if hard == resource.RLIM_INFINITY else hard
    if soft < want:
        resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))
    if want < FILES_OPEN_MIN:
        raise SystemExit(f"at most {want} open files are allowed here; the streams need {FILES_OPEN_MIN} (ulimit -n)")


def check(peers):
    """Does every row answer right? Returns the rows that do not."""
    bad = []
    for peer in peers:
        note = check_one(peer)
        print(f"{'ok  ' if note is None else 'BAD '} {peer['name']:34} {note or ''}"[:400], flush=True)
        if note is not None:
            bad.append(peer["name"])
    return bad


def check_one(peer):
    """None, or what is wrong."""
    if peer["transport"] == "stdio":
        what = ["--what", "startup"] if peer.get("suites") == ["startup"] else ["--secs", 0.3, "--pipelined", 500, "--repeat", 1]
        return mcpload("stdio", "--era", peer["era"], *what, "--", *fill(peer, 0, 5)).get("failed")
    try:
        with Server(peer) as s:
            r = mcpload("check", "--url", s.url, "--era", peer["era"])
    except (RuntimeError, OSError) as e:
        return str(e)
    wrong = {k: v for k, v in r.items() if isinstance(v, dict) and not v["ok"]}
    return r.get("failed") or (json.dumps(wrong) if wrong else None)


def meta():
    """What the figures were measured on."""

    def said(*cmd):
        try:
            return subprocess.run(cmd, cwd=REPO, capture_output=True, text=True).stdout.strip()
        except OSError:
            return ""

    with open("/proc/cpuinfo") as f:
        models = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "rustc": said("rustc", "--version"),
        "commit": said("git", "describe", "--always", "--dirty"),
        "pinned": f"servers on core {SERVER_CORE}, load on core {LOAD_CORE}",
    }


def measure(peers, suites, opt, out):
    with open(out, "a") as f:
        f.write(json.dumps({"suite": "meta", "result": dict(meta(), rounds=opt.rounds, secs=opt.secs)}) + "\n")
    for round_ in range(1, opt.rounds + 1):
        for suite in SUITES:
            if suite in suites and round_ <= opt.rounds_of(suite):
                run_suite(suite, peers, Recorder(out, round_), opt)


def report(files, peers):
    """The tables as text, and the bars that were missed."""
    samples = Samples(files, peers)
    about = "\n".join(f"- {k}: {v}" for k, v in samples.meta.items())
    apart = samples.distances()
    if apart:
        about += f"\n- a cache line from core to core and back: {apart[0]:.0f} - {apart[1]:.0f} ns"
    verdicts = bars.table(samples)
    return about + "\n" + tables.text(samples) + verdicts.text(), bars.missed(verdicts)




RESULTS = ("<!-- RESULTS:BEGIN", "<!-- RESULTS:END -->")


def into_readme(text):
    """Puts the tables between the marks in README.md."""
    path = os.path.join(BENCH, "README.md")
    with open(path) as f:
        readme = f.read()
    begin = readme.index("\n", readme.index(RESULTS[0])) + 1
    end = readme.index(RESULTS[1])
    with open(path, "w") as f:
        f.write(readme[:begin] + text.strip() + "\n" + readme[end:])
