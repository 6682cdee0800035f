//! The tools `time_add` and `time_diff`.

use crate::Time;
use crate::show::{self, TimeResult};
use crate::tools::moment;
use crate::zones::{self, Zone};
use jiff::civil::Time as ClockTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Span, Timestamp, Unit};
use linchpin_kit::{Provenance, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arguments of `time_add`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AddArgs {
    /// An IANA name.
    pub timezone: String,
    /// The start time; default now.
    pub datetime: Option<String>,
    /// Which of two equal local times is the start.
    pub fold: Option<u8>,
    /// Calendar years.
    pub years: i64,
    /// Calendar months.
    pub months: i64,
    /// Calendar weeks.
    pub weeks: i64,
    /// Calendar days.
    pub days: i64,
    /// Elapsed hours.
    pub hours: i64,
    /// Elapsed minutes.
    pub minutes: i64,
    /// Elapsed seconds.
    pub seconds: i64,
}

/// The result of `time_add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Added {
    /// The start time.
    pub start: TimeResult,
    /// The resulting time.
    pub result: TimeResult,
    /// Elapsed seconds between them.
    pub seconds: i64,
    /// Present if the local time does not exist because of a clock change: the result is moved past the change by as
    /// much.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adjusted: bool,
}

/// Arguments of `time_diff`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiffArgs {
    /// An IANA name.
    pub start_timezone: String,
    /// Default now.
    pub start: Option<String>,
    /// Which of two equal local times is meant.
    pub start_fold: Option<u8>,
    /// An IANA name; default that of the start.
    pub end_timezone: Option<String>,
    /// Default now.
    pub end: Option<String>,
    /// Which of two equal local times is meant.
    pub end_fold: Option<u8>,
}

/// The result of `time_diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Between {
    /// The first time.
    pub start: TimeResult,
    /// The second time.
    pub end: TimeResult,
    /// Elapsed seconds from the first to the second; negative if the second is earlier.
    pub seconds: i64,
    /// The same as an ISO 8601 duration of years, months, days, hours, minutes and seconds in the zone of the first
    /// time.
    pub duration: String,
}

impl Time {
    /// Adds to a time.
    ///
    /// # Errors
    /// When the zone or time is invalid, or the result is out of range.
    pub async fn time_add(&self, args: AddArgs) -> Result<ToolOutput<Added>, ToolError> {
        let zone = self.zone_of("timezone", &args.timezone).await?;
        let start = self.given(&zone, &args.timezone, args.datetime.as_deref(), args.fold)?;
        let (reached, adjusted) = calendar(&zone, start, &args)?;
        let parts = [(args.hours, 3600), (args.minutes, 60), (args.seconds, 1)];
        let passed = parts.iter().try_fold(0_i64, |sum, (count, unit)| sum.checked_add(count.checked_mul(*unit)?));
        let end = passed.and_then(|seconds| reached.checked_add(SignedDuration::from_secs(seconds)).ok());
        let end = end.ok_or_else(show::out_of_range)?;
        let added = Added {
            start: TimeResult::telling_fold(&args.timezone, &zone, start)?,
            result: TimeResult::telling_fold(&args.timezone, &zone, end)?,
            seconds: whole_seconds(start, end),
            adjusted,
        };
        ToolOutput::json(added, Provenance::Server)
    }

    /// The duration between two times.
    ///
    /// # Errors
    /// When the zone or time is invalid.
    pub async fn time_diff(&self, args: DiffArgs) -> Result<ToolOutput<Between>, ToolError> {
        let first = self.zone_of("start_timezone", &args.start_timezone).await?;
        let other_name = args.end_timezone.as_deref().unwrap_or(&args.start_timezone);
        let other = self.zone_of("end_timezone", other_name).await?;
        let start = self.given(&first, &args.start_timezone, args.start.as_deref(), args.start_fold)?;
        let end = self.given(&other, other_name, args.end.as_deref(), args.end_fold)?;
        let zoned = |at: Timestamp| at.to_zoned(first.rules.clone());
        let duration = zoned(start).until((Unit::Year, &zoned(end))).map_err(|_| show::out_of_range())?;
        let between = Between {
            start: TimeResult::telling_fold(&args.start_timezone, &first, start)?,
            end: TimeResult::telling_fold(other_name, &other, end)?,
            seconds: whole_seconds(start, end),
            duration: duration.to_string(),
        };
        ToolOutput::json(between, Provenance::Server)
    }

    async fn zone_of(&self, argument: &str, name: &str) -> Result<Zone, ToolError> {
        if name.is_empty() {
            return Err(ToolError::invalid(format!("Missing required argument: {argument}")));
        }
        self.zone(name).await
    }

    /// Parses a time argument, default now, in whole seconds.
    fn given(&self, zone: &Zone, timezone: &str, text: Option<&str>, fold: Option<u8>) -> Result<Timestamp, ToolError> {
        let Some(text) = text else {
            return Timestamp::from_second(self.now()?.as_second()).map_err(|_| show::out_of_range());
        };
        let wrong = || {
            ToolError::invalid(format!("Invalid datetime: {}", zones::shortened(text)))
                .hint("Use a format like 2026-03-29T14:30 (local time in the zone), or with an offset 2026-03-29T14:30:00+02:00 or 2026-03-29T12:30:00Z.")
        };
        let pieces = if text.len() <= 64 { Pieces::parse(text).map_err(|_| wrong())? } else { return Err(wrong()) };
        if pieces.time_zone_annotation().is_some() || !(1..=9999).contains(&pieces.date().year()) {
            return Err(wrong());
        }
        let time = pieces.time().unwrap_or(ClockTime::midnight());
        let time = ClockTime::new(time.hour(), time.minute(), time.second(), 0).map_err(|_| wrong())?;
        let wall = pieces.date().to_datetime(time);
        match pieces.to_numeric_offset() {
            Some(offset) => offset.to_timestamp(wall).map_err(|_| show::out_of_range()),
            None => moment(zone, timezone, &wall.strftime("%H:%M").to_string(), wall, fold),
        }
    }
}

/// Adds calendar units to the local time, adjusted if that day does not have it.
fn calendar(zone: &Zone, start: Timestamp, args: &AddArgs) -> Result<(Timestamp, bool), ToolError> {
    if [args.years, args.months, args.weeks, args.days] == [0; 4] {
        return Ok((start, false));
    }
    let span = Span::new()
        .try_years(args.years)
        .and_then(|span| span.try_months(args.months))
        .and_then(|span| span.try_weeks(args.weeks))
        .and_then(|span| span.try_days(args.days));
    let wall =
        span.and_then(|span| zone.rules.to_datetime(start).checked_add(span)).map_err(|_| show::out_of_range())?;
    let found = zone.rules.to_ambiguous_timestamp(wall);
    let adjusted = matches!(found.offset(), AmbiguousOffset::Gap { .. });
    // The second of two equal local times stays the second if the resulting day has two as well.
    let second = match zone.rules.to_ambiguous_timestamp(zone.rules.to_datetime(start)).offset() {
        AmbiguousOffset::Fold { after, .. } => zone.at(start).0 == after,
        _ => false,
    };
    let reached = match found.offset() {
        AmbiguousOffset::Fold { .. } if second => found.later(),
        _ => found.compatible(),
    };
    Ok((reached.map_err(|_| show::out_of_range())?, adjusted))
}

fn whole_seconds(start: Timestamp, end: Timestamp) -> i64 {
    end.as_second() - start.as_second()
}
