//! What an issuer costs, over a SQLite file: refreshes in a second, one after the other and at the same time, and the memory of one
//! that nobody uses.
//!
//!     bench-issuer            a table
//!     bench-issuer --json     one JSON object per line

use bytes::Bytes;
use http::{Method, Request, Response};
use linchpin::issuer::{Client, Issuer, Store, Users};
use linchpin::transport::Gate as _;
use linchpin::{BoxError, Result};
use linchpin_oauth::Pkce;
use serde_json::Value;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const ISSUER: &str = "http://127.0.0.1:8931";
const REDIRECT: &str = "http://127.0.0.1:7777/cb";
/// A client may ask 60 times a minute: so many ask, and each so often.
const CLIENTS: usize = 40;
const REFRESHES: usize = 50;

/// The issuer, and where it shows its codes.
fn issuer(file: &Path) -> Result<(Issuer, Arc<Mutex<String>>), BoxError> {
    let terminal = Arc::new(Mutex::new(String::new()));
    let shown = terminal.clone();
    let users = Users::once_with(move |line| {
        if let Ok(mut shown) = shown.lock() {
            line.clone_into(&mut shown);
        }
    });
    let issuer = Issuer::new(ISSUER).users(users).scope("files", "use your files").store(Store::sqlite(file)?);
    let issuer = (0..CLIENTS).fold(issuer, |all, n| all.client(Client::new(format!("c{n}")).redirect_uri(REDIRECT)));
    Ok((issuer, terminal))
}

fn encode(form: &[(&str, &str)]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = |text: &str| {
        text.bytes()
            .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect::<String>()
    };
    form.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&")
}

/// Sends a request from an address of its client's own.
async fn ask(
    issuer: &Issuer,
    client: usize,
    url: &str,
    cookie: &str,
    form: Option<&[(&str, &str)]>,
) -> Response<Bytes> {
    let path = url.split('?').next().unwrap_or(url);
    let page = issuer.page(path).unwrap_or_else(|| panic!("no page {path}"));
    let method = if form.is_some() { Method::POST } else { Method::GET };
    let from = SocketAddr::from(([10, 0, 0, u8::try_from(client).unwrap_or(0)], 1));
    let request = Request::builder().method(method).uri(url).extension(from).header("cookie", cookie);
    let request = request.header("content-type", "application/x-www-form-urlencoded").header("origin", ISSUER);
    let body = form.map(encode).unwrap_or_default();
    page.respond(request.body(Bytes::from(body)).expect("a request")).await
}

/// What stands between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let at = text.find(from).unwrap_or_else(|| panic!("no {from} in {text}")) + from.len();
    &text[at..at + text[at..].find(to).unwrap_or(text.len() - at)]
}

/// Logs a client in, and returns its refresh token.
async fn log_in(issuer: &Issuer, terminal: &Mutex<String>, n: usize) -> String {
    let (pkce, client) = (Pkce::generate(), format!("c{n}"));
    let query = encode(&[
        ("response_type", "code"),
        ("client_id", &client),
        ("redirect_uri", REDIRECT),
        ("code_challenge", &pkce.challenge),
        ("code_challenge_method", "S256"),
    ]);
    let started = ask(issuer, n, &format!("/authorize?{query}"), "", None).await;
    let text = |name: &str| started.headers()[name].to_str().unwrap_or_default().to_owned();
    let (to, cookie) = (text("location"), text("set-cookie"));
    let cookie = cookie.split(';').next().unwrap_or_default();
    let page = ask(issuer, n, to.trim_start_matches(ISSUER), cookie, None).await;
    let page = String::from_utf8_lossy(page.body()).into_owned();
    let hidden = |name: &str| between(&page, &format!("name=\"{name}\" value=\""), "\"").to_owned();
    let code = terminal.lock().map(|line| line.clone()).unwrap_or_default();
    let code = code.split_once("Code: ").map_or("", |(_, code)| code).to_owned();
    let answer = [("t", &*hidden("t")), ("f", &*hidden("f")), ("code", &*code), ("answer", "allow")];
    let done = ask(issuer, n, "/consent", cookie, Some(&answer)).await;
    let done = String::from_utf8_lossy(done.body()).into_owned();
    let code = between(&done, "code=", "&").to_owned();
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", &*client),
        ("code", &*code),
        ("code_verifier", pkce.verifier.expose()),
    ];
    refresh_token(&ask(issuer, n, "/token", "", Some(&form)).await)
}

fn refresh_token(answer: &Response<Bytes>) -> String {
    let tokens: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    tokens["refresh_token"].as_str().unwrap_or_else(|| panic!("no token: {answer:?}")).to_owned()
}

/// A client that refreshes again and again.
async fn refreshes(issuer: &Issuer, n: usize, mut token: String) {
    let client = format!("c{n}");
    for _ in 0..REFRESHES {
        let form = [("grant_type", "refresh_token"), ("client_id", &*client), ("refresh_token", &*token)];
        token = refresh_token(&ask(issuer, n, "/token", "", Some(&form)).await);
    }
}

/// The memory of this process in KiB, without files such as the program itself.
fn memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next()?.parse().ok())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = std::env::temp_dir().join(format!("linchpin-bench-issuer-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let before = memory_kib();
    let (issuer, terminal) = issuer(&folder.join("auth.db"))?;
    ask(&issuer, 0, "/jwks.json", "", None).await;
    let idle = memory_kib().zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
    let mut tokens = Vec::new();
    for n in 0..CLIENTS {
        tokens.push(log_in(&issuer, &terminal, n).await);
    }
    let (alone, together) = tokens.split_at(CLIENTS / 4);
    let start = Instant::now();
    for (n, token) in alone.iter().enumerate() {
        refreshes(&issuer, n, token.clone()).await;
    }
    let one = (alone.len() * REFRESHES) as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let all: Vec<_> = together
        .iter()
        .enumerate()
        .map(|(n, token)| {
            let (issuer, token) = (issuer.clone(), token.clone());
            tokio::spawn(async move { refreshes(&issuer, alone_len() + n, token).await })
        })
        .collect();
    for one in all {
        one.await?;
    }
    let many = (together.len() * REFRESHES) as f64 / start.elapsed().as_secs_f64();
    let rows = [("refreshes a second, one at a time", one), ("refreshes a second, 30 clients", many)];
    let json = std::env::args().any(|word| word == "--json");
    let mut out = std::io::stdout();
    for (case, value) in rows.into_iter().chain([("memory of an idle issuer, KiB", idle as f64)]) {
        match json {
            true => writeln!(out, "{}", serde_json::json!({ "case": case, "value": value }))?,
            false => writeln!(out, "{case:42} {value:9.0}")?,
        }
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// How many clients refresh one at a time.
const fn alone_len() -> usize {
    CLIENTS / 4
}
