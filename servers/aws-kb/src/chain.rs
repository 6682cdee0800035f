//! Where credentials of AWS are looked for: as AWS's own tools do, and nothing else is reached for them.

use crate::Config;
use crate::exported::{EXPORTED, Source};
use bytes::Bytes;
use http::{Request, Response};
use linchpin::transport::web::{HostRule, Web};
use linchpin_kit::ToolError;
use reqsign_aws_v4::DefaultCredentialProvider;
use reqsign_core::{CommandExecute, CommandOutput, Context, Error, FileRead, HttpSend, Result, StaticEnv};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The variables that say where credentials are.
pub(crate) const VARIABLES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_EXTERNAL_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "HOME",
    "USERPROFILE",
];

/// Most bytes of a file, of a response and of a program's output.
const BYTES_MAX: usize = 1 << 20;

/// How long one step may take.
const TIME: Duration = Duration::from_secs(20);

const METADATA: &str = "http://169.254.169.254";
const CONTAINER: &str = "http://169.254.170.2";

/// What [`DefaultCredentialProvider`] tries, in its order; the metadata service only where the operator wants it.
fn provider(config: &Config) -> DefaultCredentialProvider {
    let mut chain = DefaultCredentialProvider::builder();
    if let Some(profile) = &config.profile {
        chain = chain.with_profile(profile);
    }
    if !config.instance_metadata {
        chain = chain.no_imds();
    }
    let containers = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"];
    if !containers.iter().any(|name| config.environment.contains_key(*name)) {
        chain = chain.no_ecs();
    }
    chain.build()
}

/// The library's access to files, programs, variables and the network.
pub(crate) fn context(config: &Config) -> std::result::Result<Context, ToolError> {
    let mut envs = config.environment.clone();
    for (name, value) in [("AWS_REGION", &config.region), ("AWS_PROFILE", &config.profile)] {
        if let Some(value) = value {
            envs.insert(name.to_owned(), value.clone());
        }
    }
    let home_dir = home(config);
    let env = StaticEnv { home_dir, envs: envs.into_iter().collect() };
    Ok(Context::new()
        .with_env(env)
        .with_file_read(Files)
        .with_command_execute(Programs { environment: config.environment.clone() })
        .with_http_send(Http::new(config)?))
}

fn home(config: &Config) -> Option<PathBuf> {
    ["HOME", "USERPROFILE"].iter().find_map(|name| config.environment.get(*name)).map(PathBuf::from)
}

/// The region: of the option, or of the profile.
pub(crate) fn region(config: &Config) -> std::result::Result<String, ToolError> {
    let region = config.region.clone().or_else(|| of_profile(config)).ok_or_else(|| {
        ToolError::new("No region is set")
            .hint("Set AWS_REGION or --region to where the knowledge base is, for example eu-central-1.")
    })?;
    let valid = (1..=32).contains(&region.len()) && region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if valid { Ok(region) } else { Err(ToolError::new(format!("Not an AWS region: {region}"))) }
}

fn of_profile(config: &Config) -> Option<String> {
    settings(config)?.get("region").map(str::to_owned)
}

/// What credentials could come from, if there is anything. Nothing is run, and nobody is asked: what does not exist is
/// known at start, and what has expired when a request is signed.
pub(crate) fn source(config: &Config) -> std::result::Result<Source, ToolError> {
    let chain = || Source::Chain(Box::new(provider(config)));
    let is_set = |name: &str| config.environment.get(name).is_some_and(|value| !value.is_empty());
    let all = |names: &[&str]| names.iter().all(|name| is_set(name));
    if all(&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
        || all(&["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"])
        || is_set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        || is_set("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        || config.instance_metadata
    {
        return Ok(chain());
    }
    let (known, keys) = (settings(config), keys(config));
    let has = |one: &Option<ini::Properties>, names: &[&str]| {
        one.as_ref().is_some_and(|one| names.iter().all(|name| one.contains_key(name)))
    };
    let key = ["aws_access_key_id", "aws_secret_access_key"];
    let login = ["sso_start_url", "sso_region", "sso_account_id", "sso_role_name"];
    if has(&keys, &key) || has(&known, &key) || has(&known, &login) || has(&known, &["credential_process"]) {
        return Ok(chain());
    }
    // What AWS's own tools can read and the library cannot.
    if EXPORTED.iter().any(|word| has(&known, &[word])) {
        return Ok(Source::exported(config));
    }
    Err(ToolError::new("No AWS credentials are set").hint(
        "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (IAM console, Security credentials), or AWS_PROFILE to a profile of \
         `aws configure`; on EC2 add --instance-metadata.",
    ))
}

/// The profile in the file of settings.
fn settings(config: &Config) -> Option<ini::Properties> {
    let section = match config.profile.as_deref() {
        None | Some("default") => "default".to_owned(),
        Some(profile) => format!("profile {profile}"),
    };
    read(config, "AWS_CONFIG_FILE", ".aws/config", section)
}

/// The profile in the file of keys.
fn keys(config: &Config) -> Option<ini::Properties> {
    let section = config.profile.clone().unwrap_or_else(|| "default".to_owned());
    read(config, "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", section)
}

fn read(config: &Config, variable: &str, usual: &str, section: String) -> Option<ini::Properties> {
    let file = config.environment.get(variable).map(PathBuf::from);
    let file = file.or_else(|| home(config).map(|home| home.join(usual)))?;
    if std::fs::metadata(&file).ok()?.len() > BYTES_MAX as u64 {
        return None;
    }
    ini::Ini::load_from_file(file).ok()?.section(Some(section)).cloned()
}

#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        let bad = |e: std::io::Error| Error::config_invalid(format!("{path} cannot be read: {e}"));
        let size = tokio::fs::metadata(path).await.map_err(bad)?.len();
        if size > BYTES_MAX as u64 {
            return Err(Error::config_invalid(format!("{path} is too long")));
        }
        tokio::fs::read(path).await.map_err(bad)
    }
}

