//! Servers behind the command lines of supergateway, mcp-remote and mcp-proxy.
#![cfg(all(unix, feature = "client", feature = "time"))]

use crate::common::{Raw, Served, command, program, run};
use serde_json::json;
use std::path::Path;

/// A server of the time at Streamable HTTP and HTTP+SSE.
fn time(home: &Path) -> Served {
    Served::start(command(program(), home).args(["serve", "time", "--http", "127.0.0.1:0", "--sse"]))
}

/// The address of HTTP+SSE of what is at this one of Streamable HTTP.
fn sse(url: &str) -> String {
    format!("{}/sse", url.strip_suffix("/mcp").unwrap())
}

/// Lists the tools of what serves on standard input and output, and calls one.
fn used_over_a_pipe(home: &Path, words: &[&str]) {
    let mut server = Raw::start(command(program(), home).args(words));
    let tools = server.ask("tools/list", json!({}));
    assert!(tools.to_string().contains("get_current_time"), "{words:?}: {tools}");
    let called = server.call("get_current_time", json!({ "timezone": "UTC" }));
    assert!(
        called["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("UTC")),
        "{words:?}: {called}"
    );
    server.ended();
}

/// The same of what serves at these paths, each with its transport.
fn used_over_http(home: &Path, words: &[&str], at: &[(&str, &str)]) {
    let mut server = command(program(), home);
    let served = Served::start(server.args(words).env("API_ACCESS_TOKEN", "unused"));
    for (transport, path) in at {
        let url = format!("http://{}{path}", served.address());
        let (code, out, err) = run(home, &["tools", &url, "--transport", transport]);
        assert!(code == Some(0) && out.contains("get_current_time"), "{words:?} {url}: {out}{err}");
        let (code, out, err) = run(home, &["call", &url, "--transport", transport, "get_current_time", "timezone=UTC"]);
        assert!(code == Some(0) && out.contains("UTC"), "{words:?} {url}: {out}{err}");
    }
}

#[test]
fn a_server_is_used_through_the_command_lines_for_a_url() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let served = time(home);
    let (url, sse) = (&*served.url, &*sse(&served.url));
    for words in [
        &["supergateway", "--streamableHttp", url][..],
        &["supergateway", "--streamableHttp", url, "--header", "X-My-Header: value", "--logLevel", "none"],
        &["supergateway", "--sse", sse, "--outputTransport", "stdio"],
        &["mcp-remote", url],
        &["mcp-remote", url, "9696", "--allow-http", "--silent"],
        &["mcp-remote", url, "--transport", "http-only", "--protocol", "auto"],
        &["mcp-remote", sse, "--transport", "sse-only", "--header", "X-My-Header: value"],
        // PyPI's; npm's has no such direction.
        &["mcp-proxy", sse],
        &["mcp-proxy", "--transport=streamablehttp", "--headers", "X-My-Header", "value", url],
        &["mcp-proxy", url, "--transport", "streamablehttp", "--debug"],
    ] {
        used_over_a_pipe(home, words);
    }
    used_over_http(
        home,
        &["supergateway", "--sse", sse, "--outputTransport", "sse", "--port", "0"],
        &[("sse", "/sse")],
    );
    let words = ["supergateway", "--streamableHttp", url, "--outputTransport", "streamableHttp", "--port", "0"];
    used_over_http(home, &words, &[("http", "/mcp")]);
}

#[test]
fn a_server_is_used_through_the_command_lines_for_a_command() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let program = program().display().to_string();
    let line = &*format!("{program} serve time");
    let time = [&*program, "serve", "time"];
    let over_sse = ("sse", "/sse");
    let over_http = ("http", "/mcp");
    let supergateway = ["supergateway", "--stdio", line, "--port", "0"];
    for (words, at) in [
        (&[][..], &[over_sse][..]),
        (&["--outputTransport", "sse", "--ssePath", "/events", "--messagePath", "/m"], &[("sse", "/events")]),
        (&["--outputTransport", "streamableHttp"], &[over_http]),
        (&["--outputTransport", "streamableHttp", "--stateful", "--sessionTimeout", "60000"], &[over_http]),
        (&["--outputTransport", "streamableHttp", "--streamableHttpPath", "/m", "--cors"], &[("http", "/m")]),
    ] {
        used_over_http(home, &[&supergateway[..], words].concat(), at);
    }
    used_over_a_pipe(home, &["supergateway", "--stdio", line, "--outputTransport", "stdio"]);
    for (words, at) in [
        // PyPI's.
        (&["mcp-proxy"][..], &[over_sse, over_http][..]),
        (&["mcp-proxy", "--sse-port=0", "--stateless"], &[over_sse, over_http]),
        (&["mcp-proxy", "--port=0", "--pass-environment", "-e", "NAME", "value", "--"], &[over_sse, over_http]),
        (&["mcp-proxy", "--port=0", "--allow-origin=*", "--host=127.0.0.1", "--"], &[over_sse, over_http]),
        // npm's.
        (&["mcp-proxy", "--port", "0", "--upstreamProtocol", "auto", "--"], &[over_sse, over_http]),
        (&["mcp-proxy", "--port", "0", "--server", "stream", "--stateless", "--"], &[over_http]),
        (&["mcp-proxy", "--port", "0", "--server", "sse", "--endpoint", "/events", "--"], &[("sse", "/events")]),
        (&["mcp-proxy", "--port", "0", "--no-modern", "--streamEndpoint", "/m", "--"], &[over_sse, ("http", "/m")]),
    ] {
        used_over_http(home, &[words, &time].concat(), at);
    }
}

#[test]
fn it_is_said_that_mcp_proxy_is_read_as_that_of_pypi() {
    let home = tempfile::tempdir().unwrap();
    let program = program().display().to_string();
    for (words, is_said) in [(&["mcp-proxy"][..], true), (&["mcp-proxy", "--port", "0", "--pass-environment"], false)] {
        let served = Served::start(command(&program, home.path()).args(words).args([&*program, "serve", "time"]));
        assert_eq!(served.said.contains("mcp-proxy: no flag is npm's own"), is_said, "{}", served.said);
    }
}
