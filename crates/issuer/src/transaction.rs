//! A login under way: what was asked, and how far it is.

use crate::answer::{Answer, html};
use crate::client::{Client, Kind, hash};
use crate::device_grant;
use crate::limits::TRANSACTION_LIFE;
use crate::pages::{About, problem};
use crate::params::with_query;
use crate::records::{Away, Space};
use crate::redirect;
use crate::request::Incoming;
use crate::shared::Shared;
use http::StatusCode;
use linchpin_oauth::{Scopes, Secret};
use linchpin_store::Rev;
use serde::{Deserialize, Serialize};

/// A login under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) client: Client,
    pub(crate) redirect_uri: String,
    pub(crate) state: Option<String>,
    pub(crate) challenge: String,
    /// The key that the tokens are for, where the client said it beforehand (`dpop_jkt`).
    #[serde(default)]
    pub(crate) key: Option<String>,
    pub(crate) resource: String,
    pub(crate) scopes: String,
    /// The hash of the cookie of the browser that started it.
    pub(crate) browser: String,
    /// The user who logged in, by name.
    pub(crate) user: Option<String>,
    /// The hash of the code in the terminal.
    pub(crate) code: Option<String>,
    /// How many codes were wrong.
    pub(crate) tries: u32,
    pub(crate) step: Step,
    /// The hash of the cookie that approval set.
    pub(crate) approval: Option<String>,
    /// The way to the provider and back.
    pub(crate) leg: Option<StoredLeg>,
    /// The device that waits, if it is one that asked: then there is no redirect URI.
    pub(crate) device: Option<ForDevice>,
}

/// A device that waits for the end of a login.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ForDevice {
    /// The name of its record.
    pub(crate) name: String,
    /// The address that it asked from.
    pub(crate) from: String,
}

/// How far a login is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// The user has not answered.
    Asked,
    /// The user said yes, and is at the provider.
    Approved,
    /// The client was answered.
    Answered,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredLeg {
    pub(crate) state: String,
    pub(crate) verifier: Secret,
    pub(crate) nonce: String,
}

/// A transaction that belongs to the browser that asks.
pub(crate) struct Open {
    pub(crate) name: String,
    pub(crate) transaction: Transaction,
    pub(crate) rev: Rev,
    /// The cookie of the browser.
    pub(crate) browser: String,
}

/// The cookie that tells browsers apart.
pub(crate) const BROWSER: &str = "browser";

impl Open {
    /// Finds the transaction of a page. The error is a page.
    pub(crate) async fn find(shared: &Shared, incoming: &Incoming, name: &str) -> Result<Open, Answer> {
        let found = shared.records.get::<Transaction>(Space::Transaction, name).await;
        let (transaction, rev) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Err(expired(shared)),
            Err(Away) => return Err(away(shared)),
        };
        let cookie = shared.config.cookies.get(&incoming.headers, BROWSER);
        let Some(browser) = cookie.filter(|cookie| Secret::new(hash(cookie)) == Secret::new(&*transaction.browser))
        else {
            return Err(foreign(shared));
        };
        Ok(Open { name: name.to_owned(), browser: browser.to_owned(), transaction, rev })
    }

    /// Checks that a form of this transaction was sent by a page of ours, from this browser.
    #[expect(clippy::result_large_err, reason = "the error is the page, made once in a request")]
    pub(crate) fn check_form(&self, shared: &Shared, incoming: &Incoming, token: Option<&str>) -> Result<(), Answer> {
        let own = token.is_some_and(|token| shared.is_form_token(token, &self.name, &self.browser));
        match own && incoming.is_from_our_page(&shared.config.origin) {
            true => Ok(()),
            false => Err(foreign(shared)),
        }
    }

    /// Stores what was changed; the error is a page. Somebody was faster: it was answered twice.
    pub(crate) async fn save(&mut self, shared: &Shared) -> Result<(), Answer> {
        let life = TRANSACTION_LIFE;
        let saved = shared.records.replace(Space::Transaction, &self.name, &self.transaction, self.rev, life).await;
        match saved {
            Ok(Some(rev)) => {
                self.rev = rev;
                Ok(())
            }
            Ok(None) => Err(answered(shared)),
            Err(Away) => Err(away(shared)),
        }
    }
}

