//! Where credentials come from, what is asked for them, and where they are never seen.

use crate::rows::suite;
use linchpin::Server;
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::site::{Do, Seen, Site, json};
use linchpin_aws_kb::{Config, SERVICE, open};
use linchpin_rest::testing::{KEY, call};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn config(site: &Site, environment: &[(&str, &str)]) -> Config {
    Config::default().with(|config| {
        config.api = suite().config(site);
        config.region = Some("us-east-1".to_owned());
        config.environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    })
}

pub(crate) async fn connected(config: Config) -> Connection {
    let server = open(config).unwrap().add_to(Server::new("test", "0"), &SERVICE).unwrap();
    Client::new("test", "0").connect(in_process(server)).await.unwrap()
}

pub(crate) fn arguments() -> Value {
    json!({ "query": "holidays", "knowledgeBaseId": "ABCDE12345" })
}

fn header<'a>(seen: &'a Seen, name: &str) -> &'a str {
    let found = seen.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map_or("", |(_, value)| value.as_str())
}

/// Whose key signed a request.
fn signer(seen: &Seen) -> String {
    let value = header(seen, "authorization");
    value.split("Credential=").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default().to_owned()
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn credentials_of_variables_profiles_and_programs_sign_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = format!(
        "[default]\naws_access_key_id = FROMDEFAULT\naws_secret_access_key = {KEY}\n\
         [other]\naws_access_key_id = FROMOTHER\naws_secret_access_key = {KEY}\naws_session_token = {KEY}-t\n"
    );
    let credentials = written(folder.path(), "credentials", &credentials);
    let program = format!(r#"{{"Version":1,"AccessKeyId":"FROMPROGRAM","SecretAccessKey":"{KEY}"}}"#);
    let program = written(folder.path(), "program.json", &program);
    let known = format!("[profile run]\ncredential_process = cat {program}\n");
    let known = written(folder.path(), "config", &known);
    let none = folder.path().join("none");
    let none = none.to_str().unwrap();
    let own = [("AWS_ACCESS_KEY_ID", "FROMVARIABLES"), ("AWS_SECRET_ACCESS_KEY", KEY)];
    let shared = [("AWS_SHARED_CREDENTIALS_FILE", credentials.as_str()), ("AWS_CONFIG_FILE", none)];
    let running = [("AWS_SHARED_CREDENTIALS_FILE", none), ("AWS_CONFIG_FILE", known.as_str())];
    for (environment, profile, want) in [
        (own.to_vec(), None, "FROMVARIABLES"),
        (shared.to_vec(), None, "FROMDEFAULT"),
        (shared.to_vec(), Some("other"), "FROMOTHER"),
        (running.to_vec(), Some("run"), "FROMPROGRAM"),
    ] {
        let site = suite().site().await;
        let mut config = config(&site, &environment);
        config.profile = profile.map(str::to_owned);
        let connection = connected(config).await;
        let answer = call(&connection, "retrieve_from_aws_kb", arguments()).await;
        assert!(!answer.failed, "{want}: {}", answer.result);
        let seen = &site.requests()[0];
        assert_eq!(signer(seen), want);
        let value = header(seen, "authorization");
        assert!(value.contains("/us-east-1/bedrock/aws4_request"), "{value}");
        assert_eq!(header(seen, "x-amz-security-token").is_empty(), want != "FROMOTHER", "{want}");
        // The secret only signs.
        let sent = seen.everything().replace(&format!("{KEY}-t"), "");
        assert!(!sent.contains(KEY), "{sent}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn sessions_and_roles_of_profiles_are_read_by_the_program_of_aws() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let known = "[sso-session s]\nsso_region = eu-west-1\n[profile session]\nsso_session = s\n\
                 [profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = session\n[profile out]\nsso_session = s\n\
                 [profile odd]\nrole_arn = x\n[profile endless]\nrole_arn = x\n";
    let known = written(folder.path(), "config", known);
    let given = format!(r#""SecretAccessKey":"{KEY}","SessionToken":"{KEY}-t""#);
    let program = format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $5 $6\" = \"configure export-credentials --profile --format process\" ] || exit 9\n\
         [ \"$AWS_CONFIG_FILE\" = {known} ] || exit 8\n\
         case $4 in\n\
         session) echo '{{\"Version\":1,\"AccessKeyId\":\"FROMSESSION\",{given},\"Expiration\":\"2100-01-01T00:00:00+00:00\"}}';;\n\
         role) echo '{{\"Version\":1,\"AccessKeyId\":\"FROMROLE\",{given}}}';;\n\
         odd) echo '{{\"Version\":1}}';;\n\
         endless) while :; do echo '{{\"Version\":1}}'; done;;\n\
         *) echo 'The SSO session has expired: run aws sso login' >&2; exit 255;;\nesac\n"
    );
    let program = written(folder.path(), "aws", &program);
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().to_str().unwrap();
    for (profile, folder, want) in [
        ("session", path, "FROMSESSION"),
        ("role", path, "FROMROLE"),
        ("out", path, "run aws sso login"),
        ("odd", path, "has no credentials"),
        ("endless", path, "prints too much"),
        ("role", "/nonexistent", "the program aws"),
    ] {
        let site = suite().site().await;
        let environment =
            [("AWS_CONFIG_FILE", known.as_str()), ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"), ("PATH", folder)];
        let config = config(&site, &environment).with(|config| config.profile = Some(profile.to_owned()));
        let connection = connected(config).await;
        let answer = call(&connection, "retrieve_from_aws_kb", arguments()).await;
        assert!(!answer.result.to_string().contains(KEY), "{}", answer.result);
        if want.starts_with("FROM") {
            assert!(!answer.failed, "{want}: {}", answer.result);
            let seen = &site.requests()[0];
            assert_eq!(signer(seen), want);
            assert_eq!(header(seen, "x-amz-security-token"), format!("{KEY}-t"));
        } else {
            assert!(answer.failed && answer.result.to_string().contains(want), "{profile} {}", answer.result);
        }
    }
}

#[tokio::test]
async fn credentials_of_a_container_are_asked_for_once_and_again_before_they_expire() {
    let site = suite().site().await;
    let (soon, late) = ("2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
    for (expires, want) in [(late, 1), (soon, 0)] {
        let given =
            json!({ "AccessKeyId": "FROMCONTAINER", "SecretAccessKey": KEY, "Token": "t", "Expiration": expires });
        let container = Site::new(move |_, _| vec![Do::Write(json(200, "", &given))]).await;
        let url = container.url("/credentials");
        let none = "/nonexistent/config";
        let environment = [
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
            ("AWS_CONFIG_FILE", none),
            ("AWS_SHARED_CREDENTIALS_FILE", none),
        ];
        let connection = connected(config(&site, &environment)).await;
        for _ in 0..3 {
            let answer = call(&connection, "retrieve_from_aws_kb", arguments()).await;
            assert_eq!(answer.failed, want == 0, "{}", answer.result);
        }
        if want == 1 {
            assert_eq!(container.requests().len(), 1);
            assert_eq!(signer(site.requests().last().unwrap()), "FROMCONTAINER");
        }
    }
}

#[test]
fn without_credentials_the_server_does_not_start_and_says_where_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    std::fs::create_dir(folder.path().join(".aws")).unwrap();
    let login = "sso_start_url=https://x.awsapps.com/start\nsso_region=eu-west-1\nsso_account_id=1\nsso_role_name=r\n";
    let known = format!(
        "[default]\nregion=eu-west-1\n[profile run]\ncredential_process=cat x\n[profile login]\n{login}\
         [profile half]\nsso_start_url=x\n[profile session]\nsso_session=x\n[profile role]\nrole_arn=x\nsource_profile=keys\n"
    );
    written(folder.path(), ".aws/config", &known);
    let keys = format!("[keys]\naws_access_key_id=K\naws_secret_access_key={KEY}\n[odd]\naws_access_key_id=K\n");
    written(folder.path(), ".aws/credentials", &keys);
    let none = "No AWS credentials are set\nHint: Set AWS_ACCESS_KEY_ID";
    let id = ("AWS_ACCESS_KEY_ID", "K");
    for (environment, profile, want) in [
        (vec![], None, none),
        (vec![id], None, none),
        (vec![id, ("AWS_SECRET_ACCESS_KEY", "")], None, none),
        (vec![id, ("AWS_SECRET_ACCESS_KEY", KEY)], None, ""),
        (vec![("AWS_ROLE_ARN", "arn")], None, none),
        (vec![("AWS_ROLE_ARN", "arn"), ("AWS_WEB_IDENTITY_TOKEN_FILE", "/x")], None, ""),
        (vec![("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")], None, ""),
        (vec![("HOME", home)], None, none),
        (vec![("HOME", home)], Some("run"), ""),
        (vec![("HOME", home)], Some("login"), ""),
        (vec![("HOME", home)], Some("half"), none),
        (vec![("HOME", home)], Some("keys"), ""),
        (vec![("HOME", home)], Some("odd"), none),
        (vec![("HOME", home)], Some("nobody"), none),
        (vec![("HOME", home)], Some("session"), ""),
        (vec![("HOME", home)], Some("role"), ""),
    ] {
        let config = Config::default().with(|config| {
            config.region = Some("us-east-1".to_owned());
            config.profile = profile.map(str::to_owned);
            config.environment =
                environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        });
        let error = open(config).err().map(|error| error.to_string()).unwrap_or_default();
        let same = if want.is_empty() { error.is_empty() } else { error.starts_with(want) };
        assert!(same, "{environment:?} {profile:?}: {error}");
        assert!(!error.contains(KEY), "{error}");
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_an_error_and_the_metadata_service_is_only_asked_where_it_is_wanted() {
    for wanted in [false, true] {
        let (site, metadata) = (suite().site().await, Site::saying(json(404, "", &json!({}))).await);
        let url = metadata.url("");
        let environment = [
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", url.trim_end_matches('/')),
            ("AWS_CONFIG_FILE", "/nonexistent/config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent/config"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/x"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token"),
        ];
        let config = config(&site, &environment).with(|config| config.instance_metadata = wanted);
        let connection = connected(config).await;
        let answer = call(&connection, "retrieve_from_aws_kb", arguments()).await;
        assert!(answer.failed && answer.text.starts_with("No AWS credentials can be used"), "{}", answer.result);
        assert_eq!(answer.kind, "denied");
        assert!(site.requests().is_empty());
        assert_eq!(metadata.requests().is_empty(), !wanted);
    }
}
