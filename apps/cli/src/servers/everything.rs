//! `linchpin serve everything`.

use super::{Main, Native};
use clap::Args;
use linchpin::server::Server;
use linchpin_everything::{Everything, Options};
use linchpin_kit::{Fault, Service, ToolChoice, ToolSpec, Vars};
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct EverythingArgs {
    /// Offer get-env. It shows the names of the server's environment variables, not their values.
    #[arg(long)]
    expose_env: bool,
}

const EXPOSE_ENV: &str = "--expose-env";

/// What the choice of tools has to know of them; how they describe themselves is the server's affair.
const TOOLS: &[ToolSpec] = &[
    reads("echo", "answers"),
    reads("get-annotated-message", "answers"),
    reads("get-env", "answers").needs(EXPOSE_ENV),
    reads("get-resource-links", "answers"),
    reads("get-resource-reference", "answers"),
    reads("get-structured-content", "answers"),
    reads("get-sum", "answers"),
    reads("get-tiny-image", "answers"),
    reads("trigger-long-running-operation", "answers"),
    reads("everything_tiny_audio", "answers"),
    reads("everything_mirrored_argument", "answers"),
    acts("gzip-file-as-resource", "session"),
    acts("toggle-simulated-logging", "session"),
    acts("toggle-subscriber-updates", "session"),
    acts("everything_toggle_extra", "session"),
    reads("get-roots-list", "asks"),
    acts("trigger-elicitation-request", "asks"),
    acts("trigger-url-elicitation", "asks"),
    acts("trigger-sampling-request", "asks"),
    acts("everything_two_questions", "asks"),
];

const fn reads(name: &'static str, toolset: &'static str) -> ToolSpec {
    ToolSpec::reads(name, "", toolset, "")
}

const fn acts(name: &'static str, toolset: &'static str) -> ToolSpec {
    ToolSpec::writes(name, "", toolset, "")
}

const PROMPTS: &[&str] = &["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"];

const SERVICE: Service = Service { name: "everything", tools: TOOLS };

pub(crate) struct Config {
    options: Options,
    tools: ToolChoice,
}

impl Native for EverythingArgs {
    const NAME: &'static str = "everything";
    const TITLE: &'static str = "Everything";
    const ABOUT: &'static str = "Every feature of the protocol, for trying out clients";
    const EXAMPLES: &'static str = "  \
  linchpin serve everything
  linchpin serve everything --http 127.0.0.1:8931 --sse
";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Nothing;

    type Config = Config;

    fn config(self, vars: Vars<'_>) -> Result<Config, Fault> {
        let mut tools = vars.tool_choice("MCP_EVERYTHING")?;
        tools.grant(EXPOSE_ENV, self.expose_env);
        let mut options = Options { expose_env: self.expose_env, ..Options::default() };
        vars.number("GZIP_MAX_FETCH_SIZE", &mut options.fetch_bytes_max)?;
        vars.number("GZIP_MAX_FETCH_TIME_MILLIS", &mut options.fetch_ms_max)?;
        #[cfg(feature = "web")]
        if let Some(list) = vars.text("GZIP_ALLOWED_DOMAINS") {
            options.fetch_hosts = linchpin_everything::allowed_domains(&list)
                .map_err(|e| Fault::new(format!("GZIP_ALLOWED_DOMAINS: {e}")))?;
        }
        Ok(Config { options, tools })
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), Fault> {
        let Config { options, tools: choice } = config;
        let chosen = choice.choose(&SERVICE)?;
        let server = Everything::new(options).add_to(server);
        let (tools, prompts) = (server.tools(), server.prompts());
        for spec in TOOLS {
            match chosen.iter().find(|(one, _)| one.name == spec.name) {
                Some((_, name)) if name != spec.name => drop(tools.rename(spec.name, name)),
                Some(_) => {}
                None => drop(tools.disable(spec.name)),
            }
        }
        for name in PROMPTS {
            let exposed = choice.prefix.apply(SERVICE.name, name);
            if exposed != *name {
                prompts.rename(name, &exposed);
            }
        }
        Ok((server, Vec::new()))
    }

    fn introduce(server: Server) -> Server {
        linchpin_everything::introduce(server)
    }

    /// `stdio`, `sse` or `streamableHttp`; the port is in `PORT`. Ours listens on this machine only.
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
