//! Logins in browsers: a cookie, and who is behind it for twelve hours.

use crate::answer::Answer;
use crate::client::hash;
use crate::limits::LOGIN_LIFE;
use crate::records::{Away, Space};
use crate::request::Incoming;
use crate::shared::Shared;
use linchpin_oauth::random_text;
use serde::{Deserialize, Serialize};

/// The cookie of a login in a browser.
const LOGIN: &str = "login";

/// A login in a browser.
#[derive(Serialize, Deserialize)]
struct Session {
    user: String,
}

/// Returns the user who is logged in in this browser.
pub(crate) async fn logged_in(shared: &Shared, incoming: &Incoming) -> Result<Option<String>, Away> {
    let Some(cookie) = shared.config.cookies.get(&incoming.headers, LOGIN) else { return Ok(None) };
    let found = shared.records.get::<Session>(Space::Login, &hash(cookie)).await?;
    let Some(file) = shared.config.users_file() else { return Ok(None) };
    let user = found.map(|(session, _)| session.user);
    Ok(user.filter(|user| file.users().person(user, &shared.config.issuer).is_some()))
}

/// Remembers a login, and returns the cookie for it.
pub(crate) async fn remember(shared: &Shared, user: &str) -> Result<String, Away> {
    let cookie = random_text();
    let session = Session { user: user.to_owned() };
    shared.records.put(Space::Login, &hash(&cookie), &session, LOGIN_LIFE).await?;
    Ok(cookie)
}

/// Sets the cookie of a login.
pub(crate) fn set(shared: &Shared, answer: &mut Answer, cookie: &str) {
    shared.config.cookies.set(answer, LOGIN, cookie, Some(LOGIN_LIFE));
}
