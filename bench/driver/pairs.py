"""Each native server and the published one beside it: how they are started, on what, and which call they answer.

A pair gets the same arguments and equal fixtures, made in one temporary folder. Both sides get their own copy of what
they may change.
"""
import contextlib
import json
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time

from apis import APIS
from pair import START_S_MAX, Pair, Skipped, double, npm, run
from peers import BROWSERS, LIBC, PR_SET_PDEATHSIG, free_port


def filesystem(folder, _):
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for n in range(100):
        with open(os.path.join(files, f"f{n:03}.txt"), "w") as f:
            f.writelines(f"line {k} of file {n}, forty characters more or less\n" for k in range(80))
    path = os.path.join(files, "f042.txt")
    return Pair("filesystem", npm("filesystem"), "read_text_file", {"path": path}, "line 79 of file 42", lambda _: [files])


def git(folder, _):
    repo = os.path.join(folder, "repo")
    os.mkdir(repo)
    quiet = dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_SYSTEM=os.devnull)

    def say(*words):
        run("git", "-C", repo, "-c", "user.name=bench", "-c", "user.email=bench@localhost", *words, env=quiet)

    say("init", "--quiet", "--initial-branch=main")
    for n in range(60):
        with open(os.path.join(repo, f"f{n}.txt"), "w") as f:
            f.write(f"{n}\n" * 20)
        if n % 6 == 5:
            say("add", ".")
            say("commit", "--quiet", "-m", f"Commit {n // 6}")
    for n in (3, 7):
        with open(os.path.join(repo, f"f{n}.txt"), "a") as f:
            f.write("changed\n")
    args = lambda _: ["--repository", repo]
    return Pair("git", "py/bin/mcp-server-git", "git_status", {"repo_path": repo}, "modified:   f3.txt", args)


PARAGRAPH = (
    "<p>Paragraph {n} with some reasonably long text, so that it is kept when a page is simplified: boats, harbours, tides,"
    ' and <a href="/l{n}">a link</a>.</p>'
)
PAGE = (
    "<!doctype html><html><head><title>A page</title></head><body><nav><a href='/'>Home</a></nav><article><h1>Head</h1>"
    + "".join(PARAGRAPH.format(n=n) for n in range(20))
    + "</article></body></html>"
)


def fetch(_, stack):
    robots = ("/robots.txt", "text/plain", "User-agent: *\nAllow: /\n")
    site = double(stack, robots, ("/", "text/html; charset=utf-8", PAGE))
    # Another address each time: ours keeps pages for a while, and kept pages are not what is compared.
    arguments = lambda n: {"url": f"{site}/page?n={n}"}
    return Pair("fetch", "py/bin/mcp-server-fetch", "fetch", arguments, "Paragraph 7 with", lambda _: ["--allow-private-ips"])


def memory(folder, _):
    path = {side: os.path.join(folder, f"memory-{side}.jsonl") for side in ("ours", "published")}
    for file in path.values():
        with open(file, "w") as f:
            for n in range(200):
                observations = [f"observation {k} about number {n}" for k in range(3)]
                f.write(json.dumps({"type": "entity", "name": f"entity_{n}", "entityType": "thing", "observations": observations}) + "\n")
            for n in range(199):
                f.write(json.dumps({"type": "relation", "from": f"entity_{n}", "to": f"entity_{n + 1}", "relationType": "before"}) + "\n")
    env = lambda side: {"MEMORY_FILE_PATH": path[side]}
    return Pair("memory", npm("memory"), "search_nodes", {"query": "entity_42"}, "about number 42", env=env)


