//! Serves the conformance fixtures: `--stdio`, `--http PORT` (path `/mcp`) or `--sse PORT` (also `/sse`).

use linchpin::BoxError;
use linchpin::prelude::*;
use std::process::ExitCode;

const USAGE: &str = "usage: conformance-server --stdio | --http PORT | --sse PORT";

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let at = |port: &str| port.parse::<u16>().map(|port| http(format!("127.0.0.1:{port}")));
    let server = linchpin_conformance::server();
    let served: Result<(), BoxError> = match args[..] {
        ["--stdio"] => {
            eprintln!("conformance-server ready on stdio");
            server.serve(stdio().with_graceful_shutdown(shutdown_signal())).await.map_err(Into::into)
        }
        [way @ ("--http" | "--sse"), port] => match at(port) {
            Ok(place) => {
                let place = if way == "--sse" { place.with_sse() } else { place };
                let place = place.with_graceful_shutdown(shutdown_signal());
                let end = if way == "--sse" { "sse" } else { "mcp" };
                server
                    .serve(place.on_ready(move |addr| eprintln!("conformance-server ready on http://{addr}/{end}")))
                    .await
                    .map_err(Into::into)
            }
            Err(_) => Err(format!("`{port}` is not a port; {USAGE}").into()),
        },
        _ => Err(USAGE.into()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conformance-server: {why}");
            ExitCode::FAILURE
        }
    }
}
