//! `linchpin serve everything`.

use super::{Main, Native};
use clap::Args;
use linchpin::Server;
use linchpin_everything::{Everything, Options, SERVICE};
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct EverythingArgs {
    /// Offer get-env, which shows the names of the server's environment variables, not their values.
    #[arg(long)]
    expose_env: bool,
}

impl Native for EverythingArgs {
    const NAME: &'static str = "everything";
    const TITLE: &'static str = "Everything";
    const ABOUT: &'static str = "Every feature of the protocol, for testing clients";
    const EXAMPLES: &'static str = "  \
  linchpin serve everything
  linchpin serve everything --http 127.0.0.1:8931 --sse
";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Nothing;

    type Config = Options;

    fn config(self, vars: Vars<'_>) -> Result<Options, ToolError> {
        let tools = vars.tool_choice("MCP_EVERYTHING")?;
        let mut options = Options::default().with(|options| {
            options.expose_env = self.expose_env;
            options.tools = tools;
        });
        vars.number("GZIP_MAX_FETCH_SIZE", &mut options.fetch_bytes_max)?;
        vars.number("GZIP_MAX_FETCH_TIME_MILLIS", &mut options.fetch_ms_max)?;
        #[cfg(feature = "web")]
        if let Some(list) = vars.text("GZIP_ALLOWED_DOMAINS") {
            options.fetch_hosts = linchpin_everything::allowed_domains(&list)
                .map_err(|e| ToolError::new(format!("GZIP_ALLOWED_DOMAINS: {e}")))?;
        }
        Ok(options)
    }

    fn choice(options: &mut Options) -> &mut ToolChoice {
        &mut options.tools
    }

    fn add(options: Options, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        Ok((Everything::new(options).add_to(server)?.state(()), Vec::new()))
    }

    fn introduce(server: Server) -> Server {
        linchpin_everything::introduce(server)
    }

    /// `stdio`, `sse` or `streamableHttp`; the port is in `PORT`. This server listens on the loopback address only.
    fn original(mut given: Vec<OsString>, vars: Vars<'_>) -> Vec<OsString> {
        let port = vars.text("PORT").unwrap_or_else(|| "3001".to_owned());
        let flags = match given.first().and_then(|word| word.to_str()) {
            Some("stdio") => Vec::new(),
            Some("sse") => vec!["--http".to_owned(), format!("127.0.0.1:{port}"), "--sse".to_owned()],
            Some("streamableHttp") => vec!["--http".to_owned(), format!("127.0.0.1:{port}")],
            _ => return given,
        };
        given.splice(..1, flags.into_iter().map(OsString::from));
        given
    }
}