def sqlite(folder, _):
    path = {side: os.path.join(folder, f"{side}.db") for side in ("ours", "published")}
    for file in path.values():
        base = sqlite3.connect(file)
        base.execute("CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        base.executemany("INSERT INTO products VALUES (?, ?, ?)", [(n, f"product {n}", n * 1.5) for n in range(5000)])
        base.commit()
        base.close()
    query = {"query": "SELECT id, name, price FROM products WHERE id < 20"}
    return Pair("sqlite", "py1/bin/mcp-server-sqlite", "read_query", query, "product 19", lambda side: ["--db-path", path[side]])


def time_zones(_, __):
    call = {"source_timezone": "Europe/Warsaw", "time": "16:30", "target_timezone": "Asia/Tokyo"}
    return Pair("time", "py/bin/mcp-server-time", "convert_time", call, "Asia/Tokyo", lambda _: ["--local-timezone", "UTC"])


def sequential_thinking(_, __):
    thought = {"thought": "First look at what is known.", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 5}
    env = lambda _: {"DISABLE_THOUGHT_LOGGING": "true"}
    name = "sequential-thinking"
    return Pair(name, npm(name), "sequentialthinking", thought, '"totalThoughts": 5', env=env)


def everything(_, __):
    return Pair("everything", npm("everything"), "echo", {"message": "hello"}, "Echo: hello")


def postgres(folder, stack):
    url = database(folder, stack)
    query = {"sql": "SELECT id, name, price FROM products WHERE id <= 20 ORDER BY id"}
    return Pair("postgres", npm("postgres"), "query", query, "product 20", lambda _: [url])


def database(folder, stack):
    """A PostgreSQL of its own on a free loopback port, with a role that may only read; answers its address."""
    programs = os.environ.get("LINCHPIN_POSTGRES_BIN")
    if not programs:
        raise Skipped("LINCHPIN_POSTGRES_BIN does not say where initdb and postgres are (cargo xtask bench servers sets it)")
    home = os.path.join(folder, "postgres")
    os.mkdir(home)
    as_user = {}
    if os.geteuid() == 0:
        # PostgreSQL does not run as root.
        user = next((u for u in pwd.getpwall() if u.pw_name in ("postgres", "nobody")), None)
        if user is None:
            raise Skipped("PostgreSQL does not run as root, and there is no user postgres or nobody")
        os.chown(home, user.pw_uid, user.pw_gid)
        os.chmod(folder, 0o755)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    data, port = os.path.join(home, "data"), free_port()
    tool = lambda name: os.path.join(programs, name)
    run(tool("initdb"), "-D", data, "-U", "owner", "-A", "trust", "--no-sync", cwd=home, **as_user)
    settings = ["-p", str(port), "-k", home, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    log = open(os.path.join(home, "log"), "w")

    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, 2)

    server = subprocess.Popen([tool("postgres"), "-D", data] + settings, cwd=home, stdout=log, stderr=log, preexec_fn=prepare, **as_user)

    def stop():
        # SIGINT is PostgreSQL's fast shutdown.
        server.send_signal(2)
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()

    stack.callback(stop)
    psql = [tool("psql"), "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "owner", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c"]
    end = time.time() + START_S_MAX
    while subprocess.run(psql + ["SELECT 1"], capture_output=True).returncode:
        if time.time() > end or server.poll() is not None:
            with open(os.path.join(home, "log"), errors="replace") as f:
                raise Skipped("PostgreSQL does not start: " + f.read()[-300:])
        time.sleep(0.1)
    run(*psql, "CREATE TABLE products (id integer PRIMARY KEY, name text NOT NULL, price double precision NOT NULL)")
    run(*psql, "INSERT INTO products SELECT n, 'product ' || n, n * 1.5 FROM generate_series(1, 5000) AS n")
    run(*psql, "CREATE ROLE reader LOGIN; GRANT SELECT ON products TO reader; ANALYZE products")
    return f"postgresql://reader@127.0.0.1:{port}/postgres"


def browser(_, __):
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if program is None:
        raise Skipped("there is no browser here")
    options = json.dumps({"executablePath": program, "headless": True, "args": ["--no-sandbox"]})
    env = lambda side: {"PUPPETEER_LAUNCH_OPTIONS": options, "ALLOW_DANGEROUS": "true"}
    # The first call starts the browser, whose memory is in both columns. The published server fails where several scripts are
    # evaluated at once.
    call = {"name": "a", "width": 200, "height": 100}
    return Pair("browser", npm("puppeteer"), "puppeteer_screenshot", call, "taken at 200x100", env=env, ours=["--toolsets", "puppeteer"])


PAIRS = {
    "filesystem": filesystem,
    "git": git,
    "fetch": fetch,
    "memory": memory,
    "sqlite": sqlite,
    "postgres": postgres,
    "time": time_zones,
    "sequential-thinking": sequential_thinking,
    "everything": everything,
    **APIS,
    "browser": browser,
}


@contextlib.contextmanager
def pairs(names):
    """The pairs of these names with their fixtures, and what is missing for the others."""
    with contextlib.ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="bench-servers-")
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ready, missing = [], {}
        for name in names:
            try:
                ready.append(PAIRS[name](folder, stack))
            except (Skipped, OSError, subprocess.TimeoutExpired) as e:
                missing[name] = str(e)
        yield ready, missing
