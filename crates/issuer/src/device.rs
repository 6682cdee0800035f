//! Where devices begin a login, and the page on which a user types in the code that a device shows.

use crate::answer::{Answer, Refused, html, json_answer};
use crate::audit::Entry;
use crate::authenticate::{authenticate, is_basic};
use crate::authorize::{count, prepare};
use crate::device_grant::{self, name_of, waiting};
use crate::limits::{DEVICE_LIFE, DEVICE_TRIES, DEVICES_PER_ADDRESS, TRANSACTION_LIFE};
use crate::pages;
use crate::records::Space;
use crate::request::Incoming;
use crate::shared::Shared;
use crate::transaction::{BROWSER, ForDevice, Step, Transaction, away, expired, foreign, page};
use crate::users::normal_code;
use http::{Method, StatusCode};
use linchpin_oauth::random_text;
use serde_json::{Value, json};

/// The letters of codes: no vowels, so that they make no words, and none that is mistaken for another.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// How often devices may ask, in seconds.
const INTERVAL_S: u64 = 5;

/// Answers a device that begins (RFC 8628, section 3.1).
pub(crate) async fn begin(shared: &Shared, incoming: &Incoming) -> Answer {
    match begun(shared, incoming).await {
        Ok(answer) => json_answer(StatusCode::OK, &answer),
        Err(refused) => {
            Entry { item: refused.error, ..Entry::new("device", "refused", incoming.from) }.write();
            refused.answer(is_basic(incoming))
        }
    }
}

async fn begun(shared: &Shared, incoming: &Incoming) -> Result<Value, Refused> {
    if let Err(after) = shared.records.take(DEVICES_PER_ADDRESS, &incoming.address()).await {
        return Err(Refused::too_many(after));
    }
    let form = incoming.form().map_err(|why| Refused::new("invalid_request", why.0))?;
    let client = authenticate(shared, incoming, &form).await?;
    let resource = shared.resource(form.all("resource"));
    let resource = resource.ok_or(Refused::new("invalid_target", "resource must be one that this server is for"))?;
    let scopes = shared.scopes(form.get("scope"));
    let scopes = scopes.ok_or(Refused::new("invalid_scope", "none of the scopes exists here"))?;
    let id = client.id.clone();
    for _ in 0..3 {
        let user_code = new_code();
        let made = device_grant::create(shared, &user_code, client.clone(), resource, &scopes, incoming.shown());
        let Some(code) = made.await? else { continue };
        Entry { client: &id, ..Entry::new("device", "started", incoming.from) }.write();
        return Ok(json!({
            "device_code": code,
            "user_code": format!("{}-{}", &user_code[..4], &user_code[4..]),
            "verification_uri": shared.url("device"),
            "expires_in": DEVICE_LIFE.as_secs(),
            "interval": INTERVAL_S,
        }));
    }
    Err(Refused::away())
}

/// A code of eight letters.
fn new_code() -> String {
    use ring::rand::SecureRandom as _;
    let random = ring::rand::SystemRandom::new();
    let mut code = String::new();
    while code.len() < 8 {
        let mut bytes = [0; 8];
        random.fill(&mut bytes).expect("the system gives random bytes");
        // Those past the last multiple would make some letters likelier.
        let letters = bytes.iter().filter(|byte| **byte < 240).map(|byte| char::from(LETTERS[usize::from(byte % 20)]));
        code.extend(letters.take(8 - code.len()));
    }
    code
}

/// Shows the page, or takes the code.
pub(crate) async fn device(shared: &Shared, incoming: &Incoming) -> Answer {
    if let Err(answer) = count(shared, incoming).await {
        return answer;
    }
    if incoming.method != Method::POST {
        let Ok(query) = incoming.query() else { return expired(shared) };
        return match query.get("done") {
            Some("yes") => {
                page(shared, StatusCode::OK, "Done", "You can continue on your device, and close this page.")
            }
            Some("no") => {
                page(shared, StatusCode::OK, "Denied", "Your device has been notified. You can close this page.")
            }
            Some(_) => expired(shared),
            None => form(shared, None),
        };
    }
    if !incoming.is_from_our_page(&shared.config.origin) {
        return foreign(shared);
    }
    let Ok(params) = incoming.form() else { return expired(shared) };
    let name = name_of(&normal_code(params.get("code").unwrap_or_default()));
    // Counted before the code is looked up: past the limit nobody learns whether a guess was right.
    if shared.records.take(DEVICE_TRIES, &incoming.address()).await.is_err() {
        let text = "Too many codes came from your address. Wait some minutes, then start again at the device.";
        return page(shared, StatusCode::TOO_MANY_REQUESTS, "Too many codes", text);
    }
    let found = match waiting(shared, &name).await {
        Ok(found) => found,
        Err(_) => return away(shared),
    };
    let Some((device, _)) = found else {
        Entry::new("device", "wrong code", incoming.from).write();
        return form(shared, Some("Unknown code. Check it, or start again on the device."));
    };
    let cookies = shared.config.cookies;
    let known = cookies.get(&incoming.headers, BROWSER).map(str::to_owned);
    let browser = known.clone().unwrap_or_else(random_text);
    let mut transaction = Transaction {
        client: device.client,
        redirect_uri: String::new(),
        state: None,
        challenge: String::new(),
        resource: device.resource,
        scopes: device.scopes,
        browser: crate::client::hash(&browser),
        user: None,
        code: None,
        tries: 0,
        step: Step::Asked,
        approval: None,
        leg: None,
        key: None,
        device: Some(ForDevice { name, from: device.from }),
    };
    let Ok(next) = prepare(shared, incoming, &mut transaction).await else { return away(shared) };
    let name = random_text();
    if shared.records.create(Space::Transaction, &name, &transaction, TRANSACTION_LIFE).await.is_err() {
        return away(shared);
    }
    let to = format!("{}?t={name}", shared.url(next));
    let mut answer = html(StatusCode::OK, pages::onward(&shared.config.site, &to, "the next question"));
    if known.is_none() {
        cookies.set(&mut answer, BROWSER, &browser, None);
    }
    answer
}

fn form(shared: &Shared, error: Option<&str>) -> Answer {
    let status = if error.is_some() { StatusCode::FORBIDDEN } else { StatusCode::OK };
    html(status, pages::device(&shared.config.site, &shared.url("device"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_eight_letters_of_twenty() {
        let all: Vec<String> = (0..50).map(|_| new_code()).collect();
        assert!(all.iter().all(|code| code.len() == 8 && code.bytes().all(|b| LETTERS.contains(&b))), "{all:?}");
        assert!(all.iter().enumerate().all(|(at, code)| !all[..at].contains(code)));
        assert_eq!(normal_code(&format!("{}-{}", &all[0][..4], &all[0][4..]).to_lowercase()), all[0]);
    }
}
