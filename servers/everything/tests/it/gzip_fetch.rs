//! `gzip-file-as-resource` fetches from where it may, within its limits; a refusal counts only when nothing was connected to.

use linchpin::BoxFuture;
use linchpin::client::Client;
use linchpin::prelude::*;
use linchpin::transport::web::Lookup;
use linchpin_everything::{Everything, Options, allowed_domains};
use linchpin_testing::site::{Do, Site, answer};
use serde_json::json;
use std::io;
use std::net::IpAddr;

/// A site on this machine: `/to?URL` redirects there, `/endless` never ends, `/slow` says nothing, everything else is `hello`.
async fn site() -> (u16, Site) {
    let site = Site::new(|_, request| match request.path() {
        "/endless" => vec![Do::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Do::Flood(vec![b'x'; 65_536])],
        "/huge" => {
            vec![Do::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n".to_vec()), Do::Close]
        }
        "/slow" => vec![Do::Hold],
        "/404" => vec![Do::Write(answer(404, "", ""))],
        "/to" => vec![Do::Write(answer(302, &format!("location: {}\r\n", request.query()), ""))],
        _ => vec![Do::Write(answer(200, "", "hello"))],
    })
    .await;
    (site.port(), site)
}

fn paths(site: &Site) -> Vec<String> {
    site.requests().into_iter().map(|request| request.target).collect()
}

struct Names;

impl Lookup for Names {
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let ip: Option<IpAddr> = match name {
            "localhost" | "loop.test" | "sub.loop.test" => Some([127, 0, 0, 1].into()),
            "meta.test" => Some([169, 254, 169, 254].into()),
            _ => None,
        };
        Box::pin(async move { ip.map(|ip| vec![ip]).ok_or_else(|| io::Error::other("no such name")) })
    }
}

async fn zip(options: Options, url: &str) -> Result<String, String> {
    let server = Everything::with_lookup(options, Names).add_to(Server::new("everything", "0")).unwrap();
    let connection = Client::new("test", "0").connect(in_process(server)).await.unwrap();
    let result =
        connection.call("gzip-file-as-resource", json!({"data": url, "outputType": "resource"})).await.unwrap();
    if result.is_error() { Err(result.text()) } else { Ok(serde_json::to_string(&result.content().unwrap()).unwrap()) }
}

fn allowing(list: &str) -> Options {
    Options::default().with(|options| {
        options.fetch_hosts = allowed_domains(list).unwrap();
        options.fetch_ms_max = 10_000;
    })
}

#[tokio::test]
async fn private_addresses_are_refused_and_nothing_is_sent() {
    let (port, seen) = site().await;
    for options in [allowing(""), allowing("loop.test, meta.test, 10.0.0.7")] {
        for host in [
            "127.0.0.1",
            "localhost",
            "2130706433",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "loop.test",
            "sub.loop.test",
            "meta.test",
        ] {
            let error = zip(options.clone(), &format!("http://{host}:{port}/x")).await.unwrap_err();
            assert!(error.starts_with("refused: "), "{host}: {error}");
        }
        let error = zip(options, "http://169.254.169.254/latest/meta-data/").await.unwrap_err();
        assert!(error.starts_with("refused: "), "{error}");
    }
    assert!(zip(allowing(""), "file:///etc/passwd").await.unwrap_err().contains("are refused"));
    assert!(zip(allowing(""), "http://127.0.0.1:22/").await.unwrap_err().starts_with("refused: "));
    assert_eq!(paths(&seen), Vec::<String>::new(), "no packet");
}

#[tokio::test]
async fn an_allowed_address_is_fetched_and_its_redirects_are_checked() {
    let ((port, seen), (other, inside)) = (site().await, site().await);
    let options = allowing(&format!("127.0.0.1:{port}"));
    assert!(
        zip(options.clone(), &format!("http://127.0.0.1:{port}/x")).await.unwrap().contains("H4sI"),
        "a gzip in base64"
    );
    assert!(zip(options.clone(), &format!("HTTP://127.0.0.1:{port}/to?/y")).await.is_ok());
    for to in [
        format!("http://127.0.0.1:{other}/"),
        format!("http://localhost:{port}/"),
        "http://169.254.169.254/".to_owned(),
        format!("http://loop.test:{other}/"),
    ] {
        let error = zip(options.clone(), &format!("http://127.0.0.1:{port}/to?{to}")).await.unwrap_err();
        assert!(error.starts_with("refused: "), "{to}: {error}");
    }
    let error = zip(options.clone(), &format!("http://127.0.0.1:{port}/to?file:///etc/passwd")).await.unwrap_err();
    assert!(error.contains("not an http:// or https:// URL"), "{error}");
    assert!(zip(options, &format!("http://127.0.0.1:{port}/404")).await.unwrap_err().contains("status 404"));
    assert_eq!(paths(&inside), Vec::<String>::new(), "no packet");
    assert!(paths(&seen).contains(&"/y".to_owned()));
}

#[tokio::test]
async fn size_and_time_are_bounded() {
    let (port, _site) = site().await;
    let options = allowing(&format!("127.0.0.1:{port}")).with(|options| {
        options.fetch_bytes_max = 1_000;
        options.fetch_ms_max = 5_000;
    });
    for path in ["endless", "huge"] {
        let error = zip(options.clone(), &format!("http://127.0.0.1:{port}/{path}")).await.unwrap_err();
        assert!(error.contains("exceeds the limit"), "{path}: {error}");
    }
    let hurried = options.with(|options| options.fetch_ms_max = 200);
    let error = zip(hurried, &format!("http://127.0.0.1:{port}/slow")).await.unwrap_err();
    assert!(error.contains("in time") || error.contains("longer than 200 ms"), "{error}");
}

#[test]
fn domains_stand_for_what_is_below_them_too() {
    let rules = allowed_domains("example.com, 127.0.0.1:80,[::1],localhost").unwrap();
    let covered = |url: &str| rules.iter().any(|rule| rule.matches(url));
    for yes in [
        "https://example.com/",
        "https://a.b.example.com:8443/",
        "http://127.0.0.1/",
        "http://[::1]:9/",
        "http://localhost:9/",
    ] {
        assert!(covered(yes), "{yes}");
    }
    for no in
        ["https://badexample.com/", "https://example.com.evil.test/", "http://127.0.0.1:81/", "http://a.localhost/"]
    {
        assert!(!covered(no), "{no}");
    }
    assert!(allowed_domains("a b").is_err());
}
