//! Values in the published server's notation: Python's `repr`.

use crate::value::Cell;
use std::fmt::Write as _;

/// Writes a value as Python's `repr` does.
pub(crate) fn repr(cell: &Cell, out: &mut String) {
    match cell {
        Cell::Null => out.push_str("None"),
        Cell::Integer(integer) => {
            // Writing to a String cannot fail.
            let _ = write!(out, "{integer}");
        }
        Cell::Real(real) => out.push_str(&float(*real)),
        Cell::Text(string) => text(string, out),
        Cell::Blob(blob) => bytes(blob, out),
    }
}
/// `repr` of a float: the shortest digits; positional for exponents from -4 to 15.
fn float(real: f64) -> String {
    if real.is_nan() {
        return "nan".into();
    }
    if real.is_infinite() {
        return if real > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let scientific = format!("{real:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{real}");
        if plain.contains('.') { plain } else { format!("{plain}.0") }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// `repr` of a string.
pub(crate) fn text(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
}

/// Whether Python shows a character unescaped. Rust's `{:?}` escapes the same categories; the letter in front keeps it
/// from escaping combining marks.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        c => !['a', c].iter().collect::<String>().escape_debug().any(|c| c == '\\'),
    }
}

/// `repr` of bytes.
fn bytes(bytes: &[u8], out: &mut String) {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    out.push('b');
    out.push(quote);
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' if char::from(*byte) == quote => {
                out.push('\\');
                out.push(quote);
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(cell: &Cell) -> String {
        let mut out = String::new();
        repr(cell, &mut out);
        out
    }

    #[test]
    fn python_shows_values_like_this() {
        for (real, shown) in [
            (1.5, "1.5"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e22, "1.25e+22"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(python(&Cell::Real(real)), shown);
        }
        for (text, shown) in [
            ("it's", "\"it's\""),
            ("\"", "'\"'"),
            ("'\"", "'\\'\"'"),
            ("a\\b\n\t\r\0\x7f", "'a\\\\b\\n\\t\\r\\x00\\x7f'"),
            ("é\u{a0}\u{ad}日本\u{200b}\u{e000}", "'é\\xa0\\xad日本\\u200b\\ue000'"),
            ("e\u{301} 😀\u{10ffff}", "'e\u{301} 😀\\U0010ffff'"),
        ] {
            assert_eq!(python(&Cell::Text(text.into())), shown);
        }
        assert_eq!(python(&Cell::Blob(b"\x01\x02'\xff~\n".to_vec())), "b\"\\x01\\x02'\\xff~\\n\"");
        assert_eq!(python(&Cell::Blob(b"'\"".to_vec())), "b'\\'\"'");
        assert_eq!(python(&Cell::Null), "None");
        assert_eq!(python(&Cell::Integer(i64::MIN)), "-9223372036854775808");
    }
}
