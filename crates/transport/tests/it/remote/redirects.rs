//! Where messages go: redirects are followed to the same origin only, and `localhost` leads to whoever listens.

use crate::remote::script::*;

fn to(status: u16, location: &str) -> Vec<u8> {
    answer(status, &format!("location: {location}\r\n"), "")
}

#[tokio::test]
async fn a_message_is_sent_again_only_where_that_is_allowed() {
    let other = Server::new(|_, _| vec![Do::Write(json(&result(7)))]).await;
    let there = other.url();
    let secret = format!("{there}?key=hidden");
    let no = |place: &str, status: u16| {
        format!(
            "unreachable: http://127.0.0.1:PORT/mcp redirects to {place} (status {status}), which is not followed; if that is the right address, use it"
        )
    };
    let rows = [
        (307, "/other", r#"{"n":7}"#.to_owned(), "/mcp /other"),
        (308, "other", r#"{"n":7}"#.to_owned(), "/mcp /other"),
        (301, "/other", no("http://127.0.0.1:PORT/other", 301), "/mcp"),
        (302, "/other", no("http://127.0.0.1:PORT/other", 302), "/mcp"),
        (303, "/other", no("http://127.0.0.1:PORT/other", 303), "/mcp"),
        (307, &secret, no(&there, 307), "/mcp"),
        (308, "https://127.0.0.1/mcp", no("https://127.0.0.1/mcp", 308), "/mcp"),
        (
            307,
            "file:///etc/passwd",
            "unreachable: 127.0.0.1:PORT redirects to something that is not an http:// or https:// URL".to_owned(),
            "/mcp",
        ),
        (
            307,
            "/mcp",
            "unreachable: http://127.0.0.1:PORT/mcp redirects more than 5 times".to_owned(),
            "/mcp /mcp /mcp /mcp /mcp /mcp",
        ),
    ];
    for (status, location, want, paths) in rows {
        let answer = to(status, location);
        let server = Server::new(move |_, seen| match seen.path.as_str() {
            "/mcp" => vec![Do::Write(answer.clone())],
            _ => vec![Do::Write(json(&result(seen.id())))],
        })
        .await;
        let open = open(server.remote().bearer("hidden")).await;
        let got = open
            .tell_of(request(7, Some(modern())))
            .await
            .replace(&format!("127.0.0.1:{}", server.port), "127.0.0.1:PORT");
        assert_eq!(got, want);
        let seen = server.requests();
        assert_eq!(seen.iter().map(|seen| seen.path.as_str()).collect::<Vec<_>>().join(" "), paths);
        assert!(seen.iter().all(|seen| seen.id() == 7 && seen.header("authorization") == Some("Bearer hidden")));
        if want == r#"{"n":7}"# {
            // Only a permanent redirect is remembered.
            open.ask(request(8, Some(modern()))).await.unwrap();
            assert_eq!(server.requests().len(), if status == 308 { 3 } else { 4 });
        }
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn the_name_of_this_machine_leads_to_whoever_listens() {
    let server = Server::new(|_, seen| vec![Do::Write(json(&result(seen.id())))]).await;
    let place =
        linchpin_transport::remote::remote(&format!("http://localhost:{}/mcp", server.port)).unwrap().web(web());
    assert_eq!(open(place).await.tell_of(request(7, Some(modern()))).await, r#"{"n":7}"#);
}
