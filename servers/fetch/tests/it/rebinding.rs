//! Names that lead somewhere else than they seem to. Each refusal has its control: with private addresses allowed the very same
//! call reaches the listener, so that a listener that is not reached says something.
//!
//! Public addresses cannot be connected to in a test. Where one must answer, a proxy on this machine stands for everything
//! outside: it is asked only for names whose addresses were checked here. Where none may answer, names mean [`NOBODY`].

use crate::common;

use common::*;
use linchpin_fetch::{Config, read_hosts, read_proxy};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;

/// A public address as far as anybody can tell, of a block (the former 6bone) that was given back and routes nowhere.
const NOBODY: &str = "3ffe::1";

/// The configuration as it comes, and the same with every address allowed. Connecting to nobody must not take long.
fn both() -> [Config; 2] {
    let quick = |config: Config| config.with(|config| config.timeout_ms = 1_500);
    [quick(guarded()), quick(open())]
}

/// A site on this machine that must not be reached from outside.
async fn inside() -> Site {
    Site::new(|_| html("<p>inside</p>")).await
}

/// The outside, for which a proxy stands: it writes down what it is asked.
async fn outside() -> Site {
    Site::new(|seen| match seen.path.ends_with("/robots.txt") {
        true => Does::Answers(answer(404, "", b"")),
        false => html(&format!("<p>outside {}</p>", seen.path)),
    })
    .await
}

fn through(proxy: &Site, config: Config) -> Config {
    let url = format!("http://127.0.0.1:{}", proxy.port);
    config.with(|config| {
        config.proxy_url = Some(read_proxy(&url).expect("a proxy"));
        config.timeout_ms = 20_000;
    })
}

#[tokio::test]
async fn a_name_that_is_public_first_and_this_machine_afterwards_never_leads_here() {
    for ignore_robots_txt in [false, true] {
        let site = inside().await;
        let [closed, open] = both().map(|config| config.with(|config| config.ignore_robots_txt = ignore_robots_txt));
        let url = format!("http://rebind.test:{}/x", site.port);
        let names = || Names::default().with("rebind.test", &format!("{NOBODY} 127.0.0.1"));

        // A server that looks up once to check and once to connect would reach the listener with the first call.
        let asked = names();
        let caller = Caller::with_names(closed, &asked).await;
        let first = caller.error(&url).await;
        assert!(first.starts_with("Failed to fetch "), "nobody answers: {first}");
        assert_eq!(asked.asked(), ["rebind.test"], "what was checked is what was connected to: {first}");
        for _ in 0..2 {
            let error = caller.error(&url).await;
            assert!(error.starts_with("Refused to fetch "), "{error}");
            assert!(caller.prompt(&url).await.starts_with("Refused to fetch "));
        }
        assert_eq!(site.paths(), "", "no packet");

        let caller = Caller::with_names(open, &names()).await;
        assert!(caller.get(&url).await.is_err(), "the first meaning is nobody here too");
        assert!(caller.text(json!({"url": url})).await.contains("inside"), "control");
        assert!(site.paths().ends_with("/x"), "control: {}", site.paths());
    }
}

#[tokio::test]
async fn a_retry_does_not_take_a_meaning_that_was_not_checked() {
    // The site is busy, the name changes, the client asks again.
    let busy = Site::new(|_| Does::Answers(answer(503, "retry-after: 0\r\n", b""))).await;
    let config = |config| {
        through(&busy, config).with(|config| {
            config.retries_max = 3;
            config.ignore_robots_txt = true;
        })
    };
    let url = "http://rebind.test/x";
    let names = || Names::default().with("rebind.test", &format!("{NOBODY} 127.0.0.1"));
    let caller = Caller::with_names(config(guarded()), &names()).await;
    let error = caller.error(url).await;
    assert!(error.starts_with("Refused to fetch "), "{error}");
    assert_eq!(busy.seen().len(), 1, "asked for under the meaning that was checked, and not again");
    let caller = Caller::with_names(config(open()), &names()).await;
    assert!(caller.error(url).await.contains("status code 503"));
    assert_eq!(busy.seen().len(), 1 + 4, "control: all retries arrive");
}

