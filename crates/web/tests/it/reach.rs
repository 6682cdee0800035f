//! Where the HTTP client connects, and where not.

use crate::server::*;
use bytes::Bytes;
use linchpin_web::{BoxFuture, Lookup, Reach, Web, WebErrorKind, WebOptions};
use std::io;
use std::net::IpAddr;

#[test]
fn every_special_range_is_out_of_public_reach_in_every_form_it_is_written_in() {
    // Addresses with the end of the sentence; the edges of ranges stand beside their neighbours.
    let rows = [
        (
            "",
            "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255",
        ),
        (
            "",
            "169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 192.0.1.0 198.17.255.255 198.20.0.0 223.255.255.255",
        ),
        ("", "2606:4700:4700::1111 2a00::1 2001:4860:4860::8888 2001:200::1 3ffe::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1"),
        ("", "2002:101:101::1 2001:0:1:2:3:4:fefe:fefe"),
        ("is not an address of one host", "0.0.0.0 0.1.2.3 0.255.255.255 :: ::ffff:0.0.0.0 64:ff9b::0.0.0.0 2002::1"),
        (
            "is this machine itself",
            "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 2002:7f00:1::1",
        ),
        ("is this machine itself", "2001:0:1:2:3:4:80ff:fffe"),
        ("is in a private network", "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255"),
        (
            "is in a private network",
            "fc00::1 fdff:ffff::1 fec0::1 ::ffff:10.0.0.1 ::ffff:192.168.1.1 64:ff9b::10.0.0.1",
        ),
        ("is translated by a private network", "64:ff9b:1::1 64:ff9b:1::127.0.0.1"),
        ("is in a private network", "2002:a00:1::1 2002:c0a8:101::1"),
        ("is in a network shared by a provider", "100.64.0.0 100.127.255.255 ::ffff:100.64.0.1"),
        (
            "is a link-local address",
            "169.254.0.0 169.254.169.254 169.254.255.255 fe80::1 febf::1 ::ffff:169.254.169.254",
        ),
        ("is a link-local address", "64:ff9b::169.254.169.254 2002:a9fe:a9fe::1"),
        (
            "is reserved",
            "192.0.0.1 192.88.99.1 198.18.0.0 198.19.255.255 240.0.0.1 255.255.255.255 2001:2::1 100::1 5f00::1",
        ),
        ("is reserved", "200::1 4000::1 9000::1 fe00::1"),
        ("is for documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"),
        ("is a multicast address", "224.0.0.1 239.255.255.255 ff02::1 ::ffff:224.0.0.1"),
    ];
    for (want, addresses) in rows {
        for address in addresses.split(' ') {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(Reach::Public.check(ip).err().unwrap_or_default(), want, "{address}");
            let local = if want == "is this machine itself" { "" } else { want };
            assert_eq!(Reach::PublicOrLoopback.check(ip).err().unwrap_or_default(), local, "{address}");
            let inside = matches!(want, "is in a private network" | "is in a network shared by a provider");
            let inside = if inside { "" } else { want };
            assert_eq!(Reach::PublicOrPrivate.check(ip).err().unwrap_or_default(), inside, "{address}");
            assert_eq!(Reach::Any.check(ip), Ok(()));
        }
    }
}

fn get(url: &str) -> http::Request<Bytes> {
    http::Request::get(url).body(Bytes::new()).unwrap()
}

fn options(reach: Reach) -> WebOptions {
    WebOptions::default().with(|options| {
        options.reach = reach;
        options.proxies = false;
        options.connect_ms_max = 2_000;
    })
}

#[tokio::test]
async fn addresses_in_urls_are_checked_in_whatever_spelling() {
    let server = Server::new(|_, _| vec![Do::Write(answer(200, "", "here"))]).await;
    let port = server.port;
    let web = Web::new(options(Reach::Public));
    for host in
        ["127.0.0.1", "[::1]", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]", "127.0.0.1."]
    {
        let url = format!("http://{host}:{port}/");
        let error = web.send(get(&url)).await.unwrap_err();
        assert_eq!(error.kind(), WebErrorKind::Refused, "{host}: {error}");
        assert!(error.to_string().ends_with("is this machine itself, where this client does not connect"), "{error}");
    }
    assert_eq!(server.requests().len(), 0);
    let web = Web::new(options(Reach::PublicOrLoopback));
    assert_eq!(web.send(get(&server.url())).await.unwrap().parts.status, 200);
    let error = web.send(get("http://169.254.169.254/latest/meta-data")).await.unwrap_err();
    assert_eq!(error.to_string(), "169.254.169.254 is a link-local address, where this client does not connect");
}

