use super::url::parameters;
use super::*;

fn target(url: &str) -> Target {
    resolve(url, &Config::default()).unwrap()
}

fn resolve(url: &str, config: &Config) -> Result<Target, ToolError> {
    let config = Config { url: Some(Secret::new(url)), ..config.clone() };
    Ok(config.targets()?.0.remove(0))
}

fn first_password(target: &Target) -> Option<&str> {
    target.password(&target.hosts[0]).map(Secret::reveal)
}

#[test]
fn urls_and_pairs_are_read_as_libpq_does() {
    let t = target("postgresql://me%40x:p%3Aw@db.example:6000/my%20db?sslmode=verify-full&connect_timeout=3");
    assert_eq!((t.user.as_str(), t.database.as_str()), ("me@x", "my db"));
    assert_eq!(t.hosts, [Host::Tcp("db.example".into(), 6000)]);
    assert_eq!(t.password(&t.hosts[0]).unwrap().reveal(), "p:w");
    assert_eq!((t.ssl, t.connect_timeout), (SslMode::VerifyFull, Duration::from_secs(3)));
    assert_eq!(t.authority, "me%40x@db.example:6000");

    let t = target("postgres://u@[::1]:7/d");
    assert_eq!(t.hosts, [Host::Tcp("::1".into(), 7)]);
    let t = target("postgres://u@a,b:7/d");
    assert_eq!(t.hosts, [Host::Tcp("a".into(), 5432), Host::Tcp("b".into(), 7)]);
    let t = target("postgres://u@%2Fvar%2Frun/d");
    assert_eq!(t.hosts, [Host::Unix("/var/run".into(), 5432)]);
    let t = target("host=h port=8 user='it''s' dbname='a b\\'c' sslmode = disable".replace("''s'", "\\'s'").as_str());
    assert_eq!((t.user.as_str(), t.database.as_str(), t.ssl), ("it's", "a b'c", SslMode::Disable));
    assert_eq!(t.hosts, [Host::Tcp("h".into(), 8)]);
    assert_eq!(target("postgres://u@h").database, "u");
}

#[test]
fn what_is_wrong_is_said_without_showing_secrets() {
    for bad in [
        "postgres://u:hunter2%zz@h/d",
        "postgres://u:hunter2@h:port/d",
        "postgres://u:hunter2@h/d?sslmode=sometimes",
        "postgres://u:hunter2@h/d?require_auth=scram-sha-256",
        "postgres://u:hunter2@h/d?sslmode=verify-ca",
        "postgres://u:hunter2@h/d?channel_binding=require",
        "postgres://u:hunter2@h/d?sslrootcert=system&sslmode=require",
        "mysql://u:hunter2@h/d",
        "postgres://u:hunter2@[::1/d",
        "password=hunter2 user='x",
    ] {
        let fault = resolve(bad, &Config::default()).unwrap_err();
        assert!(!fault.to_string().contains("hunter2"), "{bad}: {fault}");
    }
    let config = Config { url: Some(Secret::new("postgres://u:hunter2@h/d")), ..Config::default() };
    assert!(!format!("{config:?} {:?}", config.targets().unwrap()).contains("hunter2"));
    assert!(!config.targets().unwrap().0[0].authority.contains("hunter2"));
    // What others put into URLs is not a reason not to start.
    let config = Config { url: Some(Secret::new("postgres://u@h/d?pgbouncer=true")), ..Config::default() };
    assert!(config.targets().unwrap().1[0].contains("pgbouncer"));
}

