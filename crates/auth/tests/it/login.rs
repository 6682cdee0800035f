//! Logins bring the callback back, whoever else comes to the listener's door.

use linchpin_auth::login::{Browser, CallbackError, Headless, Login, LoginError, ManualLogin, callback_params};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than any of these tests takes, so that one that hangs fails.
const LONG: Duration = Duration::from_secs(60);

/// A browser that opens nothing.
fn quiet() -> Browser {
    Browser::new().open_with(|_| Ok(())).wait(LONG)
}

fn port_of(redirect_uri: &str) -> u16 {
    let rest = redirect_uri.strip_prefix("http://127.0.0.1:").unwrap();
    rest.strip_suffix("/callback").unwrap().parse().unwrap()
}

/// Says something to the listener and returns all it answers.
async fn say(port: u16, request: impl AsRef<[u8]>) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    // The listener may answer and close before it has heard everything.
    let _ = stream.write_all(request.as_ref()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Ok(String::from_utf8(answer).unwrap())
}

fn get(port: u16, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nSec-Fetch-Dest: document\r\n\r\n")
}

/// A login with the state `s`, while somebody does something at its door. Returns what both brought.
async fn during<T, F: Future<Output = T>>(
    browser: &Browser,
    act: impl FnOnce(u16) -> F,
) -> (Result<String, LoginError>, T) {
    let port = port_of(&browser.redirect_uri().await.unwrap());
    let both = async { tokio::join!(browser.authorize("https://as.example/authorize?state=s"), act(port)) };
    tokio::time::timeout(LONG, both).await.expect("the login hangs")
}

#[tokio::test]
async fn the_browser_comes_back_with_the_whole_callback_url() {
    let browser = quiet();
    let (url, page) = during(&browser, |port| async move {
        say(port, get(port, "/callback?code=a%2Bb&state=s&iss=https%3A%2F%2Fas.example")).await.unwrap()
    })
    .await;
    let url = url.unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert!(url.ends_with("/callback?code=a%2Bb&state=s&iss=https%3A%2F%2Fas.example"), "{url}");
    let callback = callback_params(&url).unwrap();
    assert_eq!(callback.code.unwrap().expose(), "a+b");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("You may close this window"), "{page}");
    assert!(page.contains("cache-control: no-store\r\n") && page.contains("default-src 'none'"), "{page}");
    assert!(!page.contains("a+b") && !page.contains("a%2Bb"), "the code is not repeated: {page}");
}

#[tokio::test]
async fn a_client_may_be_registered_with_another_host_and_path() {
    let browser = quiet().localhost().path("/oauth/callback");
    let uri = browser.redirect_uri().await.unwrap();
    let port: u16 = uri
        .strip_prefix("http://localhost:")
        .and_then(|rest| rest.strip_suffix("/oauth/callback"))
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("{uri}"));
    let visits = async {
        let other = say(port, get(port, "/callback?code=c&state=s")).await.unwrap();
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        say(port, get(port, "/oauth/callback?code=c&state=s")).await.unwrap()
    };
    let both = async { tokio::join!(browser.authorize("https://as.example/authorize?state=s"), visits) };
    let (url, page) = tokio::time::timeout(LONG, both).await.expect("the login hangs");
    assert_eq!(url.unwrap(), format!("{uri}?code=c&state=s"));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
}

#[tokio::test]
async fn a_refusal_comes_back_too_and_is_shown_escaped() {
    let (url, page) = during(&quiet(), |port| async move {
        let target = "/callback?error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E&state=s";
        say(port, get(port, target)).await.unwrap()
    })
    .await;
    assert_eq!(callback_params(&url.unwrap()).unwrap().error.as_deref(), Some("access_denied"));
    assert!(page.contains("access_denied") && page.contains("&#60;script&#62;"), "{page}");
    assert!(!page.contains("<script"), "{page}");
}

