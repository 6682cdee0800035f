//! Answers in the form of the published server's.

use jiff::Timestamp;
use linchpin_rest::without_markup;
use serde_json::{Map, Value, json};

/// These members of a value, those that are there.
fn picked(value: &Value, members: &[(&str, &str)]) -> Map<String, Value> {
    let found = members.iter().filter_map(|(name, path)| Some(((*name).to_owned(), value.pointer(path)?.clone())));
    found.filter(|(_, value)| !value.is_null()).collect()
}

/// The first result; where there is none, an empty list of them.
fn first(answer: &mut Value, members: &[(&str, &str)]) {
    let found = answer.pointer("/results/0").filter(|found| found.is_object());
    *answer = found.map_or_else(|| json!({ "results": [] }), |found| Value::Object(picked(found, members)));
}

pub(crate) fn geocoded(answer: &mut Value) {
    first(
        answer,
        &[
            ("location", "/geometry/location"),
            ("formatted_address", "/formatted_address"),
            ("place_id", "/place_id"),
            // Something similar to what was asked for.
            ("partial_match", "/partial_match"),
        ],
    );
}

pub(crate) fn reversed(answer: &mut Value) {
    let members = ["formatted_address", "place_id", "address_components"];
    first(answer, &members.map(|name| (name, path_of(name))));
}

fn path_of(name: &str) -> &'static str {
    match name {
        "formatted_address" => "/formatted_address",
        "place_id" => "/place_id",
        _ => "/address_components",
    }
}

/// The place with its location as `{lat, lng}`.
fn located(place: &Value) -> Value {
    let mut place = place.clone();
    if let Some(at) = place.get_mut("location") {
        *at = match (at.get("latitude"), at.get("longitude")) {
            (Some(latitude), Some(longitude)) => json!({ "lat": latitude, "lng": longitude }),
            _ => Value::Null,
        };
    }
    place
}

/// The places of a search, and the token of the next page.
pub(crate) fn places(answer: &mut Value) {
    let found = answer["places"].as_array().into_iter().flatten().map(|place| {
        let old = picked(
            &located(place),
            &[
                ("name", "/displayName/text"),
                ("formatted_address", "/formattedAddress"),
                ("location", "/location"),
                ("place_id", "/id"),
                ("rating", "/rating"),
                ("types", "/types"),
            ],
        );
        Value::Object(old)
    });
    *answer = json!({ "places": found.collect::<Vec<_>>(), "nextPageToken": answer.get("nextPageToken") });
}

pub(crate) fn details(answer: &mut Value) {
    let mut old = picked(
        &located(answer),
        &[
            ("name", "/displayName/text"),
            ("formatted_address", "/formattedAddress"),
            ("location", "/location"),
            ("formatted_phone_number", "/nationalPhoneNumber"),
            ("website", "/websiteUri"),
            ("rating", "/rating"),
        ],
    );
    if let Some(reviews) = answer["reviews"].as_array() {
        old.insert("reviews".to_owned(), reviews.iter().map(review).collect());
    }
    if let Some(hours) = answer.get("regularOpeningHours").filter(|hours| hours.is_object()) {
        old.insert("opening_hours".to_owned(), opening_hours(hours));
    }
    *answer = Value::Object(old);
}

fn review(new: &Value) -> Value {
    let mut old = picked(
        new,
        &[
            ("author_name", "/authorAttribution/displayName"),
            ("author_url", "/authorAttribution/uri"),
            ("rating", "/rating"),
            ("relative_time_description", "/relativePublishTimeDescription"),
            ("text", "/text/text"),
            ("language", "/text/languageCode"),
        ],
    );
    if let Some(time) = new["publishTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok()) {
        old.insert("time".to_owned(), json!(time.as_second()));
    }
    Value::Object(old)
}

fn opening_hours(new: &Value) -> Value {
    let mut old = picked(new, &[("open_now", "/openNow"), ("weekday_text", "/weekdayDescriptions")]);
    if let Some(periods) = new["periods"].as_array() {
        let point = |point: &Value| {
            let part = |name: &str| point[name].as_u64().unwrap_or(0);
            json!({ "day": part("day"), "time": format!("{:02}{:02}", part("hour"), part("minute")) })
        };
        let period = |period: &Value| {
            let ends = ["open", "close"].into_iter().filter(|end| period[end].is_object());
            Value::Object(ends.map(|end| (end.to_owned(), point(&period[end]))).collect())
        };
        old.insert("periods".to_owned(), periods.iter().map(period).collect());
    }
    Value::Object(old)
}

/// A step of directions, its instructions without markup.
pub(crate) fn step(instructions: &str) -> Value {
    json!({ "instructions": without_markup(instructions).trim() })
}

/// Seconds of a duration such as `12.5s`.
pub(crate) fn seconds(duration: &Value) -> Option<f64> {
    duration.as_str()?.strip_suffix('s')?.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
}

/// A distance or a time as the old APIs have it: in words, and in meters or seconds.
pub(crate) fn measure(value: f64, words: Option<&str>, is_time: bool) -> Value {
    // Rounded, and in the range of integers.
    let whole = value.clamp(0.0, 1e15).round() as u64;
    let words =
        words.map(str::to_owned).unwrap_or_else(|| if is_time { in_minutes(whole) } else { in_kilometers(whole) });
    json!({ "text": words, "value": whole })
}

fn in_minutes(seconds: u64) -> String {
    let counted = |n: u64, unit: &str| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    match (seconds + 30) / 60 {
        0 => counted(seconds, "sec"),
        minutes @ 1..60 => counted(minutes, "min"),
        minutes => format!("{} {}", counted(minutes / 60, "hour"), counted(minutes % 60, "min")),
    }
}

fn in_kilometers(meters: u64) -> String {
    match meters {
        0..1_000 => format!("{meters} m"),
        _ => format!("{}.{} km", meters / 1_000, meters % 1_000 / 100),
    }
}
