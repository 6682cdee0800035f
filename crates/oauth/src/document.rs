//! Metadata documents that describe resources, authorization servers and clients.
//!
//! They are read leniently, member by member: a member of the wrong type is treated as absent, because a mistake in,
//! for example, a logo is not a reason to fail a login. Members that are not set are not written.

use crate::scope::Scopes;
use serde::Serialize;
use serde_json::Value;

/// Protected-resource metadata (RFC 9728).
///
/// # Example
///
/// ```
/// use linchpin_oauth::ResourceMetadata;
/// use serde_json::json;
///
/// let metadata = ResourceMetadata::new("https://mcp.example/mcp")
///     .with(|it| it.authorization_servers = vec!["https://login.example".to_owned()]);
/// let document = json!({
///     "resource": "https://mcp.example/mcp",
///     "authorization_servers": ["https://login.example"],
/// });
/// assert_eq!(serde_json::to_value(&metadata)?, document);
/// assert_eq!(ResourceMetadata::read(&document), metadata);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The resource identifier. It is compared exactly, without normalization.
    pub resource: String,
    /// The issuer identifiers of the authorization servers whose tokens the resource accepts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes that a client should request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Scopes>,
    /// How tokens may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// A human-readable name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The URL of the documentation for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// The algorithms that DPoP proofs may be signed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether tokens must be bound to a key.
    #[serde(skip_serializing_if = "is_false")]
    pub dpop_bound_access_tokens_required: bool,
}

impl ResourceMetadata {
    /// Creates the metadata of a resource, with this identifier and nothing else.
    pub fn new(resource: impl Into<String>) -> ResourceMetadata {
        ResourceMetadata { resource: resource.into(), ..ResourceMetadata::default() }
    }

    /// Returns the metadata with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Reads a JSON document. Missing members are left empty.
    pub fn read(document: &Value) -> ResourceMetadata {
        ResourceMetadata {
            resource: text(document, "resource").unwrap_or_default(),
            authorization_servers: list(document, "authorization_servers").unwrap_or_default(),
            scopes_supported: scopes(document),
            bearer_methods_supported: list(document, "bearer_methods_supported"),
            resource_name: text(document, "resource_name"),
            resource_documentation: text(document, "resource_documentation"),
            dpop_signing_alg_values_supported: list(document, "dpop_signing_alg_values_supported"),
            dpop_bound_access_tokens_required: flag(document, "dpop_bound_access_tokens_required"),
        }
    }
}

/// Authorization-server metadata (RFC 8414, or OpenID Connect Discovery 1.0).
///
/// # Example
///
/// ```
/// use linchpin_oauth::AuthorizationServerMetadata;
/// use serde_json::json;
///
/// let metadata = AuthorizationServerMetadata::read(&json!({
///     "issuer": "https://login.example",
///     "token_endpoint": "https://login.example/token",
///     "code_challenge_methods_supported": ["S256"],
/// }));
/// assert_eq!(metadata.token_endpoint.as_deref(), Some("https://login.example/token"));
/// assert_eq!(metadata.registration_endpoint, None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "members are those of the registry, by their names")]
#[non_exhaustive]
pub struct AuthorizationServerMetadata {
    pub issuer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub userinfo_endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Scopes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_types_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_resources: Option<Vec<String>>,
    #[serde(skip_serializing_if = "is_false")]
    pub client_id_metadata_document_supported: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub authorization_response_iss_parameter_supported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_documentation: Option<String>,
}

impl AuthorizationServerMetadata {
    /// Creates the metadata of an authorization server, with this issuer identifier and nothing else.
    ///
    /// ```
    /// use linchpin_oauth::AuthorizationServerMetadata;
    ///
    /// let metadata = AuthorizationServerMetadata::new("https://login.example")
    ///     .with(|it| it.token_endpoint = Some("https://login.example/token".to_owned()));
    /// assert_eq!(metadata.issuer, "https://login.example");
    /// ```
    pub fn new(issuer: impl Into<String>) -> AuthorizationServerMetadata {
        AuthorizationServerMetadata { issuer: issuer.into(), ..AuthorizationServerMetadata::default() }
    }

    /// Returns the metadata with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Reads a JSON document. Missing members are left empty.
    pub fn read(document: &Value) -> AuthorizationServerMetadata {
        let text = |name: &str| text(document, name);
        let list = |name: &str| list(document, name);
        AuthorizationServerMetadata {
            issuer: text("issuer").unwrap_or_default(),
            authorization_endpoint: text("authorization_endpoint"),
            token_endpoint: text("token_endpoint"),
            registration_endpoint: text("registration_endpoint"),
            revocation_endpoint: text("revocation_endpoint"),
            introspection_endpoint: text("introspection_endpoint"),
            device_authorization_endpoint: text("device_authorization_endpoint"),
            userinfo_endpoint: text("userinfo_endpoint"),
            jwks_uri: text("jwks_uri"),
            scopes_supported: scopes(document),
            response_types_supported: list("response_types_supported"),
            grant_types_supported: list("grant_types_supported"),
            code_challenge_methods_supported: list("code_challenge_methods_supported"),
            token_endpoint_auth_methods_supported: list("token_endpoint_auth_methods_supported"),
            token_endpoint_auth_signing_alg_values_supported: list("token_endpoint_auth_signing_alg_values_supported"),
            introspection_endpoint_auth_methods_supported: list("introspection_endpoint_auth_methods_supported"),
            dpop_signing_alg_values_supported: list("dpop_signing_alg_values_supported"),
            authorization_grant_profiles_supported: list("authorization_grant_profiles_supported"),
            protected_resources: list("protected_resources"),
            client_id_metadata_document_supported: flag(document, "client_id_metadata_document_supported"),
            authorization_response_iss_parameter_supported: flag(
                document,
                "authorization_response_iss_parameter_supported",
            ),
            service_documentation: text("service_documentation"),
        }
    }
}

