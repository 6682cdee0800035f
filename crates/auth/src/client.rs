//! Client identities, and client authentication at the token endpoint.
//!
//! RFC 6749 section 2.3, RFC 7523 section 2.2, OAuth 2.1 section 2.4.

use crate::error::Error;
use crate::store::Registered;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use linchpin_oauth::{AuthorizationServerMetadata as Server, Secret, Signer};
use std::fmt;

/// The credential with which a client authenticates.
///
/// ```
/// use linchpin_auth::{Credential, OAuth};
///
/// let secret: Credential = "the-secret".into();
/// let oauth = OAuth::new().client_credentials("my-service", secret);
/// # let _ = oauth;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Credential {
    /// No credential: a public client.
    #[default]
    None,
    /// A secret shared with the authorization server.
    Secret(Secret),
    /// A private key whose public key is registered with the authorization server.
    Key(Signer),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::None => "None",
            Credential::Secret(_) => "Secret(•••)",
            Credential::Key(_) => "Key(•••)",
        })
    }
}

impl From<&str> for Credential {
    fn from(secret: &str) -> Credential {
        Credential::Secret(secret.into())
    }
}

impl From<String> for Credential {
    fn from(secret: String) -> Credential {
        Credential::Secret(secret.into())
    }
}

impl From<Secret> for Credential {
    fn from(secret: Secret) -> Credential {
        Credential::Secret(secret)
    }
}

impl From<Signer> for Credential {
    fn from(key: Signer) -> Credential {
        Credential::Key(key)
    }
}

impl<C: Into<Credential>> From<Option<C>> for Credential {
    fn from(credential: Option<C>) -> Credential {
        credential.map_or(Credential::None, Into::into)
    }
}

/// A client registered with an authorization server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) credential: Credential,
    pub(crate) method: Method,
    /// The stored registration, if it was dynamic.
    pub(crate) registered: Option<Registered>,
}

/// The client authentication method, as named in RFC 7591 section 2 and RFC 7523.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    None,
    Basic,
    Post,
    Jwt,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::None => "none",
            Method::Basic => "client_secret_basic",
            Method::Post => "client_secret_post",
            Method::Jwt => "private_key_jwt",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Method> {
        [Method::None, Method::Basic, Method::Post, Method::Jwt].into_iter().find(|method| method.name() == name)
    }
}

impl Client {
    /// A client with credentials. The method follows from their kind and the methods that the server supports.
    pub(crate) fn new(id: &str, credential: &Credential, server: &Server) -> Result<Client, Error> {
        let takes = |method: Method| {
            server
                .token_endpoint_auth_methods_supported
                .as_ref()
                .is_none_or(|all| all.iter().any(|m| m == method.name()))
        };
        let method = match credential {
            Credential::None => Method::None,
            // RFC 8414: the default is the first.
            Credential::Secret(_) if !takes(Method::Basic) && takes(Method::Post) => Method::Post,
            Credential::Secret(_) => Method::Basic,
            Credential::Key(_) if takes(Method::Jwt) => Method::Jwt,
            Credential::Key(_) => {
                return Err(Error::setup(format!(
                    "the authorization server {} does not take clients that sign with a private key \
                     (private_key_jwt); give the client a secret instead",
                    server.issuer
                )));
            }
        };
        Ok(Client { id: id.to_owned(), credential: credential.clone(), method, registered: None })
    }

    /// Adds client authentication to a token request.
    pub(crate) fn sign(&self, form: &mut Form, headers: &mut HeaderMap, issuer: &str, now: u64) {
        match (self.method, &self.credential) {
            (Method::Basic, Credential::Secret(secret)) => {
                headers.insert(AUTHORIZATION, basic(&self.id, secret));
            }
            (Method::Post, Credential::Secret(secret)) => {
                form.add("client_id", &self.id);
                form.add("client_secret", secret.expose());
            }
            (Method::Jwt, Credential::Key(key)) => {
                form.add("client_id", &self.id);
                form.add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                form.add("client_assertion", &key.client_assertion(&self.id, issuer, now));
            }
            _ => form.add("client_id", &self.id),
        }
    }
}

/// Both halves are encoded as in a form before they are joined (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &Secret) -> HeaderValue {
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(id), encode(secret.expose()));
    let mut value =
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))).expect("base64 fits into a header");
    value.set_sensitive(true);
    value
}

/// The body of a token request. It remembers its secrets, so that they can be removed from quoted responses.
#[derive(Clone)]
pub(crate) struct Form {
    body: String,
    secrets: Vec<Secret>,
}

impl Form {
    pub(crate) fn new(grant_type: &str) -> Form {
        let mut form = Form::empty();
        form.add("grant_type", grant_type);
        form
    }

    pub(crate) fn empty() -> Form {
        Form { body: String::new(), secrets: Vec::new() }
    }

    /// Adds a parameter. Possible secrets are remembered.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        const SECRET: &[&str] = &[
            "client_secret",
            "client_assertion",
            "code",
            "code_verifier",
            "refresh_token",
            "assertion",
            "subject_token",
            "token",
        ];
        let encoded: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        if !self.body.is_empty() {
            self.body.push('&');
        }
        self.body.extend(form_urlencoded::byte_serialize(name.as_bytes()));
        self.body.push('=');
        self.body.push_str(&encoded);
        if SECRET.contains(&name) {
            self.secrets.extend([Secret::from(value), Secret::from(encoded)]);
        }
    }

    pub(crate) fn body(&self) -> bytes::Bytes {
        bytes::Bytes::copy_from_slice(self.body.as_bytes())
    }

    /// The secrets that a quoted response must not contain.
    pub(crate) fn secrets<'a>(&'a self, client: Option<&'a Client>) -> Vec<&'a str> {
        let of_client = client.and_then(|client| match &client.credential {
            Credential::Secret(secret) => Some(secret.expose()),
            _ => None,
        });
        self.secrets.iter().map(Secret::expose).chain(of_client).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(methods: Option<&[&str]>) -> Server {
        let auth_methods = methods.map(|all| all.iter().map(|m| (*m).to_owned()).collect());
        Server::new("https://as").with(|server| server.token_endpoint_auth_methods_supported = auth_methods)
    }

    #[test]
    fn the_method_follows_from_the_credential_and_what_the_server_takes() {
        let rows: &[(Credential, Option<&[&str]>, Method)] = &[
            (Credential::None, None, Method::None),
            (Credential::None, Some(&["client_secret_basic"]), Method::None),
            ("s".into(), None, Method::Basic),
            ("s".into(), Some(&["client_secret_post"]), Method::Post),
            ("s".into(), Some(&["client_secret_post", "client_secret_basic"]), Method::Basic),
            ("s".into(), Some(&["none"]), Method::Basic),
        ];
        for (credential, methods, want) in rows {
            let client = Client::new("id", credential, &server(*methods)).unwrap();
            assert_eq!(client.method, *want, "{credential:?} {methods:?}");
        }
    }

    #[test]
    fn basic_encodes_both_halves_before_joining_them() {
        let value = basic("a:b c", &Secret::new("p%ss/wörd"));
        assert!(value.is_sensitive());
        let encoded = value.to_str().unwrap().strip_prefix("Basic ").unwrap();
        assert_eq!(STANDARD.decode(encoded).unwrap(), b"a%3Ab+c:p%25ss%2Fw%C3%B6rd");
    }
}
