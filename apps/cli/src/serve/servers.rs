//! The built-in servers: one entry each.

#[cfg(any(feature = "git", all(feature = "filesystem", unix)))]
use super::Reach;
#[allow(unused_imports, reason = "which of them are used depends on the servers of the build")]
use super::native::{Entry, Main, Typed};
#[cfg(feature = "google-drive")]
use linchpin_kit::ToolError;
#[cfg(any(feature = "brave-search", feature = "everything"))]
use {linchpin_kit::Vars, std::ffi::OsString};

/// All servers of this build, in the order of help texts.
pub(crate) const ENTRIES: &[Entry] = &[
    #[cfg(all(feature = "filesystem", unix))]
    Entry {
        title: "File system",
        about: "Files in the directories you name, and nothing outside them",
        examples: "  \
  linchpin serve filesystem ~/notes ~/drafts
  linchpin serve filesystem --read-only --deny '**/.env' .
  linchpin serve filesystem . --http 127.0.0.1:8931
",
        main: Main::Word,
        takes_several: true,
        ..Entry::new(
            "filesystem",
            linchpin_filesystem::SERVICE,
            &Typed {
                reach: Some(|config: &mut linchpin_filesystem::Config| Reach {
                    named: !config.directories.is_empty(),
                    roots: &mut config.roots,
                    how: "a directory: DIR or MCP_FS_DIRS",
                }),
                ..Typed::new(
                    |config| &mut config.tools,
                    |config, server| {
                        let (filesystem, warnings) = linchpin_filesystem::Filesystem::open(config)?;
                        Ok((filesystem.add_to(server)?.state(()), warnings))
                    },
                )
            },
        )
    },
    #[cfg(feature = "git")]
    Entry {
        title: "Git",
        about: "Git, with hooks, filters and other repository-supplied programs disabled",
        examples: "  \
  linchpin serve git .
  linchpin serve git --read-only ~/work/one ~/work/two
  linchpin serve git . --allow-remote
",
        notes: "MCP_GIT_REPOSITORIES has one repository per line.",
        main: Main::Flag("--repository"),
        takes_several: true,
        ..Entry::new(
            "git",
            linchpin_git::SERVICE,
            &Typed {
                reach: Some(|config: &mut linchpin_git::Config| Reach {
                    named: config.allow_any || !config.repositories.is_empty(),
                    roots: &mut config.roots,
                    how: "a repository: DIR or MCP_GIT_REPOSITORIES",
                }),
                ..Typed::new(
                    |config| &mut config.tools,
                    |config, server| {
                        let (git, warnings) = linchpin_git::Git::open(config)?;
                        Ok((git.add_to(server)?.state(()), warnings))
                    },
                )
            },
        )
    },
    #[cfg(feature = "fetch")]
    Entry {
        title: "Fetch",
        about: "Web pages as text, without access to private networks",
        examples: "  \
  linchpin serve fetch
  linchpin serve fetch --allow-host docs.rs --allow-host '*.example.org'
  linchpin serve fetch --allow-private-host wiki.internal
",
        notes: "MCP_FETCH_HEADERS has one header per line. MCP_FETCH_HEADERS_FILE is a file of headers, and \
                MCP_FETCH_HEADERS_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature keyring); \
                the same holds for MCP_FETCH_PROXY_URL.",
        secrets: &["header"],
        ..Entry::new(
            "fetch",
            linchpin_fetch::SERVICE,
            &Typed {
                prepare: |config: &mut linchpin_fetch::Config| {
                    let converter = linchpin_fetch::Converter::this_program([super::convert::COMMAND]);
                    config.converter = converter.unwrap_or_default();
                },
                ..Typed::new(
                    |config| &mut config.tools,
                    |config, server| {
                        let (fetch, warnings) = linchpin_fetch::Fetch::open(config)?;
                        Ok((fetch.add_to(server)?.state(()), warnings))
                    },
                )
            },
        )
    },
    #[cfg(feature = "memory")]
    Entry {
        title: "Memory",
        about: "A knowledge-graph memory that persists across conversations",
        examples: "  \
  linchpin serve memory
  linchpin serve memory --scope my-project
  linchpin serve memory ~/notes/memory.jsonl --backup 10
",
        notes: "MEMORY_FILE_PATH, which the published server reads, also sets the file.",
        main: Main::Flag("--file"),
        ..Entry::new(
            "memory",
            linchpin_memory::SERVICE,
            &Typed::new(
                |config: &mut linchpin_memory::Config| &mut config.tools,
                |config, server| {
                    let (memory, warnings) = linchpin_memory::Memory::open(config)?;
                    Ok((memory.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "sqlite")]
    Entry {
        title: "SQLite",
        about: "One SQLite database, without access to other files",
        examples: "  \
  linchpin serve sqlite shop.db
  linchpin serve sqlite --read-only --timeout 5 /var/lib/app/app.db
  linchpin serve sqlite notes.db --memo-file insights.jsonl
",
        main: Main::Word,
        ..Entry::new(
            "sqlite",
            linchpin_sqlite::SERVICE,
            &Typed::new(
                |config: &mut linchpin_sqlite::Config| &mut config.tools,
                |config, server| {
                    let (sqlite, warnings) = linchpin_sqlite::Sqlite::open(config)?;
                    Ok((sqlite.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "postgres")]
    Entry {
        title: "PostgreSQL",
        about: "PostgreSQL databases, read-only unless you say otherwise",
        examples: "  \
  linchpin serve postgres postgres://reader@localhost/shop
  PGPASSWORD_FILE=/run/secrets/db \\
    linchpin serve postgres 'postgres://reader@db/shop?sslmode=verify-full'
  linchpin serve postgres --config databases.toml --schemas app
",
        notes: "PGHOST, PGUSER, PGPASSWORD, PGSERVICE, ~/.pgpass and the like work as in psql; PGPASSWORD_FILE is a file with \
                the password, PGPASSWORD_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature \
                keyring).",
        main: Main::Word,
        schemes: &["postgres", "postgresql"],
        address: |value| linchpin_postgres::shown_url(value).unwrap_or_else(|| "URL".to_owned()),
        ..Entry::new(
            "postgres",
            linchpin_postgres::SERVICE,
            &Typed::new(
                |config: &mut linchpin_postgres::Config| &mut config.tools,
                |config, server| {
                    let (postgres, warnings) = linchpin_postgres::Postgres::open(config)?;
                    Ok((postgres.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "time")]
    Entry {
        title: "Time",
        about: "Current time in any time zone, conversions, and date arithmetic",
        examples: "  \
  linchpin serve time
  linchpin serve time --local-timezone America/New_York
",
        notes: "LOCAL_TIMEZONE also sets the time zone; TZDIR is a directory of compiled zones. TZ counts as in other programs.",
        main: Main::Flag("--local-timezone"),
        data: || Some(format!("time zones {}", linchpin_time::embedded_tzdb_version())),
        ..Entry::new(
            "time",
            linchpin_time::SERVICE,
            &Typed::new(
                |config: &mut linchpin_time::Config| &mut config.tools,
                |config, server| {
                    let (time, warnings) = linchpin_time::Time::open(config)?;
                    Ok((time.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "sequential-thinking")]
    Entry {
        title: "Sequential thinking",
        about: "Step-by-step thinking with revisions and branches",
        examples: "  \
  linchpin serve sequential-thinking
  linchpin serve sequential-thinking --toolsets all
  linchpin serve sequential-thinking --http 127.0.0.1:8931
",
        notes: "DISABLE_THOUGHT_LOGGING=false, which the published server reads, is --log-thoughts.",
        ..Entry::new(
            "sequential-thinking",
            linchpin_sequential_thinking::SERVICE,
            &Typed::new(
                |config: &mut linchpin_sequential_thinking::Config| &mut config.tools,
                |config, server| {
                    let (thinking, warnings) = linchpin_sequential_thinking::SequentialThinking::open(config)?;
                    Ok((thinking.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "brave-search")]
    Entry {
        title: "Brave Search",
        about: "Web, local, news, video and image search, with a Brave API key",
        examples: "  \
  linchpin serve brave-search
  linchpin serve brave-search --pace-ms 50
  BRAVE_API_KEY_FILE=~/.brave-key linchpin serve brave-search
",
        notes: "BRAVE_API_KEY is the key (create one at https://api-dashboard.search.brave.com/app/keys); BRAVE_API_KEY_FILE is \
                a file with it, BRAVE_API_KEY_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature \
                keyring).",
        original: brave_search_original,
        asks: &[("BRAVE_API_KEY", "Key of the Brave Search API")],
        ..Entry::new(
            "brave-search",
            linchpin_brave_search::SERVICE,
            &Typed::new(
                |config: &mut linchpin_brave_search::Config| &mut config.api.tools,
                |config, server| {
                    let server =
                        linchpin_brave_search::open(config)?.add_to(server, &linchpin_brave_search::SERVICE)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "gitlab")]
    Entry {
        title: "GitLab",
        about: "GitLab: projects, files, issues, merge requests and pipelines",
        examples: "  \
  linchpin serve gitlab --project group/project
  linchpin serve gitlab --read-only --lockdown
  GITLAB_API_URL=https://gitlab.example.org/api/v4 linchpin serve gitlab
",
        notes: "GITLAB_PERSONAL_ACCESS_TOKEN (or GITLAB_TOKEN) is the token: create one at \
                https://gitlab.com/-/user_settings/personal_access_tokens. …_FILE names a file with it, \
                …_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature keyring). A CI job has \
                one for --token-kind job-token in CI_JOB_TOKEN.",
        asks: &[
            ("GITLAB_PERSONAL_ACCESS_TOKEN", "Personal access token"),
            ("GITLAB_API_URL", "URL of the API of another GitLab"),
        ],
        ..Entry::new(
            "gitlab",
            linchpin_gitlab::SERVICE,
            &Typed::new(
                |config: &mut linchpin_gitlab::Config| &mut config.api.tools,
                |config, server| {
                    let server = linchpin_gitlab::open(config)?.add_to(server, &linchpin_gitlab::SERVICE)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "slack")]
    Entry {
        title: "Slack",
        about: "Channels, messages, threads and users of a Slack workspace",
        examples: "  \
  linchpin serve slack
  linchpin serve slack --channel C0123456789 --link-host example.org
  SLACK_BOT_TOKEN_FILE=~/.slack-token linchpin serve slack --allow-post
",
        notes: "SLACK_BOT_TOKEN is the token of an app (create one at https://api.slack.com/apps); SLACK_USER_TOKEN is a user's, \
                for search. …_FILE names a file with it, …_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built \
                with the feature keyring). It posts only in channels named with --channel or SLACK_CHANNEL_IDS, or with \
                --allow-post.",
        asks: &[("SLACK_BOT_TOKEN", "Token of a bot, xoxb-…"), ("SLACK_TEAM_ID", "Id of the workspace, T…")],
        ..Entry::new(
            "slack",
            linchpin_slack::SERVICE,
            &Typed::new(
                |config: &mut linchpin_slack::Config| &mut config.api.tools,
                |config, server| {
                    let warnings = linchpin_slack::warnings(&config);
                    let server = linchpin_slack::open(config)?.add_to(server, &linchpin_slack::SERVICE)?;
                    Ok((server.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "google-maps")]
    Entry {
        title: "Google Maps",
        about: "Places, addresses, routes, distances and elevation, with a Google Maps API key",
        examples: "  \
  linchpin serve google-maps
  linchpin serve google-maps --toolsets routes
  GOOGLE_MAPS_API_KEY_FILE=~/.maps-key linchpin serve google-maps --legacy
",
        notes: "GOOGLE_MAPS_API_KEY is the key (create one at https://console.cloud.google.com/google/maps-apis/credentials); \
                GOOGLE_MAPS_API_KEY_FILE is a file with it, GOOGLE_MAPS_API_KEY_KEYRING=SERVICE/ACCOUNT an entry of the keyring \
                (in programs built with the feature keyring).",
        asks: &[("GOOGLE_MAPS_API_KEY", "Key of Google Maps")],
        ..Entry::new(
            "google-maps",
            linchpin_google_maps::SERVICE,
            &Typed::new(
                |config: &mut linchpin_google_maps::Config| &mut config.api.tools,
                |config, server| {
                    let server = linchpin_google_maps::open(config)?.add_to(server, &linchpin_google_maps::SERVICE)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "google-drive")]
    Entry {
        title: "Google Drive",
        about: "Files, folders and comments of Google Drive, with a Google login",
        examples: "  \
  linchpin serve google-drive auth
  linchpin serve google-drive
  linchpin serve google-drive --allow-write --download-dir ~/Downloads
",
        notes: "`auth` logs in with the OAuth client of GDRIVE_OAUTH_PATH (create one of the type \"Desktop app\" at \
                https://console.cloud.google.com/apis/credentials) and keeps the login in the file of GDRIVE_CREDENTIALS_PATH. \
                GOOGLE_APPLICATION_CREDENTIALS is the key of a service account. GDRIVE_OAUTH and GDRIVE_CREDENTIALS are the JSON \
                itself, GDRIVE_ACCESS_TOKEN is a token from elsewhere; …_FILE names a file with it, …_KEYRING=SERVICE/ACCOUNT an \
                entry of the keyring (in programs built with the feature keyring).",
        published_as: "gdrive",
        ..Entry::new(
            "google-drive",
            linchpin_google_drive::SERVICE,
            &Typed {
                instead: google_drive_login,
                ..Typed::new(
                    |config: &mut linchpin_google_drive::Config| &mut config.api.tools,
                    |config, server| {
                        let rest = linchpin_google_drive::open(config)?;
                        Ok((linchpin_google_drive::add_to(rest, server)?.state(()), Vec::new()))
                    },
                )
            },
        )
    },
    #[cfg(feature = "github")]
    Entry {
        title: "GitHub",
        about: "GitHub: repositories, files, issues, pull requests and search",
        examples: "  \
  linchpin serve github --repo octocat/hello
  linchpin serve github --read-only --lockdown
  linchpin serve github --toolsets original
",
        notes: "GITHUB_PERSONAL_ACCESS_TOKEN or GITHUB_TOKEN is the token (create one at \
                https://github.com/settings/personal-access-tokens); …_FILE is a file with it, …_KEYRING=SERVICE/ACCOUNT an entry of \
                the keyring (in programs built with the feature keyring). Without one the server only reads what is public. \
                GITHUB_HOST, GITHUB_READ_ONLY and GITHUB_LOCKDOWN_MODE of GitHub's own server are heeded.",
        asks: &[("GITHUB_PERSONAL_ACCESS_TOKEN", "Personal access token")],
        ..Entry::new(
            "github",
            linchpin_github::SERVICE,
            &Typed::new(
                |config: &mut linchpin_github::Config| &mut config.api.tools,
                |config, server| {
                    let anonymous =
                        "GitHub without a token: only what is public can be read. Set GITHUB_PERSONAL_ACCESS_TOKEN.";
                    let warnings = if config.api.key.is_none() { vec![anonymous.to_owned()] } else { Vec::new() };
                    let server = linchpin_github::open(config)?.add_to(server, &linchpin_github::SERVICE)?;
                    Ok((server.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "sentry")]
    Entry {
        title: "Sentry",
        about: "Sentry issues with stack traces and the events before them",
        examples: "  \
  linchpin serve sentry
  linchpin serve sentry --org acme --toolsets all
  linchpin serve sentry --url https://sentry.example.com
",
        notes: "SENTRY_TOKEN or SENTRY_AUTH_TOKEN is the token; SENTRY_TOKEN_FILE is a file with it, \
                SENTRY_TOKEN_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature keyring). SENTRY_HOST \
                is the host of --url.",
        secrets: &["auth-token"],
        asks: &[("SENTRY_TOKEN", "Authentication token")],
        ..Entry::new(
            "sentry",
            linchpin_sentry::SERVICE,
            &Typed::new(
                |config: &mut linchpin_sentry::Config| &mut config.api.tools,
                |config, server| {
                    let server = linchpin_sentry::Sentry::open(config)?.add_to(server)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "everart")]
    Entry {
        title: "EverArt",
        about: "Image generation, with an EverArt API key",
        examples: "  \
  linchpin serve everart
  linchpin serve everart --inline-images --image-host cdn.example.com
  EVERART_API_KEY_FILE=~/.everart-key linchpin serve everart
",
        notes: "EVERART_API_KEY is the key (create one at https://www.everart.ai/api); EVERART_API_KEY_FILE is a file with it, \
                EVERART_API_KEY_KEYRING=SERVICE/ACCOUNT an entry of the keyring (in programs built with the feature keyring).",
        asks: &[("EVERART_API_KEY", "Key of the EverArt API")],
        ..Entry::new(
            "everart",
            linchpin_everart::SERVICE,
            &Typed::new(
                |config: &mut linchpin_everart::Config| &mut config.api.tools,
                |config, server| {
                    let server = linchpin_everart::EverArt::open(config)?.add_to(server)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "aws-kb")]
    Entry {
        title: "AWS knowledge bases",
        about: "Retrieval from Amazon Bedrock knowledge bases, with AWS credentials",
        examples: "  \
  linchpin serve aws-kb --region eu-central-1
  linchpin serve aws-kb --profile reader --kb ABCDE12345
",
        notes: "Credentials are looked for as AWS's own tools do: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile of \
                AWS_PROFILE with its keys, login or program, a container's, and with --instance-metadata an EC2 instance's.",
        published_as: "aws-kb-retrieval",
        asks: &[
            ("AWS_ACCESS_KEY_ID", "Id of an access key"),
            ("AWS_SECRET_ACCESS_KEY", "The secret of that access key"),
            ("AWS_REGION", "Region of the knowledge bases"),
        ],
        ..Entry::new(
            "aws-kb",
            linchpin_aws_kb::SERVICE,
            &Typed::new(
                |config: &mut linchpin_aws_kb::Config| &mut config.api.tools,
                |config, server| {
                    let server = linchpin_aws_kb::open(config)?.add_to(server, &linchpin_aws_kb::SERVICE)?;
                    Ok((server.state(()), Vec::new()))
                },
            ),
        )
    },
    #[cfg(feature = "browser")]
    Entry {
        title: "Browser",
        about: "A separate browser for each client, without access to private networks",
        examples: "  \
  linchpin serve browser
  linchpin serve browser --allow-host '*.example.com' --viewport 1280x720
  linchpin serve browser --storage-state state.json --download-dir ~/Downloads
",
        notes: "PUPPETEER_LAUNCH_OPTIONS, ALLOW_DANGEROUS and DOCKER_CONTAINER, which the published server reads, are heeded. The \
                browser is Chrome, Chromium, Edge or chrome-headless-shell, and has to be there.",
        published_as: "puppeteer",
        ..Entry::new(
            "browser",
            linchpin_browser::SERVICE,
            &Typed::new(
                |config: &mut linchpin_browser::Config| &mut config.tools,
                |config, server| {
                    let (browser, warnings) = linchpin_browser::BrowserServer::open(config)?;
                    Ok((browser.add_to(server)?.state(()), warnings))
                },
            ),
        )
    },
    #[cfg(feature = "everything")]
    Entry {
        title: "Everything",
        about: "Every feature of the protocol, for testing clients",
        examples: "  \
  linchpin serve everything
  linchpin serve everything --http 127.0.0.1:8931 --sse
",
        introduce: linchpin_everything::introduce,
        original: everything_original,
        ..Entry::new(
            "everything",
            linchpin_everything::SERVICE,
            &Typed::new(
                |options: &mut linchpin_everything::Options| &mut options.tools,
                |options, server| {
                    Ok((linchpin_everything::Everything::new(options).add_to(server)?.state(()), Vec::new()))
                },
            ),
        )
    },
];

/// `stdio`, `sse` or `streamableHttp`; the port is in `PORT`. This server listens on the loopback address only.
#[cfg(feature = "everything")]
fn everything_original(mut given: Vec<OsString>, vars: Vars<'_>) -> Vec<OsString> {
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

/// `auth`: logs in, and says where the login is kept.
#[cfg(feature = "google-drive")]
fn google_drive_login(config: &linchpin_google_drive::Config) -> Option<Result<String, ToolError>> {
    use crate::show::out::note;
    let login = linchpin::auth::login::Browser::new().notice(|url| note(format!("Log in at {url}")));
    config.log_in.then(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| ToolError::new(format!("The login cannot be started: {e}")))?;
        let path = runtime.block_on(linchpin_google_drive::log_in(config, &login))?;
        Ok(format!("Credentials saved to {}. You can now run the server.", path.display()))
    })
}

/// Brave's own server takes its transport from variables.
#[cfg(feature = "brave-search")]
fn brave_search_original(mut given: Vec<OsString>, vars: Vars<'_>) -> Vec<OsString> {
    let is_transport = |word: &OsString| {
        let word = word.to_string_lossy();
        matches!(word.split('=').next(), Some("--http" | "--unix"))
    };
    if vars.text("BRAVE_MCP_TRANSPORT").as_deref() != Some("http") || given.iter().any(is_transport) {
        return given;
    }
    let or = |name: &str, usual: &str| vars.text(name).unwrap_or_else(|| usual.to_owned());
    let address = format!("{}:{}", or("BRAVE_MCP_HOST", "127.0.0.1"), or("BRAVE_MCP_PORT", "8080"));
    let mut flags = vec!["--http".to_owned(), address];
    for (variable, flag) in
        [("BRAVE_MCP_ALLOWED_HOSTS", "--accept-host"), ("BRAVE_MCP_ALLOWED_ORIGINS", "--allow-origin")]
    {
        let names = vars.list(variable, ',').unwrap_or_default();
        let names = names.iter().flat_map(|names| names.split_whitespace());
        flags.extend(names.flat_map(|name| [flag.to_owned(), name.to_owned()]));
    }
    given.extend(flags.into_iter().map(OsString::from));
    given
}

#[cfg(all(test, feature = "brave-search"))]
mod tests {
    use super::*;

    #[test]
    fn a_transport_on_the_command_line_wins_over_braves_variables() {
        let get = |name: &str| (name == "BRAVE_MCP_TRANSPORT").then(|| "http".to_owned());
        let words = |given: &[&str]| brave_search_original(given.iter().map(OsString::from).collect(), Vars::new(&get));
        assert_eq!(words(&["--pace-ms", "5"]), ["--pace-ms", "5", "--http", "127.0.0.1:8080"]);
        for given in [
            &["--http", "127.0.0.1:1"][..],
            &["--http=127.0.0.1:1"],
            &["--unix", "socket"],
            &["--pace-ms", "5", "--unix=socket"],
        ] {
            assert_eq!(words(given), given);
        }
    }
}
