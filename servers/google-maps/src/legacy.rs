//! Places and routes of the old APIs, for projects that have not enabled the new ones.

use crate::calls::{
    CENTER, DETAILS_NAMES, DIRECTIONS_ARGS, DIRECTIONS_NAMES, ELEVATION, GEOCODE, LANGUAGE, MATRIX_ARGS, MATRIX_NAMES,
    QUERY, RADIUS, REGION, REVERSE, SEARCH_NAMES,
};
use crate::fail::failing;
use crate::{place, routes, shape};
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Call, Pages, Rest, get, text};
use serde_json::{Map, Value, json};

/// The calls: the same tools as [`crate::CALLS`], in the same order.
pub const CALLS: &[Call] = &[
    GEOCODE,
    REVERSE,
    SEARCH,
    DETAILS,
    MATRIX.run(|rest, args| Box::pin(matrix(rest, args))),
    ELEVATION,
    DIRECTIONS.run(|rest, args| Box::pin(directions(rest, args))),
];

const SEARCH: Call = get(SEARCH_NAMES.0, SEARCH_NAMES.1, SEARCH_NAMES.2, SEARCH_NAMES.3, "/place/textsearch/json")
    .args(&[QUERY, CENTER, RADIUS, LANGUAGE, REGION])
    .adjust(around)
    .list("results")
    .items("places")
    .keep("name formatted_address location place_id rating types")
    .pages(Pages::Token { at: "next_page_token", param: "pagetoken" })
    .problems(failing!("Place search", "Places API"))
    .tidy(places);

const DETAILS: Call = get(DETAILS_NAMES.0, DETAILS_NAMES.1, DETAILS_NAMES.2, DETAILS_NAMES.3, "/place/details/json")
    .args(&[text("place_id").about("From another result."), LANGUAGE, REGION])
    .fixed(&[(
        "fields",
        "name,formatted_address,geometry/location,formatted_phone_number,website,rating,reviews,opening_hours",
    )])
    .problems(failing!("Place details request", "Places API"))
    .tidy(details);

const MATRIX: Call = get(MATRIX_NAMES.0, MATRIX_NAMES.1, MATRIX_NAMES.2, MATRIX_NAMES.3, "/distancematrix/json")
    .args(MATRIX_ARGS)
    .list("results")
    .items("results")
    .beside("origin_addresses destination_addresses")
    .problems(failing!("Distance matrix request", "Distance Matrix API"));

const DIRECTIONS: Call =
    get(DIRECTIONS_NAMES.0, DIRECTIONS_NAMES.1, DIRECTIONS_NAMES.2, DIRECTIONS_NAMES.3, "/directions/json")
        .args(DIRECTIONS_ARGS)
        .list("routes")
        .items("routes")
        .problems(failing!("Directions request", "Directions API"));

/// What the old API answers at most.
const ELEMENTS_MAX: usize = 100;

fn around(ask: Ask, args: &Args) -> Ask {
    let Some(center) = args.get("location") else { return ask };
    let radius = args.get("radius").map_or_else(|| place::RADIUS_MAX.to_string(), Value::to_string);
    ask.query("location", place::pair(center.get("latitude"), center.get("longitude"))).query("radius", radius)
}

fn places(answer: &mut Value) {
    let found = answer.get_mut("results").and_then(Value::as_array_mut);
    for place in found.into_iter().flatten() {
        if let Some(at) = place.pointer("/geometry/location").cloned() {
            place["location"] = at;
        }
    }
}

fn details(answer: &mut Value) {
    let found = &answer["result"];
    let mut kept = Map::new();
    for name in ["name", "formatted_address", "formatted_phone_number", "website", "rating", "reviews", "opening_hours"]
    {
        if let Some(value) = found.get(name) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(at) = found.pointer("/geometry/location") {
        kept.insert("location".to_owned(), at.clone());
    }
    *answer = Value::Object(kept);
}

/// What both requests have.
fn settings(mut ask: Ask, args: &Args) -> Ask {
    ask = ask.query("mode", args.text("mode"));
    for name in ["departure_time", "arrival_time"] {
        if let Some(time) = place::epoch(args.text(name)) {
            ask = ask.query(name, time);
        }
    }
    let avoid = args.list("avoid");
    if !avoid.is_empty() {
        ask = ask.query("avoid", place::joined(&avoid));
    }
    for name in ["units", "language", "region"] {
        if args.get(name).is_some() {
            ask = ask.query(name, args.text(name));
        }
    }
    ask
}

async fn matrix(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let (origins, destinations) = (args.list("origins"), args.list("destinations"));
    routes::check_matrix(&origins, &destinations, ELEMENTS_MAX)?;
    routes::check_times(&args)?;
    let ask = Ask::of(&MATRIX, &args)
        .query("origins", place::joined(&origins))
        .query("destinations", place::joined(&destinations));
    let answer = rest.send(settings(ask, &args)).await?.json()?;
    let members = ["status", "duration", "duration_in_traffic", "distance"];
    let rows = answer["rows"].as_array().into_iter().flatten().map(|row| {
        let elements = row["elements"].as_array().into_iter().flatten().map(|one| picked(one, &members));
        json!({ "elements": elements.collect::<Vec<_>>() })
    });
    let addresses = |name: &str| answer.get(name).cloned().unwrap_or_else(|| json!([]));
    Ok(json!({
        "origin_addresses": addresses("origin_addresses"),
        "destination_addresses": addresses("destination_addresses"),
        "results": rows.collect::<Vec<_>>(),
    })
    .into())
}

async fn directions(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    routes::check_times(&args)?;
    routes::check_waypoints(&args)?;
    let mut ask = Ask::of(&DIRECTIONS, &args)
        .query("origin", args.text("origin").trim())
        .query("destination", args.text("destination").trim());
    let waypoints = args.list("waypoints");
    if !waypoints.is_empty() {
        ask = ask.query("waypoints", place::joined(&waypoints));
    }
    let answer = rest.send(settings(ask, &args)).await?.json()?;
    let routes = answer["routes"].as_array().into_iter().flatten().map(route);
    Ok(json!({ "routes": routes.collect::<Vec<_>>() }).into())
}

fn picked(value: &Value, names: &[&str]) -> Value {
    let members = names.iter().filter_map(|name| Some(((*name).to_owned(), value.get(*name)?.clone())));
    Value::Object(members.collect())
}

/// The sum of what legs have of something, in the words of the only one.
fn total(legs: &[Value], name: &str, is_time: bool) -> Option<Value> {
    match legs {
        [] => None,
        [only] => only.get(name).cloned(),
        several => {
            let sum = several.iter().filter_map(|leg| leg[name]["value"].as_f64()).sum();
            Some(shape::measure(sum, None, is_time))
        }
    }
}

fn route(old: &Value) -> Value {
    let legs = old["legs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut told = picked(old, &["summary", "warnings"]);
    for (name, is_time) in [("distance", false), ("duration", true)] {
        if let Some(sum) = total(legs, name, is_time) {
            told[name] = sum;
        }
    }
    let steps = legs.iter().flat_map(|leg| leg["steps"].as_array().into_iter().flatten()).map(|old| {
        let word = |name: &str| old[name].as_str().unwrap_or_default();
        let mut told = shape::step(word("html_instructions"));
        for name in ["distance", "duration", "travel_mode"] {
            if let Some(value) = old.get(name) {
                told[name] = value.clone();
            }
        }
        told
    });
    told["steps"] = steps.collect();
    told
}
