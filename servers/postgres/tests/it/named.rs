//! Every way that a statement can name a function, where it is the only one in the database.

use crate::common;

use common::{Cluster, call, connect, error, query};
use linchpin::client::Connection;
use linchpin_postgres::{Config, Secret};
use serde_json::json;

/// What every database has: a function that leaves a mark outside of its transaction, and tables.
const BASE: &str = "
CREATE EXTENSION dblink;
CREATE FUNCTION mark(who text) RETURNS text LANGUAGE sql AS $f$
  SELECT dblink_exec('dbname=postgres user=postgres host=' || split_part(current_setting('unix_socket_directories'), ',', 1)
    || ' port=' || current_setting('port'), format('INSERT INTO marks VALUES (%L)', who)) $f$;
CREATE TABLE guarded (i int); INSERT INTO guarded VALUES (1);
CREATE TABLE people (first text); INSERT INTO people VALUES ('Ada');
CREATE FUNCTION marks_two(int, int) RETURNS text LANGUAGE sql AS $f$ SELECT mark('operator') $f$;
CREATE SCHEMA other;
";

/// What is made, and the statement that comes to it.
const WAYS: &[(&str, &str)] = &[
    ("CREATE FUNCTION late() RETURNS text LANGUAGE sql AS $$ SELECT mark('function') $$", "SELECT late()"),
    ("CREATE FUNCTION late() RETURNS text LANGUAGE sql AS $$ SELECT mark('function') $$", "SELECT public.late()"),
    ("CREATE FUNCTION other.late() RETURNS text LANGUAGE sql AS $$ SELECT mark('function') $$", "SELECT other.late()"),
    (
        "CREATE FUNCTION late(people) RETURNS text LANGUAGE sql AS $$ SELECT mark('dot') $$",
        "SELECT p.late FROM people p",
    ),
    // Declared to read only, and with its owner's rights.
    (
        "CREATE FUNCTION late() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT mark('definer') $$",
        "SELECT late()",
    ),
    (
        "ALTER FUNCTION marks_two STABLE SECURITY DEFINER;
         CREATE OPERATOR @@@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_two)",
        "SELECT 1 @@@@ 2",
    ),
    // PostgreSQL's own: one that is volatile, and one that is denied.
    ("ALTER FUNCTION pg_catalog.lower(text) VOLATILE", "SELECT lower('A')"),
    ("CREATE VIEW shown AS SELECT mark('xml') AS m", "SELECT table_to_xml('shown', true, false, '')"),
    ("CREATE OPERATOR @@@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_two)", "SELECT 1 @@@@ 2"),
    (
        "CREATE OPERATOR other.@@@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_two)",
        "SELECT 1 OPERATOR(other.@@@@) 2",
    ),
    ("CREATE OPERATOR @@@@ (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_notify)", "SELECT 'a'::text @@@@ 'b'::text"),
    (
        "CREATE OPERATOR @@@@ (LEFTARG = text, RIGHTARG = boolean, FUNCTION = current_setting)",
        "SELECT 'data_directory'::text @@@@ true",
    ),
    ("ALTER FUNCTION pg_catalog.int4eq VOLATILE", "SELECT i FROM guarded WHERE i = 1"),
    // A name after a dot, of a function with defaults; C that reads files; and what only depends on an extension.
    (
        "CREATE FUNCTION late(p people, i int DEFAULT 1) RETURNS text LANGUAGE sql AS $$ SELECT mark('attribute') $$",
        "SELECT (people).late FROM people",
    ),
    (
        "CREATE FUNCTION late(text) RETURNS text LANGUAGE internal STABLE STRICT AS 'pg_read_file_all'",
        "SELECT late('PG_VERSION')",
    ),
    (
        "CREATE FUNCTION late() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT mark('depends') $$;
         CREATE EXTENSION citext; ALTER FUNCTION late() DEPENDS ON EXTENSION citext",
        "SELECT late()",
    ),
];

fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.sql("CREATE TABLE marks (who text)");
    cluster.sql(&format!("CREATE DATABASE base;\n\\c base\n{BASE}"));
    cluster
}

async fn to(cluster: &Cluster, database: &str, config: Config) -> Connection {
    let url = format!("postgres://postgres@127.0.0.1:{}/{database}", cluster.port);
    connect(config.with(|config| {
        config.url = Some(Secret::new(url));
        config.allow_privileged_role = true;
        config.connections = 1;
    }))
    .await
}