/// Knows a few names.
struct Names;

impl Lookup for Names {
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let found: &[&str] = match name {
            "inside.test" => &["10.1.2.3"],
            "mixed.test" => &["1.1.1.1", "127.0.0.1"],
            "mapped.test" => &["::ffff:127.0.0.1"],
            "here.test" => &["127.0.0.1"],
            // Nobody listens on the first.
            "both.test" => &["::1", "127.0.0.1"],
            "none.test" => &[],
            _ => return Box::pin(async { Err(io::Error::new(io::ErrorKind::NotFound, "no such name")) }),
        };
        let found = found.iter().map(|ip| ip.parse().unwrap()).collect();
        Box::pin(async move { Ok(found) })
    }
}

#[tokio::test]
async fn what_a_name_resolves_to_is_checked_and_is_what_is_connected_to() {
    let server = Server::new(|_, seen| vec![Do::Write(answer(200, "", seen.header("host").unwrap()))]).await;
    let port = server.port;
    let outcome = |reach, name: &'static str| async move {
        let web = Web::with_lookup(options(reach), Names);
        match web.send(get(&format!("http://{name}:{port}/"))).await {
            Ok(mut answer) => String::from_utf8(answer.body.read_all(100).await.unwrap().to_vec()).unwrap(),
            Err(e) => e.to_string(),
        }
        .replace(&port.to_string(), "PORT")
    };
    let no = |name: &str, what: &str| format!("{name}:PORT {what}, where this client does not connect");
    let rows = [
        (Reach::Public, "inside.test", no("inside.test", "is in a private network")),
        (Reach::Public, "mixed.test", no("mixed.test", "is this machine itself")),
        (Reach::Public, "mapped.test", no("mapped.test", "is this machine itself")),
        (Reach::Public, "here.test", no("here.test", "is this machine itself")),
        (Reach::PublicOrLoopback, "inside.test", no("inside.test", "is in a private network")),
        (Reach::PublicOrLoopback, "here.test", "here.test:PORT".to_owned()),
        (Reach::PublicOrPrivate, "mixed.test", no("mixed.test", "is this machine itself")),
        (Reach::PublicOrPrivate, "mapped.test", no("mapped.test", "is this machine itself")),
        (Reach::PublicOrPrivate, "here.test", no("here.test", "is this machine itself")),
        (Reach::Any, "both.test", "both.test:PORT".to_owned()),
        (Reach::Any, "none.test", "the name of none.test:PORT cannot be found: it has no address".to_owned()),
        (Reach::Any, "other.test", "the name of other.test:PORT cannot be found: no such name".to_owned()),
    ];
    for (reach, name, want) in rows {
        assert_eq!(outcome(reach, name).await, want, "{name}");
    }
}

#[tokio::test]
async fn deadlines_and_limits_of_a_client_hold() {
    let server = Server::new(|_, seen| match seen.path.as_str() {
        "/silent" => vec![Do::Hold],
        "/slow" => vec![Do::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec()), Do::Hold],
        "/head" => vec![Do::Write(answer(200, &format!("x: {}\r\n", "y".repeat(2_000)), ""))],
        _ => vec![Do::Write(answer(200, "", &"x".repeat(1_000)))],
    })
    .await;
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", server.port);
    let hurried = Web::new(options(Reach::Any).with(|options| options.request_ms_max = Some(100)));
    let error = hurried.send(get(&url("/silent"))).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (WebErrorKind::Timeout, format!("127.0.0.1:{} did not respond in time", server.port))
    );
    let mut slow = hurried.send(get(&url("/slow"))).await.unwrap();
    assert_eq!(slow.body.read_all(100).await.unwrap_err().kind(), WebErrorKind::Timeout);
    let narrow = Web::new(options(Reach::Any).with(|options| {
        options.body_bytes_max = Some(999);
        options.header_bytes_max = 1_000;
    }));
    assert_eq!(narrow.send(get(&url("/head"))).await.unwrap_err().kind(), WebErrorKind::TooLong);
    let mut long = narrow.send(get(&url("/long"))).await.unwrap();
    assert_eq!(long.body.read_all(2_000).await.unwrap_err().kind(), WebErrorKind::TooLong);
    for (limit, fits) in [(999, false), (1_000, true)] {
        let mut long = web().send(get(&url("/long"))).await.unwrap();
        assert_eq!(long.body.read_all(limit).await.is_ok(), fits, "{limit}");
    }
}

