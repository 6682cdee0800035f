//! `cargo xtask login`: clients of others log in at servers of ours, and servers of ours trust a provider of others. A person
//! without a head follows redirects and fills in forms (`conformance/interop/login`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::context::{Context, Flags};
use crate::report::{Counts, Report, table};
use crate::server::{Running, free_port};
use crate::{browser, process, stages, tools, world};

/// How long access tokens last, so that clients have to refresh them.
const LIFE_S: u64 = 2;
/// Until when the server takes them, which is later than clients are told.
const ACCEPTED_S: u64 = LIFE_S + 2;
/// How long a lane may take.
const LANE_S_MAX: u64 = 120;
/// How much is shown of what went wrong.
const DETAIL_LINES: usize = 12;

/// A client by others.
struct Client {
    name: &'static str,
    /// Its tool set and driver, or a program of ours, and what the driver is told beside the server's address.
    tools: &'static str,
    script: &'static str,
    told: &'static [(&'static str, &'static str)],
    /// The ways in which the server can know it.
    ways: &'static [&'static str],
    /// What it must manage. What is not here it cannot do.
    checks: &'static [&'static str],
    /// The ways that the gate checks.
    gate: &'static [&'static str],
}

const ALL: &[&str] = &["login", "step-up", "refresh", "revocation"];
const WAYS: &[&str] = &["register", "public", "confidential", "document"];

const CLIENTS: &[Client] = &[
    Client {
        name: "@modelcontextprotocol/client 2.4",
        tools: "clients",
        script: "ts.mjs",
        told: &[("sdk", "2")],
        ways: WAYS,
        checks: ALL,
        gate: &["document"],
    },
    Client {
        name: "@modelcontextprotocol/sdk 1.32",
        tools: "clients",
        script: "ts.mjs",
        told: &[("sdk", "1")],
        ways: WAYS,
        // With a refresh token it answers a demand for more scopes by refreshing, and then gives up.
        checks: &["login", "refresh", "revocation"],
        gate: &["register"],
    },
    Client {
        name: "mcp 2.3 (Python)",
        tools: "py-2",
        script: "py.py",
        told: &[("sdk", "2")],
        ways: WAYS,
        checks: ALL,
        gate: &["register"],
    },
    Client {
        name: "mcp 1.30 (Python)",
        tools: "py-1",
        script: "py.py",
        told: &[("sdk", "1")],
        ways: WAYS,
        checks: ALL,
        gate: &["confidential"],
    },
    Client {
        name: "mcp-remote 0.15",
        tools: "mcp-remote",
        script: "programs.mjs",
        told: &[("program", "mcp-remote")],
        ways: &["register"],
        checks: &["login", "refresh"],
        gate: &[],
    },
    Client {
        name: "@modelcontextprotocol/inspector 2.12",
        tools: "inspector",
        script: "programs.mjs",
        told: &[("program", "inspector")],
        ways: &["register"],
        // A new process asks the user again, and a demand for more scopes it answers as the SDK 1.x does.
        checks: &["login", "revocation"],
        gate: &[],
    },
    Client {
        name: "fastmcp 4.1 (Python)",
        tools: "py-fastmcp",
        script: "fastmcp_client.py",
        told: &[],
        ways: &["register"],
        checks: &["login", "step-up", "refresh"],
        gate: &[],
    },
    Client { name: "rmcp 3.9", tools: RMCP.1, script: "", told: &[], ways: WAYS, checks: ALL, gate: &[] },
];

/// The folder of the client that is written with rmcp, and the program.
const RMCP: (&str, &str) = ("conformance/interop/login/rmcp", "login-rmcp");

/// The pages themselves, in a real browser.
const PAGES: Client = Client {
    name: "the pages in Chromium",
    tools: "clients",
    script: "pages.mjs",
    told: &[],
    ways: &["public"],
    checks: &["wrong password", "consent", "denial", "device", "errors"],
    gate: &["public"],
};

/// A provider by others, which a server of ours trusts or uses.
struct Provider {
    name: &'static str,
    /// Its tool set, and the script that starts it.
    tools: &'static str,
    script: &'static str,
    /// Whether its access tokens are JWTs or opaque.
    tokens: &'static str,
    /// What `login-server` is told, before and after the provider's URL.
    how: &'static str,
    more: &'static [&'static str],
    /// Whether the gate checks it.
    gate: bool,
}

const OIDC_PROVIDER: Provider = Provider {
    name: "oidc-provider as upstream",
    tools: "providers",
    script: "provider.mjs",
    tokens: "jwt",
    how: "upstream",
    more: &[],
    gate: false,
};

