//! Logins at a provider: OpenID Connect, GitHub, and endpoints with a function of one's own.

use crate::support::provider::Provider;
use crate::support::{Browser, Got, ISSUER, Login, answer_of, enter, post, refresh, text};
use http::StatusCode;
use linchpin_issuer::{Client, Endpoints, Issuer, Person, Upstream, UpstreamError};
use linchpin_testing::Logged;
use serde_json::{Value, json};

fn issuer(upstream: Upstream) -> Issuer {
    Issuer::new(ISSUER)
        .upstream(upstream)
        .scope("files:read", "read your files")
        .client(Client::new("desktop").redirect_uri("http://127.0.0.1/cb"))
}

fn oidc(provider: &Provider) -> Issuer {
    issuer(Upstream::oidc(&*provider.url, "our-id", "our-secret-canary")).allow("@acme.example")
}

/// Says yes, and returns where the browser is sent at the provider.
async fn approve(browser: &mut Browser<'_>, login: &Login) -> String {
    let page = browser.follow(&login.url(browser.issuer)).await;
    assert!(page.body.contains("You will sign in at"), "{}", page.body);
    let going = browser.answer(&page, "allow", "").await;
    assert_eq!(going.status, StatusCode::OK, "{going:?}");
    going.next().expect("the browser goes on")
}

/// Logs in as far as the answer to the callback.
async fn callback(issuer: &Issuer, provider: &Provider, login: &Login) -> Got {
    let mut browser = Browser::new(issuer);
    let to = approve(&mut browser, login).await;
    browser.get(&provider.log_in(&to)).await
}

async fn tokens(issuer: &Issuer, provider: &Provider) -> Value {
    let login = Login::new("desktop");
    let back = callback(issuer, provider, &login).await;
    assert_eq!(back.status, StatusCode::FOUND, "{back:?}");
    let got = login.redeem(issuer, &answer_of(&back)["code"]).await;
    assert_eq!(got.status, StatusCode::OK, "{got:?}");
    got.json()
}

