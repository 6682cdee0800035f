//! MCP servers for REST APIs as tables: one row for each endpoint.
//!
//! A row says the verb, the path with its arguments, how the answer is paged, and what is kept of it. The engine makes a tool
//! of it: the schema and the hints, the checked request, the key, turns, retries and cached responses, errors by kind, pages,
//! and results that are short and marked as third-party text.
//!
//! ```
//! use linchpin::Server;
//! use linchpin_kit::{Service, ToolError};
//! use linchpin_rest::{Api, Call, Config, Key, Pages, Rest, get, int, post, segment, specs, text};
//!
//! const CALLS: &[Call] = &[
//!     get("list_notes", "List notes", "notes", "Lists the notes of a folder.", "/folders/{folder}/notes")
//!         .args(&[segment("folder"), int("size").wire("per_page").range(1, 100).default("30")])
//!         .list("")
//!         .keep("id title body:500 author.name"),
//!     post("create_note", "Create a note", "notes", "Creates a note in a folder.", "/folders/{folder}/notes")
//!         .args(&[segment("folder"), text("title"), text("body").opt()])
//!         .keep("id title"),
//! ];
//! const API: Api = Api::new("notes", "Notes", "https://api.notes.example/v1", CALLS)
//!     .key(Key::bearer(&["NOTES_TOKEN"]).obtain("Get one at https://notes.example/settings."))
//!     .pages(Pages::Link(&["page"]));
//! const SERVICE: Service = Service { name: "notes", tools: &specs::<{ CALLS.len() }>(CALLS) };
//!
//! fn server(config: Config) -> Result<Server<Rest>, ToolError> {
//!     Rest::open(&API, config)?.add_to(Server::new("notes", "1.0"), &SERVICE)
//! }
//! # let config = Config::default().with(|config| config.key = Some(linchpin_kit::Secret::new("k")));
//! # assert_eq!(server(config).unwrap().tools().names().len(), 2);
//! ```
//!
//! What takes several requests is a row with code: [`Call::run`], which makes its requests as an [`Ask`]. What only needs a look
//! at the arguments has [`Call::before`], and what only completes the answer [`Call::after`]. Code finds what belongs to its
//! server as an [`Rest::state`]. Several rows may be one tool: [`methods`]. A rule across calls is a [`Guard`].
//!
//! # What holds for every row
//!
//! - Values never become a part of a URL unchecked: a segment of the path is one name, as it is and decoded.
//! - The key goes to the origin of the API's URL only. Redirects to another one are refused. It is in no error, result or log.
//! - A write is carried out where it was meant or not at all: only reads are redirected.
//! - Only requests that may be repeated are, at most three times, and only as `Retry-After` allows; all wait for their turn.
//! - What came of a request that changes something is never called a failure where that is not known.
//! - Results and the API's words in errors are marked as third-party content, without invisible characters.

// Files import downwards, in this order:
//
// ```text
// testing
// tools
// api  request  shape
// call  rest
// answer  ask  config  path
// profile
// arg  cache  clean  exchange  keep  pace  problem
// ```

mod answer;
mod api;
mod arg;
mod ask;
mod cache;
mod call;
mod clean;
mod config;
mod exchange;
mod keep;
mod pace;
mod path;
mod problem;
mod profile;
mod request;
mod rest;
mod shape;
#[cfg(feature = "testing")]
pub mod testing;
mod tools;

pub use answer::Answer;
pub use api::{Api, specs};
pub use arg::{Arg, Args, boolean, int, list, list_of, number, object, one_of, segment, segments, slashed, text};
pub use ask::{Ask, Narrow, Reply};
pub use call::{After, Before, Call, Inside, LEFT_OUT, Run, delete, get, methods, patch, post, put};
pub use clean::{file_text, one_line, tidy_markup, without_markup};
pub use config::Config;
pub use exchange::Exchange;
pub use path::is_path;
pub use problem::Problems;
pub use profile::{Base, Classes, Key, KeyScopes, Limits, Pages, Reset, Scope, Step};
pub use rest::{Authorize, Guard, Rest};
