//! Places and times in requests.

use jiff::Timestamp;
use serde_json::{Value, json};

/// How far around a center results may be preferred, in meters.
pub(crate) const RADIUS_MAX: f64 = 50_000.0;

/// Separates places in a parameter of the old APIs.
const SEPARATOR: char = '|';

/// `latitude,longitude`, each with at most six decimals (0.1 m), so that many fit into an address.
pub(crate) fn pair(latitude: Option<&Value>, longitude: Option<&Value>) -> String {
    // Adding zero takes the sign from what is rounded to it.
    let number = |value: Option<&Value>| (value.and_then(Value::as_f64).unwrap_or_default() * 1e6).round() / 1e6 + 0.0;
    format!("{},{}", number(latitude), number(longitude))
}

/// The same for each of a list.
pub(crate) fn pairs(locations: Option<&Value>) -> String {
    let all = locations.and_then(Value::as_array).into_iter().flatten();
    let pairs = all.map(|one| pair(one.get("latitude"), one.get("longitude")));
    pairs.collect::<Vec<_>>().join(&SEPARATOR.to_string())
}

/// What a text names.
enum Place<'a> {
    At(f64, f64),
    Id(&'a str),
    Address(&'a str),
}

fn read(text: &str) -> Option<Place<'_>> {
    let text = text.trim();
    if let Some(id) = text.strip_prefix("place_id:") {
        let is_id = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        return is_id.then_some(Place::Id(id));
    }
    let numbers = text.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    match numbers {
        Some((latitude, longitude)) => {
            let fits = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
            fits.then_some(Place::At(latitude, longitude))
        }
        // The old APIs would take it for several places, or for an order.
        None if text.contains(SEPARATOR) || text.starts_with("optimize:") || text.starts_with("enc:") => None,
        None => (!text.is_empty()).then_some(Place::Address(text)),
    }
}

/// Whether a text names a place.
pub(crate) fn is_place(text: &str) -> bool {
    read(text).is_some()
}

/// A place as the new API wants it.
pub(crate) fn waypoint(text: &str) -> Value {
    match read(text) {
        Some(Place::At(latitude, longitude)) => {
            json!({ "location": { "latLng": { "latitude": latitude, "longitude": longitude } } })
        }
        Some(Place::Id(id)) => json!({ "placeId": id }),
        Some(Place::Address(address)) => json!({ "address": address }),
        None => json!({ "address": text }),
    }
}

/// Places as the old APIs want them.
pub(crate) fn joined(places: &[&str]) -> String {
    places.join(&SEPARATOR.to_string())
}

/// Whether a text has no coordinates: Google must look it up.
pub(crate) fn is_looked_up(text: &str) -> bool {
    !matches!(read(text), Some(Place::At(..)))
}

pub(crate) fn is_code(text: &str) -> bool {
    (2..=12).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

pub(crate) fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

pub(crate) fn is_time_or_now(text: &str) -> bool {
    text == "now" || is_time(text)
}

/// Seconds since 1970, which the old APIs want; `now` as it is.
pub(crate) fn epoch(text: &str) -> Option<String> {
    match text {
        "" => None,
        "now" => Some(text.to_owned()),
        text => text.parse::<Timestamp>().ok().map(|time| time.as_second().to_string()),
    }
}

/// A time in UTC as the new API wants it; `None` for now, which it means without one.
pub(crate) fn utc(text: &str) -> Option<String> {
    text.parse::<Timestamp>().ok().map(|time| time.to_string())
}