/// npm's `oidc-provider`, and PyPI's canaille and django-oauth-toolkit.
const PROVIDERS: &[Provider] = &[
    OIDC_PROVIDER,
    Provider { name: "oidc-provider as issuer, JWT", how: "guard", gate: true, ..OIDC_PROVIDER },
    Provider {
        name: "oidc-provider as issuer, introspection",
        tokens: "opaque",
        how: "guard",
        more: &["introspect"],
        ..OIDC_PROVIDER
    },
    Provider {
        name: "canaille as upstream",
        tools: "py-canaille",
        script: "canaille_provider.py",
        more: &["user:ada"],
        ..OIDC_PROVIDER
    },
    Provider {
        name: "django-oauth-toolkit as issuer, introspection",
        tools: "py-django",
        script: "django_provider.py",
        tokens: "opaque",
        how: "guard",
        more: &["introspect"],
        ..OIDC_PROVIDER
    },
];

/// `cargo xtask login`.
pub(crate) fn command(context: &Context, words: &[String]) -> Result<bool> {
    let flags = Flags::parse(words, &["--client", "--way"], &["--all", "--no-build"])?;
    if !flags.has("--no-build") {
        world::programs(context)?;
    }
    let context = Context { all: flags.has("--all"), ..context.clone() };
    Ok(run(&context, flags.last("--client"), flags.last("--way"))?.print())
}

/// The stage: all lanes, or those of the gate; and 10,000 tokens that another library judges.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let mut report = run(context, None, None)?;
    let python = tools::python(context, "py-joserfc")?;
    report.absorb(stages::ignored_tests(context, "joserfc", "test(joserfc)", &[("LINCHPIN_JOSERFC", python)], 300)?);
    Ok(report)
}

fn run(context: &Context, client: Option<&str>, way: Option<&str>) -> Result<Report> {
    let mut report = Report::default();
    let mut rows = vec![["client", "known by", "passed", "failed"].map(String::from).to_vec()];
    let picked = client.is_some() || way.is_some();
    let (mut left_out, mut report_skip) = (0, None);
    let mut add = |name: &str, way: &str, found: Result<(Counts, String)>| {
        let (counts, problems) =
            found.unwrap_or_else(|why| (Counts::one(false), format!("  {name}, {way}: {why:#}\n")));
        let numbers = [counts.passed, counts.failed].map(|number| number.to_string());
        rows.push([&[name.to_string(), way.to_string()][..], &numbers].concat());
        report.counts.add(counts);
        report.text.push_str(&problems);
    };
    for one in CLIENTS.iter().filter(|one| client.is_none_or(|wanted| one.name.contains(wanted))) {
        for one_way in one.ways.iter().filter(|one_way| way.is_none_or(|wanted| **one_way == wanted)) {
            if picked || context.all || one.gate.contains(one_way) {
                add(one.name, one_way, lane(context, one, one_way));
            } else {
                left_out += 1;
            }
        }
    }
    for one in PROVIDERS.iter().filter(|one| client.is_none_or(|wanted| one.name.contains(wanted))) {
        // Logging in there with the newest client is enough.
        if picked || context.all || one.gate {
            add(one.name, "register", provider(context, &CLIENTS[0], one));
        } else {
            left_out += 1;
        }
    }
    if client.is_none_or(|wanted| PAGES.name.contains(wanted)) && way.is_none() {
        if browser::installed(context)? {
            add(PAGES.name, "public", lane(context, &PAGES, "public"));
        } else {
            report_skip = Some("the pages in a browser: there is none".to_string());
        }
    }
    report.skips.extend(report_skip);
    if left_out > 0 && !picked {
        report.skips.push(format!("{left_out} lanes: only with --all"));
    }
    if rows.len() == 1 {
        bail!("no such client or way");
    }
    report.text = table(&rows) + &report.text;
    Ok(report)
}

/// A folder of a lane, empty.
fn folder(context: &Context, name: &str, way: &str) -> Result<PathBuf> {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folder = context.results("login")?.join(format!("{}-{way}", name.trim_matches('-')));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context("cannot remove an earlier run")?;
    }
    std::fs::create_dir_all(&folder).context("cannot create the lane's folder")?;
    Ok(folder)
}

fn scripts(context: &Context) -> PathBuf {
    context.root.join("conformance/interop/login")
}

/// One client, known in one way, at an issuer of ours with a user.
fn lane(context: &Context, client: &Client, way: &str) -> Result<(Counts, String)> {
    let folder = folder(context, client.name, way)?;
    let port = free_port()?;
    let mut server = Command::new(context.binary("login-server"));
    server.args([&port.to_string(), "users"]).env("LOGIN_LIFE_S", LIFE_S.to_string());
    let mut told = json!({
        "url": format!("http://127.0.0.1:{port}/mcp"), "way": way, "lifeMs": ACCEPTED_S * 1000, "home": folder,
        "program": context.binary("linchpin"), "callback": format!("http://127.0.0.1:{}/oauth/callback", free_port()?),
    });
    let mut running = Vec::new();
    if way == "document" {
        let at = free_port()?;
        let (certificate, key) = certificate(&folder)?;
        let mut document = Command::new(tools::node(context)?);
        document.arg(scripts(context).join("document.mjs")).arg(at.to_string()).args([&certificate, &key]);
        running.push(Running::start(&mut document, at, &folder.join("document.log"))?);
        server.env("SSL_CERT_FILE", &certificate);
        told["document"] = json!(format!("https://localhost:{at}/client.json"));
    }
    running.push(Running::start(&mut server, port, &folder.join("login-server.log"))?);
    drive(context, client, &folder, told, client.checks)
}

