//! Our tools beside the published server's, and our requests beside what Google publishes about its APIs: the discovery document of
//! Places in PyPI's `google-api-python-client`, and the protocol buffers of Routes in npm's `@googlemaps/routing`, both pinned.
//! Of the old APIs there is no such package: their descriptions in `tests/contract` were written by hand, and so were those of
//! Geocoding and Elevation.
//!
//! Differences that are meant, each with its reason:
//! - Ranges are in the schemas, because requests out of range are refused here.
//! - There are arguments for times, stops on the way and what to avoid, and a cursor; unlisted ones for language, region and units.

use crate::rows::{legacy, suite};
use linchpin::client::{Client, Connection};
use linchpin::testing::site::{Seen, Site};
use linchpin::transport::Child;
use linchpin_rest::testing::{KEY, call, led};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn home() -> PathBuf {
    std::env::var_os("LINCHPIN_PUBLISHED").expect("LINCHPIN_PUBLISHED names an installation").into()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

async fn ours() -> (Site, Connection) {
    let site = suite().site().await;
    let connection = suite().connect(suite().config(&site)).await;
    (site, connection)
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn the_archived_server_has_the_same_tools_and_arguments() {
    let child = Child::new(home().join("node_modules/.bin/mcp-server-google-maps")).env("GOOGLE_MAPS_API_KEY", "k");
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let (_site, ours) = ours().await;
    let (theirs, ours) = (theirs.tools().await.unwrap(), ours.tools().await.unwrap());
    assert_eq!(theirs.len(), 7);
    for (their, our) in theirs.iter().zip(ours.iter()) {
        assert_eq!(their.name, our.name, "the same order");
        let schema = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let (their, our) = (schema(their.input_schema.get()), schema(our.input_schema.get()));
        assert_eq!(their["required"], our["required"]);
        for (name, argument) in their["properties"].as_object().unwrap() {
            let ours = &our["properties"][name];
            assert_eq!((&argument["type"], &argument["enum"]), (&ours["type"], &ours["enum"]), "{name}");
        }
    }
}

/// Both servers ask the same double, ours its old APIs: the same requests, and results that say the same.
#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn with_the_old_apis_requests_and_results_are_those_of_the_archived_server() {
    let (their_site, our_site) = (legacy().site().await, legacy().site().await);
    let child = Child::new(home().join("node_modules/.bin/mcp-server-google-maps")).env("GOOGLE_MAPS_API_KEY", KEY);
    let child = child.envs(led("maps.googleapis.com", &their_site));
    let theirs = Client::new("test", "0").connect(child).await.expect("the published server starts");
    let ours = legacy().connect(legacy().config(&our_site)).await;
    for (tool, arguments) in [
        ("maps_geocode", json!({ "address": "Karl Johans gate 1 & 2, Oslo" })),
        ("maps_reverse_geocode", json!({ "latitude": 59.9111, "longitude": -10.5 })),
        ("maps_search_places", json!({ "query": "café" })),
        (
            "maps_search_places",
            json!({ "query": "x", "location": { "latitude": 59.9, "longitude": 10 }, "radius": 500 }),
        ),
        ("maps_place_details", json!({ "place_id": "ChIJCafe-1" })),
        ("maps_distance_matrix", json!({ "origins": ["Oslo", "1,2"], "destinations": ["Bergen"] })),
        ("maps_distance_matrix", json!({ "origins": ["a"], "destinations": ["b"], "mode": "walking" })),
        (
            "maps_elevation",
            json!({ "locations": [{ "latitude": 1.5, "longitude": 2 }, { "latitude": -1, "longitude": 0 }] }),
        ),
        ("maps_directions", json!({ "origin": "Oslo", "destination": "Bergen", "mode": "transit" })),
    ] {
        let (their, our) = (call(&theirs, tool, arguments.clone()).await, call(&ours, tool, arguments.clone()).await);
        assert!(!their.failed && !our.failed, "{tool} {arguments}: {} {}", their.result, our.result);
        let asked = |site: &Site| {
            let requests = site.requests();
            let seen = requests.last().unwrap();
            let pairs = seen.query().split('&').filter(|pair| !pair.starts_with("fields="));
            // Both forms of a comma and a bar mean the same.
            let plain = |pair: &str| pair.replace("%2C", ",").replace("%7C", "|");
            (seen.path().to_owned(), pairs.map(plain).collect::<BTreeSet<_>>())
        };
        assert_eq!(asked(&their_site), asked(&our_site), "{tool} {arguments}");
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let (mut their, mut our) = (read(&their.text), read(&our.text));
        our.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "truncated" | "next_cursor"));
        if tool == "maps_directions" {
            // Theirs are HTML.
            for step in [&mut their, &mut our] {
                step["routes"][0]["steps"][0]["instructions"].take();
            }
        }
        assert_eq!(their, our, "{tool} {arguments}");
    }
}

