//! Encodings, ranges of lines, line endings.

use std::fs::File;
use std::os::unix::fs::FileExt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use linchpin_kit::ToolError;

/// The encoding of a text file, detected from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coding {
    encoding: &'static Encoding,
    /// Length of the byte order mark.
    mark: usize,
}

impl Coding {
    /// Detects the encoding: a byte order mark, valid UTF-8, UTF-16 by its zero bytes, or the likeliest legacy encoding.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
            return Self { encoding, mark };
        }
        // The sample may end inside a character.
        let utf8 = match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && bytes.len() - error.valid_up_to() < 4,
        };
        let encoding = match utf16_without_mark(bytes) {
            Some(encoding) => encoding,
            None if utf8 => UTF_8,
            None => {
                let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
                detector.feed(bytes, true);
                detector.guess(None, Utf8Detection::Allow)
            }
        };
        Self { encoding, mark: 0 }
    }

    /// The name of the encoding; `None` for plain UTF-8.
    pub(crate) fn name(self) -> Option<String> {
        match (self.encoding == UTF_8, self.mark > 0) {
            (true, false) => None,
            (true, true) => Some("UTF-8-BOM".to_owned()),
            _ => Some(self.encoding.name().to_owned()),
        }
    }

    fn is_utf16(self) -> bool {
        self.encoding == UTF_16LE || self.encoding == UTF_16BE
    }

    /// Decodes `bytes`, with U+FFFD for invalid sequences. `start`: these are the file's first bytes.
    pub(crate) fn decode(self, bytes: &[u8], start: bool) -> String {
        let bytes = if start { bytes.get(self.mark..).unwrap_or_default() } else { bytes };
        self.encoding.decode_without_bom_handling(bytes).0.into_owned()
    }

    /// Encodes `text`, with the byte order mark; `None` if the encoding cannot represent a character.
    pub(crate) fn encode(self, text: &str) -> Option<Vec<u8>> {
        let unit = if self.encoding == UTF_16LE { u16::to_le_bytes } else { u16::to_be_bytes };
        if self.is_utf16() {
            let mark = (self.mark > 0).then_some('\u{feff}');
            let text: String = mark.into_iter().chain(text.chars()).collect();
            return Some(text.encode_utf16().flat_map(unit).collect());
        }
        let (bytes, _, unmappable) = self.encoding.encode(text);
        if unmappable {
            return None;
        }
        let mark: &[u8] = if self.mark > 0 { b"\xef\xbb\xbf" } else { b"" };
        Some([mark, &bytes].concat())
    }

    /// The bytes of one line feed.
    fn line_feed(self) -> &'static [u8] {
        match self.encoding {
            encoding if encoding == UTF_16LE => b"\n\0",
            encoding if encoding == UTF_16BE => b"\0\n",
            _ => b"\n",
        }
    }
}

/// Detects UTF-16 without a byte order mark by a zero in every other byte.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(4096)];
    let pairs = sample.len() / 2;
    if pairs < 4 {
        return None;
    }
    let zeros = |odd: usize| sample.chunks_exact(2).filter(|pair| pair[odd] == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match () {
        () if odd * 10 >= pairs * 7 && even * 20 <= pairs => Some(UTF_16LE),
        () if even * 10 >= pairs * 7 && odd * 20 <= pairs => Some(UTF_16BE),
        () => None,
    }
}

/// Decoded text and its encoding.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) text: String,
    /// See [`Coding::name`].
    pub(crate) encoding: Option<String>,
    /// Whether the text was truncated at the limit.
    pub(crate) truncated: bool,
}

impl Decoded {
    fn of(coding: Coding, bytes: &[u8], start: bool) -> Self {
        Self { text: coding.decode(bytes, start), encoding: coding.name(), truncated: false }
    }
}

/// Decodes all of `bytes`; `lossy` is the behaviour of the published server: UTF-8 or U+FFFD, byte order mark kept.
pub(crate) fn decode_all(bytes: Vec<u8>, lossy: bool) -> Decoded {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if lossy || (!text.starts_with('\u{feff}') && !text.contains('\0')) => {
            return Decoded { text, encoding: None, truncated: false };
        }
        Ok(text) => text.into_bytes(),
        Err(error) if lossy => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            return Decoded { text, encoding: None, truncated: false };
        }
        Err(error) => error.into_bytes(),
    };
    Decoded::of(Coding::of(&bytes), &bytes, true)
}

fn window_coding(sample: &[u8], lossy: bool) -> Coding {
    if lossy { Coding { encoding: UTF_8, mark: 0 } } else { Coding::of(sample) }
}

/// Finds the next `needle`, aligned to its length, from `from` on.
fn find_aligned(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if let [byte] = needle {
        return memchr::memchr(*byte, &bytes[from..]).map(|at| from + at);
    }
    let mut at = from;
    while at + needle.len() <= bytes.len() {
        if &bytes[at..at + needle.len()] == needle {
            return Some(at);
        }
        at += needle.len();
    }
    None
}