#[tokio::test]
async fn one_private_address_condemns_a_name_wherever_it_stands() {
    for meaning in [
        format!("{NOBODY},127.0.0.1"),
        format!("127.0.0.1,{NOBODY}"),
        format!("8.8.8.8,{NOBODY},1.1.1.1,127.0.0.1"),
        "::1,127.0.0.1".to_owned(),
    ] {
        let site = inside().await;
        let url = format!("http://mixed.test:{}/x", site.port);
        let [closed, open] = both();
        let names = Names::default().with("mixed.test", &meaning);
        let caller = Caller::with_names(closed, &names).await;
        for _ in 0..2 {
            let error = caller.error(&url).await;
            assert!(error.starts_with("Refused to fetch "), "{meaning}: {error}");
        }
        assert_eq!(site.paths(), "", "{meaning}: no packet");
        // The addresses that answer nobody are left out of the control, which need not wait for them.
        let meaning: Vec<&str> = meaning.split(',').filter(|ip| ip.ends_with(".0.0.1") || *ip == "::1").collect();
        let names = Names::default().with("mixed.test", &meaning.join(","));
        let caller = Caller::with_names(open, &names).await;
        assert!(caller.text(json!({"url": url})).await.contains("inside"), "{meaning:?}: control");
        assert_eq!(site.paths(), "/robots.txt /x", "{meaning:?}: control");
    }
}

#[tokio::test]
async fn redirects_to_names_are_looked_up_and_checked_like_first_addresses() {
    for status in [301, 302, 303, 307, 308] {
        let inside = inside().await;
        let to = format!("http://loop.test:{}/secret", inside.port);
        let relay = Site::new(move |seen| match seen.path.as_str() {
            "/robots.txt" => Does::Answers(answer(404, "", b"")),
            "/a" => redirect(status, "/b"),
            _ => redirect(status, &to),
        })
        .await;
        let public = format!("public.test:{}", relay.port);
        let url = format!("http://{public}/a");
        let names = Names::default().with("public.test", "127.0.0.1").with("loop.test", "127.0.0.1");
        // Only the first site counts as public, by name and port.
        let first_only = |config: Config| {
            config.with(|config| config.allow_private_hosts = read_hosts([public.clone()]).expect("a host"))
        };
        for ignore_robots_txt in [false, true] {
            let before = relay.seen().len();
            let config = first_only(guarded()).with(|config| config.ignore_robots_txt = ignore_robots_txt);
            let caller = Caller::with_names(config, &names).await;
            let error = caller.error(&url).await;
            let refused = format!("Refused to fetch {url}: the site it redirects to is this machine itself");
            assert!(error.starts_with(&refused), "{status}: {error}");
            assert!(caller.prompt(&url).await.starts_with(&refused), "{status}");
            assert!(relay.seen().len() > before + 2, "the way there was taken");
            assert_eq!(inside.paths(), "", "{status}: no packet");
        }
        let caller = Caller::with_names(first_only(open()), &names).await;
        assert!(caller.text(json!({"url": url})).await.contains("inside"), "{status}: control");
        assert_eq!(inside.paths(), "/robots.txt /secret", "{status}: control");
    }
}

#[tokio::test]
async fn a_name_that_is_public_for_robots_txt_and_private_for_the_page_is_refused() {
    for (meanings, arrives) in [
        // The robots.txt is fetched, the page is not.
        (format!("{NOBODY} 127.0.0.1"), "http://site.test/robots.txt"),
        (format!("{NOBODY} 169.254.169.254"), "http://site.test/robots.txt"),
        (format!("{NOBODY} {NOBODY},10.0.0.1"), "http://site.test/robots.txt"),
        // And the other way round nothing is.
        (format!("127.0.0.1 {NOBODY}"), ""),
    ] {
        let proxy = outside().await;
        let names = || Names::default().with("site.test", &meanings);
        let caller = Caller::with_names(through(&proxy, guarded()), &names()).await;
        let error = caller.error("http://site.test/x").await;
        assert!(error.starts_with("Refused to fetch http://site.test/x"), "{meanings}: {error}");
        assert_eq!(proxy.paths(), arrives, "{meanings}");
        let before = proxy.seen().len();
        let caller = Caller::with_names(through(&proxy, open()), &names()).await;
        assert!(caller.text(json!({"url": "http://site.test/x"})).await.contains("outside"), "{meanings}: control");
        assert_eq!(proxy.seen().len(), before + 2, "{meanings}: control");
    }
}

