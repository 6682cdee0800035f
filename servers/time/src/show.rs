//! Times in results.

use crate::zones::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, Weekday};
use jiff::tz::{AmbiguousOffset, Offset};
use linchpin_kit::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A local time in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TimeResult {
    /// The zone's IANA name.
    pub timezone: String,
    /// Date and time in seconds with the UTC offset, ISO 8601: `2026-11-21T09:30:00+01:00`.
    pub datetime: String,
    /// The day of the week in English.
    pub day_of_week: String,
    /// Whether daylight saving time is in force.
    pub is_dst: bool,
    /// Present if the clock is set back and this local time occurs twice: 0 for the first, 1 for the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<u8>,
}

/// A time in two zones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TimeConversion {
    /// In the source zone.
    pub source: TimeResult,
    /// In the target zone.
    pub target: TimeResult,
    /// The offset of the target from the source in hours: `+9.0h`, `-5.75h`.
    pub time_difference: String,
}

impl TimeResult {
    /// The local time in the zone, without `fold`.
    ///
    /// # Errors
    /// When it is outside the years 1 to 9999.
    pub(crate) fn of(timezone: &str, zone: &Zone, at: Timestamp) -> Result<Self, ToolError> {
        let (offset, is_dst) = zone.at(at);
        let shown = offset.to_datetime(at);
        if !(1..=9999).contains(&shown.year()) {
            return Err(out_of_range());
        }
        let datetime = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}",
            shown.year(),
            shown.month(),
            shown.day(),
            shown.hour(),
            shown.minute(),
            shown.second(),
            written(offset)
        );
        let day_of_week = english(shown.weekday()).to_owned();
        Ok(Self { timezone: timezone.to_owned(), datetime, day_of_week, is_dst, fold: None })
    }

    /// The same with `fold`, if the local time occurs twice.
    ///
    /// # Errors
    /// As [`TimeResult::of`].
    pub(crate) fn telling_fold(timezone: &str, zone: &Zone, at: Timestamp) -> Result<Self, ToolError> {
        let (offset, _) = zone.at(at);
        let fold = match zone.rules.to_ambiguous_timestamp(offset.to_datetime(at)).offset() {
            AmbiguousOffset::Fold { after, .. } => Some(u8::from(offset == after)),
            _ => None,
        };
        Ok(Self { fold, ..Self::of(timezone, zone, at)? })
    }
}

/// The error for times out of range: years without four digits, and the last hours of 9999, which are in the year 10000
/// in some zones.
pub(crate) fn out_of_range() -> ToolError {
    ToolError::invalid("The date is out of range").hint("The range is the year 1 to 9999-12-30T22:00:00Z.")
}

/// `+01:00`; with seconds if the offset has some, as before standard time.
fn written(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, rest) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let minutes = format!("{sign}{:02}:{:02}", rest / 3600, rest / 60 % 60);
    if rest % 60 == 0 { minutes } else { format!("{minutes}:{:02}", rest % 60) }
}

/// How far `target` is ahead of `source`: one decimal for whole hours, otherwise up to two without trailing zeros.
pub(crate) fn hours_ahead(source: Offset, target: Offset) -> String {
    let seconds = target.seconds() - source.seconds();
    let hours = f64::from(seconds) / 3600.0;
    if seconds % 3600 == 0 {
        return format!("{hours:+.1}h");
    }
    let text = format!("{hours:+.2}");
    format!("{}h", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Parses a date, `YYYY-MM-DD`.
pub(crate) fn date(text: &str) -> Result<Date, ToolError> {
    let wrong = || {
        ToolError::invalid(format!("Invalid date: {}. Expected YYYY-MM-DD", crate::zones::shortened(text)))
            .hint("Use a date like 2026-03-29, or omit it for today.")
    };
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &str, len: usize| part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts[..] else { return Err(wrong()) };
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return Err(wrong());
    }
    let (Ok(year), Ok(month), Ok(day)) = (year.parse::<i16>(), month.parse(), day.parse()) else { return Err(wrong()) };
    Date::new(year, month, day).ok().filter(|_| year > 0).ok_or_else(wrong)
}

/// Hours and minutes: `9:05`, `09:05` or `9:5`.
pub(crate) fn hours_minutes(text: &str) -> Result<(i8, i8), ToolError> {
    let number = |part: &str, most: i8| {
        let fits = (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i8>().ok().filter(|number| fits && *number <= most)
    };
    let parts = text.split_once(':').and_then(|(hour, minute)| Some((number(hour, 23)?, number(minute, 59)?)));
    parts.ok_or_else(|| ToolError::invalid("Invalid time format. Expected HH:MM [24-hour format]"))
}

fn english(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_written_as_the_published_server_writes_them() {
        for (source, target, expected) in [
            (0, 9 * 3600, "+9.0h"),
            (3600, 3600, "+0.0h"),
            (20_700, 0, "-5.75h"),
            (0, 19_800, "+5.5h"),
            (-36_000, 50_400, "+24.0h"),
            (561, 0, "-0.16h"),
            (4, 0, "-0h"),
            (0, 3_590, "+1h"),
            (0, 630, "+0.17h"),
            (0, 450, "+0.12h"),
        ] {
            let offset = |seconds| Offset::from_seconds(seconds).unwrap();
            assert_eq!(hours_ahead(offset(source), offset(target)), expected, "{source} {target}");
        }
    }

    #[test]
    fn times_are_read_as_the_published_server_reads_them() {
        for (text, expected) in [
            ("9:5", Some((9, 5))),
            ("09:05", Some((9, 5))),
            ("23:59", Some((23, 59))),
            ("0:0", Some((0, 0))),
            ("25:00", None),
            ("24:00", None),
            ("9:60", None),
            ("9", None),
            ("9:", None),
            (":5", None),
            (" 9:05", None),
            ("9:05 ", None),
            ("9:05:00", None),
            ("+9:05", None),
            ("009:05", None),
            ("9:+5", None),
            ("", None),
            ("9.05", None),
        ] {
            assert_eq!(hours_minutes(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn dates_have_one_form() {
        assert_eq!(date("2024-02-29").unwrap(), Date::constant(2024, 2, 29));
        for bad in [
            "2023-02-29",
            "2024-2-9",
            "24-02-09",
            "2024-13-01",
            "2024-00-01",
            "0000-01-01",
            "today",
            "",
            "2024-02-29T00",
            "+2024-02-01",
            "2024-02",
        ] {
            assert!(date(bad).is_err(), "{bad:?}");
        }
    }
}
