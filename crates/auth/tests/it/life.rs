//! What becomes of tokens: renewed, refused, asked for by many at once, moved to another authorization server.

use crate::support;

use linchpin_auth::login::{Headless, LoginError};
use linchpin_auth::store::{FileStore, MemoryStore, StoreKey, TokenStore};
use linchpin_auth::{Credential, OAuth, Workload};
use linchpin_core::connector::{Authorizer, BelongsTo};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use support::{AS, MCP, World, server};

/// The lines of a log that begin with one of these words.
fn only(world: &World, words: &[&str]) -> String {
    let log = world.log();
    let lines = log.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(|line| line.replace("https://as.example", "as")).collect::<Vec<_>>().join("\n")
}

fn pre(world: &World) -> OAuth {
    world.oauth().pre_registered(Some(AS), "pre", Credential::None)
}

/// Tokens that end after an hour and can be refreshed once each.
fn refreshable(world: &World) {
    world.set(|set| set.tokens = json!({"token_type": "bearer", "expires_in": 3600, "refresh_token": "refresh-{n}"}));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_the_new_refresh_token_counts() {
    let world = World::new();
    refreshable(&world);
    let oauth = pre(&world);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    world.log();
    world.pass(3545);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    let log = only(&world, &["POST", "LOGIN", "MCP"]);
    assert_eq!(
        log,
        "POST as/token refresh_token pre resource=MCP refresh_token=refresh-1\n\
         MCP list Bearer token-2: 200\nMCP list Bearer token-2: 200"
    );
    // The answer to a refresh may leave the refresh token out: the old one goes on.
    world.set(|set| set.tokens = json!({"token_type": "Bearer", "expires_in": "60"}));
    world.pass(3545);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    world.pass(59);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    let log = only(&world, &["POST", "LOGIN"]);
    let line = "POST as/token refresh_token pre resource=MCP refresh_token=refresh-2";
    assert_eq!(log, format!("{line}\n{line}"));
}

#[tokio::test]
async fn short_lived_tokens_are_not_renewed_at_every_request() {
    let world = World::new();
    world.set(|set| set.tokens = json!({"token_type": "Bearer", "expires_in": 30, "refresh_token": "r"}));
    let oauth = pre(&world);
    for _ in 0..3 {
        assert_eq!(world.call(&oauth, "list").await, Ok(200));
        world.pass(5);
    }
    assert!(!world.log().contains("refresh_token pre"));
}

#[tokio::test]
async fn a_refused_refresh_leads_to_one_login() {
    let world = World::new();
    refreshable(&world);
    let oauth = pre(&world);
    world.call(&oauth, "list").await.unwrap();
    world.log();
    world.pass(3600);
    world.set(|set| set.token_error = Some(("refresh_token", 400, "invalid_grant")));
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(
        only(&world, &["POST", "LOGIN", "MCP"]),
        "POST as/token refresh_token pre resource=MCP refresh_token=refresh-1\n\
         MCP list: 401\n\
         LOGIN as/authorize pre resource=MCP scope=-\n\
         POST as/token authorization_code pre resource=MCP\n\
         MCP list Bearer token-2: 200"
    );
}

#[tokio::test]
async fn an_authorization_server_that_is_away_ends_no_login() {
    let world = World::new();
    refreshable(&world);
    let oauth = pre(&world);
    world.call(&oauth, "list").await.unwrap();
    world.log();
    world.set(|set| set.statuses.insert("https://as.example/token".into(), 503));
    // Still good: the request goes out with it.
    world.pass(3580);
    for _ in 0..3 {
        assert_eq!(world.call(&oauth, "list").await, Ok(200));
    }
    // Whoever is away is not asked at every request.
    assert_eq!(only(&world, &["POST"]), "POST as/token: 503");
    // Over: an error, and not a login.
    world.pass(60);
    let why = world.call(&oauth, "list").await.unwrap_err();
    assert!(why.contains("returned status 503"), "{why}");
    world.set(|set| set.statuses.clear());
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert!(!world.log().contains("LOGIN"));
}

#[tokio::test]
async fn a_token_that_is_refused_is_refreshed_and_a_fresh_one_that_is_refused_is_an_error() {
    let world = World::new();
    refreshable(&world);
    let oauth = pre(&world);
    world.call(&oauth, "list").await.unwrap();
    world.log();
    // Revoked early: refreshing helps.
    world.set(|set| set.rejected = vec!["token-1"]);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(
        only(&world, &["POST", "LOGIN"]),
        "POST as/token refresh_token pre resource=MCP refresh_token=refresh-1"
    );
    // Nothing is accepted any more: one refresh, one login, and then an error that holds no token.
    world.set(|set| {
        set.rejected = vec!["token-"];
        set.challenge = "Bearer error=\"invalid_token\", error_description=\"not token-4!\"".into();
    });
    let why = world.call(&oauth, "list").await.unwrap_err();
    assert!(why.contains("rejects the token that https://as.example has just issued for it (not •••!)"), "{why}");
    assert_eq!(
        only(&world, &["POST", "LOGIN"]),
        "POST as/token refresh_token pre resource=MCP refresh_token=refresh-2\n\
         LOGIN as/authorize pre resource=MCP scope=-\n\
         POST as/token authorization_code pre resource=MCP"
    );
    // And nobody is sent to log in again for the next request.
    world.call(&oauth, "list").await.unwrap_err();
    assert_eq!(only(&world, &["POST", "LOGIN", "GET"]), "");
    // Once the server has come to its senses, it goes on.
    world.set(|set| set.rejected.clear());
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(only(&world, &["POST", "LOGIN", "GET"]), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_share_one_login_and_one_refresh() {
    let world = World::new();
    refreshable(&world);
    world.set(|set| set.slow = true);
    let oauth = pre(&world);
    for (seconds, want) in [(0, "LOGIN"), (3700, "POST https://as.example/token refresh_token")] {
        world.pass(seconds);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let (world, oauth) = (world.clone(), oauth.clone());
                tokio::spawn(async move { world.call(&oauth, "list").await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(200));
        }
        let log = world.log();
        assert_eq!(log.lines().filter(|line| line.starts_with(want)).count(), 1, "{log}");
        assert_eq!(log.lines().filter(|line| line.starts_with("POST")).count(), 1, "{log}");
    }
}

#[tokio::test]
async fn everybody_who_waits_for_a_login_that_fails_gets_its_error() {
    let world = World::new();
    let asked = Arc::new(AtomicU32::new(0));
    let times = asked.clone();
    let login = Headless::new("http://localhost:3000/callback", move |_url: String| {
        let times = times.clone();
        async move {
            times.fetch_add(1, Ordering::SeqCst);
            for _ in 0..500 {
                tokio::task::yield_now().await;
            }
            Err(LoginError::Failed("the user said no".to_owned()))
        }
    });
    let oauth = world.oauth_without_login().login(login).pre_registered(None, "pre", Credential::None);
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (world, oauth) = (world.clone(), oauth.clone());
            tokio::spawn(async move { world.call(&oauth, "list").await })
        })
        .collect();
    for call in calls {
        let why = call.await.unwrap().unwrap_err();
        assert!(why.contains("the user said no"), "{why}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_that_is_given_up_takes_no_refresh_token_with_it() {
    let world = World::new();
    refreshable(&world);
    let oauth = pre(&world);
    world.call(&oauth, "list").await.unwrap();
    world.pass(3700);
    world.set(|set| set.slow = true);
    {
        let mut call = Box::pin(world.call(&oauth, "list"));
        // Begun, and dropped while the authorization server thinks.
        for _ in 0..10 {
            assert!(futures_poll(&mut call).await.is_none());
        }
    }
    world.set(|set| set.slow = false);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    let log = world.log();
    assert_eq!(log.matches("refresh_token=refresh-1").count(), 1, "{log}");
    assert_eq!(log.matches("LOGIN").count(), 1, "{log}");
}

/// Polls once and lets others run.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let once = std::future::poll_fn(|cx| match std::pin::Pin::new(&mut *future).poll(cx) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    });
    let done = once.await;
    tokio::task::yield_now().await;
    done
}

#[tokio::test]
async fn more_scopes_are_asked_for_with_those_of_before() {
    let world = World::new();
    world.merge_resource(json!({"scopes_supported": ["decoy"]}));
    world.set(|set| {
        set.challenge = "Bearer scope=\"basic\"".into();
        set.needs = |what| if what == "write" { "write" } else { "basic" };
    });
    let oauth = pre(&world);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(world.call(&oauth, "write").await, Ok(200));
    assert_eq!(
        only(&world, &["LOGIN", "MCP"]),
        "MCP list: 401\n\
         LOGIN as/authorize pre resource=MCP scope=basic\n\
         MCP list Bearer token-1: 200\n\
         MCP write Bearer token-1: 403\n\
         LOGIN as/authorize pre resource=MCP scope=basic write\n\
         MCP write Bearer token-2: 200"
    );
}

#[tokio::test]
async fn a_server_that_is_never_content_is_given_up() {
    let world = World::new();
    world.set(|set| {
        set.challenge = "Bearer scope=\"admin\"".into();
        set.stingy = true;
        set.needs = |what| match what {
            "1" => "s1",
            "2" => "s2",
            "3" => "s3",
            "4" => "s4",
            _ => "admin",
        };
    });
    let oauth = pre(&world);
    // What was asked for at the first login is not asked for again.
    let why = world.call(&oauth, "list").await.unwrap_err();
    assert!(why.contains("requires the scope \"admin\", which was requested already"), "{why}");
    assert_eq!(only(&world, &["LOGIN"]).lines().count(), 1);
    // Something else each time is asked for, but not for ever.
    for (what, want) in [("1", "\"s1\""), ("2", "\"s2\""), ("3", "\"s3\""), ("4", "further scopes (s4)")] {
        let why = world.call(&oauth, what).await.unwrap_err();
        assert!(why.contains(want), "{what}: {why}");
    }
    assert_eq!(only(&world, &["LOGIN"]).lines().count(), 3);
}

#[tokio::test]
async fn another_authorization_server_gets_nothing_of_the_first() {
    let world = World::new();
    refreshable(&world);
    world.set(|set| set.registration = json!({"client_secret": "first-secret"}));
    world.merge_server(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
    let store = MemoryStore::new();
    let oauth = world.oauth().store(store.clone());
    world.call(&oauth, "list").await.unwrap();
    world.log();
    // The server moves.
    let second = "https://second.example";
    world.merge_resource(json!({"authorization_servers": [second]}));
    world.set(|set| {
        set.documents.insert(format!("{second}/.well-known/oauth-authorization-server"), server(second));
        set.rejected = vec!["token-2"];
        set.registration = json!({});
    });
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(
        only(&world, &["POST", "LOGIN", "MCP"]),
        "MCP list Bearer token-2: 401\n\
         POST https://second.example/register native none scope=-\n\
         LOGIN https://second.example/authorize client-3 resource=MCP scope=-\n\
         POST https://second.example/token authorization_code client-3 resource=MCP\n\
         MCP list Bearer token-4: 200"
    );
    // The first one's registration is kept for a return, its tokens are not.
    let first = store.load(&StoreKey::new(AS, MCP)).await.unwrap().unwrap();
    assert!(first.tokens.is_none() && first.client.is_some());
    assert!(store.load(&StoreKey::new(second, MCP)).await.unwrap().unwrap().tokens.is_some());
}

#[tokio::test]
async fn a_client_registered_beforehand_stays_with_its_first_server() {
    let world = World::new();
    let oauth = world.oauth().pre_registered(None, "pre", "the-secret");
    world.call(&oauth, "list").await.unwrap();
    world.log();
    let second = "https://second.example";
    world.merge_resource(json!({"authorization_servers": [second]}));
    world.set(|set| {
        set.documents.insert(format!("{second}/.well-known/oauth-authorization-server"), server(second));
        set.rejected = vec!["token-1"];
    });
    let why = world.call(&oauth, "list").await.unwrap_err();
    assert!(why.contains("is used with https://as.example, but the server now names"), "{why}");
    assert_eq!(only(&world, &["POST", "LOGIN"]), "");
}

#[tokio::test]
async fn a_later_run_goes_on_with_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let store = || FileStore::new(folder.path().join("tokens.json"));
    let world = World::new();
    refreshable(&world);
    world.set(|set| set.challenge = "Bearer scope=\"a\"".into());
    let first = world.oauth().store(store());
    world.call(&first, "list").await.unwrap();
    world.log();
    let second = world.oauth_without_login().store(store());
    assert_eq!(world.call(&second, "list").await, Ok(200));
    assert_eq!(world.log(), "MCP list Bearer token-2: 200");
    // It can refresh without anybody, as the client that was registered.
    world.pass(3700);
    assert_eq!(world.call(&second, "list").await, Ok(200));
    let line = "POST as/token refresh_token client-1 resource=MCP scope=a refresh_token=refresh-2";
    assert_eq!(only(&world, &["POST", "LOGIN"]), line.replace(" scope=a", ""));
    // The first one finds the refreshed token in the store and redeems nothing a second time.
    assert_eq!(world.call(&first, "list").await, Ok(200));
    assert_eq!(world.log(), "MCP list Bearer token-3: 200");
    // What was granted before is asked for again with what is new.
    world.set(|set| set.needs = |_| "b");
    let third = world.oauth().store(store());
    assert_eq!(world.call(&third, "list").await, Ok(200));
    assert_eq!(only(&world, &["LOGIN"]), "LOGIN as/authorize client-1 resource=MCP scope=a b");
}

#[tokio::test]
async fn servers_with_one_resource_redeem_their_refresh_token_once() {
    let world = World::new();
    refreshable(&world);
    world.set(|set| {
        let root = "https://mcp.example/.well-known/oauth-protected-resource";
        set.documents.insert(root.into(), json!({"resource": "https://mcp.example", "authorization_servers": [AS]}));
    });
    let store = MemoryStore::new();
    let earlier = pre(&world).store(store.clone());
    let (a, b) = ("https://mcp.example/a", "https://mcp.example/b");
    assert_eq!(world.call_at(&earlier, a, "list").await, Ok(200));
    assert_eq!(world.call_at(&earlier, b, "list").await, Ok(200));
    let oauth = pre(&world).store(store);
    world.log();
    world.pass(3700);
    world.set(|set| set.slow = true);
    let both = tokio::join!(world.call_at(&oauth, a, "list"), world.call_at(&oauth, b, "list"));
    assert_eq!(both, (Ok(200), Ok(200)));
    let log = world.log();
    assert_eq!(log.matches("refresh_token=refresh-1").count(), 1, "{log}");
    assert!(!log.contains("LOGIN"), "{log}");
}

#[tokio::test]
async fn a_registration_the_server_has_forgotten_is_made_again_once() {
    let world = World::new();
    let store = MemoryStore::new();
    let oauth = world.oauth().store(store.clone());
    world.call(&oauth, "list").await.unwrap();
    world.log();
    world.set(|set| {
        set.rejected = vec!["token-2"];
        set.token_error = Some(("authorization_code", 401, "invalid_client"));
    });
    let why = world.call(&oauth, "list").await.unwrap_err();
    assert!(why.contains("refused: invalid_client"), "{why}");
    assert_eq!(
        only(&world, &["POST", "LOGIN"]),
        "LOGIN as/authorize client-1 resource=MCP scope=-\n\
         POST as/token authorization_code client-1 resource=MCP\n\
         POST as/register native none scope=-\n\
         LOGIN as/authorize client-3 resource=MCP scope=-\n\
         POST as/token authorization_code client-3 resource=MCP"
    );
}

#[tokio::test]
async fn tokens_go_to_their_own_server_only() {
    let world = World::new();
    let oauth = pre(&world);
    world.call(&oauth, "list").await.unwrap();
    let carries = async |address: &str, server: Option<&str>| {
        let mut head = http::Request::builder().uri(address).body(()).unwrap().into_parts().0;
        if let Some(server) = server {
            head.extensions.insert(BelongsTo(server.parse().unwrap()));
        }
        oauth.authorize(&mut head).await.unwrap();
        head.headers.contains_key("authorization")
    };
    let rows = [
        (MCP, None, true),
        ("https://mcp.example/mcp/", None, true),
        ("https://mcp.example/mcp?x=1", None, true),
        ("https://mcp.example/other", None, false),
        ("https://mcp.example/", None, false),
        ("https://mcp.example/messages?session=1", Some(MCP), true),
        ("https://evil.example/mcp", None, false),
        ("https://evil.example/mcp", Some(MCP), false),
        ("http://mcp.example/mcp", None, false),
        ("http://mcp.example/mcp", Some(MCP), false),
        ("https://mcp.example:444/mcp", Some(MCP), false),
    ];
    for (address, server, want) in rows {
        assert_eq!(carries(address, server).await, want, "{address} {server:?}");
    }
}

#[tokio::test]
async fn a_refused_assertion_is_not_tried_again() {
    let world = World::new();
    world.set(|set| set.token_error = Some(("jwt-bearer", 400, "invalid_grant")));
    let oauth = world.oauth().workload(Workload::new("the-jwt"));
    for want in ["refused: invalid_grant", "refused this assertion before"] {
        let why = world.call(&oauth, "list").await.unwrap_err();
        assert!(why.contains(want) && !why.contains("the-jwt"), "{why}");
    }
    assert_eq!(only(&world, &["POST"]).lines().count(), 1);
    assert!(!world.log().contains("LOGIN"));
}

#[tokio::test]
async fn programs_get_a_new_token_before_theirs_ends_and_keep_none() {
    let world = World::new();
    let store = MemoryStore::new();
    let oauth = world.oauth().store(store.clone()).client_credentials("program", "secret");
    world.call(&oauth, "list").await.unwrap();
    world.log();
    world.pass(3590);
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    assert_eq!(
        world.log(),
        "POST https://as.example/token client_credentials basic(program:secret) resource=MCP\nMCP list Bearer token-2: 200"
    );
    assert!(store.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn tokens_that_are_bound_to_a_key_stay_so() {
    let world = World::new();
    world.merge_server(json!({"dpop_signing_alg_values_supported": ["ES256"]}));
    world.set(|set| {
        set.challenge = "DPoP".into();
        set.tokens = json!({"token_type": "DPoP", "expires_in": 3600, "refresh_token": "refresh-{n}"});
    });
    let store = MemoryStore::new();
    let person = pre(&world).store(store.clone());
    let program = world.oauth().client_credentials("program", "secret");
    for oauth in [&person, &program] {
        assert_eq!(world.call(oauth, "list").await, Ok(200));
    }
    let key = store.load(&StoreKey::new(AS, MCP)).await.unwrap().unwrap().dpop_key;
    // Refreshed, got anew, and asked for with more scopes by a challenge that does not mention keys.
    world.pass(3590);
    for oauth in [&person, &program] {
        assert_eq!(world.call(oauth, "list").await, Ok(200));
    }
    world.set(|set| set.needs = |_| "more");
    for oauth in [&person, &program] {
        assert_eq!(world.call(oauth, "list").await, Ok(200));
    }
    let log = only(&world, &["MCP"]);
    assert_eq!(log.lines().filter(|line| line.contains("DPoP")).count(), 8, "{log}");
    assert!(!log.contains("Bearer"), "{log}");
    assert_eq!(
        store.load(&StoreKey::new(AS, MCP)).await.unwrap().unwrap().dpop_key,
        key,
        "the key of the refresh token"
    );
}

#[tokio::test]
async fn logging_in_and_out_by_hand() {
    let world = World::new();
    refreshable(&world);
    world.merge_server(json!({"revocation_endpoint": "https://as.example/revoke"}));
    world.set(|set| set.challenge = "Bearer scope=\"a\"".into());
    let oauth = world.oauth();
    oauth.login_to(MCP).await.unwrap();
    let log = world.log();
    assert!(log.starts_with("POST MCP without a token\nGET https://mcp.example/.well-known"), "{log}");
    assert!(log.contains("scope=a"), "{log}");
    let status = oauth.status().await.unwrap();
    let [one] = status.as_slice() else { panic!("{status:?}") };
    assert_eq!((one.issuer.as_str(), one.resource.as_str()), (AS, MCP));
    assert!(one.logged_in && one.refreshable && one.scope.as_deref() == Some("a"), "{one:?}");
    assert_eq!(world.call(&oauth, "list").await, Ok(200));
    world.log();
    assert_eq!(oauth.logout(MCP).await.unwrap(), 1);
    assert_eq!(only(&world, &["POST"]), "POST as/revoke refresh_token refresh-2");
    assert!(oauth.status().await.unwrap().is_empty());
    assert_eq!(oauth.logout(MCP).await.unwrap(), 0);
    world.call(&oauth, "list").await.unwrap();
    assert!(world.log().starts_with("MCP list: 401"));
}

#[tokio::test]
async fn people_are_not_sent_to_log_in_without_end() {
    let world = World::new();
    world.set(|set| set.callback = "http://localhost:3000/callback?error=access_denied&state={state}".into());
    let oauth = pre(&world);
    let mut last = String::new();
    for _ in 0..20 {
        last = world.call(&oauth, "list").await.unwrap_err();
    }
    assert!(last.contains("keeps requiring a login"), "{last}");
    assert_eq!(only(&world, &["LOGIN"]).lines().count(), 10);
    world.pass(301);
    world.call(&oauth, "list").await.unwrap_err();
    assert_eq!(only(&world, &["LOGIN"]).lines().count(), 1);
}

#[tokio::test]
async fn programs_that_start_together_ask_their_user_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = || FileStore::new(folder.path().join("state/tokens.json"));
    let world = World::new();
    refreshable(&world);
    world.set(|set| set.slow = true);
    let programs: Vec<_> = (0..5).map(|_| world.oauth().store(store())).collect();
    let all = async || {
        let one = |n: usize| world.call(&programs[n], "list");
        let (a, b, c, d, e) = tokio::join!(one(0), one(1), one(2), one(3), one(4));
        assert_eq!([a, b, c, d, e], [const { Ok(200) }; 5]);
    };
    all().await;
    assert_eq!(only(&world, &["LOGIN"]).lines().count(), 1);
    // Nor is a rotating refresh token redeemed twice.
    world.pass(3700);
    all().await;
    assert_eq!(only(&world, &["POST", "LOGIN"]).lines().count(), 1);
}