/// The `credential_process` of a profile, and the AWS CLI, with the variables that credentials are looked up with.
#[derive(Debug)]
struct Programs {
    environment: BTreeMap<String, String>,
}

impl CommandExecute for Programs {
    async fn command_execute<'a>(&'a self, program: &'a str, args: &'a [&'a str]) -> Result<CommandOutput> {
        let mut command = tokio::process::Command::new(program);
        command.args(args).envs(&self.environment).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let bad = |why: String| Error::config_invalid(format!("the program {program}: {why}"));
        let run = async {
            let mut child = command.spawn()?;
            let (stdout, stderr) = tokio::join!(all(child.stdout.take()), all(child.stderr.take()));
            // One that has more to say is not waited for: it is ended when it is dropped.
            let (stdout, stderr) = (stdout?, stderr?);
            Ok(CommandOutput { status: child.wait().await?.code().unwrap_or(-1), stdout, stderr })
        };
        let ran: std::result::Result<std::io::Result<_>, _> = tokio::time::timeout(TIME, run).await;
        ran.map_err(|_| bad("it takes too long".to_owned()))?.map_err(|e| bad(e.to_string()))
    }
}

/// What a program prints, up to the limit.
async fn all(output: Option<impl AsyncRead + Unpin>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(output) = output {
        output.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).await?;
    }
    match bytes.len() > BYTES_MAX {
        true => Err(std::io::Error::other("it prints too much")),
        false => Ok(bytes),
    }
}

/// Token services of AWS, and what the operator named.
#[derive(Debug)]
struct Http {
    web: Web,
}

impl Http {
    fn new(config: &Config) -> std::result::Result<Http, ToolError> {
        let named = ["AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_SERVICE_ENDPOINT"];
        let mut hosts = vec![".amazonaws.com".to_owned(), ".amazonaws.com.cn".to_owned()];
        hosts.extend(named.iter().filter_map(|name| authority(config.environment.get(*name)?)));
        if config.environment.contains_key("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            hosts.extend(authority(CONTAINER));
        }
        if config.instance_metadata {
            hosts.extend(authority(METADATA));
        }
        let invalid = |e: linchpin::transport::web::NoHost| ToolError::new(e.to_string());
        let hosts = hosts.iter().map(|host| host.parse::<HostRule>()).collect::<std::result::Result<Vec<_>, _>>();
        let only_hosts = hosts.map_err(invalid)?;
        let web = Web::new(config.api.web(std::iter::empty())?.with(|web| {
            web.only_hosts = only_hosts;
            // Containers and instances are asked without TLS.
            web.https_only = false;
            web.decompress = false;
            web.body_bytes_max = Some(BYTES_MAX);
            web.connect_ms_max = 5_000;
        }));
        Ok(Http { web })
    }
}

fn authority(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

impl HttpSend for Http {
    async fn http_send(&self, request: Request<Bytes>) -> Result<Response<Bytes>> {
        let (parts, body) = request.into_parts();
        let bad = |e: linchpin::transport::web::WebError| Error::credential_invalid(e.to_string());
        let url = parts.uri.to_string();
        let sent = self.web.request_by(parts.method, &url, parts.headers, body, Instant::now() + TIME).await;
        let mut response = sent.map_err(bad)?;
        let body = response.body.read_all(BYTES_MAX).await.map_err(bad)?;
        Ok(Response::from_parts(response.parts, body))
    }
}