#[tokio::test]
async fn the_listener_is_closed_after_the_login() {
    let browser = quiet();
    let (url, port) = during(&browser, |port| async move {
        say(port, get(port, "/callback?code=c&state=s")).await.unwrap();
        port
    })
    .await;
    url.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn whatever_is_not_the_callback_is_turned_away_and_the_wait_goes_on() {
    // Request head without the empty line, with PORT for the port; beginning of the answer.
    let good = "Host: 127.0.0.1:PORT";
    let rows = [
        ("favicon", format!("GET /favicon.ico HTTP/1.1\r\n{good}"), "404"),
        ("root", format!("GET / HTTP/1.1\r\n{good}"), "404"),
        ("longer path", format!("GET /callback/x?code=evil HTTP/1.1\r\n{good}"), "404"),
        ("upper case", format!("GET /Callback?code=evil HTTP/1.1\r\n{good}"), "404"),
        ("dots", format!("GET /x/../callback?code=evil HTTP/1.1\r\n{good}"), "404"),
        ("absolute", format!("GET http://127.0.0.1:PORT/callback?code=evil HTTP/1.1\r\n{good}"), "404"),
        ("POST", format!("POST /callback?code=evil HTTP/1.1\r\n{good}\r\nContent-Length: 0"), "405"),
        ("HEAD", format!("HEAD /callback?code=evil HTTP/1.1\r\n{good}"), "405"),
        ("OPTIONS", format!("OPTIONS /callback HTTP/1.1\r\n{good}"), "405"),
        ("no answer in it", format!("GET /callback HTTP/1.1\r\n{good}"), "400"),
        ("state alone", format!("GET /callback?state=s HTTP/1.1\r\n{good}"), "400"),
        ("two codes", format!("GET /callback?code=evil&code=evil&state=s HTTP/1.1\r\n{good}"), "400"),
        ("another login", format!("GET /callback?code=evil&state=t HTTP/1.1\r\n{good}"), "400"),
        ("another login's error", format!("GET /callback?error=evil&state= HTTP/1.1\r\n{good}"), "400"),
        ("rebound name", "GET /callback?code=evil&state=s HTTP/1.1\r\nHost: evil.example:PORT".to_owned(), "403"),
        (
            "look-alike name",
            "GET /callback?code=evil&state=s HTTP/1.1\r\nHost: localhost.evil.example:PORT".to_owned(),
            "403",
        ),
        ("no port", "GET /callback?code=evil&state=s HTTP/1.1\r\nHost: 127.0.0.1".to_owned(), "403"),
        ("another port", "GET /callback?code=evil&state=s HTTP/1.1\r\nHost: 127.0.0.1:1".to_owned(), "403"),
        ("no host", "GET /callback?code=evil&state=s HTTP/1.1\r\nX: y".to_owned(), "403"),
        ("two hosts", format!("GET /callback?code=evil&state=s HTTP/1.1\r\n{good}\r\n{good}"), "403"),
        ("a picture", format!("GET /callback?error=evil HTTP/1.1\r\n{good}\r\nSec-Fetch-Dest: image"), "403"),
        ("a frame", format!("GET /callback?error=evil HTTP/1.1\r\n{good}\r\nSec-Fetch-Dest: iframe"), "403"),
        ("no HTTP", "\u{16}\u{3}\u{1}\u{2}hello".to_owned(), "400"),
        ("many headers", format!("GET /callback?code=evil HTTP/1.1\r\n{good}{}", "\r\na: b".repeat(200)), "431"),
        ("a huge header", format!("GET /callback?code=evil HTTP/1.1\r\n{good}\r\na: {}", "b".repeat(300_000)), "431"),
        ("a huge code", format!("GET /callback?state=s&code={} HTTP/1.1\r\n{good}", "e".repeat(20_000)), "400"),
    ];
    let (url, ()) = during(&quiet(), |port| async move {
        for (name, head, status) in rows {
            let request = head.replace("PORT", &port.to_string()) + "\r\n\r\n";
            let answer = say(port, request).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        }
        say(port, get(port, "/callback?code=good&state=s")).await.unwrap();
    })
    .await;
    assert!(url.unwrap().ends_with("?code=good&state=s"));
}

#[tokio::test]
async fn loopback_has_two_names() {
    for name in ["127.0.0.1", "localhost", "LocalHost"] {
        let (url, _) = during(&quiet(), |port| async move {
            say(port, format!("GET /callback?code=c&state=s HTTP/1.1\r\nhost: {name}:{port}\r\n\r\n")).await.unwrap()
        })
        .await;
        url.unwrap();
    }
}

#[tokio::test]
async fn visitors_that_say_nothing_or_leave_do_not_keep_the_browser_out() {
    let (url, _silent) = during(&quiet(), |port| async move {
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
            let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            slow.write_all(b"GET /callback?code=slow HTTP/1.1\r\n").await.unwrap();
            silent.push(slow);
            drop(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        // As many as are served at once sit there now; they are sent away after a while.
        say(port, get(port, "/callback?code=c&state=s")).await.unwrap();
        silent
    })
    .await;
    assert!(url.unwrap().ends_with("?code=c&state=s"));
}

#[tokio::test]
async fn a_request_in_small_pieces_is_one_request() {
    let (url, answer) = during(&quiet(), |port| async move {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in get(port, "/callback?code=c&state=s").as_bytes() {
            stream.write_all(std::slice::from_ref(byte)).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    })
    .await;
    url.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_callbacks_one_counts() {
    let (url, answers) = during(&quiet(), |port| async move {
        let ask = |code: &str| say(port, get(port, &format!("/callback?code={code}&state=s")));
        tokio::join!(ask("first"), ask("second"))
    })
    .await;
    let url = url.unwrap();
    let welcome = |answer: io::Result<String>| answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 OK"));
    let (first, second) = (welcome(answers.0), welcome(answers.1));
    assert!(first != second, "one of them is told that it counts");
    assert!(url.contains(if first { "code=first" } else { "code=second" }), "{url}");
}

#[tokio::test]
async fn a_login_nobody_finishes_ends() {
    let browser = quiet().wait(Duration::from_millis(50));
    let port = port_of(&browser.redirect_uri().await.unwrap());
    let error = browser.authorize("https://as.example/?state=s").await.unwrap_err();
    assert!(matches!(error, LoginError::TimedOut(_)), "{error:?}");
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn a_login_that_is_given_up_closes_the_listener() {
    let browser = quiet();
    let port = port_of(&browser.redirect_uri().await.unwrap());
    tokio::select! {
        biased;
        _ = browser.authorize("https://as.example/?state=s") => panic!("nobody came"),
        () = tokio::task::yield_now() => {}
    }
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn a_browser_that_does_not_open_is_an_error_unless_somebody_saw_the_address() {
    let broken = || Browser::new().open_with(|_| Err(io::Error::other("no display"))).wait(LONG);
    let alone = broken();
    alone.redirect_uri().await.unwrap();
    let error = alone.authorize("https://as.example/?state=s").await.unwrap_err();
    assert!(matches!(error, LoginError::Browser(_)), "{error:?}");

    let shown = Arc::new(Mutex::new(Vec::new()));
    let show = Arc::clone(&shown);
    let told = broken().notice(move |url| show.lock().unwrap().push(url.to_owned()));
    let (url, _) =
        during(&told, |port| async move { say(port, get(port, "/callback?code=c&state=s")).await.unwrap() }).await;
    url.unwrap();
    assert_eq!(*shown.lock().unwrap(), ["https://as.example/authorize?state=s"]);
}

#[tokio::test]
async fn the_opener_gets_the_address_once_and_may_block() {
    let (open, mut opened) = tokio::sync::mpsc::unbounded_channel();
    // Like a browser in a terminal, which stays until the user leaves it.
    let (leave, stay) = std::sync::mpsc::channel::<()>();
    let stay = Mutex::new(stay);
    let browser = Browser::new().wait(LONG).open_with(move |url| {
        open.send(url.to_owned()).unwrap();
        let _ = stay.lock().unwrap().recv();
        Ok(())
    });
    let (url, (address, mut opened)) = during(&browser, |port| async move {
        let address = opened.recv().await.unwrap();
        say(port, get(port, "/callback?code=c&state=s")).await.unwrap();
        (address, opened)
    })
    .await;
    url.unwrap();
    assert_eq!(address, "https://as.example/authorize?state=s");
    assert!(opened.try_recv().is_err(), "once");
    drop(leave);
}

#[tokio::test]
async fn only_web_addresses_are_opened() {
    for url in ["file:///etc/passwd", "javascript:alert(1)", "calc.exe", "", "ü", "http:/x", "-https://x"] {
        let browser = Browser::new().open_with(|url| panic!("opened {url}")).notice(|_| panic!("shown"));
        browser.redirect_uri().await.unwrap();
        let error = browser.authorize(url).await.unwrap_err();
        assert!(matches!(error, LoginError::NotForBrowser), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn the_redirect_uri_stays_until_it_is_used() {
    let browser = quiet();
    let error = browser.authorize("https://as.example/").await.unwrap_err();
    assert!(matches!(error, LoginError::NotListening), "{error:?}");
    let first = browser.redirect_uri().await.unwrap();
    assert_eq!(browser.redirect_uri().await.unwrap(), first);

    // The same port again, as a client that was registered with it needs it.
    let fixed = quiet().port(port_of(&first));
    let error = fixed.redirect_uri().await.unwrap_err();
    assert!(matches!(&error, LoginError::Listen(error) if error.kind() == io::ErrorKind::AddrInUse), "{error:?}");
    drop(browser);
    for _ in 0..2 {
        assert_eq!(fixed.redirect_uri().await.unwrap(), first);
        let (url, _) =
            during(&fixed, |port| async move { say(port, get(port, "/callback?code=c&state=s")).await.unwrap() }).await;
        url.unwrap();
    }
}

#[tokio::test]
async fn what_is_pasted_may_be_the_address_or_its_query() {
    let whole = "http://127.0.0.1:7/callback?code=c&state=s";
    let rows = [
        (whole, Ok(whole)),
        ("  http://127.0.0.1:7/callback?code=c&state=s\r\n", Ok(whole)),
        ("<http://127.0.0.1:7/callback?code=c&state=s>", Ok(whole)),
        ("\"http://127.0.0.1:7/callback?code=c&state=s\"", Ok(whole)),
        ("code=c&state=s", Ok(whole)),
        ("?code=c&state=s", Ok(whole)),
        ("", Err(CallbackError::NoAnswer)),
        ("hello", Err(CallbackError::NoAnswer)),
        ("http://127.0.0.1:7/callback", Err(CallbackError::NoAnswer)),
        ("code=c&code=d", Err(CallbackError::Duplicate("code"))),
    ];
    for (line, expected) in rows {
        let shown = Arc::new(Mutex::new(String::new()));
        let show = Arc::clone(&shown);
        let paste = ManualLogin::new(
            move |url| show.lock().unwrap().push_str(url),
            move || std::future::ready(Ok(line.to_owned())),
        )
        .back_to("http://127.0.0.1:7/callback");
        assert_eq!(paste.redirect_uri().await.unwrap(), "http://127.0.0.1:7/callback");
        let url = paste.authorize("https://as.example/").await;
        match (url, expected) {
            (Ok(url), Ok(expected)) => assert_eq!(url, expected, "{line}"),
            (Err(LoginError::Callback(error)), Err(expected)) => assert_eq!(error, expected, "{line}"),
            (url, _) => panic!("{line}: {url:?}"),
        }
        assert_eq!(*shown.lock().unwrap(), "https://as.example/");
    }
}

#[tokio::test]
async fn a_person_who_gives_up_ends_the_login() {
    let paste = ManualLogin::new(|_| {}, || std::future::ready(Err(io::ErrorKind::UnexpectedEof.into())));
    assert!(paste.redirect_uri().await.unwrap().starts_with("http://127.0.0.1:"));
    let error = paste.authorize("https://as.example/").await.unwrap_err();
    assert!(matches!(error, LoginError::Failed(_)), "{error:?}");
}

#[tokio::test]
async fn a_closure_can_stand_in_for_the_person() {
    let headless =
        Headless::new(
            "https://app.example/back",
            |url| async move { Ok(format!("https://app.example/back?code={url}")) },
        );
    let login: &dyn Login = &headless;
    assert_eq!(login.redirect_uri().await.unwrap(), "https://app.example/back");
    assert_eq!(login.authorize("u").await.unwrap(), "https://app.example/back?code=u");
}

#[test]
fn an_error_shows_no_code_and_debug_no_address() {
    let paste = ManualLogin::new(|_| {}, || std::future::ready(Ok(String::new())));
    let headless = Headless::new("http://h/", |_| async { Ok(String::new()) });
    let said = format!("{:?} {paste:?} {headless:?} {}", Browser::new(), LoginError::NotListening);
    assert!(said.contains("Browser") && said.contains("redirect_uri"), "{said}");
}