/// Addresses that are not public, in the forms that a name can have.
const PRIVATE: [&str; 37] = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    // Shared by providers, link-local and the metadata of clouds.
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "169.254.0.1",
    "169.254.169.254",
    "192.0.0.1",
    "198.18.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    // The same inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo.
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001:0:0:0:0:0:80ff:fffe",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
];

#[tokio::test]
async fn every_kind_of_private_address_is_refused_behind_a_name_and_in_a_url() {
    let proxy = outside().await;
    for ip in PRIVATE {
        let names = Names::default().with("kind.test", ip);
        let literal = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        let urls = ["http://kind.test/x".to_owned(), format!("http://{literal}/x")];
        // This machine itself is never asked for through a proxy, so that the control has the name only.
        for url in &urls {
            let before = proxy.seen().len();
            let caller = Caller::with_names(through(&proxy, guarded()), &names).await;
            let error = caller.error(url).await;
            assert!(error.starts_with("Refused to fetch "), "{ip} {url}: {error}");
            assert!(caller.prompt(url).await.starts_with("Refused to fetch "), "{ip} {url}");
            assert_eq!(proxy.seen().len(), before, "{ip} {url}: no packet");
        }
        let before = proxy.seen().len();
        let caller = Caller::with_names(through(&proxy, open()), &names).await;
        assert!(caller.text(json!({"url": urls[0]})).await.contains("outside"), "{ip}: control");
        assert_eq!(proxy.seen().len(), before + 2, "{ip}: control");
    }
    // And public ones are not, so that the table does not hold because everything is refused.
    for ip in
        ["8.8.8.8", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.169.0.1", "2606:4700::1", "64:ff9b::8.8.8.8"]
    {
        let names = Names::default().with("kind.test", ip);
        let caller = Caller::with_names(through(&proxy, guarded()), &names).await;
        assert!(caller.get("http://kind.test/x").await.is_ok(), "{ip}");
    }
}

/// Counts the connections that arrive at this machine, whatever they say.
async fn counting(at: SocketAddr) -> Option<(u16, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind(at).await.ok()?;
    let port = listener.local_addr().ok()?.port();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            seen.fetch_add(1, Ordering::SeqCst);
        }
    });
    Some((port, count))
}

#[tokio::test]
async fn addresses_that_mean_this_machine_are_not_connected_to_directly() {
    let mut controls = 0;
    for (ip, at) in [
        ("127.0.0.1", [127, 0, 0, 1].into()),
        ("::ffff:127.0.0.1", [127, 0, 0, 1].into()),
        // Most systems take it for this machine.
        ("0.0.0.0", [127, 0, 0, 1].into()),
        ("::ffff:0.0.0.0", [127, 0, 0, 1].into()),
        ("::1", std::net::Ipv6Addr::LOCALHOST.into()),
        ("::", std::net::Ipv6Addr::LOCALHOST.into()),
    ] {
        let at: std::net::IpAddr = at;
        // Machines without IPv6 have no such listener.
        let Some((port, hits)) = counting((at, 0).into()).await else { continue };
        let literal = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        let [closed, open] = both();
        let names = Names::default().with("here.test", ip);
        let urls = [format!("http://here.test:{port}/x"), format!("http://{literal}:{port}/x")];
        let caller = Caller::with_names(closed, &names).await;
        for url in &urls {
            let error = caller.error(url).await;
            assert!(error.starts_with("Refused to fetch "), "{url}: {error}");
        }
        assert_eq!(hits.load(Ordering::SeqCst), 0, "{ip}: no connection");
        let caller = Caller::with_names(open, &names).await;
        for url in &urls {
            let _ = caller.get(url).await;
        }
        controls += usize::from(hits.load(Ordering::SeqCst) >= 2);
        assert!(hits.load(Ordering::SeqCst) >= 2 || ip != "127.0.0.1", "{ip}: control");
    }
    // What the forms beyond the first mean is the system's business; on Linux all of them mean this machine.
    assert!(controls >= if cfg!(target_os = "linux") { 4 } else { 1 }, "{controls} controls");
}

