//! Rows 39 to 49: tokens that are bound to a key.

use crate::support::*;
use http::{HeaderMap, HeaderValue};
use linchpin_core::RequestContext;
use linchpin_core::gate::{Gate, Refusal};
use linchpin_guard::{Dpop, Guard, Signer};
use linchpin_oauth::Alg;
use linchpin_oauth::dpop::DpopKey;
use linchpin_store::Store;
use serde_json::json;

struct Client {
    world: World,
    guard: Guard,
    key: DpopKey,
    token: String,
    plain: String,
}

fn client(change: impl FnOnce(Guard) -> Guard) -> Client {
    let signer: Signer = key(Alg::Es256, "k");
    let world = World::with_keys(&[&signer]);
    let key = DpopKey::generate();
    let cnf = json!({ "cnf": { "jkt": key.thumbprint().to_string() } });
    let (token, plain) = (signer.sign("at+jwt", &claims(cnf)), signer.sign("at+jwt", &claims(json!({}))));
    let guard = change(world.guard().issuer(ISSUER));
    Client { world, guard, key, token, plain }
}

impl Client {
    fn proof(&self, nonce: Option<&str>) -> String {
        self.key.proof("POST", SERVER, nonce, Some(&self.token), self.world.now())
    }

    async fn send(&self, scheme: &str, token: &str, proofs: &[&str]) -> Result<(), Refusal> {
        let line = format!("{scheme} {token}");
        let mut headers = vec![("authorization", line.as_str())];
        headers.extend(proofs.iter().map(|proof| ("dpop", *proof)));
        admitted(&self.guard, &head("/mcp", &headers)).await.map(drop)
    }

    /// The error of the refusal of a request with this proof.
    async fn error(&self, proof: &str) -> String {
        match self.send("DPoP", &self.token, &[proof]).await {
            Ok(()) => "none".to_owned(),
            Err(refusal) => error_of(&refusal),
        }
    }
}

