//! Our own tools: adding to a time, and the time between two.

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

/// What `time_add` takes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AddArgs {
    /// An IANA name.
    pub timezone: String,
    /// The time to start from; default now.
    pub datetime: Option<String>,
    /// Which one to start from where the clock shows the time twice.
    pub fold: Option<u8>,
    /// Calendar years.
    pub years: i64,
    /// Calendar months.
    pub months: i64,
    /// Calendar weeks.
    pub weeks: i64,
    /// Calendar days.
    pub days: i64,
    /// Hours that pass.
    pub hours: i64,
    /// Minutes that pass.
    pub minutes: i64,
    /// Seconds that pass.
    pub seconds: i64,
}

/// What `time_add` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Added {
    /// The time started from.
    pub start: TimeResult,
    /// The time arrived at.
    pub result: TimeResult,
    /// Seconds that pass from one to the other.
    pub seconds: i64,
    /// Only when the clock skips the calendar's answer: the result then lies behind the change by as much.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adjusted: bool,
}

/// What `time_diff` takes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiffArgs {
    /// An IANA name.
    pub start_timezone: String,
    /// Default now.
    pub start: Option<String>,
    /// Which one where the clock shows the time twice.
    pub start_fold: Option<u8>,
    /// An IANA name; default that of the start.
    pub end_timezone: Option<String>,
    /// Default now.
    pub end: Option<String>,
    /// Which one where the clock shows the time twice.
    pub end_fold: Option<u8>,
}

/// What `time_diff` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Between {
    /// The first time.
    pub start: TimeResult,
    /// The other time.
    pub end: TimeResult,
    /// Seconds that pass from the first to the other; negative when the other is earlier.
    pub seconds: i64,
    /// The same as an ISO 8601 duration in years, months, days, hours, minutes and seconds of the first time's calendar.
    pub duration: String,
}

impl Time {
    /// A time before or after another.
    ///
    /// # Errors
    /// When there is no such zone or time, or the result is out of range.
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

    /// The time between two.
    ///
    /// # Errors
    /// When there is no such zone or time.
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
            return Err(ToolError::new(format!("Missing required argument: {argument}")));
        }
        self.zone(name).await
    }

    /// The moment a caller wrote, or now, in whole seconds.
    fn given(&self, zone: &Zone, timezone: &str, text: Option<&str>, fold: Option<u8>) -> Result<Timestamp, ToolError> {
        let Some(text) = text else {
            return Timestamp::from_second(self.now()?.as_second()).map_err(|_| show::out_of_range());
        };
        let wrong = || {
            ToolError::new(format!("Invalid datetime: {}", zones::shortened(text)))
                .hint("Write it like 2026-03-29T14:30 (the zone's wall clock), or with an offset like 2026-03-29T14:30:00+02:00 or 2026-03-29T12:30:00Z.")
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

/// The time some calendar units away: the wall clock moves, and the day has it or it is put right.
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
    // The second of two equal times stays the second if the day reached has two as well.
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
