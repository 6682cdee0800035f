//! `bench-server http PORT MODE TOOLS` or `bench-server stdio TOOLS`, like the peers under `bench/`.
//!
//! MODE is `default`, `strings` for tools that take and return `String` instead of `Text`, or `spans` for a `tracing`
//! subscriber at level `info` that formats its lines and throws them away, `guard` for a guard, of which a token is printed, or
//! `tasks` for one more tool, `note`, whose calls are tasks.

use linchpin::{Error, Result};
use linchpin_bench::tokens::Issuer;
use linchpin_oauth::Alg;
use std::io::Write as _;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["http", port, mode, tools] => {
            let tools = tools.parse()?;
            let server = match *mode {
                "strings" => linchpin_bench::server_of_strings(tools),
                "spans" => {
                    tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(std::io::sink).init();
                    linchpin_bench::server(tools)
                }
                "tasks" => linchpin_bench::with_tasks(linchpin_bench::server(tools)),
                _ => linchpin_bench::server(tools),
            };
            if *mode == "guard" {
                let issuer = Issuer::new(Alg::Es256);
                writeln!(std::io::stdout(), "token {}", issuer.token(0, None))?;
                return linchpin_bench::run_http(server, port.parse()?, Some(issuer.guard()));
            }
            linchpin_bench::run_http(server, port.parse()?, None)
        }
        ["stdio"] => linchpin_bench::run_stdio(linchpin_bench::server(5)),
        ["stdio", tools] => linchpin_bench::run_stdio(linchpin_bench::server(tools.parse()?)),
        _ => Err(Error::tool("usage: bench-server http PORT MODE TOOLS | bench-server stdio [TOOLS]")),
    }
}
