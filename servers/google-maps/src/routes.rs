//! Distances and directions of the Routes API, in the form of the old ones.

use crate::calls::{DIRECTIONS, MATRIX};
use crate::place;
use crate::shape::{measure, seconds, step};
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask, Rest};
use serde_json::{Map, Value, json};

/// What the API answers at most.
const ELEMENTS_MAX: usize = 625;
const ELEMENTS_OF_TRANSIT_MAX: usize = 100;
const LOOKED_UP_MAX: usize = 50;
const WAYPOINTS_MAX: usize = 25;

pub(crate) async fn matrix(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    let (origins, destinations) = (args.list("origins"), args.list("destinations"));
    let most = if args.text("mode") == "transit" { ELEMENTS_OF_TRANSIT_MAX } else { ELEMENTS_MAX };
    check_matrix(&origins, &destinations, most)?;
    let looked_up = origins.iter().chain(&destinations).filter(|place| place::is_looked_up(place)).count();
    if looked_up > LOOKED_UP_MAX {
        let error = format!("{looked_up} addresses and place ids, at most {LOOKED_UP_MAX} are allowed");
        return Err(ToolError::invalid(error).hint("Ask with coordinates, or for fewer."));
    }
    check_times(&args)?;
    let waypoints = |places: &[&str]| -> Vec<Value> {
        places.iter().map(|place| json!({ "waypoint": place::waypoint(place) })).collect()
    };
    let mut body = json!({ "origins": waypoints(&origins), "destinations": waypoints(&destinations) });
    if let Some(avoid) = avoided(&args) {
        body["origins"].as_array_mut().into_iter().flatten().for_each(|one| one["routeModifiers"] = avoid.clone());
    }
    settings(&mut body, &args);
    let answer = rest.send(Ask::of(&MATRIX, &args).json(body)).await?.json()?;
    let elements = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    let index = |element: &Value, name: &str| element[name].as_u64().unwrap_or(0);
    let element = |row: usize, column: usize| {
        let is_it = |one: &&Value| {
            one.is_object()
                && (index(one, "originIndex"), index(one, "destinationIndex")) == (row as u64, column as u64)
        };
        elements.iter().find(is_it).map_or(json!({ "status": "NOT_FOUND" }), element)
    };
    let rows: Vec<Value> = (0..origins.len())
        .map(
            |row| json!({ "elements": (0..destinations.len()).map(|column| element(row, column)).collect::<Vec<_>>() }),
        )
        .collect();
    Ok(json!({ "origin_addresses": origins, "destination_addresses": destinations, "results": rows }).into())
}

/// A matrix has a bounded number of elements.
pub(crate) fn check_matrix(origins: &[&str], destinations: &[&str], most: usize) -> Result<(), ToolError> {
    let elements = origins.len() * destinations.len();
    match elements {
        0 => Err(ToolError::invalid("At least one origin and one destination are needed")),
        1.. if elements > most => {
            let error = format!("{} origins × {} destinations are {elements}", origins.len(), destinations.len());
            Err(ToolError::invalid(format!("{error}, at most {most} are allowed")).hint("Ask for fewer at once."))
        }
        _ => Ok(()),
    }
}

/// Who arrives at a time is not told when to depart, and only timetables say it.
pub(crate) fn check_times(args: &Args) -> Result<(), ToolError> {
    if args.get("arrival_time").is_none() {
        return Ok(());
    }
    if args.text("mode") != "transit" {
        return Err(ToolError::invalid("arrival_time is for mode transit only"));
    }
    match args.get("departure_time") {
        Some(_) => Err(ToolError::invalid("Give departure_time or arrival_time, not both")),
        None => Ok(()),
    }
}

/// There are no stops on the way with public transport.
pub(crate) fn check_waypoints(args: &Args) -> Result<(), ToolError> {
    match args.list("waypoints").len() {
        0 => Ok(()),
        _ if args.text("mode") == "transit" => Err(ToolError::invalid("waypoints are not for mode transit")),
        n if n > WAYPOINTS_MAX => {
            Err(ToolError::invalid(format!("{n} waypoints, at most {WAYPOINTS_MAX} are allowed")))
        }
        _ => Ok(()),
    }
}

fn avoided(args: &Args) -> Option<Value> {
    let mut modifiers = Map::new();
    for what in args.list("avoid") {
        let name = match what {
            "tolls" => "avoidTolls",
            "highways" => "avoidHighways",
            _ => "avoidFerries",
        };
        modifiers.insert(name.to_owned(), json!(true));
    }
    (!modifiers.is_empty()).then_some(Value::Object(modifiers))
}

