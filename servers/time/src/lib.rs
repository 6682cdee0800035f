//! Time and time zones as an MCP server.
//!
//! The tools of PyPI's `mcp-server-time` with the same texts, and two more for date arithmetic. Zones come from the
//! system's time zone database, and from a built-in one if the system has none or lacks a zone. A zone argument is
//! looked up in the list of known names and never becomes a path.

// This crate must not use the network, the command line, or any file other than those of the time zone database.
//
// Files import downwards, in this order:
//
// ```text
// reckon
// tools
// show
// clock  schema  zones
// ```

mod clock;
mod reckon;
mod schema;
mod show;
mod tools;
mod zones;

pub use clock::Clock;
pub use reckon::{AddArgs, Added, Between, DiffArgs};
pub use show::{TimeConversion, TimeResult};
pub use tools::{ConvertArgs, CurrentArgs};
pub use zones::embedded_tzdb_version;

use linchpin::Server;
use linchpin_kit::{Given, Service, ToolChoice, ToolError, ToolSet, ToolSpec, Vars, flag};
use std::path::PathBuf;
use std::sync::Arc;
use zones::Zones;

const GET_CURRENT_TIME: ToolSpec = ToolSpec::reads(
    "get_current_time",
    "Current time",
    "time",
    "Returns the current date, time, weekday and UTC offset in a time zone.",
);
const CONVERT_TIME: ToolSpec = ToolSpec::reads(
    "convert_time",
    "Convert a time",
    "time",
    "Converts a local time in one time zone to another, today or on a given date.",
);
const TIME_ADD: ToolSpec = ToolSpec::reads(
    "time_add",
    "Add to a time",
    "reckon",
    "Adds a duration to a time; negative numbers subtract. Years to days keep the local time of day, hours to seconds are elapsed time.",
).extra();
const TIME_DIFF: ToolSpec = ToolSpec::reads(
    "time_diff",
    "Time between",
    "reckon",
    "Returns the duration between two times, in seconds and by calendar.",
)
.extra();

/// All tools, the published ones first.
pub const SERVICE: Service = Service { name: "time", tools: &[GET_CURRENT_TIME, CONVERT_TIME, TIME_ADD, TIME_DIFF] };

/// The source of time zone rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tzdb {
    /// The system's database if there is one; missing zones come from the built-in one. `dir` is searched first.
    System {
        /// A directory of compiled zones (TZif), as in `TZDIR`. Default: only the usual locations.
        dir: Option<PathBuf>,
    },
    /// Only the built-in database.
    Embedded,
}

impl Default for Tzdb {
    fn default() -> Self {
        Self::System { dir: None }
    }
}

linchpin_kit::options! {
    /// The configuration. The default behaves like the published server.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_TIME" then settle {
        /// Default time zone for models, an IANA name.
        ///
        /// The one that models use if the user names none.
        pub local_timezone: Option<String> = None
            => flag::text("ZONE").variable("MCP_TIME_LOCAL_TIMEZONE").variable("LOCAL_TIMEZONE")
                .default("the system's, else UTC"),
        /// Time zone database: the system's, then the embedded one; or the embedded one only.
        pub tzdb: Tzdb = Tzdb::default()
            => flag::with("system|embedded", |tzdb, text| Tzdb::named(text).map(|named| *tzdb = named)).default("system"),
        /// The clock, replaceable in tests.
        pub clock: Clock = Clock::default(),
        /// The enabled tools and their names.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    /// `TZDIR`. The system's own zone (`TZ` among others) is looked up when the server is opened.
    fn settle(&mut self, vars: Vars<'_>, _: &Given) -> Result<(), ToolError> {
        if let Tzdb::System { dir } = &mut self.tzdb {
            *dir = vars.path("TZDIR");
        }
        Ok(())
    }
}