/// Never says anything.
struct Silent;

impl Lookup for Silent {
    fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn the_time_to_connect_holds_for_the_lookup_of_the_name_too() {
    let hurried = options(Reach::Any).with(|options| options.connect_ms_max = 50);
    let web = Web::with_lookup(hurried, Silent);
    for scheme in ["http", "https"] {
        let error = web.send(get(&format!("{scheme}://slow.test/"))).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (WebErrorKind::Timeout, "connecting to slow.test took too long".to_owned()),
            "{scheme}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_apart_from_one_that_is_not_there() {
    let server = Server::new(|_, _| vec![]).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        std::future::pending::<()>().await;
    });
    let error = web().send(get(&format!("https://127.0.0.1:{port}/"))).await.unwrap_err();
    assert_eq!(error.kind(), WebErrorKind::Tls);
    assert_eq!(
        error.to_string(),
        format!("127.0.0.1:{port} does not use TLS; should the URL start with http:// instead of https://?")
    );
    drop(server);
}

#[tokio::test]
async fn hosts_ports_and_schemes_can_be_narrowed() {
    let server = Server::new(|_, _| vec![Do::Write(answer(200, "", "here"))]).await;
    let port = server.port;
    let rules = |list: &[&str]| list.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<linchpin_web::HostRule>>();
    let any = || options(Reach::Any);
    let public = || options(Reach::Public);
    let no = |host: &str, why: &str| format!("{host} {why}, where this client does not connect");
    let own = format!("127.0.0.1:{port}");
    let rows = [
        (any(), own.clone(), Ok(())),
        (any().with(|options| options.only_hosts = rules(&["127.0.0.1"])), own.clone(), Ok(())),
        (
            any().with(|options| options.only_hosts = rules(&["here.test"])),
            own.clone(),
            Err(no(&own, "is not among the hosts that the operator allowed")),
        ),
        (any().with(|options| options.only_hosts = rules(&["here.test"])), format!("here.test:{port}"), Ok(())),
        (
            any().with(|options| options.deny_hosts = rules(&[".test"])),
            format!("here.test:{port}"),
            Err(no(&format!("here.test:{port}"), "is a host that the operator excluded")),
        ),
        (public().with(|options| options.trusted_hosts = rules(&[&own])), own.clone(), Ok(())),
        (public().with(|options| options.trusted_hosts = rules(&["here.test"])), format!("here.test:{port}"), Ok(())),
        (
            public().with(|options| options.trusted_hosts = rules(&["here.test"])),
            own.clone(),
            Err(no(&own, "is this machine itself")),
        ),
        (any().with(|options| options.https_only = true), own.clone(), Err(no(&own, "is requested without TLS"))),
        (
            any().with(|options| options.web_ports_only = true),
            "127.0.0.1:25".to_owned(),
            Err(no("127.0.0.1:25", "is at a port of another protocol than HTTP")),
        ),
    ];
    let mut reached = 0;
    for (options, host, want) in rows {
        let got = Web::with_lookup(options, Names).get(&format!("http://{host}/"), http::HeaderMap::new()).await;
        reached += usize::from(want.is_ok());
        assert_eq!(got.map(|_| ()).map_err(|e| e.to_string()), want, "{host}");
        assert_eq!(server.requests().len(), reached, "{host}");
    }
}

#[cfg(feature = "decompress")]
#[tokio::test]
async fn compressed_answers_are_left_alone_unless_they_were_asked_for() {
    let server = Server::new(|_, _| vec![Do::Write(answer(200, "content-encoding: gzip\r\n", "packed"))]).await;
    let mut plain = Web::new(options(Reach::Any)).get(&server.url(), http::HeaderMap::new()).await.unwrap();
    assert_eq!(plain.body.read_all(100).await.unwrap(), "packed");
    let unpacking = Web::new(options(Reach::Any).with(|options| options.decompress = true));
    let mut broken = unpacking.get(&server.url(), http::HeaderMap::new()).await.unwrap();
    assert_eq!(broken.body.read_all(100).await.unwrap_err().kind(), WebErrorKind::Broken);
    let asked: Vec<_> = server.requests().iter().map(|seen| seen.header("accept-encoding").is_some()).collect();
    assert_eq!(asked, [false, true]);
}
