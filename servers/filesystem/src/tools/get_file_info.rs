//! `get_file_info`: metadata.

use linchpin_kit::{ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::{Answer, NoMore};
use crate::inner::Inner;
use crate::os::{self, Kind};
use crate::resolve::Last;

pub(crate) const GET_FILE_INFO: ToolSpec = ToolSpec::reads(
    "get_file_info",
    "Get File Info",
    "read",
    "Returns size, times, type and permissions of a file or directory.",
);

/// Arguments of `get_file_info`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct GetFileInfo {
    /// The file or directory.
    pub path: String,
}

impl Inner {
    pub(crate) fn file_info(&self, args: &GetFileInfo) -> Result<Answer<NoMore>, ToolError> {
        let place = self.resolve(&args.path, Last::Follow)?;
        let meta = place.existing("stat")?;
        let created = os::created(place.dir(), place.name()).unwrap_or(meta.changed);
        let text = format!(
            "size: {}\ncreated: {}\nmodified: {}\naccessed: {}\nisDirectory: {}\nisFile: {}\npermissions: {:03o}",
            meta.size,
            js_date(created),
            js_date(meta.modified),
            js_date(meta.accessed),
            meta.kind == Kind::Dir,
            meta.kind == Kind::File,
            meta.mode & 0o777,
        );
        Ok(Answer::new(text, NoMore {}))
    }
}

/// A time as JavaScript prints it in UTC, `Sat Nov 21 2026 00:10:55 GMT+0000 (Coordinated Universal Time)`.
fn js_date(seconds: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years start in March, so that the leap day is the last day.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    let index = |value: i64| usize::try_from(value).unwrap_or(0);
    format!(
        "{} {} {day:02} {year:04} {:02}:{:02}:{:02} GMT+0000 (Coordinated Universal Time)",
        DAYS[index(days.rem_euclid(7))],
        MONTHS[index(month)],
        second / 3_600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_javascript_prints_them() {
        for (seconds, text) in [
            (0, "Thu Jan 01 1970 00:00:00"),
            (951_782_399, "Mon Feb 28 2000 23:59:59"),
            (951_782_400, "Tue Feb 29 2000 00:00:00"),
            (1_795_219_855, "Sat Nov 21 2026 00:10:55"),
            (-1, "Wed Dec 31 1969 23:59:59"),
            (4_107_542_400, "Mon Mar 01 2100 00:00:00"),
        ] {
            assert_eq!(js_date(seconds), format!("{text} GMT+0000 (Coordinated Universal Time)"));
        }
    }
}