#[test]
fn what_is_shown_of_an_address_has_no_password_and_means_the_same() {
    for (url, expected) in [
        ("postgres://me:secret@h:1/d?sslmode=require", "postgres://me:PASSWORD@h:1/d?sslmode=require"),
        ("postgresql://me:s%65c:r%40et@h,[::1]:7", "postgresql://me:PASSWORD@h,[::1]:7"),
        ("postgres://me:se@cret@h/d", "postgres://me:PASSWORD@h/d"),
        ("postgres://:secret@h/", "postgres://:PASSWORD@h/"),
        ("postgres://me@h/my%20db", "postgres://me@h/my%20db"),
        ("postgres://me@h/d?password=secret&port=7", "postgres://me@h/d?password=PASSWORD&port=7"),
        (
            "postgres://me@h/d?p%61ssword=se%63ret&sslpassword=secret",
            "postgres://me@h/d?p%61ssword=PASSWORD&sslpassword=PASSWORD",
        ),
        // The rest of a password with a `&` in it looks like a parameter.
        ("postgres://me@h/d?password=se&cret=x&port=7", "postgres://me@h/d?password=PASSWORD&port=7"),
        ("host=127.0.0.1 user=u dbname=x password = 'secretx'", "host=127.0.0.1 user=u dbname=x password=PASSWORD"),
        (r"password='a\'secret' host=h", "password=PASSWORD host=h"),
        (r"password=sec\ ret host='a b\'c\\' dbname=''", r"password=PASSWORD host='a b\'c\\' dbname=''"),
        ("host=h password=sec://ret sslpassword=x", "host=h password=PASSWORD sslpassword=PASSWORD"),
        ("host=h secret=secret", "host=h"),
    ] {
        let shown = shown_url(url);
        assert_eq!(shown.as_deref(), Some(expected), "{url}");
        let (given, pasted) = (parameters(url).unwrap().values, parameters(expected).unwrap().values);
        for (key, value) in &pasted {
            assert!(given[key] == *value || value == "PASSWORD", "{url}: {key}");
        }
    }
    for unclear in [
        "postgres://me:se/cret@h/d",
        "postgres://me:12/3secret@h/d",
        "postgres://me:12?a=secret@h/d",
        "postgres://me:secret%zz@h/d",
        "postgres://me:secret@h:port/d",
        "postgres://me@h/d?secret",
        "mysql://me:secret@h/d",
        "host=h password=my secret dbname=d",
        "host=h password='secret",
        "secret",
    ] {
        assert_eq!(shown_url(unclear), None, "{unclear}");
        if let Err(fault) = resolve(unclear, &Config::default()) {
            assert!(!fault.to_string().contains("secret") && !fault.to_string().contains("cret"), "{unclear}: {fault}");
        }
    }
}

#[test]
fn require_with_a_root_certificate_verifies_and_the_system_store_means_full() {
    assert_eq!(target("postgres://u@h/d?sslmode=require").ssl, SslMode::Require);
    assert_eq!(target("postgres://u@h/d?sslmode=require&sslrootcert=/x").ssl, SslMode::VerifyCa);
    assert_eq!(target("postgres://u@h/d?sslrootcert=system").ssl, SslMode::VerifyFull);
    assert_eq!(target("postgres://u@h/d").ssl, SslMode::Prefer);
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut config = Config::default();
    config.environment.root_certificate = Some(file.path().to_owned());
    for (mode, expected) in [
        ("prefer", SslMode::Prefer),
        ("require", SslMode::VerifyCa),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ] {
        let t = resolve(&format!("postgres://u@h/d?sslmode={mode}"), &config).unwrap();
        assert_eq!((t.ssl, t.root_certificate.as_deref()), (expected, file.path().to_str()), "{mode}");
    }
    config.environment.root_certificate = Some(file.path().with_extension("none"));
    assert_eq!(resolve("postgres://u@h/d?sslmode=require", &config).unwrap().ssl, SslMode::Require);
}

#[test]
fn passwords_come_from_the_places_libpq_looks_in() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let pass = write("pgpass", "# h:5432:d:u:no\nx:*:*:*:no\nh:5432:d\\:e:u:a\\:b\\\\c\n*:*:*:u:any\n");
    let service = write("services", "[one]\nhost=h\nuser=u\n\n[two]\nhost=other\nport=9\nuser=u2\ndbname=d2\n");
    let file = write("password", "from-file\nrest\n");
    let mut config = Config::default();
    config.environment.pass_file = Some(pass.clone());
    config.environment.service_file = Some(service);
    let password = |url: &str, config: &Config| first_password(&resolve(url, config).unwrap()).map(ToOwned::to_owned);
    assert_eq!(password("postgres://u@h/d:e", &config).as_deref(), Some("a:b\\c"));
    assert_eq!(password("postgres://u@h/other", &config).as_deref(), Some("any"));
    assert_eq!(password("postgres://v@h/other", &config), None);
    let from = |pairs: &[(&str, &str)]| {
        let vars = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        let look = |service: &str, account: &str| Ok(Secret::new(format!("{account} of {service}")));
        Config::from_env(Vars::new(&vars).keyring(&look)).unwrap().environment.password
    };
    let (file, ring) = (("PGPASSWORD_FILE", file.to_str().unwrap()), ("PGPASSWORD_KEYRING", "shop/u"));
    for (pairs, expected) in [
        (&[ring][..], "u of shop"),
        (&[ring, file], "from-file"),
        (&[ring, file, ("PGPASSWORD", "from-env")], "from-env"),
    ] {
        config.environment.password = from(pairs);
        assert_eq!(password("postgres://u@h/other", &config).as_deref(), Some(expected), "before the password file");
    }
    assert_eq!(password("postgres://u:in-url@h/other", &config).as_deref(), Some("in-url"));
    let t = resolve("service=two", &config).unwrap();
    assert_eq!((t.hosts, t.user.as_str(), t.database.as_str()), (vec![Host::Tcp("other".into(), 9)], "u2", "d2"));
    assert!(resolve("service=three", &config).is_err());
    #[cfg(unix)]
    {
        std::fs::set_permissions(&pass, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        let mut open = Config { url: Some(Secret::new("postgres://u@h/d")), ..Config::default() };
        open.environment.pass_file = Some(pass);
        let (targets, warnings) = open.targets().unwrap();
        assert!(first_password(&targets[0]).is_none());
        assert!(warnings[0].contains("chmod 600"), "{warnings:?}");
    }
}