fn marks(cluster: &Cluster) -> String {
    cluster.sql("SELECT coalesce(string_agg(DISTINCT who, ','), '') FROM marks")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn each_way_is_found_where_it_is_the_only_one() {
    let cluster = cluster();
    for (at, (made, sql)) in WAYS.iter().enumerate() {
        let database = format!("way{at}");
        cluster.sql(&format!("CREATE DATABASE {database} TEMPLATE base"));
        let client = to(&cluster, &database, Config::default()).await;
        // The very names before, when they were harmless or nothing.
        let (_, text, _) = call(&client, "query", json!({ "sql": sql })).await;
        assert!(!text.contains("not allowed in read-only mode") || sql.contains("table_to_xml"), "{sql}: {text}");
        cluster.sql(&format!("\\c {database}\n{made}"));
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(text.contains("is not allowed in read-only mode"), "{made}: {sql}: {text}");
        assert!(text.contains("--allow-functions") || text.contains("Use SHOW"), "{made}: {sql}: {text}");
        assert_eq!(marks(&cluster), "", "{made}: {sql}");
    }
    // The marks would be seen: whoever runs these leaves one.
    for (at, (made, sql)) in WAYS.iter().enumerate().filter(|(_, (made, _))| !made.contains("FUNCTION pg_catalog.")) {
        let leaves_none = ["pg_notify", "current_setting", "pg_read_file"].iter().any(|name| made.contains(name));
        cluster.sql(&format!("DELETE FROM marks;\n\\c way{at}\nBEGIN READ ONLY; {sql}; ROLLBACK"));
        assert_eq!(marks(&cluster).is_empty(), leaves_none, "{made}: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_schema_that_is_not_allowed_is_found_whenever_it_is_made() {
    let cluster = cluster();
    cluster.sql("CREATE SCHEMA app; CREATE SCHEMA late; CREATE TABLE late.closed (i int); INSERT INTO late.closed VALUES (4711)");
    cluster.sql("ALTER SCHEMA late RENAME TO hidden");
    let client =
        to(&cluster, "postgres", Config::default().with(|config| config.schemas = vec!["app".to_owned()])).await;
    {
        let text = error(&client, "query", json!({ "sql": "SELECT i FROM late.closed" })).await;
        assert!(text.contains("42P01"), "{text}");
        let text = error(&client, "query", json!({ "sql": "SELECT i FROM hidden.closed" })).await;
        assert!(text.contains("Schema hidden is not one of the allowed schemas"), "{text}");
    }
    cluster.sql("ALTER SCHEMA hidden RENAME TO late");
    {
        let text = error(&client, "query", json!({ "sql": "SELECT i FROM late.closed" })).await;
        assert!(text.contains("Schema late is not one of the allowed schemas"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_setting_that_changes_the_search_path_changes_what_is_found() {
    let cluster = cluster();
    cluster.sql(
        "\\c base\nCREATE FUNCTION late() RETURNS text LANGUAGE sql STABLE AS $$ SELECT 'good' $$;
         CREATE FUNCTION other.late() RETURNS text LANGUAGE sql AS $$ SELECT mark('path') $$",
    );
    let client = to(&cluster, "base", Config::default()).await;
    assert_eq!(query(&client, "SELECT late()").await["rows"], json!([["good"]]));
    cluster.sql("ALTER SYSTEM SET search_path = other, public");
    cluster.sql("SELECT pg_reload_conf()");
    for _ in 0..200 {
        if query(&client, "SHOW search_path").await["rows"] == json!([["other, public"]]) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let text = error(&client, "query", json!({ "sql": "SELECT late()" })).await;
    assert!(text.contains("other.late is not allowed"), "{text}");
    assert_eq!(marks(&cluster), "");
}

/// Whatever else happens in the database, nothing that is answered or refused costs the connection.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_connection_is_used_again_after_answers_failures_and_refusals() {
    let cluster = cluster();
    let client = to(&cluster, "base", Config::default()).await;
    for round in 0..5 {
        cluster.sql("\\c base\nUPDATE people SET first = first; CREATE TABLE extra (i int); DROP TABLE extra");
        assert_eq!(query(&client, "SELECT upper(first) AS f FROM people").await["rows"], json!([["ADA"]]), "{round}");
        let text = error(&client, "query", json!({ "sql": "SELECT nothing FROM people" })).await;
        assert!(text.contains("42703"), "{text}");
        error(&client, "query", json!({ "sql": "SELECT mark('x')" })).await;
        let (_, text, _) = call(&client, "query", json!({ "sql": "SELECT $1::int", "params": [round] })).await;
        assert!(text.contains(&round.to_string()), "{text}");
        let text = error(&client, "query", json!({ "sql": "SELECT $1::int" })).await;
        assert!(text.contains("takes 1 params and 0 were passed"), "{text}");
    }
    let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'linchpin-postgres'";
    assert_eq!(cluster.sql(open), "1");
}

/// What the README says is not found: the owner's own objects may call what a statement may not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_an_owner_put_behind_a_view_or_a_domain_is_the_owners() {
    let cluster = cluster();
    cluster.sql(
        "\\c base\nCREATE FUNCTION made() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 7'; CREATE VIEW seen AS SELECT made();
         CREATE DOMAIN small AS int CHECK (VALUE < made())",
    );
    let client = to(&cluster, "base", Config::default()).await;
    assert_eq!(query(&client, "SELECT * FROM seen").await["rows"], json!([[7]]));
    assert_eq!(query(&client, "SELECT 1::small").await["rows"], json!([[1]]));
    let text = error(&client, "query", json!({ "sql": "SELECT made()" })).await;
    assert!(text.contains("public.made is not allowed"), "{text}");
}

/// Something else of an extension can have the number of a function, which is not the extension's for that: numbers are those
/// of one catalogue.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_function_is_not_taken_for_what_has_its_number_in_an_extension() {
    let cluster = cluster();
    cluster.sql(
        "\\c base\nCREATE EXTENSION citext;
         CREATE FUNCTION late() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT mark('definer') $$;
         INSERT INTO pg_depend SELECT 'pg_class'::regclass, 'late'::regproc, 0, 'pg_extension'::regclass, oid, 0, 'e'
           FROM pg_extension WHERE extname = 'citext'",
    );
    let client = to(&cluster, "base", Config::default()).await;
    let text = error(&client, "query", json!({ "sql": "SELECT late()" })).await;
    assert!(text.contains("public.late is not allowed") && text.contains("its owner's privileges"), "{text}");
    assert_eq!(marks(&cluster), "");
    // That line is what decides: as one about functions it makes it the extension's.
    cluster.sql(
        "\\c base\nUPDATE pg_depend SET classid = 'pg_proc'::regclass
         WHERE objid = 'late'::regproc AND deptype = 'e'",
    );
    query(&client, "SELECT late()").await;
    assert_eq!(marks(&cluster), "definer");
}

/// PostGIS has a function that declares itself STABLE and runs a statement put together from its arguments.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_function_of_an_extension_that_runs_what_it_is_given_is_refused() {
    let cluster = cluster();
    cluster.sql(
        "\\c base\nCREATE FUNCTION st_findextent(place text, col text) RETURNS text LANGUAGE plpgsql STABLE AS $f$
           DECLARE found text; BEGIN EXECUTE 'SELECT max(\"' || col || '\")::text FROM \"' || place || '\"' INTO found; RETURN found; END $f$;
         CREATE FUNCTION st_area(text) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 7; END';
         INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
           VALUES (99999, 'postgis', 10, 'public'::regnamespace, false, '3');
         INSERT INTO pg_depend SELECT 'pg_proc'::regclass, oid, 0, 'pg_extension'::regclass, 99999, 0, 'e'
           FROM pg_proc WHERE proname = ANY ('{st_findextent,st_area}')",
    );
    let sql = "SELECT st_findextent('people', 'first\")::text || mark(''found'') || max(\"first')";
    let client = to(&cluster, "base", Config::default()).await;
    let text = error(&client, "query", json!({ "sql": sql })).await;
    assert!(text.contains("public.st_findextent is not allowed"), "{text}");
    assert_eq!(marks(&cluster), "");
    assert_eq!(query(&client, "SELECT st_area('x')").await["rows"], json!([["7"]]), "others of it are not");
    cluster.sql(&format!("\\c base\nBEGIN READ ONLY; {sql}; ROLLBACK"));
    assert_eq!(marks(&cluster), "found", "the mark would be seen");
}
