//! Content codings that the HTTP client does not decode.

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::header::{CONTENT_ENCODING, HeaderMap};
use linchpin_kit::{ErrorKind, ToolError};
use std::io::Read;

/// Maximum content codings of a body; legitimate pages have at most two.
pub(crate) const CODINGS_MAX: usize = 3;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packed {
    /// Too many content codings.
    Often,
    /// `br` or `zstd`, which are not asked for.
    Unread,
    Broken,
    TooLong,
}

/// Decodes the content codings of a body, last first; each output has at most `bytes_max` bytes. A truncated body, or
/// one that is not `whole`, is decoded as far as possible. Unknown codings are ignored.
///
/// # Errors
/// When it cannot be decoded.
pub(crate) fn unpack(body: Bytes, codings: &[String], bytes_max: usize, whole: bool) -> Result<Bytes, Packed> {
    let known = ["gzip", "x-gzip", "deflate", "br", "zstd"];
    let codings: Vec<&str> = codings.iter().map(String::as_str).filter(|coding| known.contains(coding)).collect();
    if codings.len() > CODINGS_MAX {
        return Err(Packed::Often);
    }
    if codings.iter().any(|coding| ["br", "zstd"].contains(coding)) {
        return Err(Packed::Unread);
    }
    let mut bytes = body;
    for coding in codings.into_iter().rev() {
        let input = &bytes[..];
        // `deflate` comes with or without a zlib header.
        let zlib =
            input.len() > 1 && input[0] & 15 == 8 && (usize::from(input[0]) * 256 + usize::from(input[1])) % 31 == 0;
        let unpacked: Box<dyn Read> = match coding {
            "deflate" if zlib => Box::new(ZlibDecoder::new(input)),
            "deflate" => Box::new(DeflateDecoder::new(input)),
            _ => Box::new(MultiGzDecoder::new(input)),
        };
        let mut out = Vec::new();
        let read = unpacked.take((bytes_max as u64).saturating_add(1)).read_to_end(&mut out);
        match read {
            Err(_) if whole => return Err(Packed::Broken),
            // The header names a coding that was not applied.
            Err(_) if out.is_empty() => continue,
            _ => {}
        }
        if whole && out.len() > bytes_max {
            return Err(Packed::TooLong);
        }
        out.truncate(bytes_max);
        bytes = out.into();
    }
    Ok(bytes)
}

/// The remaining content codings of a body, in lower case: a single standard one was already decoded by the client.
pub(crate) fn codings(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let words = values.flat_map(|value| value.split(',')).map(|word| word.trim().to_ascii_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// The error of a body that cannot be decoded.
pub(crate) fn packed(begin: &str, why: Packed) -> ToolError {
    let most = CODINGS_MAX;
    let error = match why {
        Packed::Often => ToolError::new(format!("{begin}: it has more than {most} content codings")),
        Packed::Unread => ToolError::new(format!("{begin}: its content coding is not supported"))
            .hint(format!("gzip and deflate are decoded, up to {most} times.")),
        Packed::Broken => ToolError::new(format!("{begin}: its content does not match its Content-Encoding")),
        Packed::TooLong => ToolError::new(format!("{begin}: it exceeds the size limit when decoded"))
            .hint("The operator can raise the limit with --max-bytes."),
    };
    error.kind(match why {
        Packed::TooLong => ErrorKind::Limited { retry_after: None },
        _ => ErrorKind::Upstream { status: None },
    })
}