#[test]
fn a_password_file_is_asked_for_each_host_by_its_own_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines = "one:5432:d:u:first\nlocalhost:5432:d:u:here\n/elsewhere:5432:d:u:there\ntwo:7:d:u:second\n";
    std::fs::write(file.path(), lines).unwrap();
    let mut config = Config::default();
    config.environment.pass_file = Some(file.path().to_owned());
    for (url, expected) in [
        ("postgres://u@one,two:7/d", [Some("first"), Some("second")]),
        ("postgres://u@two:7,one/d", [Some("second"), Some("first")]),
        ("postgres://u@two,one/d", [None, Some("first")]),
        // Only where sockets are by default is this machine.
        ("host=/var/run/postgresql,/elsewhere user=u dbname=d", [Some("here"), Some("there")]),
        ("host=/tmp,/nowhere user=u dbname=d", [Some("here"), None]),
        ("host=one,two port=5432,7 user=u dbname=d password=said", [Some("said"), Some("said")]),
    ] {
        let t = resolve(url, &config).unwrap();
        let found: Vec<_> = t.hosts.iter().map(|host| t.password(host).map(Secret::reveal)).collect();
        assert_eq!(found, expected, "{url}");
    }
}

#[test]
fn several_databases_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("databases.toml");
    std::fs::write(
        &path,
        "default = \"b\"\n[databases.a]\nurl = \"postgres://u@h/a\"\n[databases.b]\nurl = \"postgres://u@h/b\"\nschemas = [\"s\"]\n",
    )
    .unwrap();
    let config = Config { file: Some(path.clone()), ..Config::default() };
    let (targets, _) = config.targets().unwrap();
    let names: Vec<_> = targets.iter().map(|t| (t.name.as_str(), t.database.as_str())).collect();
    assert_eq!(names, [("b", "b"), ("a", "a")]);
    assert_eq!(targets[0].schemas, ["s"]);
    std::fs::write(&path, "[databases.a]\nurl = \"postgres://u:hunter2@h/a\"\nurl2 = 1\n").unwrap();
    assert!(!config.targets().unwrap_err().to_string().contains("hunter2"));
    assert!(Config::default().targets().unwrap_err().message().starts_with("Please provide a database URL"));
}

