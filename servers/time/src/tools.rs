//! The published tools: current time and conversion.

use crate::Time;
use crate::show::{self, TimeConversion, TimeResult};
use crate::zones::{self, Zone};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use linchpin_kit::{Provenance, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `get_current_time`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CurrentArgs {
    /// An IANA name.
    pub timezone: String,
}

/// Arguments of `convert_time`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ConvertArgs {
    /// An IANA name.
    pub source_timezone: String,
    /// Hours and minutes, 24-hour format.
    pub time: String,
    /// An IANA name.
    pub target_timezone: String,
    /// The day in the source zone, `YYYY-MM-DD`. Default: today.
    #[serde(default)]
    pub date: Option<String>,
    /// Which of two equal local times is meant, 0 or 1. Default: the first.
    #[serde(default)]
    pub fold: Option<u8>,
}

impl Time {
    /// The current time in a zone.
    ///
    /// # Errors
    /// When the zone is unknown.
    pub async fn get_current_time(&self, args: CurrentArgs) -> Result<ToolOutput<TimeResult>, ToolError> {
        required("timezone", &args.timezone)?;
        let zone = self.zone(&args.timezone).await?;
        ToolOutput::json(TimeResult::of(&args.timezone, &zone, self.now()?)?, Provenance::Server)
    }

    /// Converts a time to another zone.
    ///
    /// # Errors
    /// When the zone, time or date is invalid, or a clock change skips the time.
    pub async fn convert_time(&self, args: ConvertArgs) -> Result<ToolOutput<TimeConversion>, ToolError> {
        required("source_timezone", &args.source_timezone)?;
        required("target_timezone", &args.target_timezone)?;
        let source = self.zone(&args.source_timezone).await?;
        let target = self.zone(&args.target_timezone).await?;
        let (hour, minute) = show::hours_minutes(&args.time)?;
        let day = match &args.date {
            Some(text) => show::date(text)?,
            None => source.rules.to_datetime(self.now()?).date(),
        };
        let at = moment(&source, &args.source_timezone, &args.time, day.at(hour, minute, 0, 0), args.fold)?;
        // Without our additional arguments the result is exactly the published one.
        let ours = args.date.is_some() || args.fold.is_some();
        let tell = if ours { TimeResult::telling_fold } else { TimeResult::of };
        let conversion = TimeConversion {
            source: tell(&args.source_timezone, &source, at)?,
            target: tell(&args.target_timezone, &target, at)?,
            time_difference: show::hours_ahead(source.at(at).0, target.at(at).0),
        };
        ToolOutput::json(conversion, Provenance::Server)
    }

    pub(crate) fn now(&self) -> Result<Timestamp, ToolError> {
        Timestamp::try_from(self.clock.now()).map_err(|_| show::out_of_range())
    }

    /// Looks up a zone. Reading its file, and searching for similar names, run on the blocking pool.
    pub(crate) async fn zone(&self, name: &str) -> Result<Zone, ToolError> {
        if let Some(zone) = self.zones.fresh(name) {
            return Ok(zone);
        }
        let (zones, asked) = (self.zones.clone(), name.to_owned());
        let found = tokio::task::spawn_blocking(move || zones.load(&asked).ok_or_else(|| zones.near(&asked))).await;
        found
            .map_err(|_| ToolError::new("Reading the time zones failed unexpectedly"))?
            .map_err(|near| unknown(name, &near))
    }
}

fn required(name: &str, value: &str) -> Result<(), ToolError> {
    if value.is_empty() { Err(ToolError::invalid(format!("Missing required argument: {name}"))) } else { Ok(()) }
}

fn unknown(name: &str, near: &[String]) -> ToolError {
    let why = zones::quoted(&format!("No time zone found with key {}", zones::shortened(name)));
    let fault = ToolError::invalid(format!("Invalid timezone: {why}"));
    match near {
        [] => fault.hint("Use an IANA name, case included, such as Europe/Paris or America/New_York."),
        [.., last] if near.len() > 1 => fault
            .hint(format!("Did you mean {} or {last}? Names are case-sensitive.", near[..near.len() - 1].join(", "))),
        [one, ..] => fault.hint(format!("Did you mean {one}? Names are case-sensitive.")),
    }
}

/// Resolves a local time in a zone; `said` is the argument.
///
/// # Errors
/// When a clock change skips it, or `fold` is neither 0 nor 1.
pub(crate) fn moment(
    zone: &Zone,
    timezone: &str,
    said: &str,
    wall: DateTime,
    fold: Option<u8>,
) -> Result<Timestamp, ToolError> {
    if fold.is_some_and(|fold| fold > 1) {
        return Err(
            ToolError::invalid("Invalid fold").hint("Use 0 for the first of two equal times, 1 for the second.")
        );
    }
    let found = zone.rules.to_ambiguous_timestamp(wall);
    let at = match found.offset() {
        AmbiguousOffset::Gap { before, after } => {
            let fault = ToolError::invalid(format!(
                "Invalid time: {} does not exist in {timezone} on {} (skipped by a clock change)",
                zones::shortened(said),
                wall.date()
            ));
            // With the old offset, the time is at or after the change.
            let behind = found.compatible().ok().and_then(|at| at.as_second().checked_add(1));
            let behind = behind.and_then(|second| Timestamp::from_second(second).ok());
            let change = behind.and_then(|at| zone.rules.preceding(at).next().map(|change| change.timestamp()));
            return Err(match change {
                Some(at) => {
                    let (last, first) = (before.to_datetime(at), after.to_datetime(at));
                    fault.hint(format!(
                        "The clock goes from {} straight to {}.",
                        last.strftime("%Y-%m-%d %H:%M"),
                        first.strftime("%Y-%m-%d %H:%M")
                    ))
                }
                None => fault,
            });
        }
        AmbiguousOffset::Fold { .. } if fold == Some(1) => found.later(),
        _ => found.compatible(),
    };
    at.map_err(|_| show::out_of_range())
}
