//! Logins of devices without a browser (RFC 8628): a code that a user types in elsewhere.
//!
//! One record for each, under the hash of the user's code. The device's code names it too, so that every step is one
//! compare-and-swap.

use crate::answer::Refused;
use crate::audit::Entry;
use crate::client::{Client, hash};
use crate::limits::{DEVICE_LIFE, DEVICE_POLLS};
use crate::person::Person;
use crate::records::{Away, Space};
use crate::shared::Shared;
use crate::tokens::{self, Grant};
use crate::upstream::UpstreamTokens;
use linchpin_oauth::{Scopes, random_text};
use linchpin_store::Rev;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

/// The name of the grant.
pub(crate) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A device that waits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) client: Client,
    pub(crate) resource: String,
    pub(crate) scopes: String,
    /// Where it asked from, for the user.
    pub(crate) from: String,
    /// The hash of the device's own code.
    code: String,
    state: State,
    expires: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    Waits,
    Approved {
        grant: Box<Grant>,
        family: String,
    },
    Denied,
    /// Its tokens were given.
    Used {
        family: String,
    },
    /// It was used again, by somebody else.
    Spent {
        family: String,
    },
}

/// The record is kept longer than the code is good, so that who is late is told so.
const KEPT: Duration = Duration::from_secs(2 * DEVICE_LIFE.as_secs());

/// Creates a device that waits, under the user's code, and returns its own code; `None` if the user's is taken.
pub(crate) async fn create(
    shared: &Shared,
    user_code: &str,
    client: Client,
    resource: &str,
    scopes: &Scopes,
    from: String,
) -> Result<Option<String>, Away> {
    let name = name_of(user_code);
    let code = format!("{name}.{}", random_text());
    let device = Device {
        client,
        resource: resource.to_owned(),
        scopes: scopes.to_string(),
        from,
        code: hash(&code),
        state: State::Waits,
        expires: shared.now() + DEVICE_LIFE.as_secs(),
    };
    Ok(shared.records.create(Space::Device, &name, &device, KEPT).await?.then_some(code))
}

/// The name of the record of a user's code.
pub(crate) fn name_of(user_code: &str) -> String {
    hash(&format!("device {user_code}"))[..22].to_owned()
}

/// Finds a device that waits for a user.
pub(crate) async fn waiting(shared: &Shared, name: &str) -> Result<Option<(Device, Rev)>, Away> {
    let found = shared.records.get::<Device>(Space::Device, name).await?;
    Ok(found.filter(|(device, _)| matches!(device.state, State::Waits) && device.expires > shared.now()))
}

/// Gives a device what a user let it have; `false`: it does not wait any more.
pub(crate) async fn approve(
    shared: &Shared,
    name: &str,
    person: Person,
    upstream: Option<UpstreamTokens>,
    from: Option<IpAddr>,
) -> Result<bool, Away> {
    let Some((mut device, rev)) = waiting(shared, name).await? else { return Ok(false) };
    let scopes = shared.limit(&Scopes::parse(&device.scopes), &person);
    let (principal, family) = (person.principal(), tokens::new_family(&person, &device.client.id));
    let grant = Grant {
        client: device.client.id.clone(),
        resource: device.resource.clone(),
        scopes: scopes.to_string(),
        refresh: device.client.refresh,
        person,
        upstream,
        // That of the device, when it has its tokens.
        key: None,
        source: shared.config.login.source(),
    };
    device.state = State::Approved { grant: Box::new(grant), family };
    let won = shared.records.replace(Space::Device, name, &device, rev, KEPT).await?.is_some();
    let (client, item) = (device.client.id.as_str(), device.scopes.as_str());
    let verdict = if won { "approved" } else { "late" };
    Entry { principal: &principal, client, item, ..Entry::new("device", verdict, from) }.write();
    Ok(won)
}

/// Tells a device that the user said no.
pub(crate) async fn deny(shared: &Shared, name: &str, from: Option<IpAddr>) -> Result<(), Away> {
    let Some((mut device, rev)) = waiting(shared, name).await? else { return Ok(()) };
    device.state = State::Denied;
    shared.records.replace(Space::Device, name, &device, rev, KEPT).await?;
    Entry { client: &device.client.id, ..Entry::new("device", "denied", from) }.write();
    Ok(())
}

/// Answers a device that asks whether the user has answered.
pub(crate) async fn poll(
    shared: &Shared,
    client: &Client,
    code: &str,
    key: Option<String>,
    from: Option<IpAddr>,
) -> Result<Value, Refused> {
    const NO: Refused = Refused::new("invalid_grant", "the device code is not valid");
    const LATE: Refused = Refused::new("expired_token", "nobody answered in time; start again");
    let Some((name, _)) = code.split_once('.').filter(|(name, _)| name.len() == 22) else { return Err(NO) };
    let Some((mut device, rev)) = shared.records.get::<Device>(Space::Device, name).await? else { return Err(NO) };
    if hash(code) != device.code || device.client.id != client.id {
        return Err(NO);
    }
    match device.state.clone() {
        _ if device.expires <= shared.now() => Err(LATE),
        State::Denied => Err(Refused::new("access_denied", "the user said no")),
        State::Waits => match shared.records.take(DEVICE_POLLS, name).await {
            Ok(()) => Err(Refused::new("authorization_pending", "the user has not answered yet")),
            Err(_) => Err(Refused::new("slow_down", "the device asks too often; wait five seconds longer")),
        },
        State::Used { family } | State::Spent { family } => {
            // Somebody else has the code: what it gave ends.
            spend(shared, name, device, family).await?;
            Err(NO)
        }
        State::Approved { grant, family } => {
            device.state = State::Used { family: family.clone() };
            if shared.records.replace(Space::Device, name, &device, rev, KEPT).await?.is_none() {
                spend(shared, name, device, family).await?;
                return Err(NO);
            }
            let principal = grant.person.principal();
            let answer = tokens::start(shared, &family, Grant { key, ..*grant }).await?;
            // A second use meanwhile found no family to end.
            let now = shared.records.get::<Device>(Space::Device, name).await?;
            if now.is_none_or(|(device, _)| !matches!(device.state, State::Used { .. })) {
                tokens::end(shared, &family).await?;
                return Err(NO);
            }
            Entry { principal: &principal, client: &client.id, ..Entry::new("device", "redeemed", from) }.write();
            Ok(answer)
        }
    }
}

/// Ends what a code gave, and marks it, so that a first use which is under way ends too.
async fn spend(shared: &Shared, name: &str, mut device: Device, family: String) -> Result<(), Away> {
    device.state = State::Spent { family: family.clone() };
    shared.records.put(Space::Device, name, &device, KEPT).await?;
    tokens::end(shared, &family).await.map(drop)
}
