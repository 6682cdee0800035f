//! Over real sockets: what the built-in HTTP client lets servers do to us.

use linchpin_auth::{Credential, OAuth};
use linchpin_web::Reach;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server on this machine that gives fixed answers by path, and remembers who asked for what.
struct Server {
    origin: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `answers` are by path, with `ORIGIN` replaced; everything else is a 404.
    async fn start(answers: &[(&str, &str, String)]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let by_path: HashMap<String, String> = answers
            .iter()
            .map(|(path, head, body)| {
                let (head, body) = (head.replace("ORIGIN", &origin), body.replace("ORIGIN", &origin));
                let length = body.len();
                (
                    (*path).to_owned(),
                    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"),
                )
            })
            .collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                let mut piece = [0; 4096];
                while let Ok(n) = stream.read(&mut piece).await {
                    request.extend_from_slice(&piece[..n]);
                    let text = String::from_utf8_lossy(&request);
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let length = head
                        .lines()
                        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                    if n == 0 || body.len() >= length.unwrap_or(0) {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let line = text.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
                let path = line.split(' ').nth(1).unwrap_or_default();
                let none = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                let answer = by_path.get(path).map_or(none, String::as_str).to_owned();
                log.lock().unwrap().push(line);
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { origin, asked }
    }

    fn mcp(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    fn asked(&self) -> String {
        self.asked.lock().unwrap().join(", ")
    }
}

const PRM: &str = "/.well-known/oauth-protected-resource/mcp";
const AS: &str = "/.well-known/oauth-authorization-server";

fn resource(issuer: &str) -> String {
    format!(r#"{{"resource":"ORIGIN/mcp","authorization_servers":["{issuer}"]}}"#)
}

fn metadata(members: &str) -> String {
    format!(r#"{{"issuer":"ORIGIN","token_endpoint":"ORIGIN/token"{members}}}"#)
}

fn program() -> OAuth {
    OAuth::new().client_credentials("program", "the-secret")
}

#[tokio::test]
async fn a_program_gets_its_token_over_a_real_connection() {
    let token = r#"{"access_token":"t","token_type":"Bearer"}"#.to_owned();
    let server = Server::start(&[
        ("/mcp", "401 Unauthorized\r\nwww-authenticate: Bearer scope=\"a\"", String::new()),
        (PRM, "200 OK", resource("ORIGIN")),
        (AS, "200 OK", metadata("")),
        ("/token", "200 OK", token),
    ])
    .await;
    program().login_to(&server.mcp()).await.unwrap();
    assert_eq!(server.asked(), format!("POST /mcp, GET {PRM}, GET {AS}, POST /token"));
}

#[tokio::test]
async fn what_is_posted_follows_no_redirect() {
    let elsewhere =
        Server::start(&[("/token", "200 OK", r#"{"access_token":"t","token_type":"Bearer"}"#.into())]).await;
    let to = format!("307 Temporary Redirect\r\nlocation: {}/token", elsewhere.origin);
    let server = Server::start(&[
        ("/mcp", "401 Unauthorized", String::new()),
        (PRM, "200 OK", resource("ORIGIN")),
        (AS, "200 OK", metadata("")),
        ("/token", &to, String::new()),
    ])
    .await;
    let why = program().login_to(&server.mcp()).await.unwrap_err().to_string();
    assert!(why.contains("redirects its token endpoint, which is not followed"), "{why}");
    assert_eq!(elsewhere.asked(), "");
}

#[tokio::test]
async fn a_document_without_end_is_not_read_to_its_end() {
    let long = format!(r#"{{"resource":"ORIGIN/mcp","x":"{}"}}"#, "x".repeat(300 * 1024));
    let server = Server::start(&[("/mcp", "401 Unauthorized", String::new()), (PRM, "200 OK", long)]).await;
    let why = program().login_to(&server.mcp()).await.unwrap_err().to_string();
    assert!(why.contains("262144 bytes"), "{why}");
}

#[tokio::test]
async fn a_server_on_this_machine_leads_to_this_machine_and_not_into_its_network() {
    let other = Server::start(&[
        (AS, "200 OK", metadata("")),
        ("/token", "200 OK", r#"{"access_token":"t","token_type":"Bearer"}"#.into()),
    ])
    .await;
    for (issuer, reach, want) in [
        (other.origin.as_str(), None, ""),
        ("https://10.255.255.1", None, "is in a private network, where this client does not connect"),
        ("https://169.254.169.254", None, "is a link-local address"),
        (other.origin.as_str(), Some(Reach::Public), "is this machine itself"),
    ] {
        let answers = [("/mcp", "401 Unauthorized", String::new()), (PRM, "200 OK", resource(issuer))];
        let server = Server::start(&answers).await;
        let oauth = program();
        let oauth = reach.map_or(oauth.clone(), |reach| oauth.reach(reach));
        match oauth.login_to(&server.mcp()).await {
            Ok(()) => assert_eq!(want, "", "{issuer}"),
            Err(why) => assert!(!want.is_empty() && why.to_string().contains(want), "{issuer}: {why}"),
        }
    }
}

#[tokio::test]
async fn an_open_server_needs_no_login() {
    let server = Server::start(&[("/mcp", "200 OK", "{}".into())]).await;
    let oauth = OAuth::new().pre_registered(None, "id", Credential::None);
    let error = oauth.login_to(&server.mcp()).await.unwrap_err();
    assert!(error.is_unprotected(), "{error}");
    assert!(!server.asked().contains("/register") && !server.asked().contains("/token"), "{}", server.asked());
}