/// Client metadata (RFC 7591), as sent in a registration request or published in a client metadata document.
///
/// # Example
///
/// ```
/// use linchpin_oauth::ClientMetadata;
/// use serde_json::json;
///
/// let client = ClientMetadata::default().with(|client| {
///     client.client_name = Some("my-host".to_owned());
///     client.redirect_uris = vec!["http://127.0.0.1/callback".to_owned()];
/// });
/// assert_eq!(
///     serde_json::to_value(&client)?,
///     json!({ "client_name": "my-host", "redirect_uris": ["http://127.0.0.1/callback"] }),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "members are those of the registry, by their names")]
#[non_exhaustive]
pub struct ClientMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redirect_uris: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_types: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg: Option<String>,
    /// Space-separated scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// `native` or `web`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The client's own key set, for [`JwkSet::parse`](crate::JwkSet::parse).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwks: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub software_version: Option<String>,
}

impl ClientMetadata {
    /// Returns the metadata with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Reads a JSON document. Missing members are left empty.
    pub fn read(document: &Value) -> ClientMetadata {
        let text = |name: &str| text(document, name);
        let list = |name: &str| list(document, name);
        ClientMetadata {
            client_id: text("client_id"),
            client_name: text("client_name"),
            client_uri: text("client_uri"),
            redirect_uris: list("redirect_uris").unwrap_or_default(),
            grant_types: list("grant_types"),
            response_types: list("response_types"),
            token_endpoint_auth_method: text("token_endpoint_auth_method"),
            token_endpoint_auth_signing_alg: text("token_endpoint_auth_signing_alg"),
            scope: text("scope"),
            application_type: text("application_type"),
            jwks_uri: text("jwks_uri"),
            jwks: document.get("jwks").filter(|jwks| jwks.is_object()).cloned(),
            software_id: text("software_id"),
            software_version: text("software_version"),
        }
    }
}

/// An error response of an authorization server (RFC 6749, section 5.2).
///
/// # Example
///
/// ```
/// use linchpin_oauth::ErrorDocument;
/// use serde_json::json;
///
/// let error = ErrorDocument::new("invalid_grant", "the authorization code has expired");
/// assert_eq!(
///     serde_json::to_value(&error)?,
///     json!({
///         "error": "invalid_grant",
///         "error_description": "the authorization code has expired",
///     }),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErrorDocument {
    /// The code, for example `invalid_grant`.
    pub error: String,
    /// A description for developers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_description: Option<String>,
}

impl ErrorDocument {
    /// Creates an error with a description.
    pub fn new(error: impl Into<String>, description: impl Into<String>) -> ErrorDocument {
        ErrorDocument { error: error.into(), error_description: Some(description.into()) }
    }
}

fn text(document: &Value, name: &str) -> Option<String> {
    document.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn list(document: &Value, name: &str) -> Option<Vec<String>> {
    let items = document.get(name)?.as_array()?.iter();
    Some(items.filter_map(|item| item.as_str().map(str::to_owned)).collect())
}

fn scopes(document: &Value) -> Option<Scopes> {
    list(document, "scopes_supported").map(|scopes| scopes.iter().collect())
}

fn flag(document: &Value, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_written_as_they_are_read_and_what_is_misspelt_is_absent() {
        let resource = json!({ "resource": "https://a/mcp", "authorization_servers": ["https://b"], "scopes_supported": ["x", "y"] });
        assert_eq!(serde_json::to_value(ResourceMetadata::read(&resource)).unwrap(), resource);
        let server =
            json!({ "issuer": "https://b", "jwks_uri": "https://b/k", "client_id_metadata_document_supported": true });
        assert_eq!(serde_json::to_value(AuthorizationServerMetadata::read(&server)).unwrap(), server);
        let client = json!({ "client_name": "c", "redirect_uris": ["http://localhost/"], "jwks": { "keys": [] } });
        assert_eq!(serde_json::to_value(ClientMetadata::read(&client)).unwrap(), client);
        let wrong = json!({ "issuer": 1, "jwks_uri": [], "scopes_supported": "x", "client_id_metadata_document_supported": "yes" });
        assert_eq!(AuthorizationServerMetadata::read(&wrong), AuthorizationServerMetadata::default());
    }
}
