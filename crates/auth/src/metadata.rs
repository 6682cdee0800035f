//! What resource and authorization servers say of themselves.
//!
//! Specification: "Authorization Server Discovery". The documents are read leniently, member by member: one that has
//! the wrong type is as good as absent, because nobody is helped when a misspelt logo stops a login.

use crate::address;
use crate::error::Error;
use crate::fetch::{Asker, Found};
use linchpin_oauth::{AuthorizationServerMetadata as Server, ResourceMetadata};
use serde_json::Value;
use url::Url;

/// The endpoints that servers without metadata have, by the rules from before there was protected-resource metadata.
pub(crate) fn without_metadata(origin: &str) -> Server {
    Server::new(origin).with(|server| {
        server.authorization_endpoint = Some(format!("{origin}/authorize"));
        server.token_endpoint = Some(format!("{origin}/token"));
        server.registration_endpoint = Some(format!("{origin}/register"));
    })
}

/// Whether nothing is known of a server but its origin.
pub(crate) fn is_assumed(server: &Server) -> bool {
    *server == without_metadata(&server.issuer)
}

/// The token endpoint.
pub(crate) fn token_endpoint(server: &Server) -> Result<&str, Error> {
    server.token_endpoint.as_deref().ok_or_else(|| {
        Error::discovery(format!(
            "the metadata of the authorization server {} contains no token_endpoint",
            server.issuer
        ))
    })
}

/// Fetches the protected-resource metadata of a server: from the URL in its challenge, else from the well-known URLs
/// below its path and at its root. `None` if there is none.
pub(crate) async fn resource(asker: &Asker, named: Option<&str>) -> Result<Option<ResourceMetadata>, Error> {
    const WHAT: &str = "the protected-resource metadata";
    let at_path = address::well_known_inserted(&asker.server, "oauth-protected-resource");
    let at_root = format!("{}/.well-known/oauth-protected-resource", address::origin(&asker.server));
    let mut places: Vec<&str> = Vec::new();
    for place in [named, Some(&at_path), Some(&at_root)].into_iter().flatten() {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut unknown = None;
    for place in places {
        match asker.document(WHAT, place).await {
            Found::Document(document) => return check_resource(&document, &asker.server, place).map(Some),
            Found::Nothing(why) if named == Some(place) => {
                // Some servers behind a proxy declare an internal URL.
                tracing::warn!(
                    why,
                    "the protected-resource metadata is not at the URL in the challenge; trying the well-known URLs"
                );
                let error = Error::discovery(format!("{WHAT} is not at the URL in the challenge: {why}"));
                unknown.get_or_insert(error);
            }
            Found::Nothing(_) => {}
            Found::Unknown(error) => drop(unknown.get_or_insert(error)),
        }
    }
    // The 2025-03-26 rules apply only if every URL reports that there is no document.
    unknown.map_or(Ok(None), Err)
}

fn check_resource(document: &Value, server: &Url, place: &str) -> Result<ResourceMetadata, Error> {
    let wrong = |why: String| Error::discovery(format!("invalid protected-resource metadata at {place}: {why}"));
    let resource = ResourceMetadata::read(document);
    let identifier = &resource.resource;
    if identifier.is_empty() {
        return Err(wrong("resource is missing".to_owned()));
    }
    let covers = Url::parse(identifier).is_ok_and(|resource| address::covers(&resource, server));
    if !covers {
        let shown: String = identifier.chars().filter(|c| !c.is_control()).take(200).collect();
        return Err(wrong(format!("it is for {shown}, not for {server}; the server's operator must correct it")));
    }
    Ok(resource)
}

/// Fetches the metadata of an authorization server in the order of the specification, and checks that its issuer is the
/// requested one.
pub(crate) async fn server(asker: &Asker, issuer: &str) -> Result<Server, Error> {
    let url = address::parse("the issuer of the authorization server", issuer)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::discovery(format!("the issuer {issuer} has a query or fragment, which RFC 8414 forbids")));
    }
    let oauth = address::well_known_inserted(&url, "oauth-authorization-server");
    let oidc = address::well_known_inserted(&url, "openid-configuration");
    let appended = format!("{}/.well-known/openid-configuration", url.as_str().trim_end_matches('/'));
    let mut places = vec![oauth, oidc];
    if url.path() != "/" {
        places.push(appended);
    }
    let mut tried = Vec::new();
    for place in &places {
        match asker.document("the metadata of the authorization server", place).await {
            Found::Document(document) => return check_server(Server::read(&document), issuer, place),
            Found::Nothing(why) => tried.push(why),
            Found::Unknown(error) => tried.push(error.to_string()),
        }
    }
    Err(Error::discovery(format!("the authorization server {issuer} has no metadata: {}", tried.join("; "))))
}

fn check_server(server: Server, issuer: &str, place: &str) -> Result<Server, Error> {
    if server.issuer == issuer {
        return Ok(server);
    }
    let theirs: String = server.issuer.chars().filter(|c| !c.is_control()).take(200).collect();
    Err(Error::discovery(format!(
        "the metadata at {place} is ignored, because its issuer is {theirs:?} instead of {issuer:?}; \
         the operator of one of the two has to correct this"
    )))
}

/// The authorization server of an MCP server without protected-resource metadata: by the rules from before that, it is
/// found at the MCP server's origin, with or without a document.
pub(crate) async fn server_at_origin(asker: &Asker) -> Result<Server, Error> {
    let origin = address::origin(&asker.server);
    let place = format!("{origin}/.well-known/oauth-authorization-server");
    match asker.document("the metadata of the authorization server", &place).await {
        Found::Document(document) => {
            let mut server = Server::read(&document);
            // The issuer was not named, so the server may write its root with or without a slash.
            if server.issuer == format!("{origin}/") {
                return Ok(server);
            }
            if server.issuer.is_empty() {
                server.issuer.clone_from(&origin);
            }
            check_server(server, &origin, &place)
        }
        Found::Nothing(_) => Ok(without_metadata(&origin)),
        Found::Unknown(error) => Err(error),
    }
}
