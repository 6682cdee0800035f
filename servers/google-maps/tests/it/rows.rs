//! Every row of both tables: against descriptions of the APIs, with hostile arguments, and with everything that fails.

use linchpin_google_maps::{API, CALLS, Config, LEGACY, LEGACY_CALLS, SERVICE, open};
use linchpin_kit::{Secret, Vars};
use linchpin_rest::testing::{KEY, Suite, call};
use serde_json::json;

pub(crate) fn suite() -> Suite {
    Suite::new(&API, &SERVICE, include_str!("../contract/maps.json"))
}

pub(crate) fn legacy() -> Suite {
    Suite::new(&LEGACY, &SERVICE, include_str!("../contract/legacy.json"))
}

#[tokio::test]
async fn every_row_makes_requests_that_the_description_allows() {
    suite().contract().await;
    legacy().contract().await;
}

#[tokio::test]
async fn no_argument_leads_a_request_elsewhere() {
    suite().hostile_arguments().await;
    legacy().hostile_arguments().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_says_what_happened() {
    suite().faults().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_every_row_of_the_old_apis_says_what_happened() {
    legacy().faults().await;
}

#[tokio::test]
async fn what_google_would_refuse_is_refused_before_anything_is_sent() {
    for suite in [suite(), legacy()] {
        let site = suite.site().await;
        let connection = suite.connect(suite.config(&site)).await;
        let many = vec!["1,2"; 26];
        let addresses = vec!["Oslo"; 26];
        for (tool, arguments) in [
            ("maps_geocode", json!({ "address": " " })),
            ("maps_reverse_geocode", json!({ "latitude": 90.5, "longitude": 0 })),
            ("maps_reverse_geocode", json!({ "latitude": 0, "longitude": -181 })),
            ("maps_search_places", json!({ "query": "x", "location": { "latitude": 91, "longitude": 0 } })),
            ("maps_search_places", json!({ "query": "x", "location": { "latitude": 1 } })),
            ("maps_search_places", json!({ "query": "x", "radius": 50_001 })),
            ("maps_search_places", json!({ "query": "x", "radius": 0 })),
            ("maps_elevation", json!({ "locations": [] })),
            ("maps_elevation", json!({ "locations": [{ "latitude": 1, "longitude": 200 }] })),
            ("maps_elevation", json!({ "locations": [{ "latitude": "1", "longitude": 2 }] })),
            ("maps_distance_matrix", json!({ "origins": [], "destinations": ["Oslo"] })),
            ("maps_distance_matrix", json!({ "origins": many, "destinations": many })),
            ("maps_distance_matrix", json!({ "origins": addresses, "destinations": addresses })),
            ("maps_distance_matrix", json!({ "origins": ["Oslo|Bergen"], "destinations": ["Oslo"] })),
            ("maps_distance_matrix", json!({ "origins": ["91,0"], "destinations": ["Oslo"] })),
            ("maps_distance_matrix", json!({ "origins": ["a"], "destinations": ["b"], "mode": "DRIVE" })),
            ("maps_directions", json!({ "origin": "place_id:a/b", "destination": "Oslo" })),
            ("maps_directions", json!({ "origin": "a", "destination": "b", "waypoints": ["optimize:true"] })),
            ("maps_directions", json!({ "origin": "a", "destination": "b", "waypoints": many })),
            ("maps_directions", json!({ "origin": "a", "destination": "b", "waypoints": ["c"], "mode": "transit" })),
            ("maps_directions", json!({ "origin": "a", "destination": "b", "departure_time": "tomorrow" })),
            ("maps_directions", json!({ "origin": "a", "destination": "b", "arrival_time": "2026-12-24T18:00:00Z" })),
        ] {
            let told = call(&connection, tool, arguments.clone()).await;
            assert!(told.failed && !told.text.is_empty(), "{tool} {arguments}: {}", told.result);
        }
        assert!(site.requests().is_empty());
        let told = call(&connection, "maps_search_places", json!({ "query": "x", "radius": 50_000 })).await;
        assert!(!told.failed, "{}", told.result);
    }
}

#[tokio::test]
async fn the_key_is_in_no_address_of_the_new_apis_and_no_mask_is_a_star() {
    let suite = suite();
    let site = suite.site().await;
    let connection = suite.connect(suite.config(&site)).await;
    for (tool, arguments) in [
        ("maps_search_places", json!({ "query": "x" })),
        ("maps_place_details", json!({ "place_id": "ChIJ" })),
        ("maps_distance_matrix", json!({ "origins": ["a"], "destinations": ["b"] })),
        ("maps_directions", json!({ "origin": "a", "destination": "b" })),
    ] {
        call(&connection, tool, arguments).await;
    }
    let seen = site.requests();
    assert_eq!(seen.len(), 4);
    for request in seen {
        assert!(!request.target.contains(KEY));
        assert_eq!(request.header("x-goog-api-key"), Some(KEY));
        let mask = request.header("x-goog-fieldmask").unwrap();
        assert!(!mask.is_empty() && !mask.contains('*') && !mask.contains(' '), "{mask}");
    }
}

#[tokio::test]
async fn as_many_locations_as_are_allowed_fit_into_an_address_of_google() {
    for suite in [suite(), legacy()] {
        let site = suite.site().await;
        let connection = suite.connect(suite.config(&site)).await;
        let locations = vec![json!({ "latitude": -59.913_868_812_345_67, "longitude": -110.752_245_412_345_67 }); 512];
        let told = call(&connection, "maps_elevation", json!({ "locations": locations })).await;
        assert!(!told.failed, "{}", told.result);
        let target = site.requests()[0].target.clone();
        assert!(
            target.len() < 16_000 && target.contains("-59.913869%2C-110.752245%7C"),
            "{}: {target:.100}",
            target.len()
        );
        let near = json!({ "latitude": -0.000_000_1, "longitude": 1e-12 });
        call(&connection, "maps_elevation", json!({ "locations": [near] })).await;
        assert!(site.requests()[1].target.contains("locations=0%2C0"), "{}", site.requests()[1].target);
    }
}

#[test]
fn both_tables_have_the_same_tools() {
    let names = |calls: &[linchpin_rest::Call]| calls.iter().map(linchpin_rest::Call::name).collect::<Vec<_>>();
    assert_eq!(names(CALLS), names(LEGACY_CALLS));
    let (new, old) = (CALLS.iter(), LEGACY_CALLS.iter());
    for (new, old) in new.zip(old) {
        for name in ["query", "place_id", "mode", "language", "region", "waypoints", "radius"] {
            assert_eq!(new.accepts(name), old.accepts(name), "{} {name}", new.name());
        }
    }
}

#[test]
fn without_a_key_it_does_not_start() {
    let get = |name: &str| (name == "GOOGLE_MAPS_API_KEY").then(|| "hidden".to_owned());
    assert!(open(Config::from_env(Vars::new(&get)).unwrap()).is_ok());
    let missing = open(Config::default()).unwrap_err().to_string();
    let want = "GOOGLE_MAPS_API_KEY environment variable is required\nHint: Create one at \
                https://console.cloud.google.com/google/maps-apis/credentials. Or name a file with GOOGLE_MAPS_API_KEY_FILE.";
    assert_eq!(missing, want);
    let legacy = Config::default().with(|config| {
        config.legacy = true;
        config.api.key = Some(Secret::new("k"));
    });
    assert!(open(legacy).is_ok());
}