impl Tzdb {
    /// Parses `system` or `embedded`, the values of `--tzdb`.
    ///
    /// # Errors
    /// For any other text.
    pub fn named(word: &str) -> Result<Self, ToolError> {
        match word {
            "system" => Ok(Self::System { dir: None }),
            "embedded" => Ok(Self::Embedded),
            other => {
                Err(ToolError::new(format!("Unknown time zone database: {other}")).hint("Known: system, embedded."))
            }
        }
    }
}

/// The server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Time {
    zones: Arc<Zones>,
    clock: Clock,
    local: Arc<str>,
    tools: ToolChoice,
}

impl Time {
    /// Finds the time zone database and the local zone. Also returns warnings for standard error.
    ///
    /// Lists the database's directory, which takes a few milliseconds.
    ///
    /// # Errors
    /// When the configured local zone is unknown; the error is one line.
    pub fn open(config: Config) -> Result<(Self, Vec<String>), ToolError> {
        let mut warnings = Vec::new();
        let zones = Zones::open(&config.tzdb, &mut warnings);
        let local = match &config.local_timezone {
            Some(name) if zones.load_trusted(name).is_some() => name.clone(),
            Some(name) => {
                let near = zones.near(name);
                let near = if near.is_empty() { String::new() } else { format!(" (near: {})", near.join(", ")) };
                return Err(ToolError::new(format!(
                    "invalid --local-timezone {}: not a known IANA timezone name{near}",
                    zones::quoted(&zones::shortened(name))
                )));
            }
            None => zones.of_the_system().unwrap_or_else(|| {
                warnings
                    .push("The name of the system's time zone is unknown; using UTC (see --local-timezone).".into());
                "UTC".to_owned()
            }),
        };
        Ok((Self { zones: zones.into(), clock: config.clock, local: local.into(), tools: config.tools }, warnings))
    }

    /// The local zone, which models use if the user names none.
    #[must_use]
    pub fn local_timezone(&self) -> &str {
        &self.local
    }

    /// The time zone databases and their versions: `2025b (system), 2026e (built in)`.
    #[must_use]
    pub fn tzdb(&self) -> String {
        self.zones.versions()
    }

    /// Registers the enabled tools on a server.
    ///
    /// # Errors
    /// When the configuration names an unknown tool.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Self>, ToolError> {
        let instructions = format!(
            "Time zones are IANA names such as `Europe/Paris`, case included. The local time zone is `{}`: use it when the \
             user names none. Time zone database: {}.",
            self.local,
            self.tzdb()
        );
        let (choice, local) = (self.tools.clone(), self.local.clone());
        let server = ToolSet::open(server.state(self), &SERVICE, &choice)?
            .instructions(instructions)
            .tool_as(&GET_CURRENT_TIME, |tool| tool.input_schema(schema::current(&local)), handlers::get_current_time)
            .tool_as(&CONVERT_TIME, |tool| tool.input_schema(schema::convert(&local)), handlers::convert_time)
            .tool_as(&TIME_ADD, |tool| tool.input_schema(schema::add(&local)), handlers::time_add)
            .tool_as(&TIME_DIFF, |tool| tool.input_schema(schema::diff(&local)), handlers::time_diff)
            .close();
        Ok(server)
    }
}

/// The methods as handlers, whose errors keep their kinds.
mod handlers {
    use crate::{AddArgs, Added, Between, ConvertArgs, CurrentArgs, DiffArgs, Time, TimeConversion, TimeResult};
    use linchpin::Result;
    use linchpin_kit::ToolOutput;

    pub(super) async fn get_current_time(time: &Time, args: CurrentArgs) -> Result<ToolOutput<TimeResult>> {
        Ok(time.get_current_time(args).await?)
    }

    pub(super) async fn convert_time(time: &Time, args: ConvertArgs) -> Result<ToolOutput<TimeConversion>> {
        Ok(time.convert_time(args).await?)
    }

    pub(super) async fn time_add(time: &Time, args: AddArgs) -> Result<ToolOutput<Added>> {
        Ok(time.time_add(args).await?)
    }

    pub(super) async fn time_diff(time: &Time, args: DiffArgs) -> Result<ToolOutput<Between>> {
        Ok(time.time_diff(args).await?)
    }
}
