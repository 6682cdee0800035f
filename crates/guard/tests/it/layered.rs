//! The guard as a tower layer.

use crate::support::*;
use bytes::Bytes;
use http::{Request, Response};
use linchpin_core::Principal;
use linchpin_guard::Dpop;
use linchpin_oauth::Alg;
use serde_json::json;
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower_layer::Layer as _;
use tower_service::Service;

/// Says who asked.
#[derive(Clone)]
struct Echo;

impl Service<Request<()>> for Echo {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let who = request.extensions().get::<Principal>().map_or("nobody", |who| who.subject()).to_owned();
        std::future::ready(Ok(Response::new(who.into())))
    }
}

#[test]
fn a_layer_that_would_not_check_bodies_is_refused() {
    let guard = || World::with_keys(&[&key(Alg::Es256, "k")]).guard().issuer(ISSUER);
    let why = guard().dpop(Dpop::Profile).layer().unwrap_err();
    assert!(why.contains("Dpop::Profile"), "{why}");
    assert!(guard().dpop(Dpop::Required).layer().is_ok());
}

#[tokio::test]
async fn a_layer_admits_refuses_and_serves_the_metadata() {
    let key = key(Alg::Es256, "k");
    let world = World::with_keys(&[&key]);
    let guard = world.guard().issuer(ISSUER);
    let mut service = guard.layer().unwrap().layer(Echo);
    let token = format!("Bearer {}", key.sign("at+jwt", &claims(json!({}))));
    let mut ask = async |path: &str, token: &str| {
        let mut request = Request::get(path);
        if !token.is_empty() {
            request = request.header("authorization", token);
        }
        let response = service.call(request.body(()).unwrap()).await.unwrap();
        (response.status().as_u16(), String::from_utf8(response.into_body().to_vec()).unwrap())
    };
    assert_eq!(ask("/anything", &token).await, (200, "ada".to_owned()));
    assert_eq!(ask("/anything", &token).await, (200, "ada".to_owned()));
    assert_eq!(ask("/anything", "").await.0, 401);
    assert!(ask("/anything", "Bearer x").await.1.contains("the token is not valid"));
    let (status, document) = ask("/.well-known/oauth-protected-resource/mcp", "").await;
    assert!(status == 200 && document.contains(SERVER), "{document}");
    // Forms are posted to other services, with the token where it belongs.
    let mut post = async |token: Option<&str>| {
        let request = Request::post("/anything").header("content-type", "application/x-www-form-urlencoded");
        let request = token.into_iter().fold(request, |request, token| request.header("authorization", token));
        service.call(request.body(()).unwrap()).await.unwrap().status().as_u16()
    };
    assert_eq!((post(Some(&token)).await, post(None).await), (200, 400));
}
