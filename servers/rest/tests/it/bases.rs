//! APIs that are spread over several hosts, and what a server keeps for the code of its rows.

use bytes::Bytes;
use http::{Request, Response};
use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Do, Site, answer, json};
use linchpin_kit::{ErrorKind, Secret, Service};
use linchpin_rest::testing::{KEY, call};
use linchpin_rest::{Api, Base, Call, Config, Key, Problems, Rest, get, post, segment, specs, text};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const CALLS: &[Call] = &[
    get("old", "Old", "all", "Asks the old host.", "/find").args(&[text("q")]),
    get("new", "New", "all", "Asks the new host.", "/places/home").at("places"),
    post("add", "Add", "all", "Adds something somewhere.", "/in/{place}/")
        .args(&[segment("place").opt(), text("name")])
        .adjust(|ask, args| ask.member("by.name", json!(args.text("name").to_uppercase())))
        .at("places"),
    get("own", "Own", "all", "Asks nobody.", "/").run(|rest, _| {
        Box::pin(async move {
            let count = rest.state::<Mutex<u32>>().map(|count| {
                let mut count = count.lock().unwrap();
                *count += 1;
                *count
            });
            Ok(json!({ "count": count }).into())
        })
    }),
];

const BASES: &[Base] = &[Base::new("places", "https://places.example/v1").key_in_header("x-key", "")];
const API: Api = Api::new("maps", "Maps", "https://maps.example/api", CALLS)
    .key(Key::query(&["MAPS_KEY"], "key"))
    .bases(BASES)
    .problems(Problems::PLAIN.words(&[(403, "It is not allowed"), (0, "It failed")]).failed(failed));
const SERVICE: Service = Service { name: "maps", tools: &specs::<{ CALLS.len() }>(CALLS) };

fn failed(answer: &Value) -> Option<ErrorKind> {
    match answer["status"].as_str() {
        Some("DENIED") => Some(ErrorKind::Denied),
        Some("ODD") => Some(ErrorKind::Upstream { status: None }),
        _ => None,
    }
}

fn config() -> Config {
    Config::default().with(|config| {
        config.key = Some(Secret::new(KEY));
        config.env_proxies = false;
    })
}

async fn connected(rest: Rest) -> Connection {
    let server = rest.add_to(Server::new("t", "0"), &SERVICE).unwrap();
    Client::new("t", "0").connect(linchpin::prelude::in_process(server)).await.unwrap()
}

/// Addresses of requests, and what is in the header for the key.
type Log = Arc<Mutex<Vec<(String, Option<String>)>>>;

#[tokio::test]
async fn each_base_has_its_host_and_its_place_for_the_key() {
    let seen: Log = Arc::default();
    let log = seen.clone();
    let exchange = move |request: Request<Bytes>| {
        let key = request.headers().get("x-key").map(|key| key.to_str().unwrap().to_owned());
        log.lock().unwrap().push((request.uri().to_string(), key));
        Response::new(Bytes::from_static(b"{}"))
    };
    let connection = connected(Rest::open_over(&API, config(), exchange).unwrap()).await;
    call(&connection, "old", json!({ "q": "x" })).await;
    call(&connection, "new", json!({})).await;
    let want = [
        (format!("https://maps.example/api/find?q=x&key={KEY}"), None),
        ("https://places.example/v1/places/home".to_owned(), Some(KEY.to_owned())),
    ];
    assert_eq!(*seen.lock().unwrap(), want);
}

#[tokio::test]
async fn under_another_url_all_bases_are_there_and_redirects_stay_within_theirs() {
    let other = Site::saying(json(200, "", &json!({}))).await;
    let away = other.url("/v1/places/home");
    let site = Site::new(move |n, _| {
        vec![Do::Write(match n {
            0 | 1 => json(200, "", &json!({})),
            2 => answer(307, "location: /elsewhere\r\n", ""),
            3 => json(200, "", &json!({})),
            _ => answer(307, &format!("location: {away}\r\n"), ""),
        })]
    })
    .await;
    let connection =
        connected(Rest::open(&API, config().with(|config| config.api_url = Some(site.url("/double/")))).unwrap()).await;
    for (tool, fails) in [("old", false), ("new", false), ("new", false), ("new", true)] {
        let told = call(&connection, tool, if tool == "old" { json!({ "q": "x" }) } else { json!({}) }).await;
        assert_eq!(told.failed, fails, "{}", told.result);
    }
    let targets: Vec<String> = site.requests().iter().map(|seen| seen.target.clone()).collect();
    let old = format!("/double/find?q=x&key={KEY}");
    let new = "/double/places/places/home";
    assert_eq!(targets, [old.as_str(), new, new, "/elsewhere", new]);
    assert!(other.requests().is_empty());
}