fn error_of(refusal: &Refusal) -> String {
    let (status, lines) = shown(refusal);
    assert_eq!(status, 401);
    let dpop = lines.iter().find(|line| line.starts_with("DPoP")).expect("a DPoP challenge");
    assert!(dpop.contains("algs=\"ES256 EdDSA\""), "{dpop}");
    dpop.split("error=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap()).to_owned()
}

#[tokio::test]
async fn a_proof_is_for_one_request_with_one_token_of_one_key() {
    let client = client(|guard| guard.dpop(Dpop::Accepted));
    let (own, other) = (&client.key, DpopKey::generate());
    let token = Some(client.token.as_str());
    let first = client.proof(None);
    assert_eq!(client.error(&first).await, "none");
    assert_eq!(client.error(&first).await, "invalid_dpop_proof", "39: used again");
    let rows = [
        ("40: other method", own.proof("GET", SERVER, None, token, NOW), "invalid_dpop_proof"),
        ("41: other URL", own.proof("POST", "https://mcp.example.com/other", None, token, NOW), "invalid_dpop_proof"),
        ("42: other token", own.proof("POST", SERVER, None, Some("x"), NOW), "invalid_dpop_proof"),
        ("42: no token", own.proof("POST", SERVER, None, None, NOW), "invalid_dpop_proof"),
        ("43: other key", other.proof("POST", SERVER, None, token, NOW), "invalid_token"),
        ("44: 6 min old", own.proof("POST", SERVER, None, token, NOW - 360), "invalid_dpop_proof"),
        ("45: HS256", "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkhTMjU2In0.e30.AAAA".to_owned(), "invalid_dpop_proof"),
        ("the query does not matter", own.proof("POST", &format!("{SERVER}?a=b"), None, token, NOW), "none"),
    ];
    for (row, proof, expected) in rows {
        assert_eq!(client.error(&proof).await, expected, "{row}");
    }
    let proof = client.proof(None);
    let missing = client.send("DPoP", &client.token, &[]).await.unwrap_err();
    let twice = client.send("DPoP", &client.token, &[&proof, &proof]).await.unwrap_err();
    let bearer = client.send("Bearer", &client.token, &[&proof]).await.unwrap_err();
    let unbound = client.send("DPoP", &client.plain, &[&proof]).await.unwrap_err();
    assert_eq!(
        [missing, twice, bearer, unbound].map(|refusal| error_of(&refusal)),
        ["invalid_dpop_proof", "invalid_dpop_proof", "invalid_token", "invalid_token"],
        "46 and its kin"
    );
    assert!(client.send("Bearer", &client.plain, &[]).await.is_ok(), "bearer tokens are accepted too");
}

#[tokio::test]
async fn a_bound_token_is_no_bearer_token_where_proofs_are_off() {
    let client = client(|guard| guard);
    for scheme in ["Bearer", "DPoP"] {
        let refusal = client.send(scheme, &client.token, &[&client.proof(None)]).await.unwrap_err();
        let (status, lines) = shown(&refusal);
        assert!(status == 401 && lines.len() == 1 && lines[0].starts_with("Bearer"), "{scheme} {lines:?}");
    }
}

#[tokio::test]
async fn where_proofs_are_required_there_are_no_bearer_tokens() {
    let client = client(|guard| guard.dpop(Dpop::Required));
    assert_eq!(client.error(&client.proof(None)).await, "none");
    let refusal = client.send("Bearer", &client.plain, &[]).await.unwrap_err();
    assert_eq!(error_of(&refusal), "invalid_token");
    let (_, lines) = shown(&admitted(&client.guard, &head("/mcp", &[])).await.unwrap_err());
    assert!(lines.len() == 1 && lines[0].starts_with("DPoP"), "{lines:?}");
}

#[tokio::test]
async fn a_nonce_is_handed_out_and_accepted() {
    let client = client(|guard| guard.dpop(Dpop::Accepted).dpop_nonces());
    let refusal = client.send("DPoP", &client.token, &[&client.proof(None)]).await.unwrap_err();
    assert_eq!(error_of(&refusal), "use_dpop_nonce");
    let nonce = refusal.headers()["dpop-nonce"].to_str().unwrap().to_owned();
    assert_eq!(client.error(&client.proof(Some(&nonce))).await, "none");
    let replayed = client.proof(Some(&nonce));
    assert_eq!(
        (client.error(&replayed).await, client.error(&replayed).await),
        ("none".into(), "invalid_dpop_proof".into())
    );
    assert_eq!(client.error(&client.proof(Some("forged"))).await, "use_dpop_nonce");
    client.world.pass(60);
    assert_eq!(client.error(&client.proof(Some(&nonce))).await, "use_dpop_nonce");
}

/// Row 39 for servers of several nodes, and the end of row 31.
#[tokio::test]
async fn proofs_that_nodes_remember_together_are_used_once_and_nonces_are_good_at_all() {
    let store = Store::memory();
    let client = client(|guard| guard.dpop(Dpop::Accepted).shared_replay(&store));
    let other = client.world.guard().issuer(ISSUER).dpop(Dpop::Accepted).shared_replay(&store);
    let proof = client.proof(None);
    let line = format!("DPoP {}", client.token);
    let head = head("/mcp", &[("authorization", line.as_str()), ("dpop", proof.as_str())]);
    // The token is new at the first node and the second, then remembered.
    assert!(admitted(&client.guard, &head).await.is_ok());
    for guard in [&other, &client.guard] {
        assert_eq!(error_of(&admitted(guard, &head).await.unwrap_err()), "invalid_dpop_proof");
    }
    assert_eq!(client.error(&client.proof(None)).await, "none");
    assert!(client.send("Bearer", &client.plain, &[]).await.is_ok(), "others do not ask the store");
    let same = client.proof(None);
    let (one, two) = tokio::join!(client.error(&same), client.error(&same));
    assert!([one.as_str(), two.as_str()].contains(&"none") && one != two, "{one} {two}");

    let [here, there] =
        [(); 2].map(|()| client.world.guard().issuer(ISSUER).dpop(Dpop::Accepted).dpop_nonces().shared_replay(&store));
    let here = Client { guard: here, ..client };
    let refusal = here.send("DPoP", &here.token, &[&here.proof(None)]).await.unwrap_err();
    let nonce = refusal.headers()["dpop-nonce"].to_str().unwrap().to_owned();
    let there = Client { guard: there, ..here };
    assert_eq!(there.error(&there.proof(Some(&nonce))).await, "none", "of the other node");
    assert_eq!(there.error(&there.proof(Some("forged"))).await, "use_dpop_nonce");
    there.world.pass(60);
    assert_eq!(there.error(&there.proof(Some(&nonce))).await, "use_dpop_nonce");
}

#[tokio::test]
async fn a_body_is_the_one_of_its_proof() {
    let signer: Signer = key(Alg::Es256, "proof");
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let digest = "sha-256=:GvPlZvQu4x9vJ2mqyFMh5hsfhVvqXEOxq0J1YgZnHoY=:";
    let context = |proof: String| {
        let headers =
            HeaderMap::from_iter([(http::HeaderName::from_static("dpop"), HeaderValue::try_from(proof).unwrap())]);
        RequestContext::default().with(|context| context.headers = headers)
    };
    let real = {
        use base64::Engine as _;
        let hash = linchpin_oauth::sha256(body);
        format!("sha-256=:{}:", base64::engine::general_purpose::STANDARD.encode(hash))
    };
    let client = client(|guard| guard.dpop(Dpop::Profile));
    for (digest, fits) in [(real.as_str(), true), (digest, false)] {
        let context = context(signer.sign("dpop+jwt", &json!({ "content_digest": digest })));
        let checked = client.guard.body(&context, &body.as_slice().to_vec().into());
        assert_eq!(checked.is_ok(), fits, "48");
        if let Err(refusal) = checked {
            assert_eq!(error_of(&refusal), "invalid_dpop_proof");
        }
    }
    assert_eq!(client.error(&client.proof(None)).await, "invalid_dpop_proof", "the profile demands a digest");
}
