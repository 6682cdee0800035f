//! Where pages are converted, and what becomes of those that cannot be.

use crate::common;

use common::*;
use linchpin_fetch::{Config, Confined, Converter};
use serde_json::json;

fn converting(converter: Converter) -> Config {
    open().with(|config| config.converter = converter)
}

/// A shell script instead of the converter.
#[cfg(unix)]
fn script(script: &str) -> Converter {
    let mut shell = Confined::new("/bin/sh");
    shell.args = ["-c", script].map(Into::into).into();
    Converter::Program(shell)
}

const HIDDEN: &str = "words-of-the-page";

#[cfg(unix)]
#[tokio::test]
async fn a_converter_without_a_result_is_an_error_that_says_what_to_do() {
    let site = Site::of(vec![
        ("/page", typed("text/html"), b"<p>the page</p>".to_vec()),
        ("/feed", typed("application/rss+xml"), b"<rss><channel><title>the page</title></channel></rss>".to_vec()),
        ("/pdf", typed("application/pdf"), b"%PDF-1.4 the page".to_vec()),
        ("/text", typed("text/plain"), b"the page".to_vec()),
    ])
    .await;
    let aborts = format!("cat >&2; echo memory allocation of 9 bytes failed for {HIDDEN} >&2; kill -ABRT $$");
    for (converter, want) in [
        (script(&aborts), "takes more than 256 MiB of memory"),
        (script(&format!("echo {HIDDEN} >&2; kill -SEGV $$")), "the converter crashed"),
        (script(&format!("echo {HIDDEN} >&2; exit 3")), "the converter crashed"),
        (script("kill -XCPU $$"), "it took too long"),
        (script("exec cat /dev/zero"), "the result is too long"),
        (script("cat"), "the converter crashed"),
        (script("exit 0"), "the converter crashed"),
        (script("echo '{\"Ok\":{\"prefix\":\"\"}}'; printf '\\377'"), "the converter crashed"),
        (Converter::program("/nowhere/at-all"), "the converter could not be started"),
    ] {
        let caller = Caller::of(converting(converter)).await;
        for (path, advice) in [
            ("/page", "Fetch it with raw=true"),
            ("/feed", "Fetch it with raw=true"),
            ("/pdf", "Look for the same content as a web page."),
        ] {
            let error = caller.error(&site.url(path)).await;
            assert!(error.starts_with(&format!("Failed to convert {}: ", site.url(path))), "{error}");
            assert!(error.contains(want) && error.contains(advice), "{want}: {error}");
            assert!(!error.contains(HIDDEN), "its last words may be those of the page: {error}");
            assert!(caller.prompt(&site.url(path)).await.contains(want));
        }
        for arguments in [json!({"url": site.url("/page"), "raw": true}), json!({"url": site.url("/text")})] {
            assert!(caller.text(arguments).await.contains("the page"), "no converter is needed for it");
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_converter_has_the_limits_of_the_longest_page_and_no_variables() {
    let site = Site::of(vec![("/page", typed("text/html"), b"<p>the page</p>".to_vec())]).await;
    let says = || script("cat >&2; echo '{\"Ok\":{\"prefix\":\"\"}}'; echo $(ulimit -d; ulimit -c) $HOME");
    for (bytes, want) in [(1 << 20, "262144 0"), (10 << 20, "262144 0"), (100 << 20, "2457600 0")] {
        let caller = Caller::of(converting(says()).with(|config| config.max_bytes = bytes)).await;
        let text = caller.text(json!({"url": site.url("/page")})).await;
        assert_eq!(text.lines().nth(1), Some(want), "kilobytes of memory, core dumps, a home");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_converter_that_does_not_end_is_killed_before_the_fetch_is_over() {
    let site = Site::of(vec![("/page", typed("text/html"), b"<p>the page</p>".to_vec())]).await;
    let caller = Caller::of(converting(script("sleep 600")).with(|config| config.timeout_ms = 1_500)).await;
    let error = caller.error(&site.url("/page")).await;
    assert!(error.contains("it took too long") && error.contains("raw=true") && error.contains("--timeout"), "{error}");
}

#[tokio::test]
async fn a_server_without_a_converter_reads_small_pages_only() {
    let large = format!("<p>{}", "words ".repeat(400_000));
    let many = "<p>x</p>".repeat(60_000);
    let feed = "<rss><channel><title>News</title></channel></rss>";
    let site = Site::of(vec![
        ("/page", typed("text/html"), b"<p>the page</p>".to_vec()),
        ("/feed", typed("application/rss+xml"), feed.as_bytes().to_vec()),
        ("/large", typed("text/html"), large.into_bytes()),
        ("/many", typed("text/html"), many.into_bytes()),
        ("/pdf", typed("application/pdf"), b"%PDF-1.4 the page".to_vec()),
        ("/large-pdf", typed("application/pdf"), [&b"%PDF-1.4"[..], &[b' '; 2_400_000]].concat()),
    ])
    .await;
    let caller = Caller::of(converting(Converter::InProcess)).await;
    assert!(caller.text(json!({"url": site.url("/page")})).await.ends_with("the page"));
    assert!(caller.text(json!({"url": site.url("/feed")})).await.ends_with("# News"));
    let many = caller.value(json!({"url": site.url("/many")})).await;
    assert!(many["note"].as_str().unwrap().ends_with("this is its plain text."), "{many}");
    for (path, want) in [
        ("/large", "is too large to be converted by this server (2400003 bytes)\nHint: Fetch it with raw=true"),
        ("/pdf", "is a PDF document, which this server cannot read\nHint: Look for the same content"),
        ("/large-pdf", "is too large to be converted by this server (2400008 bytes)\nHint: Look for the same content"),
    ] {
        let error = caller.error(&site.url(path)).await;
        assert!(error.contains(want), "{error}");
    }
    assert!(caller.call(json!({"url": site.url("/large"), "raw": true})).await.is_ok());
}

/// Where the system does not let the limits of a child be set, the converter finds out by itself.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_converter_whose_memory_is_not_limited_reads_no_huge_trees() {
    let site = Site::of(vec![("/page", typed("text/html"), "<p>x</p>".repeat(160_000).into_bytes())]).await;
    let folder = tempfile::tempdir().expect("a directory");
    let job = folder.path().join("job");
    let caller = Caller::of(converting(script(&format!("cat > {}; exit 3", job.display())))).await;
    caller.error(&site.url("/page")).await;
    let converter = env!("CARGO_BIN_EXE_linchpin-fetch-convert");
    let done = std::process::Command::new(converter).stdin(std::fs::File::open(job).expect("a job")).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let result = String::from_utf8_lossy(&done.stdout);
    assert!(result.lines().next().unwrap_or_default().contains("this is its plain text"), "{:.200}", result);
}
