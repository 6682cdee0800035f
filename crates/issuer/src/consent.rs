//! The question whether a client may, and the user's answer.

use crate::answer::{Answer, html, redirect};
use crate::audit::Entry;
use crate::authorize::count;
use crate::client::hash;
use crate::code;
use crate::limits::CODE_TRIES_MAX;
use crate::pages::{self, Form, Proof};
use crate::params::Params;
use crate::person::Person;
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::{Login, Shared};
use crate::transaction::{Open, Step, answered, away, expired, not_allowed};
use crate::users::{Source, normal_code};
use http::{Method, StatusCode};
use linchpin_oauth::{Secret, random_text};

/// Shows the question, or takes its answer.
pub(crate) async fn consent(shared: &Shared, incoming: &Incoming) -> Answer {
    if let Err(answer) = count(shared, incoming).await {
        return answer;
    }
    let post = incoming.method == Method::POST;
    let params = if post { incoming.form() } else { incoming.query() };
    let Ok(params) = params else { return expired(shared) };
    let open = match Open::find(shared, incoming, params.get("t").unwrap_or_default()).await {
        Ok(open) => open,
        Err(answer) => return answer,
    };
    if open.transaction.step != Step::Asked {
        return answered(shared);
    }
    if !post {
        return show(shared, &open, None);
    }
    if let Err(answer) = open.check_form(shared, incoming, params.get("f")) {
        return answer;
    }
    match params.get("answer") {
        Some("allow") => allow(shared, incoming, open, &params).await,
        Some("deny") => deny(shared, incoming, open).await,
        _ => expired(shared),
    }
}

fn show(shared: &Shared, open: &Open, error: Option<&str>) -> Answer {
    let person = person(shared, open);
    let place = match &shared.config.login {
        Login::Upstream(upstream) => upstream.place(),
        _ => String::new(),
    };
    let proof = match (&shared.config.login, &person) {
        (Login::Upstream(_), _) => Proof::Upstream(&place),
        (_, Some(person)) if open.transaction.code.is_none() => Proof::LoggedIn(person.shown()),
        (_, None) if open.transaction.code.is_none() => {
            return redirect(&format!("{}?t={}", shared.url("login"), open.name));
        }
        _ => Proof::Code,
    };
    let texts = open.transaction.texts(shared);
    let token = shared.form_token(&open.name, &open.browser);
    let form = Form { action: &shared.url("consent"), transaction: &open.name, token: &token, error };
    let status = if error.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    html(status, pages::consent(&shared.config.site, &open.transaction.about(&texts), &form, &proof))
}

/// The user of users of one's own.
fn person(shared: &Shared, open: &Open) -> Option<Person> {
    match &shared.config.login {
        Login::Users(users) => match &users.0 {
            Source::File(file) => file.users().person(open.transaction.user.as_deref()?, &shared.config.issuer),
            Source::Once(_) => Some(Person::new(&*shared.config.issuer, "owner")),
        },
        _ => None,
    }
}

async fn deny(shared: &Shared, incoming: &Incoming, mut open: Open) -> Answer {
    open.transaction.step = Step::Answered;
    if let Err(answer) = open.save(shared).await {
        return answer;
    }
    Entry { client: &open.transaction.client.id, ..Entry::new("consent", "denied", incoming.from) }.write();
    match open.transaction.denied(shared, incoming, "the user said no").await {
        Ok(to) => onward(shared, &open, &to),
        Err(_) => away(shared),
    }
}

async fn allow(shared: &Shared, incoming: &Incoming, mut open: Open, params: &Params) -> Answer {
    if let Login::Upstream(upstream) = &shared.config.login {
        let cookie = random_text();
        open.transaction.step = Step::Approved;
        open.transaction.approval = Some(hash(&cookie));
        let to = match crate::callback::depart(shared, upstream, &mut open).await {
            Ok(to) => to,
            Err(answer) => return answer,
        };
        Entry { client: &open.transaction.client.id, ..Entry::new("consent", "given", incoming.from) }.write();
        let mut answer = html(StatusCode::OK, pages::onward(&shared.config.site, &to, &upstream.place()));
        let name = crate::callback::approval_cookie(&open.name);
        shared.config.cookies.set(&mut answer, &name, &cookie, Some(crate::limits::TRANSACTION_LIFE));
        return answer;
    }
    if let Some(code) = &open.transaction.code {
        let given = hash(&normal_code(params.get("code").unwrap_or_default()));
        if Secret::new(given) != Secret::new(code.as_str()) {
            return wrong_code(shared, incoming, open).await;
        }
    }
    let Some(person) = person(shared, &open) else { return expired(shared) };
    if !shared.admits(&person) {
        let principal = person.principal();
        Entry { principal: &principal, ..Entry::new("consent", "not allowed", incoming.from) }.write();
        return not_allowed(shared, person.shown());
    }
    open.transaction.step = Step::Answered;
    if let Err(answer) = open.save(shared).await {
        return answer;
    }
    match code::issue(shared, &open.transaction, person, None, incoming.from).await {
        Ok(to) => onward(shared, &open, &to),
        Err(_) => away(shared),
    }
}

/// Five wrong codes end a transaction.
async fn wrong_code(shared: &Shared, incoming: &Incoming, mut open: Open) -> Answer {
    Entry { client: &open.transaction.client.id, ..Entry::new("consent", "wrong code", incoming.from) }.write();
    open.transaction.tries += 1;
    if open.transaction.tries >= CODE_TRIES_MAX {
        return match shared.records.delete(Space::Transaction, &open.name).await {
            Ok(_) => expired(shared),
            Err(_) => away(shared),
        };
    }
    match open.save(shared).await {
        Ok(()) => show(shared, &open, Some("Wrong code. Enter the one that the server shows.")),
        Err(answer) => answer,
    }
}

/// Sends the browser to the client. The answer to a form is a page: browsers hold redirects of forms against `form-action`.
fn onward(shared: &Shared, open: &Open, to: &str) -> Answer {
    let place = open.transaction.texts(shared).place;
    html(StatusCode::OK, pages::onward(&shared.config.site, to, &place))
}
