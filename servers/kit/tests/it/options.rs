//! Options: what overrides what, what errors name, what a command line shows.

use linchpin_kit::{Given, Options, RootsPolicy, Secret, ToolChoice, ToolError, Vars, flag};
use std::path::PathBuf;
use std::time::Duration;

linchpin_kit::options! {
    /// One option of each kind.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Config: "MCP_X" then settle {
        /// The file, or `:memory:`.
        ///
        /// More about it.
        pub db_path: Option<PathBuf> = None => flag::file("PATH").word("FILE").excludes(&["scope"]),
        /// Another
        /// file.
        pub scope: Option<String> = None => flag::text("NAME").excludes(&["db-path"]),
        /// Rows.
        pub rows_max: usize = 1_000 => flag::number("N").named("max-rows"),
        /// Bytes.
        pub max_bytes: u64 = 10 << 20 => flag::bytes(),
        /// Time.
        pub timeout: Duration = Duration::from_secs(30) => flag::seconds(),
        /// Waiting.
        pub wait: Duration = Duration::from_millis(20) => flag::millis(),
        /// Create it.
        pub create: bool = true => flag::on_off(),
        /// Also this.
        pub also: bool = false => flag::switch(),
        /// Denied.
        pub deny: Vec<String> = Vec::new() => flag::repeated("GLOB", ',').adds(),
        /// Folders.
        pub folders: Vec<PathBuf> = Vec::new() => flag::repeated("DIR", ':').variable("MCP_X_DIRS"),
        /// Schemas.
        pub schemas: Vec<String> = Vec::new() => flag::list("NAME,…"),
        /// Roots.
        pub roots: Option<RootsPolicy> = None
            => flag::roots(&[RootsPolicy::Ignore, RootsPolicy::Narrow]).default("ignore"),
        /// The key.
        pub key: Option<Secret> = None => flag::text("KEY").variable("KEY").variable("OLD_KEY").secret(),
        /// No option.
        pub clock: u8 = 7,
        /// Tools.
        pub tools: ToolChoice = ToolChoice::default() => flag::group(),
    }
}

impl Config {
    fn settle(&mut self, vars: Vars<'_>, given: &Given) -> Result<(), ToolError> {
        if !given.has("also") && vars.text("OTHERS_SWITCH").is_some() {
            self.also = true;
        }
        Ok(())
    }
}

fn read(variables: &[(&str, &str)], line: &[(&str, &str)]) -> Result<Config, ToolError> {
    let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    let mut given = Given::default();
    line.iter().for_each(|(name, value)| given.add(name, [(*value).to_owned()]));
    Config::read(Vars::new(&get), &given)
}

fn config(change: impl FnOnce(&mut Config)) -> Result<Config, ToolError> {
    Ok(Config::default().with(change))
}

#[test]
fn variables_override_defaults_and_the_command_line_overrides_both() {
    assert_eq!(read(&[], &[]), config(|c| assert_eq!((c.rows_max, c.clock), (1_000, 7))));
    assert_eq!(read(&[("MCP_X_MAX_ROWS", ""), ("MCP_X_DENY", "")], &[]), config(|_| {}));
    assert_eq!(read(&[("MCP_X_MAX_ROWS", " 5 ")], &[]), config(|c| c.rows_max = 5));
    assert_eq!(read(&[("MCP_X_MAX_ROWS", "soon")], &[("max-rows", "6")]), config(|c| c.rows_max = 6));
    let times = [("MCP_X_TIMEOUT", "2"), ("MCP_X_WAIT", "3")];
    assert_eq!(read(&times, &[]), config(|c| (c.timeout, c.wait) = (Duration::from_secs(2), Duration::from_millis(3))));
    for (text, on) in [("1", true), ("Yes", true), ("on", true), ("0", false), ("FALSE", false)] {
        let both = [("MCP_X_CREATE", text), ("MCP_X_ALSO", text), ("MCP_X_READ_ONLY", text)];
        assert_eq!(read(&both, &[]), config(|c| (c.create, c.also, c.tools.read_only) = (on, on, on)));
    }
    assert_eq!(read(&[("MCP_X_CREATE", "1")], &[("create", "false")]), config(|c| c.create = false));
    assert_eq!(read(&[("MCP_X_ROOTS", "narrow")], &[]), config(|c| c.roots = Some(RootsPolicy::Narrow)));
    assert_eq!(read(&[("OTHERS_SWITCH", "1")], &[]), config(|c| c.also = true));
}

#[test]
fn lists_are_replaced_by_the_command_line_or_added_to() {
    let variables =
        [("MCP_X_DENY", "a, b"), ("MCP_X_DIRS", "/x:/y\n/z"), ("MCP_X_SCHEMAS", "p,q"), ("MCP_X_TOOLSETS", "t")];
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let of_variables = |c: &mut Config| {
        (c.deny, c.schemas, c.tools.toolsets) = (words("a b"), words("p q"), words("t"));
        c.folders = ["/x", "/y", "/z"].map(PathBuf::from).to_vec();
    };
    assert_eq!(read(&variables, &[]), config(of_variables));
    let line = [("deny", "c,d"), ("folders", "/with:colon"), ("schemas", "r"), ("schemas", "s"), ("toolsets", "u")];
    let both = |c: &mut Config| {
        (c.deny, c.schemas, c.tools.toolsets) = (words("a b c,d"), words("r s"), words("u"));
        c.folders = vec!["/with:colon".into()];
    };
    assert_eq!(read(&variables, &line), config(both));
}