#[tokio::test]
async fn a_person_of_a_provider_comes_in_with_our_token_and_is_asked_about_at_each_refresh() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let first = tokens(&issuer, &provider).await;
    let access = text(&first, "access_token");
    let who = enter(&issuer, "/mcp", Some(&access)).await.unwrap();
    assert_eq!((who.subject(), who.issuer(), who.client()), ("u-17", Some(&*provider.url), Some("desktop")));
    let next = refresh(&issuer, "desktop", &text(&first, "refresh_token"), &[]).await;
    assert_eq!(next.status, StatusCode::OK, "{next:?}");
    assert_eq!(provider.asked("/token"), 2, "the code, and our refresh");
    // Row 100: nothing of the provider is in anything that a client is sent.
    for sent in [first.to_string(), next.body.clone()] {
        assert!(!sent.contains("canary"), "{sent}");
    }
    // Row 99: away, the family stays; gone, it ends.
    let token = text(&next.json(), "refresh_token");
    provider.with(|state| state.away = true);
    let away = refresh(&issuer, "desktop", &token, &[]).await;
    assert_eq!((away.status, away.error().as_str()), (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable"));
    provider.with(|state| (state.away, state.gone) = (false, true));
    assert_eq!(refresh(&issuer, "desktop", &token, &[]).await.error(), "invalid_grant");
    provider.with(|state| state.gone = false);
    assert_eq!(refresh(&issuer, "desktop", &token, &[]).await.error(), "invalid_grant");
    assert!(enter(&issuer, "/mcp", Some(&access)).await.is_err());
}

/// Only what a provider says of the user ends their login.
#[tokio::test]
async fn a_provider_that_has_other_troubles_ends_no_login() {
    let provider = Provider::start().await;
    let error = |error: &str| json!({ "error": error });
    let github = issuer(Upstream::github_enterprise(&provider.url, "our-id", "our-secret-canary")).allow_anyone();
    for (issuer, gone) in [(oidc(&provider), (400, error("invalid_grant"))), (github, (401, json!({})))] {
        let mut token = text(&tokens(&issuer, &provider).await, "refresh_token");
        let mut troubles = vec![(400, error("unauthorized_client")), (401, error("invalid_client")), (400, json!({}))];
        troubles.extend([403, 404, 408, 425, 429, 500].map(|status| (status, json!({}))));
        // GitHub is asked with the user's token only.
        troubles.retain(|(status, _)| gone.0 == 400 || *status != 401);
        for trouble in troubles {
            provider.with(|state| state.instead = Some(trouble.clone()));
            let got = refresh(&issuer, "desktop", &token, &[]).await;
            assert_eq!(got.error(), "temporarily_unavailable", "{trouble:?}");
        }
        provider.with(|state| state.instead = None);
        let got = refresh(&issuer, "desktop", &token, &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        token = text(&got.json(), "refresh_token");
        provider.with(|state| state.instead = Some(gone));
        assert_eq!(refresh(&issuer, "desktop", &token, &[]).await.error(), "invalid_grant");
        provider.with(|state| state.instead = None);
        assert_eq!(refresh(&issuer, "desktop", &token, &[]).await.error(), "invalid_grant", "it has ended");
    }
}

#[tokio::test]
async fn a_revocation_is_told_to_the_provider_and_a_changed_person_may_be_out() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let first = tokens(&issuer, &provider).await;
    let token = text(&first, "refresh_token");
    post(&issuer, "revoke", None, &[("client_id", "desktop"), ("token", &token)]).await;
    let told = provider.with(|state| state.log.last().cloned().unwrap());
    assert_eq!((told.0.as_str(), told.1["token"].as_str()), ("/revoke", "upstream-refresh-canary"));
    let second = tokens(&issuer, &provider).await;
    provider.with(|state| state.claims["email"] = json!("ada@elsewhere.example"));
    let out = refresh(&issuer, "desktop", &text(&second, "refresh_token"), &[]).await;
    assert_eq!(out.error(), "invalid_grant");
}

#[tokio::test]
async fn a_tool_gets_the_token_of_its_caller_at_the_provider_and_a_fresh_one() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let of_the_server = issuer.clone();
    let first = tokens(&issuer, &provider).await;
    let caller = enter(&issuer, "/mcp", Some(&text(&first, "access_token"))).await.unwrap();
    let token = of_the_server.upstream_token(&caller).await.unwrap();
    assert_eq!(token.expose(), "upstream-access-canary");
    assert!(!format!("{token:?}").contains("canary"));
    assert_eq!(provider.asked("/token"), 1, "it does not expire");
    provider.with(|state| state.expires_in = Some(30));
    let second = tokens(&issuer, &provider).await;
    let caller = enter(&issuer, "/mcp", Some(&text(&second, "access_token"))).await.unwrap();
    let before = provider.asked("/token");
    assert!(of_the_server.upstream_token(&caller).await.is_ok());
    assert_eq!(provider.asked("/token"), before + 1, "half a minute is too short");
    // Somebody else's principal, and one whose login has ended.
    let stranger = linchpin_core::Principal::new("u-17").with_client("desktop").with_issuer(&*provider.url);
    let no = issuer.upstream_token(&stranger).await.unwrap_err();
    assert!(no.to_string().contains("did not log in"), "{no}");
    provider.with(|state| state.gone = true);
    let ended = issuer.upstream_token(&caller).await.unwrap_err();
    assert_eq!(ended.to_string(), "the login at the provider has ended");
    provider.with(|state| state.gone = false);
    assert!(enter(&issuer, "/mcp", Some(&text(&second, "access_token"))).await.is_err(), "with its tokens");
}

/// The same store, but users log in elsewhere now.
#[tokio::test]
async fn logins_end_when_users_log_in_at_another_place() {
    let (first, second) = (Provider::start().await, Provider::start().await);
    let store = linchpin_store::Store::memory();
    let before = oidc(&first).store(store.clone());
    let token = text(&tokens(&before, &first).await, "refresh_token");
    let after = oidc(&second).store(store.clone());
    assert_eq!(refresh(&after, "desktop", &token, &[]).await.error(), "invalid_grant");
    assert!(second.with(|state| state.log.is_empty()), "it hears nothing of the other's tokens");
    assert_eq!(refresh(&before, "desktop", &token, &[]).await.error(), "invalid_grant", "it has ended");
}

