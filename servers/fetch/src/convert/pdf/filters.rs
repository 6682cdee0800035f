//! Decodes stream filters other than zlib.

use super::lexer::Dict;

/// Reverses PNG predictors.
pub(super) fn unpredicted(data: Vec<u8>, parameters: Option<&Dict>) -> Vec<u8> {
    let number = |key: &str, usual: usize| {
        parameters.and_then(|p| p.get(key)?.number()).map_or(usual, |n| n.clamp(1.0, 65_536.0) as usize)
    };
    if number("Predictor", 1) < 10 {
        return data;
    }
    let pixel = (number("Colors", 1) * number("BitsPerComponent", 8)).div_ceil(8);
    let width = (number("Columns", 1) * number("Colors", 1) * number("BitsPerComponent", 8)).div_ceil(8);
    // The declared row size may exceed memory.
    let width = width.min(data.len());
    let mut out: Vec<u8> = Vec::with_capacity(data.len());
    let mut above = vec![0_u8; width];
    for row in data.chunks(width + 1) {
        let (kind, raw) = (row[0], &row[1..]);
        let mut line = vec![0_u8; width];
        for (n, byte) in raw.iter().enumerate() {
            let left = if n >= pixel { line[n - pixel] } else { 0 };
            let corner = if n >= pixel { above[n - pixel] } else { 0 };
            let guess = match kind {
                1 => left,
                2 => above[n],
                3 => u8::try_from((u16::from(left) + u16::from(above[n])) / 2).unwrap_or(0),
                4 => paeth(left, above[n], corner),
                _ => 0,
            };
            line[n] = byte.wrapping_add(guess);
        }
        out.extend_from_slice(&line[..raw.len()]);
        above = line;
    }
    out
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let [a, b, c] = [left, above, corner].map(i16::from);
    let guess = a + b - c;
    let (da, db, dc) = ((guess - a).abs(), (guess - b).abs(), (guess - c).abs());
    if da <= db && da <= dc {
        left
    } else if db <= dc {
        above
    } else {
        corner
    }
}

pub(super) fn lzw(data: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    // Each entry refers to earlier output.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let (mut bits, mut have, mut width) = (0_u32, 0, 9);
    let mut last: Option<(usize, usize)> = None;
    for byte in data {
        bits = bits << 8 | u32::from(*byte);
        have += 8;
        if have < width {
            continue;
        }
        have -= width;
        let code = (bits >> have) as usize & ((1 << width) - 1);
        bits &= (1 << have) - 1;
        let start = out.len();
        match code {
            256 => {
                table.clear();
                (width, last) = (9, None);
                continue;
            }
            257 => break,
            0..=255 => out.push(u8::try_from(code).unwrap_or(0)),
            _ => {
                let piece = match (table.get(code - 258), last) {
                    (Some((at, length)), _) => out[*at..at + length].to_vec(),
                    (None, Some((at, length))) => [&out[at..at + length], &out[at..=at]].concat(),
                    (None, None) => break,
                };
                out.extend_from_slice(&piece);
            }
        }
        if let Some((at, length)) = last
            && table.len() < 4_096 - 258
        {
            table.push((at, length + 1));
        }
        last = Some((start, out.len() - start));
        width = match table.len() + 259 {
            0..=511 => 9,
            512..=1_023 => 10,
            1_024..=2_047 => 11,
            _ => 12,
        };
        if out.len() >= most {
            break;
        }
    }
    out
}

pub(super) fn ascii85(data: &[u8], most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut group: Vec<u32> = Vec::new();
    let write = |out: &mut Vec<u8>, group: &[u32]| {
        let mut value: u32 = 0;
        for n in 0..5 {
            value = value.wrapping_mul(85).wrapping_add(group.get(n).copied().unwrap_or(84));
        }
        out.extend_from_slice(&value.to_be_bytes()[..group.len().saturating_sub(1).min(4)]);
    };
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => write(&mut out, &[0; 5]),
            b'!'..=b'u' => {
                group.push(u32::from(byte - b'!'));
                if group.len() == 5 {
                    write(&mut out, &group);
                    group.clear();
                }
            }
            _ => {}
        }
        if out.len() >= most {
            break;
        }
    }
    if group.len() > 1 {
        write(&mut out, &group);
    }
    out
}