#[test]
fn an_option_that_excludes_another_hides_its_variable() {
    let variables = [("MCP_X_DB_PATH", "a.db"), ("MCP_X_SCOPE", "b")];
    assert_eq!(read(&variables, &[("scope", "c")]), config(|c| c.scope = Some("c".into())));
    assert_eq!(read(&variables, &[("db-path", "c")]), config(|c| c.db_path = Some("c".into())));
    let both = |c: &mut Config| (c.db_path, c.scope) = (Some("a.db".into()), Some("b".into()));
    assert_eq!(read(&variables, &[]), config(both));
}

#[test]
fn secrets_come_from_any_of_their_variables_and_files() {
    let path = std::env::temp_dir().join(format!("linchpin-kit-options-{}", std::process::id()));
    std::fs::write(&path, "from the file\n").unwrap();
    let file = ("KEY_FILE", path.to_str().unwrap());
    for (variables, want) in
        [(vec![("KEY", "said"), file], "said"), (vec![("OLD_KEY", "old"), file], "old"), (vec![file], "from the file")]
    {
        assert_eq!(read(&variables, &[]), config(|c| c.key = Some(Secret::new(want))), "{variables:?}");
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn errors_name_the_variable_or_the_flag() {
    for (variables, line, said) in [
        (vec![("MCP_X_MAX_ROWS", "some")], vec![], "MCP_X_MAX_ROWS: invalid number: some"),
        (vec![("MCP_X_ALSO", "maybe")], vec![], "MCP_X_ALSO: invalid value: maybe\nHint: Use 1 or 0."),
        (vec![("MCP_X_ROOTS", "use")], vec![], "MCP_X_ROOTS: "),
        (vec![("MCP_X_TOOL_PREFIX", "a b")], vec![], "MCP_X_TOOL_PREFIX: Invalid tool prefix: a b"),
        (vec![], vec![("max-rows", "-1")], "--max-rows: invalid number: -1"),
        (vec![], vec![("timeout", "1s")], "--timeout: invalid number: 1s"),
    ] {
        let error = read(&variables, &line).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[cfg(feature = "cli")]
#[test]
fn a_command_line_shows_defaults_and_variables_and_is_read() {
    use linchpin_kit::clap::{Args as _, Command, error::ErrorKind};
    let command = || Config::augment_args(Command::new("x")).term_width(200);
    let help = command().render_help().to_string();
    for line in [
        "[FILE]  The file, or :memory: [env: MCP_X_DB_PATH]",
        "--db-path <PATH> Same as FILE",
        "--scope <NAME> Another file [env: MCP_X_SCOPE]",
        "--max-rows <N> Rows [default: 1000] [env: MCP_X_MAX_ROWS]",
        "--max-bytes <BYTES> Bytes [default: 10 MiB] [env: MCP_X_MAX_BYTES]",
        "--timeout <SECONDS> Time [default: 30] [env: MCP_X_TIMEOUT]",
        "--wait <MS> Waiting [default: 20] [env: MCP_X_WAIT]",
        "--create[=<true|false>] Create it [default: true] [env: MCP_X_CREATE]",
        "--also Also this [env: MCP_X_ALSO]",
        "--roots <ignore|narrow> Roots [default: ignore] [env: MCP_X_ROOTS]",
        "--key <KEY> The key [env: KEY, also with _FILE or _KEYRING]",
        "--toolsets <NAME,…> Offer only",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.lines().any(|shown| squeezed(shown).starts_with(&squeezed(line))), "{line} in\n{help}");
    }
    let given = |line: &str| {
        let words = ["x"].into_iter().chain(line.split_whitespace());
        let matches = command().try_get_matches_from(words).map_err(|e| e.kind())?;
        Ok::<_, ErrorKind>(linchpin_kit::cli::given::<Config>(&matches))
    };
    let line = given("f.db --create --also --max-rows 5 --deny a --deny b,c --schemas a,b --schemas c").unwrap();
    let get = |_: &str| None;
    let want = config(|c| {
        (c.db_path, c.also, c.rows_max) = (Some("f.db".into()), true, 5);
        c.deny = vec!["a".into(), "b,c".into()];
        c.schemas = vec!["a".into(), "b".into(), "c".into()];
    });
    assert_eq!(Config::read(Vars::new(&get), &line), want);
    assert_eq!(given("").unwrap(), Given::default());
    for wrong in ["f.db --db-path g.db", "--scope s --db-path g.db", "f.db --scope s"] {
        assert!(given(wrong).is_err(), "{wrong}");
    }
}

#[cfg(feature = "cli")]
mod asked {
    use super::*;

    linchpin_kit::options! {
        /// A word that logs in, and an address.
        #[derive(Debug)]
        pub struct Config: "MCP_Y" {
            /// Log in.
            pub log_in: bool = false => flag::switch().only_word("auth").command(),
            /// The address.
            pub url: Option<Secret> = None => flag::url("URL").only_word("URL").secret(),
        }
    }
}

#[cfg(feature = "cli")]
#[test]
fn hosts_ask_for_no_word_that_logs_in_and_know_which_are_secret() {
    let settings = linchpin_kit::settings::<asked::Config>();
    let told: Vec<_> = settings.iter().map(|setting| (setting.name.as_str(), setting.kind, setting.secret)).collect();
    assert_eq!(told, [("url", "url", true)]);
}
