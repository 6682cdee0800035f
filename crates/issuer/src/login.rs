//! The login page: a name and a password. With a provider: the way back to it after it was away.

use crate::answer::{Answer, html, redirect};
use crate::attempts::{attempt, forget};
use crate::audit::Entry;
use crate::authorize::count;
use crate::pages::{self, Form};
use crate::records::Away;
use crate::request::Incoming;
use crate::session;
use crate::shared::{Login, Shared};
use crate::transaction::{Open, Step, answered, away, expired};
use http::{Method, StatusCode};
use linchpin_oauth::Secret;

const FAILURES_PER_USER: u32 = 5;
const FAILURES_PER_ADDRESS: u32 = 20;

/// Shows the page, or takes its form.
pub(crate) async fn login(shared: &Shared, incoming: &Incoming) -> Answer {
    if let Err(answer) = count(shared, incoming).await {
        return answer;
    }
    if incoming.method != Method::POST {
        return show(shared, incoming).await;
    }
    let Ok(form) = incoming.form() else { return expired(shared) };
    let open = match Open::find(shared, incoming, form.get("t").unwrap_or_default()).await {
        Ok(open) => open,
        Err(answer) => return answer,
    };
    if let Err(answer) = open.check_form(shared, incoming, form.get("f")) {
        return answer;
    }
    let name = form.get("name").unwrap_or_default().trim().to_owned();
    let password = Secret::new(form.get("password").unwrap_or_default());
    match check(shared, incoming, &name, password).await {
        Err(Away) => away(shared),
        Ok(false) => {
            // A name that nobody has may be a password in the wrong field.
            let is_known = shared.config.users_file().is_some_and(|file| file.users().has(&name));
            let item = if is_known { &name } else { "" };
            Entry { item, ..Entry::new("login", "refused", incoming.from) }.write();
            form_page(shared, &open, Some("Wrong name or password. Try again in a moment."))
        }
        Ok(true) => {
            Entry { principal: &name, ..Entry::new("login", "accepted", incoming.from) }.write();
            enter(shared, open, name).await
        }
    }
}

async fn show(shared: &Shared, incoming: &Incoming) -> Answer {
    let Ok(query) = incoming.query() else { return expired(shared) };
    let mut open = match Open::find(shared, incoming, query.get("t").unwrap_or_default()).await {
        Ok(open) => open,
        Err(answer) => return answer,
    };
    match (&shared.config.login, open.transaction.step) {
        (Login::Upstream(upstream), Step::Approved) => match crate::callback::depart(shared, upstream, &mut open).await
        {
            Ok(url) => redirect(&url),
            Err(answer) => answer,
        },
        (Login::Users(_), Step::Asked) => form_page(shared, &open, None),
        (_, Step::Asked) => expired(shared),
        _ => answered(shared),
    }
}

fn form_page(shared: &Shared, open: &Open, error: Option<&str>) -> Answer {
    let texts = open.transaction.texts(shared);
    let token = shared.form_token(&open.name, &open.browser);
    let form = Form { action: &shared.url("login"), transaction: &open.name, token: &token, error };
    let status = if error.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    html(status, pages::login(&shared.config.site, &open.transaction.about(&texts), &form))
}

/// Goes on to the question, and remembers the login in this browser.
async fn enter(shared: &Shared, mut open: Open, user: String) -> Answer {
    let Ok(cookie) = session::remember(shared, &user).await else { return away(shared) };
    open.transaction.user = Some(user);
    if open.transaction.step != Step::Asked {
        return answered(shared);
    }
    if let Err(answer) = open.save(shared).await {
        return answer;
    }
    let to = format!("{}?t={}", shared.url("consent"), open.name);
    let mut answer = html(StatusCode::OK, pages::onward(&shared.config.site, &to, "the next question"));
    session::set(shared, &mut answer, &cookie);
    answer
}

/// Checks a password. Whoever was wrong too often waits, and is told the same as with a wrong password.
async fn check(shared: &Shared, incoming: &Incoming, name: &str, password: Secret) -> Result<bool, Away> {
    let Some(file) = shared.config.users_file() else { return Ok(false) };
    let (by_name, by_address) = (format!("user {name}"), format!("address {}", incoming.address()));
    // Counted before the password is compared: attempts at the same time count too.
    let name_may = attempt(shared, &by_name, FAILURES_PER_USER).await?;
    let address_may = attempt(shared, &by_address, FAILURES_PER_ADDRESS).await?;
    let known = file.users().knows(name.to_owned(), password).await;
    if known && name_may && address_may {
        forget(shared, &by_name).await?;
        forget(shared, &by_address).await?;
        return Ok(true);
    }
    Ok(false)
}