#[test]
fn the_environment_is_read() {
    let vars = |name: &str| {
        let value = match name {
            "DATABASE_URI" => "postgres://u@h/d",
            "PGSSLMODE" => "require",
            "MCP_POSTGRES_ACCESS_MODE" => "write",
            "MCP_POSTGRES_READ_ONLY" => "1",
            "MCP_POSTGRES_SCHEMAS" => "a, b",
            "MCP_POSTGRES_STATEMENT_TIMEOUT" => "1500",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Config::from_env(Vars::new(&vars)).unwrap();
    assert_eq!(config.schemas, ["a", "b"]);
    assert_eq!(config.statement_timeout, Duration::from_millis(1500));
    assert_eq!(config.access, Access::Write);
    assert!(!config.writes(), "--read-only beats --access-mode write");
    assert_eq!(config.targets().unwrap().0[0].ssl, SslMode::Require);
}

/// What libpq would do for one of these variables is not done here, so nothing is done at all.
#[test]
fn variables_that_ask_for_more_than_there_is_stop_the_start_like_parameters() {
    let with = |variable: &str, value: &str| {
        let vars = |name: &str| {
            (name == variable)
                .then(|| value.to_owned())
                .or_else(|| (name == "DATABASE_URL").then(|| "postgres://u@h/d".to_owned()))
        };
        Config::from_env(Vars::new(&vars)).unwrap().targets()
    };
    for (variable, value, parameter) in [
        ("PGHOSTADDR", "10.0.0.1", "hostaddr"),
        ("PGOPTIONS", "-c role=reader", "options"),
        ("PGREQUIREAUTH", "scram-sha-256", "require_auth"),
        ("PGREQUIREPEER", "postgres", "requirepeer"),
        ("PGREQUIRESSL", "1", "requiressl"),
        ("PGSSLCERTMODE", "require", "sslcertmode"),
        ("PGSSLCRL", "/x", "sslcrl"),
        ("PGSSLCRLDIR", "/x", "sslcrldir"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.3", "ssl_min_protocol_version"),
        ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2", "ssl_max_protocol_version"),
        ("PGSSLNEGOTIATION", "direct", "sslnegotiation"),
        ("PGSSLPASSWORD", "hunter2", "sslpassword"),
        ("PGMINPROTOCOLVERSION", "3.2", "min_protocol_version"),
        ("PGGSSENCMODE", "require", "gssencmode"),
        ("PGTARGETSESSIONATTRS", "read-only", "target_session_attrs"),
        ("PGCHANNELBINDING", "require", "channel_binding"),
        ("PGSSLMODE", "sometimes", "sslmode"),
    ] {
        let fault = with(variable, value).map(|_| ()).expect_err(variable).to_string();
        assert!(fault.contains(parameter) && !fault.contains("hunter2"), "{variable}: {fault}");
        let url = format!("postgres://u@h/d?{parameter}={value}").replace(' ', "%20");
        assert!(resolve(&url, &Config::default()).is_err(), "{url}");
    }
    for (variable, value) in [
        ("PGGSSENCMODE", "prefer"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"),
        ("PGTARGETSESSIONATTRS", "any"),
        ("PGCHANNELBINDING", "prefer"),
        ("PGSSLNEGOTIATION", "postgres"),
        ("PGOPTIONS", ""),
    ] {
        assert_eq!(with(variable, value).expect(variable).1, [""; 0], "{variable}");
    }
}

#[test]
fn urls_services_and_passwords_come_from_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (one, two) = (write("one", "postgres://u@h/one\nrest\n"), write("two", "postgres://u@h/two"));
    let services = write("services", "[shop]\nhost=db\nport=7\nuser=seller\ndbname=shop\nsslmode=verify-full\n");
    let from = |pairs: &[(&str, &str)]| {
        let vars = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(Vars::new(&vars))
    };
    let database = |pairs: &[(&str, &str)]| from(pairs).unwrap().targets().unwrap().0.remove(0).database;
    assert_eq!(database(&[("DATABASE_URL_FILE", &one)]), "one");
    assert_eq!(database(&[("DATABASE_URI_FILE", &two)]), "two");
    assert_eq!(database(&[("DATABASE_URI_FILE", &two), ("DATABASE_URL_FILE", &one)]), "one");
    assert_eq!(database(&[("DATABASE_URL_FILE", &one), ("DATABASE_URI", "postgres://u@h/said")]), "said");
    assert!(from(&[("DATABASE_URL_FILE", "/nowhere/url")]).unwrap_err().message().contains("/nowhere/url"));

    let t =
        from(&[("PGSERVICE", "shop"), ("PGSERVICEFILE", &services), ("PGUSER", "nobody"), ("PGSSLMODE", "disable")]);
    let t = t.unwrap().targets().unwrap().0.remove(0);
    assert_eq!((t.hosts, t.user.as_str()), (vec![Host::Tcp("db".into(), 7)], "seller"), "a service beats variables");
    assert_eq!((t.database.as_str(), t.ssl), ("shop", SslMode::VerifyFull));
    let missing = from(&[("PGSERVICE", "other"), ("PGSERVICEFILE", &services)]).unwrap().targets();
    assert!(missing.unwrap_err().message().contains("other"));

    let secret = write("secret", "geheim\nrest\n");
    let list = format!(
        "[databases.a]\nurl = \"postgres://u:in-url@h/a\"\npassword_file = {secret:?}\n[databases.b]\nurl = \"postgres://u:in-url@h/b\"\n"
    );
    let list = write("list", &list);
    let targets = from(&[("MCP_POSTGRES_CONFIG", &list), ("PGPASSWORD", "variable")]).unwrap().targets().unwrap().0;
    let passwords: Vec<_> = targets.iter().map(first_password).collect();
    assert_eq!(passwords, [Some("geheim"), Some("in-url")]);
    let list = write("list", "[databases.a]\nurl = \"postgres://u@h/a\"\npassword_file = \"/nowhere/secret\"\n");
    let failed = from(&[("MCP_POSTGRES_CONFIG", &list)]).unwrap().targets().unwrap_err();
    assert!(failed.message().contains("/nowhere/secret"), "{failed}");
    for empty in ["", "\n", "\r\n", "\ngeheim\n"] {
        let secret = write("secret", empty);
        let list = write("list", &format!("[databases.a]\nurl = \"postgres://u@h/a\"\npassword_file = {secret:?}\n"));
        let failed = from(&[("MCP_POSTGRES_CONFIG", &list)]).unwrap().targets().unwrap_err();
        assert!(failed.message().contains(&secret) && failed.message().contains("first line"), "{empty:?}: {failed}");
    }
}
