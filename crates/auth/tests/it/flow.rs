//! The flow as a table: what servers say, and everything that must be asked of whom because of it.

use crate::support;

use bytes::Bytes;
use http::{Request, Response};
use linchpin_auth::login::Headless;
use linchpin_auth::{Credential, Enterprise, Fetch, OAuth, Workload};
use linchpin_core::service::BoxFuture;
use linchpin_web::Reach;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use support::{AS, MCP, World, server};
use url::{Host, Url};

/// What happens, in order, up to the end of one request; and how that ends.
struct Row {
    name: &'static str,
    world: fn(&World),
    oauth: fn(OAuth) -> OAuth,
    log: &'static str,
    /// A status, or a part of an error.
    end: &'static str,
}

const PLAIN: fn(OAuth) -> OAuth = |oauth| oauth;
const CIMD: &str = "https://client.example/metadata.json";

#[tokio::test]
async fn everything_is_asked_of_whom_the_specification_says_and_of_nobody_else() {
    let mut wrong = String::new();
    for row in ROWS {
        let world = World::new();
        (row.world)(&world);
        let oauth = (row.oauth)(world.oauth());
        let end = world.call(&oauth, "list").await;
        let log: Vec<&str> = row.log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let shown = short(&world.log());
        let ends = match &end {
            Ok(status) => status.to_string() == row.end,
            Err(why) => why.contains(row.end),
        };
        if shown != log.join("\n") || !ends {
            wrong += &format!("\n--- {}\n{shown}\n{end:?}\n", row.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn short(log: &str) -> String {
    let short = [
        ("https://mcp.example", "mcp"),
        ("https://as.example", "as"),
        ("/.well-known/oauth-protected-resource", "/PRM"),
        ("/.well-known/oauth-authorization-server", "/AS"),
        ("/.well-known/openid-configuration", "/OIDC"),
    ];
    short.iter().fold(log.to_owned(), |log, (long, short)| log.replace(long, short))
}

const ROWS: &[Row] = &[
    Row {
        name: "metadata below the path, a public client that is registered",
        world: |_| {},
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "no challenge at all",
        world: |world| world.set(|set| set.challenge.clear()),
        oauth: |oauth| oauth.client_metadata_url(CIMD),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "metadata at the root, whose resource is the origin and goes on letter for letter; an issuer with a path",
        world: |world| {
            world.set(|set| {
                set.documents.clear();
                let root = "https://mcp.example/.well-known/oauth-protected-resource";
                let issuer = "https://as.example/tenant1";
                set.documents
                    .insert(root.into(), json!({"resource": "https://mcp.example", "authorization_servers": [issuer]}));
                let place = "https://as.example/.well-known/oauth-authorization-server/tenant1";
                set.documents.insert(place.into(), server(issuer));
            });
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET mcp/PRM
            GET as/AS/tenant1
            POST as/tenant1/register native none scope=-
            LOGIN as/tenant1/authorize client-1 resource=mcp scope=-
            POST as/tenant1/token authorization_code client-1 resource=mcp
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "metadata where the challenge says; OpenID Connect appended to the issuer",
        world: |world| {
            world.set(|set| {
                set.documents.clear();
                set.challenge = "Bearer resource_metadata=\"https://mcp.example/custom.json\", scope=\"a b\"".into();
                let issuer = "https://as.example/t/";
                set.documents.insert(
                    "https://mcp.example/custom.json".into(),
                    json!({"resource": MCP, "authorization_servers": [issuer]}),
                );
                let mut document = server("https://as.example/t");
                document["issuer"] = json!(issuer);
                set.documents.insert("https://as.example/t/.well-known/openid-configuration".into(), document);
            });
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/custom.json
            GET as/AS/t
            GET as/OIDC/t
            GET as/t/OIDC
            POST as/t/register native none scope=a b
            LOGIN as/t/authorize client-1 resource=MCP scope=a b
            POST as/t/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "a challenge that names a place where nothing is: the usual places are tried",
        world: |world| world.set(|set| set.challenge = "Bearer resource_metadata=\"https://inside.example/x\"".into()),
        oauth: |oauth| oauth.scopes(["mine"]),
        log: "MCP list: 401
            GET https://inside.example/x
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=mine
            LOGIN as/authorize client-1 resource=MCP scope=mine
            POST as/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "the document of the client, where it is taken",
        world: |world| world.merge_server(json!({"client_id_metadata_document_supported": true})),
        oauth: |oauth| oauth.client_metadata_url(CIMD),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            LOGIN as/authorize https://client.example/metadata.json resource=MCP scope=-
            POST as/token authorization_code https://client.example/metadata.json resource=MCP
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "a document that is none",
        world: |world| world.merge_server(json!({"client_id_metadata_document_supported": true})),
        oauth: |oauth| oauth.client_metadata_url("https://client.example"),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "must be https and have a path",
    },
    Row {
        name: "a client registered beforehand comes first",
        world: |world| {
            let methods = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"], "client_id_metadata_document_supported": true});
            world.merge_server(methods);
        },
        oauth: |oauth| oauth.client_metadata_url(CIMD).pre_registered(Some(AS), "pre", "se:cret"),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            LOGIN as/authorize pre resource=MCP scope=-
            POST as/token authorization_code basic(pre:se%3Acret) resource=MCP
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "a client registered with somebody else is an error and given to nobody",
        world: |_| {},
        oauth: |oauth| oauth.pre_registered(Some("https://other.example"), "pre", "secret"),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "pre_registered(Some(\"https://as.example\"), …)",
    },
    Row {
        name: "of several authorization servers the one the client is registered with",
        world: |world| world.merge_resource(json!({"authorization_servers": ["https://first.example", AS]})),
        oauth: |oauth| oauth.pre_registered(Some(AS), "pre", Credential::None),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            LOGIN as/authorize pre resource=MCP scope=-
            POST as/token authorization_code pre resource=MCP
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "a secret in the body",
        world: |world| {
            world.merge_server(json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}));
            world.set(|set| set.registration = json!({"client_secret": "s&t"}));
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native client_secret_post scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code post(client-1:s&t) resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "a server that does not say which methods it takes decides itself",
        world: |world| {
            world.merge_server(json!({"token_endpoint_auth_methods_supported": null}));
            world.set(|set| set.registration = json!({"client_secret": "s", "client_secret_expires_at": 0}));
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native - scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code basic(client-1:s) resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "a public client that was given a secret nobody asked for",
        world: |world| world.set(|set| set.registration = json!({"client_secret": "s"})),
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "no way to get a client",
        world: |world| world.merge_server(json!({"registration_endpoint": null})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "add it with pre_registered",
    },
    Row {
        name: "a registration that is refused",
        world: |world| world.set(|set| set.registration = json!({"error": "invalid_redirect_uri"})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS\nPOST as/register native none scope=-",
        end: "invalid_redirect_uri: not like this; the server must allow the login's redirect URI",
    },
    Row {
        name: "scopes the resource supports, and offline_access because the server has it",
        world: |world| {
            world.merge_resource(json!({"scopes_supported": ["a", "b"]}));
            world.merge_server(json!({"scopes_supported": ["a", "offline_access"]}));
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=a b offline_access
            LOGIN as/authorize client-1 resource=MCP scope=a b offline_access
            POST as/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "the resource is another server's",
        world: |world| world.merge_resource(json!({"resource": "https://evil.example/mcp"})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp",
        end: "it is for https://evil.example/mcp, not for https://mcp.example/mcp",
    },
    Row {
        name: "the metadata is another issuer's",
        world: |world| world.merge_server(json!({"issuer": "https://attacker.example"})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "its issuer is \"https://attacker.example\"",
    },
    Row {
        name: "an issuer with a slash more is another one",
        world: |world| world.merge_server(json!({"issuer": "https://as.example/"})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "its issuer is \"https://as.example/\"",
    },
    Row {
        name: "no authorization server named",
        world: |world| world.merge_resource(json!({"authorization_servers": []})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp",
        end: "contains no authorization server",
    },
    Row {
        name: "an authorization server without metadata",
        world: |world| world.merge_resource(json!({"authorization_servers": ["https://none.example/x"]})),
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET https://none.example/AS/x
            GET https://none.example/OIDC/x
            GET https://none.example/x/OIDC",
        end: "has no metadata: https://none.example/.well-known/oauth-authorization-server/x returned status 404;",
    },
    Row {
        name: "an issuer that must not be asked",
        world: |world| world.merge_resource(json!({"authorization_servers": ["http://169.254.169.254/latest"]})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp",
        end: "it must be https",
    },
    Row {
        name: "redirects of metadata are followed",
        world: |world| {
            world.set(|set| {
                let elsewhere = "https://as.example/elsewhere";
                set.redirects
                    .insert("https://as.example/.well-known/oauth-authorization-server".into(), "/elsewhere".into());
                set.documents.insert(elsewhere.into(), server(AS));
            });
        },
        oauth: |oauth| oauth.pre_registered(None, "pre", Credential::None),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            GET as/elsewhere
            LOGIN as/authorize pre resource=MCP scope=-
            POST as/token authorization_code pre resource=MCP
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "redirects lead nowhere that must not be asked",
        world: |world| {
            let place = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
            world.set(|set| set.redirects.insert(place.into(), "http://127.0.0.1/secrets".into()));
        },
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET mcp/PRM",
        end: "redirects to a URL without TLS",
    },
    Row {
        name: "redirects in a circle",
        world: |world| {
            let place = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
            world.set(|set| set.redirects.insert(place.into(), place.into()));
        },
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET mcp/PRM/mcp\nGET mcp/PRM/mcp\nGET mcp/PRM/mcp\nGET mcp/PRM",
        end: "redirects too often",
    },
    Row {
        name: "PKCE is not mentioned",
        world: |world| world.merge_server(json!({"code_challenge_methods_supported": null})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "code_challenge_methods_supported is missing",
    },
    Row {
        name: "PKCE only in the way that does not help",
        world: |world| world.merge_server(json!({"code_challenge_methods_supported": ["plain"]})),
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "does not support PKCE with S256",
    },
    Row {
        name: "an authorization endpoint no browser should be sent to",
        world: |world| world.merge_server(json!({"authorization_endpoint": "javascript:alert(1)"})),
        oauth: |oauth| oauth.pre_registered(None, "pre", Credential::None),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "it must be https",
    },
    Row {
        name: "no metadata of the resource: the server's origin is its authorization server",
        world: |world| {
            world.set(|set| {
                set.documents.clear();
                let mut document = server("https://mcp.example");
                document["token_endpoint"] = json!("https://mcp.example/oauth/token");
                document["code_challenge_methods_supported"] = json!(null);
                set.documents.insert("https://mcp.example/.well-known/oauth-authorization-server".into(), document);
            });
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET mcp/PRM
            GET mcp/AS
            POST mcp/register native none scope=-
            LOGIN mcp/authorize client-1 resource=MCP scope=-
            POST mcp/oauth/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "no metadata at all: the places of old",
        world: |world| world.set(|set| set.documents.clear()),
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET mcp/PRM
            GET mcp/AS
            POST mcp/register native - scope=-
            LOGIN mcp/authorize client-1 resource=MCP scope=-
            POST mcp/token authorization_code client-1 resource=MCP
            MCP list Bearer token-2: 200",
        end: "200",
    },
    Row {
        name: "a server that fails is not one of old",
        world: |world| {
            let place = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
            world.set(|set| set.statuses.insert(place.into(), 503));
        },
        oauth: PLAIN,
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET mcp/PRM",
        end: "returned status 503",
    },
    Row {
        name: "nobody said how to log in",
        world: |world| world.set(|set| set.challenge = "Basic realm=\"x\"".into()),
        oauth: PLAIN,
        log: "MCP list: 401",
        end: "requires Basic authentication, which is not OAuth",
    },
    Row {
        name: "the token endpoint redirects",
        world: |world| world.set(|set| set.statuses.insert("https://as.example/token".into(), 307)),
        oauth: |oauth| oauth.pre_registered(None, "pre", Credential::None),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            LOGIN as/authorize pre resource=MCP scope=-
            POST as/token: 307",
        end: "redirects its token endpoint, which is not followed",
    },
    Row {
        name: "a program's own credentials: a secret",
        world: |world| {
            let methods = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"], "code_challenge_methods_supported": null});
            world.merge_server(methods);
            world.merge_resource(json!({"scopes_supported": ["a"]}));
        },
        oauth: |oauth| oauth.client_credentials("program", "secret"),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/token client_credentials basic(program:secret) resource=MCP scope=a
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "the company's identity provider vouches",
        world: |world| world.merge_server(json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]})),
        oauth: |oauth| {
            let enterprise =
                Enterprise::new("https://idp.example/token", "at-idp", "the-id-token").client("at-as", "secret");
            oauth.enterprise(enterprise)
        },
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST https://idp.example/token token-exchange at-idp resource=MCP audience=as subject_token=the-id-token
            POST as/token jwt-bearer basic(at-as:secret) resource=MCP assertion=the-id-jag
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "the identity provider refuses",
        world: |world| world.set(|set| set.token_error = Some(("token-exchange", 400, "invalid_grant"))),
        oauth: |oauth| {
            oauth.enterprise(
                Enterprise::new("https://idp.example/token", "at-idp", "the-id-token").client("at-as", "secret"),
            )
        },
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST https://idp.example/token token-exchange at-idp resource=MCP audience=as subject_token=the-id-token",
        end: "at the identity provider: the authorization server https://idp.example refused: invalid_grant",
    },
    Row {
        name: "the platform states which program it is",
        world: |_| {},
        oauth: |oauth| oauth.workload(Workload::new("the-jwt").client_id("program")),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/token jwt-bearer program resource=MCP assertion=the-jwt
            MCP list Bearer token-1: 200",
        end: "200",
    },
    Row {
        name: "a token nobody can put into a header",
        world: |world| world.set(|set| set.tokens = json!({"access_token": "a\r\nx: y", "token_type": "Bearer"})),
        oauth: |oauth| oauth.workload(Workload::new("the-jwt")),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS\nPOST as/token jwt-bearer - resource=MCP assertion=the-jwt",
        end: "is not a valid header value",
    },
    Row {
        name: "a token of a kind nobody knows",
        world: |world| world.set(|set| set.tokens = json!({"token_type": "mac"})),
        oauth: |oauth| oauth.workload(Workload::new("the-jwt")),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS\nPOST as/token jwt-bearer - resource=MCP assertion=the-jwt",
        end: "token_type is mac",
    },
    Row {
        name: "a key, because the server's challenge wants one; nonces at both servers",
        world: |world| {
            world.merge_server(json!({"dpop_signing_alg_values_supported": ["RS256", "ES256"]}));
            world.set(|set| {
                set.challenge = "DPoP algs=\"ES256\"".into();
                set.tokens = json!({"token_type": "DPoP"});
                set.nonces = Some(("as-nonce", "mcp-nonce"));
            });
        },
        oauth: PLAIN,
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/register native none scope=-
            LOGIN as/authorize client-1 resource=MCP scope=-
            POST as/token authorization_code client-1 resource=MCP
            POST as/token authorization_code client-1 resource=MCP
            MCP list DPoP token-2: 401
            MCP list DPoP token-2: 200",
        end: "200",
    },
    Row {
        name: "a server that wants the nonce it was given",
        world: |world| {
            world.merge_server(json!({"dpop_signing_alg_values_supported": ["ES256"]}));
            world.set(|set| {
                set.tokens = json!({"token_type": "DPoP"});
                set.nonces = Some(("as-nonce", "never-enough"));
            });
        },
        oauth: |oauth| oauth.dpop(true).client_credentials("program", "secret"),
        log: "MCP list: 401
            GET mcp/PRM/mcp
            GET as/AS
            POST as/token client_credentials basic(program:secret) resource=MCP
            POST as/token client_credentials basic(program:secret) resource=MCP
            MCP list DPoP token-1: 401
            MCP list DPoP token-1: 401",
        end: "requires a nonce in the DPoP proof but did not send a new one",
    },
    Row {
        name: "a key, because the program insists, and a server that knows nothing of that",
        world: |_| {},
        oauth: |oauth| oauth.dpop(true),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS",
        end: "dpop_signing_alg_values_supported",
    },
    Row {
        name: "a key, and a server that gives out a token for anybody",
        world: |world| world.merge_server(json!({"dpop_signing_alg_values_supported": ["ES256"]})),
        oauth: |oauth| oauth.dpop(true).client_credentials("program", "secret"),
        log: "MCP list: 401\nGET mcp/PRM/mcp\nGET as/AS\nPOST as/token client_credentials basic(program:secret) resource=MCP",
        end: "not bound to the key",
    },
];

/// Which answers of a login are believed. In each row the server says that it sends `iss`, or does not.
#[tokio::test]
async fn only_an_answer_of_the_right_server_to_this_login_is_redeemed() {
    let rows = [
        (true, "code=C&state={state}&iss={iss}", ""),
        (false, "code=C&state={state}", ""),
        (false, "code=C&state={state}&iss={iss}", ""),
        (true, "code=C&state={state}", "has no iss"),
        (true, "code=C&state={state}&iss=https://evil.example", "iss mismatch"),
        (false, "code=C&state={state}&iss=https://evil.example", "iss mismatch"),
        (true, "code=C&state={state}&iss={iss}/", "iss mismatch"),
        (true, "code=C&state={state}&iss=HTTPS://as.example", "iss mismatch"),
        (true, "code=C&state={state}&iss={iss}&iss={iss}", "`iss` more than once"),
        (false, "code=C&state=other", "state mismatch"),
        (false, "code=C", "state mismatch"),
        (false, "error=access_denied&error_description=no%0Away&state={state}", "refused: access_denied: no way"),
        (true, "error=hacked&error_description=shown&state={state}&iss=https://evil.example", "iss mismatch"),
        (false, "error=hacked&error_description=shown&state=other", "state mismatch"),
        (false, "state={state}", "either `code` or `error`"),
        // Only at the redirect URI of this login.
        (false, "http://LOCALHOST:3000/callback?code=C&state={state}#x", ""),
        (
            false,
            "http://evil.example/callback?code=C&state={state}",
            "does not match the redirect URI http://localhost:3000/callback",
        ),
        (false, "http://localhost.evil.example:3000/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://localhost:3000@evil.example/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://u@localhost:3000/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "https://localhost:3000/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://localhost:3001/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://localhost/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://127.0.0.1:3000/callback?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://localhost:3000/callback/?code=C&state={state}", "does not match the redirect URI"),
        (false, "http://localhost:3000/?code=C&state={state}", "does not match the redirect URI"),
        (
            false,
            "http://evil.example/?error=hacked&error_description=shown&state={state}",
            "does not match the redirect URI",
        ),
    ];
    for (sends_iss, callback, want) in rows {
        let world = World::new();
        world.merge_server(json!({"authorization_response_iss_parameter_supported": sends_iss}));
        let callback = if callback.starts_with("http") {
            callback.to_owned()
        } else {
            format!("http://localhost:3000/callback?{callback}")
        };
        world.set(|set| set.callback.clone_from(&callback));
        let end = world.call(&world.oauth(), "list").await;
        let redeemed = world.log().contains("POST https://as.example/token");
        match end {
            Ok(status) => assert_eq!((status, want, redeemed), (200, "", true), "{callback}"),
            Err(why) => {
                assert!(!want.is_empty() && why.contains(want), "{callback}: {why}");
                assert!(!redeemed, "{callback}");
                assert!(!why.contains("hacked") && !why.contains("shown"), "{why}");
            }
        }
    }
}

/// What a server in a private network can have: every host that may be asked answers as its authorization server, and where
/// `place` says so the answer leads to `target`.
#[derive(Clone)]
struct Inside {
    place: &'static str,
    target: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Inside {
    fn answer(&self, url: &Url) -> (u16, &'static str, String, Value) {
        let at = |place: &str, otherwise: &str| if self.place == place { self.target } else { otherwise }.to_owned();
        let origin = url.origin().ascii_serialization();
        match url.path() {
            "/mcp" => {
                let at = at("challenge", "https://10.1.2.3");
                (401, "www-authenticate", format!("Bearer resource_metadata=\"{at}/prm\""), Value::Null)
            }
            "/prm" if self.place == "redirect" => (302, "location", format!("{}/again", self.target), Value::Null),
            "/prm" | "/again" => {
                let issuer = at("issuer", "https://10.9.9.9");
                (
                    200,
                    "x",
                    String::new(),
                    json!({"resource": "https://10.1.2.3/mcp", "authorization_servers": [issuer]}),
                )
            }
            "/.well-known/oauth-authorization-server" => {
                let mut metadata = server(&origin);
                metadata["registration_endpoint"] = format!("{}/register", at("registration", &origin)).into();
                metadata["token_endpoint"] = format!("{}/token", at("token", &origin)).into();
                (200, "x", String::new(), metadata)
            }
            "/register" => (
                201,
                "x",
                String::new(),
                json!({"client_id": "c", "redirect_uris": ["http://localhost:3000/callback"]}),
            ),
            "/token" => (200, "x", String::new(), json!({"access_token": "t", "token_type": "Bearer"})),
            _ => (404, "x", String::new(), Value::Null),
        }
    }
}

impl Fetch for Inside {
    fn fetch(&self, request: Request<Bytes>, reach: Reach, _: usize) -> BoxFuture<'_, Result<Response<Bytes>, String>> {
        let url = Url::parse(&request.uri().to_string()).unwrap();
        let ip = match url.host().unwrap() {
            Host::Ipv4(ip) => ip.into(),
            Host::Ipv6(ip) => ip.into(),
            Host::Domain(_) => IpAddr::from([127, 0, 0, 1]),
        };
        let answer = reach.check(ip).map_err(str::to_owned).map(|()| {
            self.asked.lock().unwrap().push(url.origin().ascii_serialization());
            let (status, name, value, body) = self.answer(&url);
            let body = Bytes::from(body.to_string());
            Response::builder().status(status).header(name, value).body(body).unwrap()
        });
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_server_in_a_private_network_leads_into_it_but_neither_to_this_machine_nor_to_its_link() {
    let targets = [
        ("https://10.9.9.8", true),
        ("https://[fd00::8]", true),
        ("https://8.8.8.8", true),
        ("https://127.0.0.1", false),
        ("http://127.0.0.1:8080", false),
        ("http://localhost:8080", false),
        ("https://[::1]", false),
        ("https://0.0.0.0", false),
        ("https://169.254.169.254", false),
        ("https://[fe80::1]", false),
        ("https://[::ffff:127.0.0.1]", false),
        ("https://[::ffff:169.254.169.254]", false),
        ("https://[64:ff9b::a9fe:a9fe]", false),
    ];
    for (target, may) in targets {
        for place in ["challenge", "redirect", "issuer", "registration", "token"] {
            let inside = Inside { place, target, asked: Arc::default() };
            let login = Headless::new("http://localhost:3000/callback", |url: String| async move {
                let url = Url::parse(&url).unwrap();
                let (_, state) = url.query_pairs().find(|(name, _)| name == "state").unwrap();
                Ok(format!("http://localhost:3000/callback?code=c&state={state}"))
            });
            let oauth = OAuth::new().login(login).fetch(inside.clone());
            let end = oauth.login_to("https://10.1.2.3/mcp").await;
            let origin = Url::parse(target).unwrap().origin().ascii_serialization();
            let asked = inside.asked.lock().unwrap();
            assert_eq!(asked.contains(&origin), may, "{place} {target}: {asked:?} {end:?}");
            assert!(end.is_ok() || !may, "{place} {target}: {end:?}");
        }
    }
}

#[tokio::test]
async fn redirect_uris_are_of_this_machine_or_https() {
    let rows = [
        ("https://app.example/callback", true),
        ("http://localhost:3000/callback", true),
        ("http://127.0.0.1/callback", true),
        ("http://[::1]:7/callback", true),
        ("http://app.example/callback", false),
        ("http://localhost.evil.example/callback", false),
        ("myapp://callback", false),
        ("callback", false),
    ];
    for (redirect_uri, fine) in rows {
        let world = World::new();
        let asked = Arc::new(Mutex::new(false));
        let ask = asked.clone();
        let login = Headless::new(redirect_uri, move |_: String| {
            *ask.lock().unwrap() = true;
            async { Ok(String::new()) }
        });
        let why = world.call(&world.oauth().login(login), "list").await.unwrap_err();
        assert_eq!(*asked.lock().unwrap(), fine, "{redirect_uri}: {why}");
        assert_eq!(why.contains("redirect URI must be https") || why.contains("invalid redirect URI"), !fine, "{why}");
    }
}
