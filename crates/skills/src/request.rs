//! Requesting the entry of one skill.

use crate::entry::{check, clip};
use crate::error::{Error, Result};
use linchpin_client::Connection;
use linchpin_types::skill::Skill;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads and checks an entry.
pub(crate) fn read(entry: &RawValue) -> Result<Skill, String> {
    let skill: Skill = serde_json::from_str(entry.get()).map_err(|why| format!("it cannot be read: {why}"))?;
    check(&skill).map(|()| skill)
}

/// The entry of one skill, checked.
pub(crate) async fn get(connection: &Connection, uri: &str) -> Result<Skill> {
    #[derive(Deserialize)]
    struct Got {
        skill: Box<RawValue>,
    }
    let got = connection.request("skills/get", serde_json::json!({ "uri": uri })).json::<Got>().await;
    let got = got.map_err(|error| match error.rpc() {
        Some(rpc) if rpc.code == linchpin_types::error::code::INVALID_PARAMS => {
            Error::NotOffered(format!("the server has no skill {}", clip(uri)))
        }
        _ => Error::Request(error),
    })?;
    let skill =
        read(&got.skill).map_err(|why| Error::Invalid(format!("the entry of {} is refused: {why}", clip(uri))))?;
    match skill.uri == uri {
        true => Ok(skill),
        false => Err(Error::Invalid(format!("the server returned another entry than that of {}", clip(uri)))),
    }
}