/// The newest client at a server that has to do with a provider by others.
fn provider(context: &Context, client: &Client, one: &Provider) -> Result<(Counts, String)> {
    let folder = folder(context, one.name, "register")?;
    let (at, port) = (free_port()?, free_port()?);
    let (own, url) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{at}"));
    let (program, home) = match one.tools.starts_with("py-") {
        true => tools::python(context, one.tools).map(|python| (python.clone(), python))?,
        false => (tools::node(context)?, tools::npm(context, one.tools)?),
    };
    let mut provider = Command::new(program);
    provider.arg(scripts(context).join(one.script));
    provider.args([&at.to_string(), &format!("{own}/callback"), &format!("{own}/mcp")]);
    provider.env("INTEROP_TOOLS", home).env("PROVIDER_TOKENS", one.tokens).env("PYTHONDONTWRITEBYTECODE", "1");
    let _provider = Running::start(&mut provider, at, &folder.join("provider.log"))?;
    let mut server = Command::new(context.binary("login-server"));
    server.args([&port.to_string(), one.how, &url]).args(one.more).env("LOGIN_LIFE_S", LIFE_S.to_string());
    let _server = Running::start(&mut server, port, &folder.join("login-server.log"))?;
    let told = json!({ "url": format!("{own}/mcp"), "way": "register", "lifeMs": ACCEPTED_S * 1000, "home": folder });
    // What an issuer of others lets registered clients ask for later, and how it refreshes and revokes, is its own.
    let checks = if one.how == "upstream" { ALL } else { &["login"] };
    drive(context, client, &folder, told, checks)
}

/// Runs a client's driver, and counts its checks.
fn drive(
    context: &Context,
    client: &Client,
    folder: &Path,
    mut told: Value,
    checks: &[&str],
) -> Result<(Counts, String)> {
    let node = tools::node(context)?;
    let home = match client.tools {
        program if program == RMCP.1 => tools::apart(context, RMCP)?,
        python if python.starts_with("py-") => tools::python(context, python)?,
        npm => tools::npm(context, npm)?,
    };
    let person = scripts(context).join("person.mjs");
    told["node"] = json!(node);
    told["person"] = json!(person);
    told["checks"] = json!(checks);
    for (name, value) in client.told {
        told[*name] = json!(value);
    }
    let mut driver = Command::new(if client.script.ends_with(".mjs") { &node } else { &home });
    if !client.script.is_empty() {
        driver.arg(scripts(context).join(client.script));
    }
    driver.arg(told.to_string()).current_dir(folder);
    driver.env("INTEROP_TOOLS", &home).env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", folder);
    driver.env("BROWSER", format!("{} {} %s &", node.display(), person.display()));
    driver.env("MCP_CATALOG_PATH", folder.join("catalog.json"));
    driver.env("MCP_CLIENT_CONFIG_PATH", folder.join("client.json"));
    let finished = process::run(&mut driver, &folder.join("driver.log"), Duration::from_secs(LANE_S_MAX))?;
    let said: Vec<Value> = finished.output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let (mut counts, mut problems) = (Counts::default(), String::new());
    for check in checks {
        let found = said.iter().find(|said| said["name"] == *check);
        let passed = found.is_some_and(|said| said["status"] == "pass");
        counts.add(Counts::one(passed));
        if !passed {
            let detail = found.and_then(|said| said["detail"].as_str()).unwrap_or(&finished.output);
            // Tracebacks are long, and end with what matters; all of it is in the log.
            let lines: Vec<&str> = detail.lines().collect();
            let detail = lines[lines.len().saturating_sub(DETAIL_LINES)..].join("\n");
            problems.push_str(&format!("  {}: {check}: {}\n", client.name, detail.replace('\n', "\n    ")));
        }
    }
    Ok((counts, problems))
}

/// A certificate for `localhost`, and its key: `certificate.pem` and `key.pem` in `folder`.
pub(crate) fn certificate(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(&key).arg("-out").arg(&certificate);
    let made = process::run(&mut openssl, &folder.join("openssl.log"), Duration::from_secs(30))?;
    if !made.ok {
        bail!("openssl makes no certificate:\n{}", made.output);
    }
    Ok((certificate, key))
}