#[test]
fn a_base_without_tls_is_refused() {
    const BAD: &[Base] = &[Base::new("bad", "http://places.example")];
    const OPEN: Api = API.bases(BAD);
    assert!(Rest::open(&OPEN, config()).is_err());
}

#[tokio::test]
async fn a_failure_with_a_status_of_success_has_the_words_of_its_kind() {
    for (said, words) in [("DENIED", "It is not allowed"), ("ODD", "It failed")] {
        let answer = Bytes::from(json!({ "status": said }).to_string());
        let exchange = move |_: Request<Bytes>| Response::new(answer.clone());
        let connection = connected(Rest::open_over(&API, config(), exchange).unwrap()).await;
        let told = call(&connection, "new", json!({})).await;
        assert_eq!(told.text.lines().next(), Some(words), "{}", told.result);
    }
}

#[tokio::test]
async fn a_server_keeps_values_of_its_own_for_all_or_for_each_session() {
    let nobody = |_: Request<Bytes>| Response::new(Bytes::new());
    let opened = || Rest::open_over(&API, config(), nobody).unwrap();
    for (rest, counts) in [
        (opened(), [json!(null), json!(null), json!(null)]),
        (opened().with_state(Mutex::new(5_u32)), [json!(6), json!(7), json!(8)]),
        (opened().with_session_state(|| Mutex::new(5_u32)), [json!(6), json!(7), json!(6)]),
    ] {
        let (first, second) = (connected(rest.clone()).await, connected(rest).await);
        for (connection, count) in [&first, &first, &second].into_iter().zip(counts) {
            let told = call(connection, "own", json!({})).await;
            assert_eq!(told.structured.get("count").cloned().unwrap_or_default(), count);
        }
    }
}

#[tokio::test]
async fn what_a_caller_leaves_out_may_be_the_operators_and_a_last_slash_stays() {
    let site = Site::new(|_, _| vec![Do::Write(json(200, "", &json!({})))]).await;
    let usual = config().with(|config| config.api_url = Some(site.url("/")));
    let connection = connected(Rest::open(&API, usual.clone()).unwrap()).await;
    let told = call(&connection, "add", json!({ "name": "x" })).await;
    assert_eq!(told.text, "Missing required argument: place");
    let usual = usual.with(|config| config.defaults = vec![("place", "oslo".to_owned()), ("unknown", "x".to_owned())]);
    let connection = connected(Rest::open(&API, usual).unwrap()).await;
    for arguments in [json!({ "name": "x" }), json!({ "name": "x", "place": "bergen" })] {
        let told = call(&connection, "add", arguments).await;
        assert!(!told.failed, "{}", told.result);
    }
    let seen = site.requests();
    assert_eq!(
        seen.iter().map(|seen| seen.target.as_str()).collect::<Vec<_>>(),
        ["/places/in/oslo/", "/places/in/bergen/"]
    );
    assert_eq!(serde_json::from_slice::<Value>(&seen[0].body).unwrap(), json!({ "name": "x", "by": { "name": "X" } }));
}

#[tokio::test]
async fn no_redirect_leads_from_one_base_to_another() {
    for (tool, away) in [("old", "https://places.example/v1/x"), ("new", "https://maps.example/api/x")] {
        let sent = Arc::new(Mutex::new(0));
        let count = sent.clone();
        let exchange = move |_: Request<Bytes>| {
            *count.lock().unwrap() += 1;
            Response::builder().status(307).header("location", away).body(Bytes::new()).unwrap()
        };
        let connection = connected(Rest::open_over(&API, config(), exchange).unwrap()).await;
        let told = call(&connection, tool, if tool == "old" { json!({ "q": "x" }) } else { json!({}) }).await;
        assert_eq!(told.text, "Maps redirects to another host, where the key must not go", "{}", told.result);
        assert_eq!(*sent.lock().unwrap(), 1);
    }
}
