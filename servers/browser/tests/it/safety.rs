//! What pages and models cannot do. Each refusal has its control: with private addresses allowed the very same page reaches
//! the listener, so that a listener that is not reached says something.

use crate::common::*;
use linchpin::BoxFuture;
use linchpin::transport::web::Lookup;
use linchpin::types::version::Revision;
use linchpin_browser::{BrowserServer, Config};
use serde_json::json;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};

/// A service of this machine that nobody may connect to, and how often somebody did.
struct Inside {
    port: u16,
    hits: Arc<AtomicUsize>,
}

impl Inside {
    async fn new() -> Inside {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let udp = UdpSocket::bind(("127.0.0.1", port)).await.unwrap();
        let hits = Arc::new(AtomicUsize::new(0));
        let (tcp, datagrams) = (hits.clone(), hits.clone());
        tokio::spawn(async move {
            loop {
                if listener.accept().await.is_ok() {
                    tcp.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        tokio::spawn(async move {
            let mut datagram = [0; 2_000];
            while udp.recv(&mut datagram).await.is_ok() {
                datagrams.fetch_add(1, Ordering::Relaxed);
            }
        });
        Inside { port, hits }
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::Relaxed)
    }
}

/// Names of this machine: one that is, and one that is public when it is asked for the first time only.
struct Names(AtomicUsize);

impl Lookup for Names {
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let first = name == "rebind.test" && self.0.fetch_add(1, Ordering::Relaxed) == 0;
        // Of a block that was given back and routes nowhere.
        let ip: IpAddr = if first { "3ffe::1" } else { "127.0.0.1" }.parse().unwrap();
        let known = name.ends_with(".test") || name == "localhost";
        Box::pin(async move { if known { Ok(vec![ip]) } else { Err(io::Error::other("unknown")) } })
    }
}

/// Everything that a page has to connect somewhere; it waits until all of it has had its time.
const ATTACK: &str = r#"async bases => {
    const jobs = [];
    for (const base of bases) {
        const at = (() => { let n = 0; return () => `${base}/${n++}` })();
        const socket = () => at().replace(/^http/, 'ws');
        jobs.push(fetch(at(), { mode: 'no-cors' }).catch(e => e));
        jobs.push(fetch('/to?' + encodeURIComponent(at()), { mode: 'no-cors' }).catch(e => e));
        const add = (tag, set) => document.body.append(Object.assign(document.createElement(tag), set));
        for (const tag of ['img', 'script', 'iframe', 'video', 'embed']) add(tag, { src: at() });
        add('iframe', { src: '/to?' + encodeURIComponent(at()) });
        add('iframe', { src: '/meta?' + encodeURIComponent(at()) });
        add('object', { data: at() });
        add('iframe', { srcdoc: `<img src="${at()}"><script>new WebSocket("${socket()}")</` + 'script>' });
        for (const rel of ['prefetch', 'preload', 'stylesheet', 'preconnect', 'dns-prefetch', 'modulepreload', 'icon'])
            add('link', { rel, href: at(), as: 'script' });
        add('script', { type: 'speculationrules', textContent: JSON.stringify({ prerender: [{ urls: [at()] }], prefetch: [{ urls: [at()] }] }) });
        navigator.sendBeacon(at(), 'x');
        new EventSource(at());
        jobs.push(new Promise(done => { const w = new WebSocket(socket()); w.onopen = w.onclose = done; }));
        const code = `fetch("${at()}", { mode: "no-cors" }).catch(e => e).finally(() => {
            const w = new WebSocket("${socket()}"); w.onopen = w.onclose = () => postMessage(1) })`;
        jobs.push(new Promise(done => new Worker(URL.createObjectURL(new Blob([code]))).onmessage = done));
        window.open(at());
        try {
            const servers = [{ urls: 'stun:' + base.slice(7) }, { urls: `turn:${base.slice(7)}?transport=tcp`, username: 'u', credential: 'c' }];
            const peer = new RTCPeerConnection({ iceServers: servers });
            peer.createDataChannel('x');
            await peer.setLocalDescription(await peer.createOffer());
        } catch (e) { console.log(e) }
    }
    jobs.push(navigator.serviceWorker.register('/sw.js?' + encodeURIComponent(JSON.stringify(bases))).then(r =>
        new Promise(done => { const w = r.installing || r.active; w.onstatechange = () => w.state == 'redundant' || w.state == 'activated' ? done() : 0; })));
    const late = new Promise(done => setTimeout(done, 2500));
    await Promise.race([Promise.allSettled(jobs), late]);
    await new Promise(done => setTimeout(done, 300));
    return jobs.length;
}"#;

const WORKER: &str = r#"
const bases = JSON.parse(decodeURIComponent(location.search.slice(1)));
self.oninstall = e => e.waitUntil(Promise.allSettled(bases.flatMap(base => [
    fetch(base + '/sw', { mode: 'no-cors' }),
    new Promise(done => { const w = new WebSocket(base.replace(/^http/, 'ws') + '/sw'); w.onopen = w.onclose = done; }),
])));
"#;

async fn hostile() -> linchpin::testing::site::Site {
    use linchpin::testing::site::{Do, Site, answer};
    Site::new(|_, request| {
        let to = request.query().replace("%3A", ":").replace("%2F", "/");
        vec![Do::Write(match request.path() {
            "/" => answer(200, HTML, "<body>hostile"),
            "/sw.js" => answer(200, JS, WORKER),
            "/to" => answer(302, &format!("location: {to}\r\n"), ""),
            "/meta" => answer(200, HTML, format!("<meta http-equiv=refresh content='0;url={to}'>")),
            _ => answer(404, "", "no"),
        })]
    })
    .await
}

async fn caller(config: Config) -> Caller {
    let browser = BrowserServer::open_with(config, Names(AtomicUsize::new(0))).expect("it opens").0;
    Caller::serving(browser, &Revision::ALL).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn nothing_of_a_page_reaches_what_is_not_public() {
    for allowed in [false, true] {
        let (site, inside) = (hostile().await, Inside::new().await);
        let mut config = config(&[&site]);
        config.allow_private_ips = allowed;
        config.timeout_ms = if allowed { 5_000 } else { 20_000 };
        let caller = caller(config).await;
        caller.go(&site.url("/")).await;
        let port = inside.port;
        let hosts = ["127.0.0.1", "2130706433", "localhost", "inside.test", "rebind.test", "[::ffff:7f00:1]"];
        let bases: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}")).collect();
        let bases = if allowed { &bases[..1] } else { &bases };
        let script = format!("({ATTACK})({})", json!(bases));
        if allowed {
            // Services that say nothing keep the page busy, which is no matter here.
            let _ = caller.call("puppeteer_evaluate", json!({ "script": script })).await;
            assert!(inside.hits() > 5, "the control: {}", inside.hits());
            continue;
        }
        caller.eval(&script).await;
        let mut errors = Vec::new();
        for base in bases {
            errors.push(caller.error("puppeteer_navigate", json!({ "url": base })).await);
            errors.push(caller.error("puppeteer_navigate", json!({ "url": site.url(&format!("/to?{base}")) })).await);
            let meta = site.url(&format!("/meta?{base}"));
            let _ = caller.call("puppeteer_navigate", json!({ "url": meta })).await;
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        for base in ["http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://[fd00::1]/"] {
            errors.push(caller.error("puppeteer_navigate", json!({ "url": base })).await);
        }
        assert_eq!(inside.hits(), 0, "{errors:#?}");
        assert!(errors.iter().any(|e| e.contains("is this machine itself")), "{errors:#?}");
    }
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn no_scheme_but_those_of_the_web_is_opened_by_tools_or_pages() {
    let site = hostile().await;
    let caller = caller(config(&[&site])).await;
    for (url, wanted) in [
        ("file:///etc/hostname", "file: URLs are not opened"),
        ("FILE:///etc/hostname", "file: URLs are not opened"),
        ("view-source:file:///etc/hostname", "view-source: URLs are not opened"),
        ("view-source:https://example.com/", "view-source: URLs are not opened"),
        ("chrome://version", "chrome: URLs are not opened"),
        ("devtools://devtools/bundled/inspector.html", "devtools: URLs are not opened"),
        ("filesystem:https://example.com/temporary/a", "filesystem: URLs are not opened"),
        ("data:text/html,<script>1</script>", "data: URLs are not opened"),
        ("javascript:alert(1)", "javascript: URLs are not opened"),
        ("blob:https://example.com/x", "blob: URLs are not opened"),
        ("ftp://example.com/", "ftp: URLs are not opened"),
    ] {
        assert_eq!(caller.error("puppeteer_navigate", json!({ "url": url })).await, wanted);
    }
    caller.go(&site.url("/")).await;
    let tries = r#"(async () => {
        const got = await fetch('file:///etc/hostname').then(r => r.text()).catch(() => 'refused');
        for (const url of ['file:///etc/hostname', 'chrome://version', 'view-source:file:///etc/hostname']) {
            try { window.open(url) } catch {}
            document.body.append(Object.assign(document.createElement('iframe'), { src: url }));
            try { location = url } catch {}
        }
        await new Promise(done => setTimeout(done, 200));
        return [got, location.protocol, document.body.innerText];
    })()"#;
    let got: serde_json::Value = serde_json::from_str(&caller.eval(tries).await).unwrap();
    assert_eq!(got, json!(["refused", "http:", "hostile"]));
    caller.go("about:blank").await;
    // Asked for by the operator.
    let open = self::caller(config(&[&site]).with(|config| config.allow_data_urls = true)).await;
    open.go("data:text/html,<p>yes").await;
    assert_eq!(open.eval("document.body.innerText").await, "\"yes\"");
}