/// Users choose such names at many providers.
#[tokio::test]
async fn a_user_name_that_looks_like_a_mail_address_is_none() {
    let provider = Provider::start().await;
    provider.with(|state| {
        state.claims["preferred_username"] = json!("boss@acme.example");
        state.claims["email"] = json!("mallory@evil.example");
    });
    let rule = |rule: &str| issuer(Upstream::oidc(&*provider.url, "our-id", "our-secret-canary")).allow(rule);
    let out = callback(&rule("user:boss@acme.example"), &provider, &Login::new("desktop")).await;
    assert_eq!((out.status, out.next()), (StatusCode::FORBIDDEN, None));
    let own = callback(&rule("user:mallory@evil.example"), &provider, &Login::new("desktop")).await;
    assert_eq!(own.status, StatusCode::FOUND, "{own:?}");
}

#[tokio::test]
async fn a_provider_is_asked_for_offline_access_if_it_has_that() {
    let provider = Provider::start().await;
    let mut asked = Vec::new();
    for scopes in [json!(["openid"]), json!(["openid", "offline_access"])] {
        provider.with(|state| state.scopes_supported = scopes);
        for upstream in
            [Upstream::oidc(&*provider.url, "our-id", "s"), Upstream::keycloak(&provider.url, "our-id", "s")]
        {
            let issuer = issuer(upstream).allow_anyone();
            let to = approve(&mut Browser::new(&issuer), &Login::new("desktop")).await;
            asked.push(to.contains("offline_access"));
        }
    }
    assert_eq!(asked, [false, false, true, false]);
}

#[tokio::test]
async fn github_is_asked_for_the_person_and_their_organizations() {
    let provider = Provider::start().await;
    let upstream = || Upstream::github_enterprise(&provider.url, "our-id", "our-secret-canary");
    let issuer = issuer(upstream()).allow("org:acme");
    // Row 97: outside the rule.
    let login = Login::new("desktop");
    let out = callback(&issuer, &provider, &login).await;
    assert_eq!((out.status, out.next()), (StatusCode::FORBIDDEN, None));
    assert!(out.body.contains("org:acme") && out.body.contains("Octo"), "{}", out.body);
    assert_eq!(provider.asked("/api/v3/applications/our-id/token"), 1, "its token is not kept");
    provider.with(|state| state.orgs = vec!["acme".to_owned()]);
    let first = tokens(&issuer, &provider).await;
    let who = enter(&issuer, "/mcp", Some(&text(&first, "access_token"))).await.unwrap();
    assert_eq!(who.subject(), "583231", "the number, not the name, which can be given away");
    // Nothing expires there, so each refresh asks.
    provider.with(|state| state.orgs.clear());
    let gone = refresh(&issuer, "desktop", &text(&first, "refresh_token"), &[]).await;
    assert_eq!(gone.error(), "invalid_grant");
    let mut browser = Browser::new(&issuer);
    let to = approve(&mut browser, &Login::new("desktop")).await;
    assert!(to.contains("read%3Aorg") && to.starts_with(&format!("{}/login/oauth/authorize?", provider.url)), "{to}");
}

#[tokio::test]
async fn endpoints_and_a_function_are_a_provider_too() {
    let provider = Provider::start().await;
    let own = provider.url.clone();
    let endpoints = Endpoints::new(format!("{own}/authorize"), format!("{own}/token"), |token| async move {
        match token.expose() {
            "upstream-access-canary" => Ok(Person::new("https://idp.example", "ada")),
            _ => Err(UpstreamError::Away),
        }
    });
    let issuer = issuer(Upstream::endpoints(endpoints.revoke(format!("{own}/revoke")), "our-id", "s")).allow_anyone();
    let first = tokens(&issuer, &provider).await;
    let who = enter(&issuer, "/mcp", Some(&text(&first, "access_token"))).await.unwrap();
    assert_eq!((who.subject(), who.issuer()), ("ada", Some("https://idp.example")));
    let form = provider.with(|state| state.log.iter().find(|(path, _)| path == "/token").unwrap().1.clone());
    assert_eq!((form["client_id"].as_str(), form["client_secret"].as_str()), ("our-id", "s"));
    assert_eq!(form["redirect_uri"], format!("{ISSUER}/callback"));
}