/// The first `lines` lines, without the last line feed. Reads no more of the file than needed and at most `cap` bytes.
pub(crate) fn head(file: &File, lines: u64, cap: u64, lossy: bool) -> std::io::Result<Decoded> {
    let cap = usize::try_from(cap).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let (mut found, mut from, mut coding) = (0, 0, None);
    loop {
        let before = bytes.len();
        read_more(file, &mut bytes, cap)?;
        let ended = bytes.len() == before;
        let feed = coding.get_or_insert_with(|| window_coding(&bytes, lossy)).line_feed();
        while let Some(at) = find_aligned(&bytes, feed, from) {
            found += 1;
            if found == lines {
                return Ok(Decoded::of(window_coding(&bytes[..at], lossy), &bytes[..at], true));
            }
            from = at + feed.len();
        }
        if !ended {
            // Only whole code units were searched: continue at the next one.
            from = from.max(bytes.len() - bytes.len() % feed.len());
            continue;
        }
        let truncated = bytes.len() >= cap;
        let whole = if !truncated && bytes.ends_with(feed) { bytes.len() - feed.len() } else { bytes.len() };
        let decoded = Decoded::of(window_coding(&bytes, lossy), &bytes[..whole], true);
        return Ok(Decoded { truncated, ..decoded });
    }
}

fn read_more(file: &File, bytes: &mut Vec<u8>, cap: usize) -> std::io::Result<()> {
    let before = bytes.len();
    let step = before.clamp(16 * 1024, 1024 * 1024).min(cap - before.min(cap));
    bytes.resize(before + step, 0);
    let mut filled = before;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(())
}

/// The text after the `lines`-th line feed from the end: after a final line feed the last "line" is empty, as in the
/// published server. Reads backwards, no more than needed and at most `cap` bytes.
pub(crate) fn tail(file: &File, size: u64, lines: u64, cap: u64, lossy: bool) -> std::io::Result<Decoded> {
    const STEP: u64 = 64 * 1024;
    let mut start_bytes = [0_u8; 4];
    let count = file.read_at(&mut start_bytes, 0)?;
    let mark = window_coding(&start_bytes[..count], lossy);
    let mut bytes: Vec<u8> = Vec::new();
    let mut at = size;
    let (mut found, mut feed) = (0, None);
    while at > 0 && (bytes.len() as u64) < cap {
        let step = STEP.min(at).min(cap - bytes.len() as u64);
        // Steps do not split UTF-16 code units.
        at -= step;
        let mut chunk = vec![0; usize::try_from(step).unwrap_or(0)];
        file.read_exact_at(&mut chunk, at)?;
        let coding = if mark.mark > 0 { mark } else { window_coding(&chunk, lossy) };
        let feed = *feed.get_or_insert(coding.line_feed());
        let mut position = chunk.len() - chunk.len() % feed.len();
        chunk.append(&mut bytes);
        bytes = chunk;
        while position >= feed.len() {
            position -= feed.len();
            if &bytes[position..position + feed.len()] == feed {
                found += 1;
                if found == lines {
                    bytes.drain(..position + feed.len());
                    return Ok(decode_tail(mark, &bytes, false, lossy));
                }
            }
        }
    }
    let decoded = decode_tail(mark, &bytes, at == 0, lossy);
    Ok(Decoded { truncated: at > 0, ..decoded })
}

fn decode_tail(mark: Coding, bytes: &[u8], start: bool, lossy: bool) -> Decoded {
    let coding = if mark.mark > 0 { mark } else { window_coding(bytes, lossy) };
    Decoded::of(coding, bytes, start)
}

/// The text of a file for editing, with everything needed to store it unchanged.
#[derive(Debug)]
pub(crate) struct Editable {
    pub(crate) text: String,
    pub(crate) coding: Coding,
}

impl Editable {
    /// Decodes `bytes` into text that encodes to the same bytes.
    pub(crate) fn new(bytes: &[u8], path: &str) -> Result<Self, ToolError> {
        let coding = Coding::of(bytes);
        let text = coding.decode(bytes, true);
        let binary = text.contains('\0') || coding.encode(&text).is_none_or(|again| again != bytes);
        if binary {
            return Err(ToolError::new(format!("Not a text file that can be edited without damage: {path}")).hint(
                "It cannot be decoded and encoded without loss. Edit it with another program, or replace it with write_file.",
            ));
        }
        Ok(Self { text, coding })
    }
}

/// The text with every CRLF as LF.
pub(crate) fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Whether most lines of `text` end in CRLF.
pub(crate) fn mostly_crlf(text: &str) -> bool {
    let crlf = text.matches("\r\n").count();
    crlf * 2 > text.matches('\n').count()
}