/// The requests of a tool with few and with many arguments.
async fn sent(tool: &str, several: &[Value]) -> Vec<Seen> {
    let (site, connection) = ours().await;
    for arguments in several {
        let told = call(&connection, tool, arguments.clone()).await;
        assert!(!told.failed, "{}", told.result);
    }
    site.requests()
}

/// What a message may have: by a member's name, whether there are several, and the name of its type.
trait Types {
    fn member(&self, message: &str, name: &str) -> Option<(bool, String)>;

    /// The words of an enumeration; `None` for a type that is none.
    fn words(&self, name: &str) -> Option<Vec<String>>;

    fn is_message(&self, name: &str) -> bool;

    /// What is wrong with a value of this type.
    fn problems(&self, kind: &str, value: &Value) -> Vec<String> {
        if let Some(words) = self.words(kind) {
            let known = value.as_str().is_some_and(|word| words.iter().any(|known| known == word));
            return if known { Vec::new() } else { vec![format!("{value} is no {kind}")] };
        }
        if self.is_message(kind) {
            let Some(members) = value.as_object() else { return vec![format!("{value} is no {kind}")] };
            let each = members.iter().flat_map(|(name, value)| match (self.member(kind, name), value) {
                (None, _) => vec![format!("{kind} has no {name}")],
                (Some((true, inner)), Value::Array(items)) => {
                    items.iter().flat_map(|item| self.problems(&inner, item)).collect()
                }
                (Some((true, _)), other) => vec![format!("{name} is not a list: {other}")],
                (Some((false, inner)), value) => self.problems(&inner, value),
            });
            return each.collect();
        }
        let fits = match kind {
            "bool" | "boolean" => value.is_boolean(),
            "double" | "float" | "number" => value.is_number(),
            "int32" | "integer" => value.is_i64(),
            "string" | "google.protobuf.Timestamp" => value.is_string(),
            _ => false,
        };
        if fits { Vec::new() } else { vec![format!("{value} is no {kind}")] }
    }

    /// What is wrong with a mask of fields.
    fn unknown_fields(&self, message: &str, mask: &str) -> Vec<String> {
        let is_known = |path: &&str| {
            let end = path.split('.').try_fold(message.to_owned(), |at, name| Some(self.member(&at, name)?.1));
            end.is_some()
        };
        mask.split(',').filter(|path| !is_known(path)).map(str::to_owned).collect()
    }
}

/// The discovery document of an API.
struct Discovery(Value);

impl Types for Discovery {
    fn member(&self, message: &str, name: &str) -> Option<(bool, String)> {
        let member = self.0["schemas"][message]["properties"].get(name)?;
        let (several, one) = if member["type"] == "array" { (true, &member["items"]) } else { (false, member) };
        let kind = match one.get("enum") {
            Some(_) => format!("{message}.{name}"),
            None => one["$ref"].as_str().or(one["type"].as_str())?.to_owned(),
        };
        Some((several, kind))
    }

    fn words(&self, name: &str) -> Option<Vec<String>> {
        let (message, member) = name.split_once('.')?;
        let words = self.0["schemas"][message]["properties"][member]["enum"].as_array()?;
        Some(words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect())
    }

    fn is_message(&self, name: &str) -> bool {
        self.0["schemas"][name]["properties"].is_object()
    }
}

/// Protocol buffers, as `protobufjs` writes them as JSON.
struct Protos(Value);

impl Protos {
    fn at(&self, name: &str) -> Option<&Value> {
        name.split('.').try_fold(&self.0, |at, part| at["nested"].get(part))
    }

    /// The full name of what a message names in one of its fields.
    fn full(&self, message: &str, name: &str) -> String {
        let mut scope = message;
        loop {
            let full = format!("{scope}.{name}");
            if self.at(&full).is_some() {
                return full;
            }
            match scope.rsplit_once('.') {
                Some((outer, _)) => scope = outer,
                None => return name.to_owned(),
            }
        }
    }
}

impl Types for Protos {
    fn member(&self, message: &str, name: &str) -> Option<(bool, String)> {
        let field = self.at(message)?["fields"].get(name)?;
        Some((field["rule"] == "repeated", self.full(message, field["type"].as_str()?)))
    }

    fn words(&self, name: &str) -> Option<Vec<String>> {
        Some(self.at(name)?["values"].as_object()?.keys().cloned().collect())
    }

    fn is_message(&self, name: &str) -> bool {
        name != "google.protobuf.Timestamp" && self.at(name).is_some_and(|message| message["fields"].is_object())
    }
}

