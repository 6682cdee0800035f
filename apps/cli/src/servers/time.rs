//! `linchpin serve time`.

use super::{Main, Native};
use clap::Args;
use linchpin::Server;
use linchpin_kit::{Service, ToolChoice, ToolError, Vars};
use linchpin_time::{Config, SERVICE, Time, Tzdb};

#[derive(Debug, Args)]
pub(crate) struct TimeArgs {
    /// Default time zone for models, an IANA name [default: the system's, else UTC].
    #[arg(long, value_name = "ZONE")]
    local_timezone: Option<String>,

    /// Time zone database: the system's, then the embedded one; or the embedded one only [default: system].
    #[arg(long, value_name = "system|embedded")]
    tzdb: Option<String>,
}

impl Native for TimeArgs {
    const NAME: &'static str = "time";
    const TITLE: &'static str = "Time";
    const ABOUT: &'static str = "Current time in any time zone, conversions, and date arithmetic";
    const EXAMPLES: &'static str = "  \
  linchpin serve time
  linchpin serve time --local-timezone America/New_York
";
    const NOTES: &'static str = "Variables: MCP_TIME_LOCAL_TIMEZONE (or LOCAL_TIMEZONE), MCP_TIME_TZDB, TZDIR (a directory of \
                                 compiled zones), TZ; the command line takes precedence.";
    const SERVICE: Service = SERVICE;
    const MAIN: Main = Main::Flag("--local-timezone");

    type Config = Config;

    fn data() -> Option<String> {
        Some(format!("time zones {}", linchpin_time::embedded_tzdb_version()))
    }

    fn config(self, vars: Vars<'_>) -> Result<Config, ToolError> {
        let mut config = Config::from_env(vars)?;
        if self.local_timezone.is_some() {
            config.local_timezone = self.local_timezone;
        }
        match self.tzdb.as_deref().map(Tzdb::named).transpose()? {
            // A directory from the environment is kept.
            Some(Tzdb::System { .. }) if matches!(config.tzdb, Tzdb::System { .. }) => {}
            Some(tzdb) => config.tzdb = tzdb,
            None => {}
        }
        Ok(config)
    }

    fn choice(config: &mut Config) -> &mut ToolChoice {
        &mut config.tools
    }

    fn add(config: Config, server: Server) -> Result<(Server, Vec<String>), ToolError> {
        let (time, warnings) = Time::open(config)?;
        Ok((time.add_to(server)?.state(()), warnings))
    }
}