impl Transaction {
    pub(crate) fn scopes(&self) -> Scopes {
        Scopes::parse(&self.scopes)
    }

    /// Tells the client that the user said no, and returns the address that the browser goes to.
    pub(crate) async fn denied(&self, shared: &Shared, incoming: &Incoming, why: &str) -> Result<String, Away> {
        if let Some(device) = &self.device {
            device_grant::deny(shared, &device.name, incoming.from).await?;
            return Ok(format!("{}?done=no", shared.url("device")));
        }
        Ok(error_url(shared, &self.redirect_uri, self.state.as_deref(), "access_denied", why))
    }

    /// What pages say of it.
    pub(crate) fn about<'a>(&'a self, texts: &'a Texts) -> About<'a> {
        About {
            client: &self.client.name,
            proved_by: texts.proved_by.as_deref(),
            known: self.client.kind == Kind::Known,
            place: &texts.place,
            scopes: &texts.scopes,
            resource: &self.resource,
        }
    }

    pub(crate) fn texts(&self, shared: &Shared) -> Texts {
        let host = || url::Url::parse(&self.client.id).ok()?.host_str().map(str::to_owned);
        Texts {
            proved_by: if self.client.kind == Kind::Document { host() } else { None },
            place: match &self.device {
                Some(device) => format!("the device that shows this code, which asks from {}", device.from),
                None => redirect::place(&self.redirect_uri),
            },
            scopes: shared.sentences(&self.scopes()),
        }
    }
}

/// Texts that pages borrow.
pub(crate) struct Texts {
    proved_by: Option<String>,
    pub(crate) place: String,
    scopes: Vec<String>,
}

/// The address that tells a client of an error (RFC 6749, section 4.1.2.1; RFC 9207).
pub(crate) fn error_url(shared: &Shared, to: &str, state: Option<&str>, error: &str, description: &str) -> String {
    let mut params = vec![("error", error), ("error_description", description)];
    params.extend(state.map(|state| ("state", state)));
    params.push(("iss", &shared.config.issuer));
    with_query(to, &params)
}

pub(crate) fn page(shared: &Shared, status: StatusCode, title: &str, text: &str) -> Answer {
    html(status, problem(&shared.config.site, title, text, None))
}

pub(crate) fn expired(shared: &Shared) -> Answer {
    let text = "This sign-in was started too long ago, or has ended. Start it again from your program.";
    page(shared, StatusCode::BAD_REQUEST, "This sign-in has ended", text)
}

pub(crate) fn foreign(shared: &Shared) -> Answer {
    let text = "This sign-in was started in another browser, or from another page. \
                Start it again from your program, in this browser.";
    page(shared, StatusCode::FORBIDDEN, "Not from here", text)
}

pub(crate) fn answered(shared: &Shared) -> Answer {
    let text = "This question was already answered. You can close this page.";
    page(shared, StatusCode::CONFLICT, "Already answered", text)
}

pub(crate) fn away(shared: &Shared) -> Answer {
    let text = "This server cannot answer now. Try again in a moment.";
    page(shared, StatusCode::SERVICE_UNAVAILABLE, "Not now", text)
}

/// Says that a user may not come in, and who may.
pub(crate) fn not_allowed(shared: &Shared, shown: &str) -> Answer {
    let rules: Vec<String> = shared.config.allow.iter().map(ToString::to_string).collect();
    let text = format!("You are signed in as {shown}. This server is only for {}.", rules.join(", "));
    page(shared, StatusCode::FORBIDDEN, "You may not use this server", &text)
}
