//! The rows of the table, and what the old APIs share with it.

use crate::fail::failing;
use crate::{place, routes, shape};
use linchpin_rest::{Arg, Args, Ask, Call, Pages, get, list, list_of, number, object, one_of, post, segment, text};
use serde_json::json;

/// The calls, in the order of the published server.
pub const CALLS: &[Call] = &[
    GEOCODE,
    REVERSE,
    SEARCH,
    DETAILS,
    MATRIX.run(|rest, args| Box::pin(routes::matrix(rest, args))),
    ELEVATION,
    DIRECTIONS.run(|rest, args| Box::pin(routes::directions(rest, args))),
];

pub(crate) const GEOCODE: Call =
    get("maps_geocode", "Geocode", "geocoding", "Finds the coordinates of an address.", "/geocode/json")
        .args(&[text("address").about("In any form."), LANGUAGE, REGION])
        .problems(failing!("Geocoding", "Geocoding API"))
        .tidy(shape::geocoded);

pub(crate) const REVERSE: Call =
    get("maps_reverse_geocode", "Reverse geocode", "geocoding", "Finds the address at coordinates.", "/geocode/json")
        .args(&[
            number("latitude", -90.0, 90.0).local().about("Degrees."),
            number("longitude", -180.0, 180.0).local().about("Degrees."),
            LANGUAGE,
        ])
        .adjust(|ask, args| ask.query("latlng", place::pair(args.get("latitude"), args.get("longitude"))))
        .problems(failing!("Reverse geocoding", "Geocoding API"))
        .tidy(shape::reversed);

pub(crate) const ELEVATION: Call = get(
    "maps_elevation",
    "Elevation",
    "geocoding",
    "Returns the elevation of locations, in meters.",
    "/elevation/json",
)
.args(&[object("locations", LOCATIONS).local().about("In degrees.")])
.adjust(|ask, args| ask.query("locations", place::pairs(args.get("locations"))))
.list("results")
.items("results")
.keep("elevation location resolution")
.problems(failing!("Elevation request", "Elevation API"));

/// The names and descriptions of a tool that both tables have.
pub(crate) struct Named(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
);

pub(crate) const SEARCH_NAMES: Named =
    Named("maps_search_places", "Search places", "places", "Searches for places, such as: vegan restaurants in Oslo.");
pub(crate) const DETAILS_NAMES: Named = Named(
    "maps_place_details",
    "Place details",
    "places",
    "Returns address, phone, website, rating, reviews and hours of a place.",
);
pub(crate) const MATRIX_NAMES: Named = Named(
    "maps_distance_matrix",
    "Distance matrix",
    "routes",
    "Returns distance and travel time from each origin to each destination.",
);
pub(crate) const DIRECTIONS_NAMES: Named =
    Named("maps_directions", "Directions", "routes", "Returns routes between two places, step by step.");

const SEARCH: Call = post(SEARCH_NAMES.0, SEARCH_NAMES.1, SEARCH_NAMES.2, SEARCH_NAMES.3, "/places:searchText")
    .at("places")
    .args(&[QUERY.wire("textQuery"), CENTER, RADIUS, LANGUAGE.wire("languageCode"), REGION.wire("regionCode")])
    .adjust(around)
    .headers(&[(
        MASK,
        "places.id,places.displayName,places.formattedAddress,places.location,places.rating,places.types,nextPageToken",
    )])
    .reads()
    .list("places")
    .items("places")
    .pages(Pages::Token { at: "nextPageToken", param: "pageToken" })
    .problems(failing!("Place search", "Places API (New)"))
    .tidy(shape::places);

const DETAILS: Call = get(DETAILS_NAMES.0, DETAILS_NAMES.1, DETAILS_NAMES.2, DETAILS_NAMES.3, "/places/{place_id}")
    .at("places")
    .args(&[
        segment("place_id").about("From another result."),
        LANGUAGE.wire("languageCode"),
        REGION.wire("regionCode"),
    ])
    .headers(&[(
        MASK,
        "displayName,formattedAddress,location,nationalPhoneNumber,websiteUri,rating,reviews,regularOpeningHours",
    )])
    .problems(failing!("Place details request", "Places API (New)"))
    .tidy(shape::details);

pub(crate) const MATRIX: Call =
    post(MATRIX_NAMES.0, MATRIX_NAMES.1, MATRIX_NAMES.2, MATRIX_NAMES.3, "/distanceMatrix/v2:computeRouteMatrix")
        .at("routes")
        .args(MATRIX_ARGS)
        .headers(&[(
            MASK,
            "originIndex,destinationIndex,status,condition,distanceMeters,duration,staticDuration,localizedValues",
        )])
        .reads()
        .list("results")
        .items("results")
        .beside("origin_addresses destination_addresses")
        .problems(failing!("Distance matrix request", "Routes API"));