#[tokio::test]
async fn what_was_kept_under_a_name_opens_no_way_around_the_check() {
    // Kept pages belong to one server and its rules: another server in the same process does not get them.
    let site = inside().await;
    let names = Names::default().with("kept.test", "127.0.0.1");
    let url = format!("http://kept.test:{}/x", site.port);
    let allowed = Caller::with_names(open(), &names).await;
    let closed = Caller::with_names(guarded(), &names).await;
    assert!(allowed.text(json!({"url": url})).await.contains("inside"), "control");
    assert_eq!(allowed.value(json!({"url": url})).await["cached"], true, "control: it is kept");
    for start_index in [0, 1] {
        let error = closed.call(json!({"url": url, "start_index": start_index})).await.unwrap_err();
        assert!(error.starts_with("Refused to fetch "), "{error}");
    }
    assert!(closed.prompt(&url).await.starts_with("Refused to fetch "));
    // One port of a host may be allowed; what was kept of it does not answer for another port.
    let port = site.port;
    let one = guarded()
        .with(|config| config.allow_private_hosts = read_hosts([format!("kept.test:{port}")]).expect("a host"));
    let caller = Caller::with_names(one, &names).await;
    assert!(caller.get(&url).await.is_ok(), "control");
    for url in ["http://kept.test/x".to_owned(), format!("https://kept.test:{}/x", port - 1)] {
        assert!(caller.error(&url).await.starts_with("Refused to fetch "), "{url}");
    }
}

#[tokio::test]
async fn a_kept_page_is_what_was_read_when_its_name_was_public_and_nothing_newer() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let proxy = Site::new(move |seen| match seen.path.rsplit('/').next() {
        Some("robots.txt") => Does::Answers(answer(404, "", b"")),
        path => {
            let n = counted.fetch_add(1, Ordering::SeqCst);
            let head = if path == Some("fleeting") { "cache-control: no-store\r\n" } else { "" };
            Does::Answers(answer(200, &format!("{}{head}", typed("text/plain")), format!("version {n}").as_bytes()))
        }
    })
    .await;
    let public = format!("{NOBODY} {NOBODY} 127.0.0.1");
    // Two lookups are public, for robots.txt and the page; from then on the name means this machine.
    let names = || Names::default().with("kept.test", &public);
    let page = |name: &str, start: u64| json!({"url": format!("http://kept.test/{name}"), "start_index": start});

    let asked = names();
    let caller = Caller::with_names(through(&proxy, guarded()), &asked).await;
    assert!(caller.text(page("kept", 0)).await.contains("version 0"));
    let arrived = proxy.seen().len();
    // Nothing is connected to, so that there is nothing to check; the words are those of the public site.
    assert!(caller.text(page("kept", 0)).await.contains("version 0"));
    assert!(caller.text(page("kept", 8)).await.ends_with('0'));
    assert_eq!(asked.asked().len(), 2, "kept pages need no lookup");
    // Another page of the same name does.
    let error = caller.call(page("other", 0)).await.unwrap_err();
    assert!(error.starts_with("Refused to fetch "), "{error}");
    assert_eq!(proxy.seen().len(), arrived, "nothing was sent since");

    // A page that its site asked not to keep is looked up again for its beginning, and refused then, kept or not.
    let caller = Caller::with_names(through(&proxy, guarded()), &names()).await;
    assert!(caller.text(page("fleeting", 0)).await.contains("version 1"));
    let arrived = proxy.seen().len();
    let error = caller.call(page("fleeting", 0)).await.unwrap_err();
    assert!(error.starts_with("Refused to fetch "), "{error}");
    assert_eq!(proxy.seen().len(), arrived, "nothing was sent since");

    // Without a cache every call is checked.
    let config = through(&proxy, guarded()).with(|config| config.cache_ttl_ms = 0);
    let caller = Caller::with_names(config, &names()).await;
    assert!(caller.get("http://kept.test/kept").await.is_ok());
    assert!(caller.error("http://kept.test/kept").await.starts_with("Refused to fetch "));

    // A refusal is not kept: when the name is public again, the page is read.
    let names = Names::default().with("late.test", &format!("127.0.0.1 {NOBODY}"));
    let caller = Caller::with_names(through(&proxy, guarded()), &names).await;
    assert!(caller.error("http://late.test/x").await.starts_with("Refused to fetch "));
    assert!(caller.get("http://late.test/x").await.is_ok());
}