/// Rows 65, 66, 68 to 70: without our question nothing comes of a login at the provider, and only the browser that answered
/// it comes back.
#[tokio::test]
async fn rows_65_to_70_the_way_to_the_provider_and_back_belongs_to_one_browser() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let login = Login::new("desktop");
    let mut attacker = Browser::new(&issuer);
    let to = approve(&mut attacker, &login).await;
    let back = provider.log_in(&to);
    // 65, 66: the victim has been here, even logs in at the same time, and follows the attacker's link.
    let mut victim = Browser::new(&issuer);
    let own = approve(&mut victim, &login).await;
    let got = victim.get(&back).await;
    assert_eq!((got.status, got.next()), (StatusCode::FORBIDDEN, None), "row 66");
    let with = |state: &str| format!("{ISSUER}/callback?code=x&state={state}");
    let state_of = |url: &str| {
        url::Url::parse(url).unwrap().query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned()
    };
    let name = state_of(&own).split_once('.').unwrap().0.to_owned();
    let rows = [
        (68, with(&format!("{name}.{}", state_of(&to).split_once('.').unwrap().1))),
        (68, with("unknown.unknown")),
        (69, format!("{ISSUER}/callback?code=x")),
    ];
    for (row, url) in rows {
        let got = victim.get(&url).await;
        assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None), "row {row}");
    }
    let fine = victim.get(&provider.log_in(&own)).await;
    assert_eq!(fine.status, StatusCode::FOUND, "{fine:?}");
    let twice = victim.get(&with(&state_of(&own))).await;
    assert_eq!((twice.status, twice.next()), (StatusCode::BAD_REQUEST, None), "row 70");
    assert_eq!(provider.asked("/token"), 1, "nothing else was redeemed");
}

/// Row 71.
#[tokio::test]
async fn row_71_an_id_token_of_another_login_client_key_or_issuer_is_not_believed() {
    let rows = ["nonce", "aud", "iss", "key", "nobody"];
    for row in rows {
        let provider = Provider::start().await;
        let issuer = oidc(&provider);
        provider.with(|state| match row {
            "nonce" => state.claims["nonce"] = json!("another"),
            "aud" => state.claims["aud"] = json!("another-client"),
            "iss" => state.claims["iss"] = json!("https://other.example"),
            "nobody" => state.claims["sub"] = json!(""),
            _ => state.forges = true,
        });
        let got = callback(&issuer, &provider, &Login::new("desktop")).await;
        assert_eq!((got.status, got.next()), (StatusCode::FORBIDDEN, None), "{row}");
    }
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let mut browser = Browser::new(&issuer);
    let to = approve(&mut browser, &Login::new("desktop")).await;
    let back = format!("{}&iss=https://other.example", provider.log_in(&to));
    assert_eq!(browser.get(&back).await.status, StatusCode::FORBIDDEN, "iss of another provider");
    assert_eq!(provider.asked("/token"), 0);
}

/// Row 97, with a mail address that nobody verified.
#[tokio::test]
async fn row_97_an_unverified_mail_address_is_none() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    provider.with(|state| state.claims["email_verified"] = json!(false));
    let got = callback(&issuer, &provider, &Login::new("desktop")).await;
    assert_eq!(got.status, StatusCode::FORBIDDEN);
    assert!(got.body.contains("@acme.example"), "{}", got.body);
}

/// Row 98, and a user who says no at the provider.
#[tokio::test]
async fn row_98_a_provider_that_was_away_is_tried_again_without_a_new_question() {
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let login = Login::new("desktop");
    let mut browser = Browser::new(&issuer);
    let to = approve(&mut browser, &login).await;
    provider.with(|state| state.away = true);
    let away = browser.get(&provider.log_in(&to)).await;
    assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE);
    let again = away.body.split_once("href=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    provider.with(|state| state.away = false);
    let next = browser.get(&again).await.next().unwrap();
    assert!(next.starts_with(&provider.url) && next != to, "{next}");
    assert_eq!(browser.get(&provider.log_in(&next)).await.status, StatusCode::FOUND);
    let mut browser = Browser::new(&issuer);
    let to = approve(&mut browser, &login).await;
    let no = provider.log_in(&to).replace("code=upstream-code-canary", "error=access_denied");
    assert_eq!(answer_of(&browser.get(&no).await)["error"], "access_denied");
}

