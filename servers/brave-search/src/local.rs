//! Local search: the web search names places, two more requests tell about them.

use crate::LOCAL;
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Map, Value, json};

/// How many places the API tells about at once.
const PLACES_MAX: usize = 20;

pub(crate) async fn search(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let found = rest.send(Ask::of(&LOCAL, &args)).await?.json()?;
    let named = found.pointer("/locations/results").and_then(Value::as_array).into_iter().flatten();
    let ids = named.filter_map(|place| place["id"].as_str()).filter(|id| !id.is_empty());
    let count = usize::try_from(args.int("count").unwrap_or(5)).unwrap_or(PLACES_MAX);
    let ids: Vec<&str> = ids.take(count.min(PLACES_MAX)).collect();
    if ids.is_empty() {
        return on_the_web(rest, &args).await;
    }
    let about = |path| ids.iter().fold(Ask::get(path), |ask, id| ask.query("ids", *id));
    let places = rest.send(about("/local/pois")).await?.json()?;
    let descriptions = rest.send(about("/local/descriptions")).await?.json()?;
    let places = places["results"].as_array().into_iter().flatten();
    let places: Vec<Value> = places.map(|place| described(place, &descriptions)).collect();
    Ok(json!({ "results": places }).into())
}

async fn on_the_web(rest: &Rest, args: &Args) -> Result<Answer, ToolError> {
    let ask = Ask::of(&LOCAL, args).set_query("result_filter", "web");
    let mut found = rest.send(ask).await?.json()?;
    let pages = found.pointer_mut("/web/results").map(Value::take).unwrap_or_else(|| json!([]));
    let pages = pages.as_array().into_iter().flatten().map(|page| pick(page, &["title", "url", "description", "age"]));
    Ok(json!({ "results": pages.collect::<Vec<_>>(), "fallback": "web" }).into())
}

fn pick(value: &Value, names: &[&str]) -> Value {
    let members = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone())));
    Value::Object(members.collect())
}

/// A place under names of our own. The API has changed its names; both forms are read.
fn described(place: &Value, descriptions: &Value) -> Value {
    let first = |paths: &[&str]| {
        let mut found = paths.iter().filter_map(|path| place.pointer(path));
        found.find(|value| !value.is_null() && *value != "").cloned()
    };
    let street = ["streetAddress", "addressLocality", "addressRegion", "postalCode"];
    let parts = street.iter().filter_map(|part| place.pointer("/address")?.get(*part)?.as_str());
    let parts = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    let address = first(&["/postal_address/displayAddress"]).or((!parts.is_empty()).then_some(json!(parts)));
    let mut told = Map::new();
    for (name, value) in [
        ("id", first(&["/id"])),
        ("name", first(&["/name", "/title"])),
        ("address", address),
        ("phone", first(&["/phone", "/contact/telephone"])),
        ("rating", first(&["/rating/ratingValue"])),
        ("rating_count", first(&["/rating/ratingCount", "/rating/reviewCount"])),
        ("price_range", first(&["/priceRange", "/price_range"])),
        ("hours", hours(place)),
        ("description", description(place["id"].as_str().unwrap_or_default(), descriptions)),
        ("url", first(&["/url"])),
        ("categories", first(&["/categories"])),
        ("coordinates", first(&["/coordinates"])),
    ] {
        if let Some(value) = value {
            told.insert(name.to_owned(), value);
        }
    }
    Value::Object(told)
}

fn hours(place: &Value) -> Option<Value> {
    let days = |path: &str| place.pointer(path).and_then(Value::as_array).filter(|days| !days.is_empty());
    if let Some(days) = days("/openingHours") {
        return Some(json!(days));
    }
    let day = |day: &Value| {
        let word = |name: &str| day[name].as_str();
        Some(format!("{} {}-{}", word("abbr_name").or(word("full_name"))?, word("opens")?, word("closes")?))
    };
    // A day that has several hours is a list of them.
    let all = days("/opening_hours/days")?.iter().flat_map(|one| match one {
        Value::Array(parts) => parts.iter().collect::<Vec<_>>(),
        one => vec![one],
    });
    Some(json!(all.filter_map(day).collect::<Vec<_>>())).filter(|days| *days != json!([]))
}

/// What is said of a place: by id, or in a list.
fn description(id: &str, all: &Value) -> Option<Value> {
    let listed = || all["results"].as_array()?.iter().find(|one| one["id"] == id)?.get("description");
    all["descriptions"].get(id).or_else(listed).filter(|text| text.is_string()).cloned()
}