fn body(seen: &Seen) -> Value {
    serde_json::from_slice(&seen.body).expect("JSON")
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn searches_and_details_are_as_the_discovery_document_says() {
    let libraries = std::fs::read_dir(home().join("py/lib")).unwrap();
    let file = "site-packages/googleapiclient/discovery_cache/documents/places.v1.json";
    let places = libraries.flatten().map(|library| library.path().join(file)).find(|path| path.is_file());
    let places = Discovery(read(&places.expect("google-api-python-client is installed")));
    let request = "GoogleMapsPlacesV1SearchTextRequest";
    let center = json!({ "latitude": 59.9, "longitude": 10.7 });
    let most = json!({ "query": "x", "location": center, "radius": 5, "language": "no", "region": "no" });
    for seen in sent("maps_search_places", &[json!({ "query": "x" }), most]).await {
        assert_eq!(places.0["resources"]["places"]["methods"]["searchText"]["path"], "v1/places:searchText");
        assert_eq!(seen.path(), "/maps/api/places/places:searchText");
        assert_eq!(places.problems(request, &body(&seen)), [""; 0]);
        let mask = seen.header("x-goog-fieldmask").unwrap();
        assert_eq!(places.unknown_fields("GoogleMapsPlacesV1SearchTextResponse", mask), [""; 0]);
    }
    let details = sent("maps_place_details", &[json!({ "place_id": "x" })]).await;
    let mask = details[0].header("x-goog-fieldmask").unwrap();
    assert_eq!(places.unknown_fields("GoogleMapsPlacesV1Place", mask), [""; 0]);
    for wrong in [json!({ "query": "x" }), json!({ "locationBias": { "circle": { "center": [1, 2] } } })] {
        assert!(!places.problems(request, &wrong).is_empty(), "{wrong}");
    }
    assert_eq!(places.unknown_fields("GoogleMapsPlacesV1Place", "displayName,name.first,*").len(), 2);
}

#[tokio::test]
#[ignore = "needs the published packages: cargo xtask test --only published"]
async fn routes_are_asked_for_as_the_protocol_buffers_say() {
    let routing = Protos(read(&home().join("node_modules/@googlemaps/routing/build/protos/protos.json")));
    let named = |name: &str| format!("google.maps.routing.v2.{name}");
    let departure = "2026-12-24T18:00:00Z";
    let most = json!({
        "origin": "Oslo", "destination": "59.9,10.7", "waypoints": ["place_id:x"], "departure_time": departure,
        "avoid": ["tolls", "highways", "ferries"], "units": "imperial", "language": "no", "region": "no",
    });
    let mut several: Vec<Value> = ["driving", "walking", "bicycling", "transit"]
        .map(|mode| json!({ "origin": "a", "destination": "b", "mode": mode }))
        .into();
    several.push(json!({ "origin": "a", "destination": "b", "mode": "transit", "arrival_time": departure }));
    several.push(most);
    for seen in sent("maps_directions", &several).await {
        assert_eq!(seen.path(), "/maps/api/routes/directions/v2:computeRoutes");
        assert_eq!(routing.problems(&named("ComputeRoutesRequest"), &body(&seen)), [""; 0]);
        let mask = seen.header("x-goog-fieldmask").unwrap();
        assert_eq!(routing.unknown_fields(&named("ComputeRoutesResponse"), mask), [""; 0]);
    }
    let most = json!({
        "origins": ["Oslo", "1,2"], "destinations": ["place_id:x"], "departure_time": departure, "avoid": ["tolls"],
        "units": "metric", "language": "no", "region": "no",
    });
    for seen in sent("maps_distance_matrix", &[json!({ "origins": ["a"], "destinations": ["b"] }), most]).await {
        assert_eq!(seen.path(), "/maps/api/routes/distanceMatrix/v2:computeRouteMatrix");
        assert_eq!(routing.problems(&named("ComputeRouteMatrixRequest"), &body(&seen)), [""; 0]);
        let mask = seen.header("x-goog-fieldmask").unwrap();
        assert_eq!(routing.unknown_fields(&named("RouteMatrixElement"), mask), [""; 0]);
    }
    for (method, path) in [
        ("ComputeRoutes", "/directions/v2:computeRoutes"),
        ("ComputeRouteMatrix", "/distanceMatrix/v2:computeRouteMatrix"),
    ] {
        let methods = &routing.at(&named("Routes")).unwrap()["methods"];
        assert_eq!(methods[method]["options"]["(google.api.http).post"], path);
    }
    for wrong in [
        json!({ "travelMode": "driving" }),
        json!({ "origin": "Oslo" }),
        json!({ "origin": { "waypoint": { "address": "Oslo" } } }),
        json!({ "avoidTolls": true }),
    ] {
        assert!(!routing.problems(&named("ComputeRoutesRequest"), &wrong).is_empty(), "{wrong}");
    }
    assert_eq!(routing.unknown_fields(&named("RouteMatrixElement"), "*,originIndex,distance").len(), 2);
}
