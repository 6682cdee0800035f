//! `gzip-file-as-resource`: compresses the content of a `data:` URL or of a web page. It never opens a file.

use crate::Everything;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::Compression;
use flate2::write::GzEncoder;
use linchpin::prelude::*;
use linchpin_kit::{Alias, ToolChoice, ToolSet, ToolSpec};
use std::io::Write;

/// The padding of `data:` URLs is often omitted.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const MIME: &str = "application/gzip";
const NAME_CHARS_MAX: usize = 100;

pub(crate) const GZIP: ToolSpec = ToolSpec::writes(
    "gzip-file-as-resource",
    "Gzip",
    "session",
    "Compresses the content of a `data:`, `http:` or `https:` URL (default: this server's README) and returns the result, \
     or a link to it that can be read until the session ends. Private addresses are refused.",
)
// `zip` packed several files: a call with its arguments is refused, instead of packing this server's README.
.aliases(&[Alias::of("zip").arguments(&[("files", "data")])])
.idempotent()
.outside();

/// Adds the tool.
pub(crate) fn add(tools: ToolSet<Everything>) -> ToolSet<Everything> {
    tools.tool(&GZIP, gzip)
}

/// Adds the template its links lead to.
pub(crate) fn links(server: Server<Everything>, choice: &ToolChoice) -> Server<Everything> {
    server.resource(
        Resource::new(choice.uri("demo://resource/session/{name}"))
            .name("Session resource")
            .title("Session resource")
            .description("A result of `gzip-file-as-resource` in this session.")
            .mime_type(MIME),
        read,
    )
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Output {
    #[default]
    ResourceLink,
    Resource,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Gzip {
    /// The name of the result: letters, digits, `.`, `_` and `-`.
    #[serde(default = "readme")]
    name: String,
    /// The URL to compress: `data:`, `http:` or `https:`.
    data: Option<String>,
    /// Whether to return a link or the result itself.
    #[serde(default)]
    output_type: Output,
}

fn readme() -> String {
    "README.md.gz".into()
}

async fn gzip(s: &Everything, cx: &Cx, q: Gzip) -> Result<Vec<ContentBlock>> {
    let name_ok = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if q.name.is_empty() || q.name.len() > NAME_CHARS_MAX || !q.name.chars().all(name_ok) {
        return Err(Error::tool(format!("`name` must be 1 to {NAME_CHARS_MAX} letters, digits, `.`, `_` or `-`")));
    }
    let plain = match &q.data {
        Some(url) if is_web(url) => fetched(s, url).await?,
        Some(url) => decode(url, s.shared.options.gzip_bytes_max)?,
        None => include_bytes!("../README.md").to_vec(),
    };
    let zipped = compress(&plain)?;
    let about = format!("{} bytes, {} when compressed", plain.len(), zipped.len());
    let uri = s.shared.options.tools.uri(&format!("demo://resource/session/{}", q.name));
    match (q.output_type, cx.peer()) {
        (Output::ResourceLink, Some(_)) => {
            s.session.keep(&q.name, zipped)?;
            let link = linchpin::types::content::ResourceLink::new(uri, q.name);
            Ok(vec![link.with_mime_type(MIME).with_description(about).into()])
        }
        (Output::ResourceLink, None) => {
            let why =
                format!("{about}. Links require a session and this request has none, so the result itself follows:");
            Ok(vec![ContentBlock::text(why), embedded(uri, &zipped)])
        }
        (Output::Resource, _) => Ok(vec![embedded(uri, &zipped)]),
    }
}

fn embedded(uri: String, bytes: &[u8]) -> ContentBlock {
    ContentBlock::resource(ResourceContents::blob(uri, bytes).with_mime_type(MIME))
}

fn compress(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn is_web(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Fetches a URL, or says why it is not fetched.
#[cfg(feature = "web")]
async fn fetched(s: &Everything, url: &str) -> Result<Vec<u8>> {
    s.shared.fetcher.fetch(&s.shared.options, url).await
}

#[cfg(not(feature = "web"))]
async fn fetched(_: &Everything, _: &str) -> Result<Vec<u8>> {
    Err(Error::tool("this build cannot fetch URLs; put the content in a `data:` URL"))
}

/// The content of a `data:` URL. Anything else is an error that says why.
fn decode(url: &str, bytes_max: usize) -> Result<Vec<u8>> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(Error::tool("`data` must be a `data:` URL, for example data:,Hello"));
    };
    if !scheme.eq_ignore_ascii_case("data") {
        let scheme: String = scheme.chars().take(20).collect();
        return Err(Error::tool(format!(
            "`{scheme}:` URLs are refused; use `https:`, or put the content in a `data:` URL"
        )));
    }
    let Some((kind, data)) = rest.split_once(',') else {
        return Err(Error::tool("invalid `data:` URL: no comma before its content"));
    };
    // Neither decoding makes it longer, so the length is checked before anything is copied.
    let base64 = kind.trim_end().to_ascii_lowercase().ends_with(";base64");
    let least = if base64 { data.len() / 4 * 3 } else { data.len() / 3 };
    let too_long = || Error::tool(format!("the content is longer than the limit of {bytes_max} bytes"));
    if least > bytes_max.saturating_add(2) {
        return Err(too_long());
    }
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    let bytes = match base64 {
        true => BASE64.decode(bytes).map_err(|e| Error::tool(format!("invalid base64: {e}")))?,
        false => bytes,
    };
    if bytes.len() > bytes_max { Err(too_long()) } else { Ok(bytes) }
}

#[derive(Deserialize, JsonSchema)]
struct ByName {
    name: String,
}

async fn read(s: &Everything, at: ByName) -> Result<Vec<u8>> {
    s.session.kept(&at.name).map(|bytes| bytes.to_vec()).ok_or_else(Error::not_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn only_data_urls_are_decoded_and_within_the_limit() {
        let cases: [(&str, std::result::Result<&[u8], &str>); 12] = [
            ("data:,Hello%20there", Ok(b"Hello there")),
            ("data:text/plain;base64,SGVsbG8=", Ok(b"Hello")),
            ("DATA:;Base64,SGVsbG8", Ok(b"Hello")),
            ("data:;base64,SGVs%62G8=", Ok(b"Hello")),
            ("data:,0123456789abcdef", Ok(b"0123456789abcdef")),
            ("data:,0123456789abcdefg", Err("longer than the limit")),
            ("data:;base64,QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=", Err("longer than the limit")),
            ("data:;base64,***", Err("invalid base64")),
            ("data:nothing", Err("no comma")),
            ("ftp://127.0.0.1/x", Err("`ftp:` URLs are refused")),
            ("file:///etc/passwd", Err("`file:` URLs are refused")),
            ("hello", Err("must be a `data:` URL")),
        ];
        for (url, want) in cases {
            match (decode(url, 16), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{url}"),
                (Err(got), Err(want)) => assert!(got.to_string().contains(want), "{url}: {got}"),
                (got, want) => panic!("{url}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn what_was_compressed_can_be_decompressed() {
        let plain = vec![b'a'; 10_000];
        let zipped = compress(&plain).unwrap();
        assert!(zipped.len() < 100);
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&zipped[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, plain);
    }
}