pub(crate) const DIRECTIONS: Call = post(
    DIRECTIONS_NAMES.0,
    DIRECTIONS_NAMES.1,
    DIRECTIONS_NAMES.2,
    DIRECTIONS_NAMES.3,
    "/directions/v2:computeRoutes",
)
.at("routes")
.args(DIRECTIONS_ARGS)
.headers(&[(
    MASK,
    "routes.description,routes.warnings,routes.distanceMeters,routes.duration,routes.staticDuration,routes.localizedValues,\
     routes.legs.steps.distanceMeters,routes.legs.steps.staticDuration,routes.legs.steps.localizedValues,\
     routes.legs.steps.travelMode,routes.legs.steps.navigationInstruction.instructions,\
     routes.legs.steps.transitDetails",
)])
.reads()
.list("routes")
.items("routes")
.problems(failing!("Directions request", "Routes API"));

/// What is asked for: what it costs depends on it.
const MASK: &str = "x-goog-fieldmask";

pub(crate) const QUERY: Arg = text("query").about("What, and where.");
pub(crate) const CENTER: Arg = object("location", LOCATION).local().opt().about("Prefer what is near.");
pub(crate) const RADIUS: Arg =
    number("radius", 1.0, place::RADIUS_MAX).local().opt().about("Meters around location, at most 50000.");
pub(crate) const LANGUAGE: Arg = text("language").unlisted().like(place::is_code, "a code such as en or pt-BR");
pub(crate) const REGION: Arg = text("region").unlisted().like(place::is_code, "a code such as us");

pub(crate) const MATRIX_ARGS: &[Arg] = &[
    list("origins").local().like(place::is_place, PLACE).about("Addresses, lat,lng, or place_id:…."),
    list("destinations").local().like(place::is_place, PLACE).about("The same."),
    MODE,
    DEPARTURE.unlisted(),
    ARRIVAL.unlisted(),
    AVOID.unlisted(),
    UNITS,
    LANGUAGE.local(),
    REGION.local(),
];

pub(crate) const DIRECTIONS_ARGS: &[Arg] = &[
    text("origin").local().like(place::is_place, PLACE).about("Address, lat,lng, or place_id:…."),
    text("destination").local().like(place::is_place, PLACE).about("The same."),
    MODE,
    list("waypoints").local().opt().like(place::is_place, PLACE).about("Places on the way."),
    DEPARTURE,
    ARRIVAL.unlisted(),
    AVOID,
    UNITS,
    LANGUAGE.local(),
    REGION.local(),
];

const PLACE: &str =
    "an address, coordinates such as 59.91,10.75 (latitude at most 90, longitude at most 180), or place_id:…";
const MODE: Arg =
    one_of("mode", &["driving", "walking", "bicycling", "transit"]).local().default("driving").about("How to travel.");
const DEPARTURE: Arg = text("departure_time")
    .local()
    .opt()
    .like(place::is_time_or_now, "now, or a time such as 2026-12-24T18:00:00Z")
    .about("now, or 2026-12-24T18:00:00Z.");
const ARRIVAL: Arg = text("arrival_time")
    .local()
    .opt()
    .like(place::is_time, "a time such as 2026-12-24T18:00:00Z")
    .about("With transit.");
const AVOID: Arg = list_of("avoid", &["tolls", "highways", "ferries"]).local().opt().about("What to avoid.");
const UNITS: Arg = one_of("units", &["metric", "imperial"]).local().unlisted();

const LOCATION: &str = r#"{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90},"longitude":{"type":"number","minimum":-180,"maximum":180}},"required":["latitude","longitude"]}"#;
const LOCATIONS: &str = r#"{"type":"array","minItems":1,"maxItems":512,"items":{"type":"object","properties":{"latitude":{"type":"number","minimum":-90,"maximum":90},"longitude":{"type":"number","minimum":-180,"maximum":180}},"required":["latitude","longitude"]}}"#;

/// A circle that results are preferred in.
fn around(ask: Ask, args: &Args) -> Ask {
    let Some(center) = args.get("location") else { return ask };
    let center = json!({ "latitude": center["latitude"], "longitude": center["longitude"] });
    let radius = args.get("radius").cloned().unwrap_or(json!(place::RADIUS_MAX));
    ask.member("locationBias", json!({ "circle": { "center": center, "radius": radius } }))
}
