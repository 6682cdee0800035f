//! Durations on the command line.

use std::time::Duration;

/// Seconds, or a number with a unit.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.is_empty() {
        return Err("expected a duration such as 5, 500ms or 2m".to_owned());
    }
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("unknown unit `{unit}`: expected ms, s, m or h")),
    };
    let number: f64 = digits.trim().parse().map_err(|_| "expected a duration such as 5, 500ms or 2m".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ms) in [
            ("5", Some(5_000)),
            ("0.5", Some(500)),
            ("500ms", Some(500)),
            ("2m", Some(120_000)),
            ("0", Some(0)),
            ("-1", None),
            ("x", None),
            ("3 days", None),
        ] {
            assert_eq!(read(text).ok().map(|d| d.as_millis()), ms, "{text}");
        }
    }
}