/// What both requests have.
fn settings(body: &mut Value, args: &Args) {
    let mode = args.text("mode");
    body["travelMode"] = json!(match mode {
        "walking" => "WALK",
        "bicycling" => "BICYCLE",
        "transit" => "TRANSIT",
        _ => "DRIVE",
    });
    // A time means the traffic then; the API wants that said.
    if mode == "driving" && args.get("departure_time").is_some() {
        body["routingPreference"] = json!("TRAFFIC_AWARE");
    }
    for (name, member) in [("departure_time", "departureTime"), ("arrival_time", "arrivalTime")] {
        if let Some(time) = place::utc(args.text(name)) {
            body[member] = json!(time);
        }
    }
    for (name, member) in [("language", "languageCode"), ("region", "regionCode")] {
        if let Some(code) = args.get(name) {
            body[member] = code.clone();
        }
    }
    if let Some(units) = args.get("units") {
        body["units"] = json!(units.as_str().unwrap_or_default().to_uppercase());
    }
}

/// An element of a matrix in the old form.
fn element(new: &Value) -> Value {
    let status = match (new.pointer("/status/code").and_then(Value::as_i64).unwrap_or(0), new["condition"].as_str()) {
        (0, Some("ROUTE_NOT_FOUND")) => "ZERO_RESULTS",
        (0, _) => "OK",
        (5, _) => "NOT_FOUND",
        (3, _) => "INVALID_REQUEST",
        _ => "UNKNOWN_ERROR",
    };
    let mut old = json!({ "status": status });
    if status == "OK" {
        measures(&mut old, new);
    }
    old
}

/// Distance and times in the old form. The time with traffic stands beside the one without, where there are both.
fn measures(old: &mut Value, new: &Value) {
    let text = |name: &str| new.pointer(&format!("/localizedValues/{name}/text")).and_then(Value::as_str);
    if let Some(meters) = new["distanceMeters"].as_f64().or(new["duration"].is_string().then_some(0.0)) {
        old["distance"] = measure(meters, text("distance"), false);
    }
    let (with, without) = (seconds(&new["duration"]), seconds(&new["staticDuration"]));
    if let Some(time) = without.or(with) {
        let words = if without.is_some() { text("staticDuration") } else { text("duration") };
        old["duration"] = measure(time, words, true);
    }
    if let (Some(with), Some(without)) = (with, without)
        && with != without
    {
        old["duration_in_traffic"] = measure(with, text("duration"), true);
    }
}

pub(crate) async fn directions(rest: &Rest, args: Args) -> Result<Answer, ToolError> {
    check_times(&args)?;
    check_waypoints(&args)?;
    let mut body = json!({
        "origin": place::waypoint(args.text("origin")),
        "destination": place::waypoint(args.text("destination")),
    });
    let waypoints: Vec<Value> = args.list("waypoints").into_iter().map(place::waypoint).collect();
    if !waypoints.is_empty() {
        body["intermediates"] = json!(waypoints);
    }
    if let Some(avoid) = avoided(&args) {
        body["routeModifiers"] = avoid;
    }
    settings(&mut body, &args);
    let answer = rest.send(Ask::of(&DIRECTIONS, &args).json(body)).await?.json()?;
    let routes = answer["routes"].as_array().into_iter().flatten().map(route);
    Ok(json!({ "routes": routes.collect::<Vec<_>>() }).into())
}

fn route(new: &Value) -> Value {
    let mut old = json!({ "summary": new["description"].as_str().unwrap_or_default() });
    measures(&mut old, new);
    let legs = new["legs"].as_array().into_iter().flatten();
    let steps = legs.flat_map(|leg| leg["steps"].as_array().into_iter().flatten()).map(|new| {
        let travel_mode = match new["travelMode"].as_str() {
            Some("DRIVE") => "DRIVING",
            Some("WALK") => "WALKING",
            Some("BICYCLE") => "BICYCLING",
            Some(other) => other,
            None => "",
        };
        let instructions = new.pointer("/navigationInstruction/instructions").and_then(Value::as_str);
        let mut old = step(instructions.unwrap_or_default());
        measures(&mut old, new);
        old["travel_mode"] = json!(travel_mode);
        if let Some(transit) = transit(&new["transitDetails"]) {
            old["transit"] = transit;
        }
        old
    });
    old["steps"] = steps.collect();
    if let Some(warnings) = new["warnings"].as_array().filter(|warnings| !warnings.is_empty()) {
        old["warnings"] = json!(warnings);
    }
    old
}

/// The line, the stops and the times of a ride.
fn transit(details: &Value) -> Option<Value> {
    details.as_object()?;
    let at = |path: &str| details.pointer(path).filter(|value| !value.is_null()).cloned();
    let mut ride = Map::new();
    for (name, value) in [
        ("line", at("/transitLine/nameShort").or_else(|| at("/transitLine/name"))),
        ("headsign", at("/headsign")),
        ("departure_stop", at("/stopDetails/departureStop/name")),
        ("departure_time", at("/stopDetails/departureTime")),
        ("arrival_stop", at("/stopDetails/arrivalStop/name")),
        ("arrival_time", at("/stopDetails/arrivalTime")),
        ("num_stops", at("/stopCount")),
    ] {
        if let Some(value) = value {
            ride.insert(name.to_owned(), value);
        }
    }
    Some(Value::Object(ride))
}