/// A metadata document on this computer, which a server on this computer takes; row 59's other half.
#[tokio::test]
async fn a_client_with_a_metadata_document_logs_in_under_its_host() {
    let provider = Provider::start().await;
    let local = "http://127.0.0.1:8931";
    let issuer = Issuer::new(local)
        .resource(crate::support::RESOURCE)
        .upstream(Upstream::oidc(&*provider.url, "our-id", "our-secret-canary"))
        .allow_anyone()
        .scope("files:read", "read your files");
    let login = Login::new(&format!("{}/client.json", provider.url));
    let mut browser = Browser::new(&issuer);
    let page = browser.follow(&login.url(&issuer)).await;
    assert!(page.body.contains("Documented of <strong>127.0.0.1</strong>"), "{}", page.body);
    assert!(!page.body.contains("not verified"));
    let to = browser.answer(&page, "allow", "").await.next().unwrap();
    let code = answer_of(&browser.get(&provider.log_in(&to)).await)["code"].clone();
    assert_eq!(login.redeem(&issuer, &code).await.status, StatusCode::OK);
    assert_eq!(provider.asked("/client.json"), 1, "it is remembered");
    for name in ["liar", "missing", "moved", "huge"] {
        let id = format!("{}/{name}.json", provider.url);
        let got = Browser::new(&issuer).get(&Login::new(&id).url(&issuer)).await;
        assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None), "row 59: {id}");
    }
    assert_eq!(provider.asked("/client.json"), 1, "a redirect is not followed");
    // A server that is not on this computer takes no such address.
    let got = Browser::new(&oidc(&provider)).get(&login.url(&oidc(&provider))).await;
    assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None));
    assert_eq!(provider.asked("/client.json"), 1);
}

/// Row 59: a document that does not come.
#[tokio::test(start_paused = true)]
async fn row_59_a_document_that_never_comes_is_given_up() {
    let provider = Provider::start().await;
    let issuer = Issuer::new("http://127.0.0.1:8931")
        .upstream(Upstream::oidc(&*provider.url, "our-id", "our-secret-canary"))
        .allow_anyone();
    let id = format!("{}/never.json", provider.url);
    let got = Browser::new(&issuer).get(&Login::new(&id).url(&issuer)).await;
    assert_eq!((got.status, got.next()), (StatusCode::BAD_REQUEST, None));
}

/// Row 100: of a whole login, with all that can go wrong with it, nothing secret is in a log, a page or an error.
#[tokio::test]
async fn row_100_no_log_answer_or_error_has_a_token_code_or_secret() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let provider = Provider::start().await;
    let issuer = oidc(&provider);
    let login = Login::new("desktop");
    let mut browser = Browser::new(&issuer);
    let to = approve(&mut browser, &login).await;
    let back = browser.get(&provider.log_in(&to)).await;
    let code = answer_of(&back)["code"].clone();
    let got = login.redeem(&issuer, &code).await.json();
    let (access, token) = (text(&got, "access_token"), text(&got, "refresh_token"));
    enter(&issuer, "/mcp", Some(&access)).await.unwrap();
    let next = refresh(&issuer, "desktop", &token, &[]).await;
    let mut said = next.body.clone();
    let mut secrets = vec![code.clone(), access, token, login.pkce.verifier.expose().to_owned()];
    secrets.extend(["access_token", "refresh_token"].map(|name| text(&next.json(), name)));
    // What goes wrong: refused, reused, revoked, away, and an attacker's code.
    provider.with(|state| state.away = true);
    said += &refresh(&issuer, "desktop", &secrets[5], &[]).await.body;
    provider.with(|state| (state.away, state.forges) = (false, true));
    said += &callback(&issuer, &provider, &Login::new("desktop")).await.body;
    provider.with(|state| state.forges = false);
    said += &login.redeem(&issuer, &code).await.body;
    said += &refresh(&issuer, "desktop", &secrets[5], &[]).await.body;
    said += &post(&issuer, "revoke", None, &[("client_id", "desktop"), ("token", &secrets[5])]).await.body;
    said += &post(&issuer, "token", Some(("desktop", "guess-canary")), &[("grant_type", "x")]).await.body;
    let log = logged.text();
    assert!(log.contains("verdict=\"rotated\"") && log.contains("verdict=\"used twice\""), "{log}");
    for text in [&log, &said] {
        assert!(!text.contains("canary"), "{text}");
    }
    secrets.extend(browser.cookies.into_values());
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret}: {log}");
    }
}
