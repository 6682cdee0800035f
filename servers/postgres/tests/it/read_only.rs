//! That read-only mode holds: nothing that a statement could do outside of its rows happens, for any role. Every refusal is
//! checked by what did not happen, not by its words; a control shows that each sign would be seen.

use crate::common;

use common::{Cluster, call, connect, error, query};
use serde_json::json;

const ROLES: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner;
CREATE TABLE items (id int PRIMARY KEY, name text);
INSERT INTO items VALUES (1, 'one'), (2, 'two');
ALTER TABLE items OWNER TO owner;
CREATE SEQUENCE numbers; ALTER SEQUENCE numbers OWNER TO owner; SELECT nextval('numbers');
CREATE MATERIALIZED VIEW mv AS SELECT 1 AS i; ALTER MATERIALIZED VIEW mv OWNER TO owner;
CREATE EXTENSION dblink; CREATE EXTENSION tablefunc; CREATE EXTENSION xml2;
DO $$ BEGIN IF current_setting('server_version_num')::int < 170000 THEN CREATE EXTENSION adminpack; END IF; END $$;
CREATE TABLE marks (who text);
CREATE FUNCTION mark(who text) RETURNS text LANGUAGE sql AS $f$
  SELECT dblink_exec('dbname=postgres user=postgres host=' || split_part(current_setting('unix_socket_directories'), ',', 1)
    || ' port=' || current_setting('port'), format('INSERT INTO marks VALUES (%L)', who)) $f$;
CREATE FUNCTION writer() RETURNS int LANGUAGE sql SECURITY DEFINER AS $f$ INSERT INTO marks VALUES ('definer'); SELECT 1 $f$;
";

/// Everything that a statement could have changed, as one text.
fn signs(cluster: &Cluster) -> String {
    // The count of checkpoints that were asked for has moved.
    let checkpoints = if cluster.major() < 17 {
        "SELECT checkpoints_req FROM pg_stat_bgwriter"
    } else {
        "SELECT num_requested FROM pg_stat_checkpointer"
    };
    let seen = cluster.sql(&format!(
        "SELECT (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_class WHERE oid >= 16384),
           (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_replication_slots),
           (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM marks),
           (SELECT last_value FROM numbers), (SELECT string_agg(id || name, ',' ORDER BY id) FROM items),
           div(pg_current_wal_lsn() - '0/0', 16777216), pg_conf_load_time(),
           (SELECT stats_reset FROM pg_stat_database WHERE datname = 'postgres'),
           ({checkpoints}),
           (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bystander'),
           (SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'items'::regclass),
           (SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles)"
    ));
    format!("{seen} file={}", cluster.dir().join("file").exists())
}

/// A session that sits there, and would be ended by somebody who ends sessions.
struct Bystander(std::process::Child);

impl Bystander {
    fn sit(cluster: &Cluster) -> Bystander {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 600 | exec \"$0\" -X -q \"$1\""]).arg(common::bin().join("psql"));
        command.arg(format!(
            "postgresql://postgres@/postgres?host={}&port={}&application_name=bystander",
            cluster.dir().display(),
            cluster.port
        ));
        use std::os::unix::process::CommandExt as _;
        let child =
            command.process_group(0).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn();
        let bystander = Bystander(child.expect("psql runs"));
        for _ in 0..200 {
            if cluster.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'bystander'") == "1" {
                return bystander;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the bystander does not come");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = std::process::Command::new("kill").args(["--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

/// The statements of the specification's table, and their kin. `{file}` is a place the server could write to.
fn statements(cluster: &Cluster) -> Vec<String> {
    let file = cluster.dir().join("file");
    let file = file.display();
    let link = format!("host={} port={} user=postgres dbname=postgres", cluster.dir().display(), cluster.port);
    let fixed = [
        "SELECT 1; COMMIT; CREATE TABLE pwn (i int)",
        "COMMIT; CREATE TABLE pwn (i int)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_catalog.pg_read_file('PG_VERSION')",
        "SELECT \"pg_read_file\"('PG_VERSION')",
        "SELECT pg_read_binary_file('PG_VERSION')",
        "SELECT TREAT('PG_VERSION'::text AS pg_read_file)",
        "SELECT ('PG_VERSION'::text).pg_read_file",
        "SELECT * FROM pg_ls_dir('.')",
        "SELECT pg_stat_file('PG_VERSION')",
        "SELECT rolpassword FROM pg_authid",
        "SELECT passwd FROM pg_shadow",
        "SELECT * FROM pg_hba_file_rules",
        "SELECT lo_import('/etc/passwd')",
        "SELECT lo_from_bytea(0, 'x')",
        "SELECT lo_create(4711)",
        "SELECT pg_create_physical_replication_slot('s')",
        "SELECT pg_create_logical_replication_slot('s', 'test_decoding')",
        "SELECT pg_reload_conf()",
        "SELECT pg_switch_wal()",
        "SELECT pg_create_restore_point('x')",
        "SELECT pg_stat_reset()",
        "SELECT pg_rotate_logfile()",
        "CHECKPOINT",
        "LOAD 'auto_explain'",
        "ANALYZE",
        "VACUUM items",
        "LOCK TABLE items IN ACCESS EXCLUSIVE MODE",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_xact_lock(1)",
        "SELECT pg_sleep(1)",
        "SELECT * FROM items ORDER BY pg_sleep(1)",
        "NOTIFY x",
        "SELECT pg_notify('x', 'y')",
        "SELECT pg_logical_emit_message(false, 'a', 'b')",
        "LISTEN x",
        "DO $$ BEGIN PERFORM mark('do'); END $$",
        "SET ROLE postgres",
        "RESET ALL",
        "PREPARE p AS SELECT 1",
        "DECLARE c CURSOR FOR SELECT 1",
        "SELECT pg_cancel_backend(pg_backend_pid())",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bystander'",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT * FROM items FOR UPDATE",
        "SELECT * INTO pwn FROM items",
        "CREATE TEMP TABLE pwn AS SELECT 1",
        "CREATE TABLE pwn (i int)",
        "INSERT INTO items VALUES (3, 'x')",
        "WITH a AS (DELETE FROM items RETURNING *) SELECT * FROM a",
        "SELECT nextval('numbers')",
        "SELECT setval('numbers', 100)",
        "EXPLAIN ANALYZE INSERT INTO items VALUES (3, 'x')",
        "EXPLAIN ANALYZE SELECT mark('explain')",
        "EXPLAIN (\"analyze\") SELECT mark('explain')",
        "COPY items FROM '/etc/passwd'",
        "COPY items TO STDOUT",
        "SELECT writer()",
        "CALL x()",
        "REFRESH MATERIALIZED VIEW mv",
        "TRUNCATE items",
        "SELECT query_to_xml('SELECT mark(''xml'')', true, false, '')",
        "SELECT database_to_xml(true, false, '')",
        "SELECT * FROM ts_stat('SELECT mark(''ts'')::tsvector')",
        "SELECT * FROM crosstab('SELECT mark(''crosstab''), ''a'', ''b''') AS t(a text, b text)",
        "SELECT * FROM xpath_table('id', 'name', 'items', '/a', 'mark(''x'') IS NOT NULL') AS t(a int, b text)",
        "SELECT txid_current()",
        "SELECT mark('plain')",
        "SELECT public.mark('plain')",
        "SELECT (SELECT 'x'::text).mark",
        "SELECT pg_file_write('file', 'x', false)",
        "ALTER SYSTEM SET work_mem = '5MB'",
        "CREATE ROLE pwn SUPERUSER",
    ];
    let made = [
        format!("COPY (SELECT 1) TO PROGRAM 'touch {file}'"),
        format!("COPY (SELECT 1) TO '{file}'"),
        format!("SELECT lo_export(1, '{file}')"),
        format!("SELECT * FROM dblink('{link}', 'CREATE TABLE pwn (i int)') AS t(x text)"),
        format!("SELECT dblink_exec('{link}', 'INSERT INTO marks VALUES (1)')"),
        format!("SELECT dblink_connect('{link}')"),
    ];
    fixed.into_iter().map(str::to_owned).chain(made).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn no_statement_of_any_role_leaves_a_trace() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    let _bystander = Bystander::sit(&cluster);
    let statements = statements(&cluster);
    if cluster.major() < 15 {
        // There a process of its own writes down when statistics began, a while after the first session.
        cluster.sql("SELECT pg_stat_reset()");
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    let before = signs(&cluster);
    for role in ["postgres", "owner", "reader"] {
        let config = cluster.config(role).with(|config| config.allow_privileged_role = true);
        let client = connect(config).await;
        for sql in &statements {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            assert!(text.contains("Hint: "), "{role}: {sql}: {text}");
            assert!(!text.contains("root:"), "{role}: {sql}: {text}");
            let explained = error(&client, "pg_explain", json!({ "sql": sql })).await;
            assert!(explained.contains("Hint: "), "{role}: {sql}: {explained}");
        }
        assert_eq!(signs(&cluster), before, "{role}");
        // The connection is none the worse for it.
        assert_eq!(query(&client, "SELECT count(*) FROM items").await["rows"], json!([["2"]]));
    }
    // One by one for the most powerful role, so that one sign cannot hide another.
    let client = connect(cluster.config("postgres").with(|config| config.allow_privileged_role = true)).await;
    for sql in &statements {
        call(&client, "query", json!({ "sql": sql })).await;
        assert_eq!(signs(&cluster), before, "{sql}");
    }
    for sql in
        ["SHOW data_directory", "SHOW ALL", "SELECT current_setting('data_directory')", "SELECT * FROM pg_settings"]
    {
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(!text.contains(&*cluster.dir().to_string_lossy()), "{sql}: {text}");
    }
}

/// The signs are those of the harm: the same statements, run where nothing holds them, are seen.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
fn what_is_refused_would_be_seen() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    let bystander = Bystander::sit(&cluster);
    let file = cluster.dir().join("file").display().to_string();
    let in_transaction = [
        format!("COPY (SELECT 1) TO PROGRAM 'touch {file}'"),
        "SELECT lo_import('/etc/passwd')".to_owned(),
        "SELECT pg_create_physical_replication_slot('s')".to_owned(),
        "SELECT pg_switch_wal()".to_owned(),
        "SELECT pg_stat_reset()".to_owned(),
        "SELECT mark('x')".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bystander'".to_owned(),
    ];
    for sql in in_transaction {
        let before = signs(&cluster);
        // Also inside of a READ ONLY transaction, where the server allows all of these to a superuser.
        let read_only = cluster.psql("postgres", &format!("BEGIN READ ONLY; {sql}; COMMIT;"));
        if read_only.is_err() {
            cluster.sql(&sql);
        }
        let mut after = signs(&cluster);
        for _ in 0..40 {
            if after != before {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
            after = signs(&cluster);
        }
        assert_ne!(after, before, "{sql}");
    }
    drop(bystander);
}

/// Every way that a statement itself names a function.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn functions_are_found_by_name_operator_and_dot() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE VIEW good AS SELECT id, upper(name) AS name FROM items;
         CREATE FUNCTION markop(a int, b int) RETURNS text LANGUAGE sql AS $f$ SELECT mark('operator') $f$;
         CREATE OPERATOR @@@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = markop);
         CREATE TYPE pair AS (a int, b int);
         CREATE FUNCTION goodpair(p pair) RETURNS int LANGUAGE sql IMMUTABLE AS $f$ SELECT p.a + p.b $f$;
         CREATE AGGREGATE goodsum(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
         CREATE TABLE people (first text, last text); INSERT INTO people VALUES ('Ada', 'Lovelace');
         CREATE FUNCTION marked(p people) RETURNS text LANGUAGE sql AS $f$ SELECT mark('attribute') $f$;
         CREATE FUNCTION full_name(p people) RETURNS text LANGUAGE sql STABLE AS $f$ SELECT p.first || ' ' || p.last $f$;
         CREATE FUNCTION secret() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER AS $f$ SELECT rolpassword FROM pg_authid LIMIT 1 $f$;
         CREATE TABLE ruled (i int); CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT mark('rule');
         CREATE EXTENSION citext; CREATE EXTENSION pg_trgm; CREATE EXTENSION \"uuid-ossp\";",
    );
    for role in ["postgres", "reader"] {
        let client = connect(cluster.config(role).with(|config| config.allow_privileged_role = true)).await;
        for sql in [
            "SELECT 1 @@@@ 2",
            "SELECT 1 OPERATOR(public.@@@@) 2",
            "SELECT people.marked FROM people",
            "SELECT p.marked FROM people p",
            "SELECT (p).marked FROM people p",
            "SELECT (p).\"marked\" FROM people p",
            "SELECT marked(p) FROM people p",
            "SELECT secret()",
            "SELECT * FROM secret()",
            "SELECT * FROM ROWS FROM (upper('a'), mark('rows'))",
            "SELECT * FROM items TABLESAMPLE mark (1)",
            "SELECT U&\"\\006dark\"('x')",
            "SELECT '\\' || mark('x') -- '",
            "SELECT E'a'\n'\\'' || mark($$x$$) --'",
            "SELECT U&'a'\n'b' || mark($$x$$)",
        ] {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            assert!(text.contains("Hint: "), "{sql}: {text}");
        }
        assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0", "{role}");
        for (sql, expected) in [
            ("SELECT * FROM good", json!([[1, "ONE"], [2, "TWO"]])),
            ("SELECT count(*) FROM ruled", json!([["0"]])),
            ("SELECT p.full_name FROM people p", json!([["Ada Lovelace"]])),
            ("SELECT goodsum(id) FROM items", json!([[3]])),
            ("SELECT goodpair(ROW(1, 2)::pair)", json!([[3]])),
            ("SELECT 'A'::citext = 'a'", json!([[true]])),
            ("SELECT similarity('abc', 'abc')", json!([[1]])),
            (
                "SELECT length(uuid_generate_v4()::text), random() < 2, now() IS NOT NULL, clock_timestamp() > now()",
                json!([[36, true, true, true]]),
            ),
            ("SELECT pg_total_relation_size('items') > 0", json!([[true]])),
            ("SELECT count(*) > 0 FROM pg_stat_activity", json!([[true]])),
            ("SELECT count(*) > 0 FROM pg_locks", json!([[true]])),
            ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'items'", json!([["1"]])),
            ("SELECT count(*) FROM items TABLESAMPLE bernoulli (100)", json!([["2"]])),
            (
                "SELECT extract(year FROM date '2024-02-03')::int, trim(both 'x' from 'xax'), position('b' in 'abc')",
                json!([[2024, "a", 2]]),
            ),
            (
                "SELECT CASE id WHEN 1 THEN 'a' ELSE 'b' END FROM items WHERE name LIKE 'o%' AND id IN (1) AND id BETWEEN 1 AND 2",
                json!([["a"]]),
            ),
        ] {
            assert_eq!(query(&client, sql).await["rows"], expected, "{sql}");
        }
    }
    // What the operator allows is allowed, and fails as it does anywhere: the role may not know where the socket is.
    let allowing = cluster.config("reader").with(|config| config.allow_functions = vec!["public.mark".into()]);
    let text = error(&connect(allowing).await, "query", json!({ "sql": "SELECT mark('allowed')" })).await;
    assert!(text.contains("SQLSTATE 42501") && text.contains("unix_socket_directories"), "{text}");
    cluster.sql("CREATE FUNCTION seven() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 7'");
    let allowing = cluster.config("reader").with(|config| config.allow_functions = vec!["public.seven".into()]);
    assert_eq!(query(&connect(allowing).await, "SELECT seven()").await["rows"], json!([[7]]));
    let client = connect(cluster.config("reader")).await;
    let text = error(&client, "query", json!({ "sql": "SELECT seven()" })).await;
    assert!(text.contains("--allow-functions public.seven"), "{text}");
}

/// The server reads `'\'` in another way when this setting is off: then the rest of the line would be SQL.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_role_with_old_string_rules_is_read_by_the_standard_ones() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql("ALTER ROLE reader SET standard_conforming_strings = off; ALTER ROLE reader SET statement_timeout = 0");
    let client = connect(cluster.config("reader")).await;
    let rows = query(&client, "SELECT '\\', $$'; COMMIT; CREATE TABLE pwn (i int) --$$").await;
    assert_eq!(rows["rows"], json!([["\\", "'; COMMIT; CREATE TABLE pwn (i int) --"]]));
    let text = error(&client, "query", json!({ "sql": "SELECT '\\' || pg_sleep(1) || '" })).await;
    assert!(text.contains("not closed") || text.contains("pg_sleep"), "{text}");
    // Again and again: what was harmless before goes another way, and its transaction is the same.
    for round in 0..4 {
        for (setting, expected) in [
            ("standard_conforming_strings", "on"),
            ("statement_timeout", "30s"),
            ("lock_timeout", "2s"),
            ("idle_in_transaction_session_timeout", "45s"),
            ("transaction_read_only", "on"),
            // As the server has it.
            ("plan_cache_mode", &cluster.sql("SHOW plan_cache_mode")),
            ("jit", &cluster.sql("SHOW jit")),
        ] {
            let shown = query(&client, &format!("SHOW {setting}")).await;
            assert_eq!(shown["rows"], json!([[expected]]), "{round}: {setting}");
        }
        let rows = query(&client, "SELECT '\\', $$'; COMMIT; CREATE TABLE pwn (i int) --$$").await;
        assert_eq!(rows["rows"], json!([["\\", "'; COMMIT; CREATE TABLE pwn (i int) --"]]), "{round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn roles_that_can_do_more_than_read_are_refused() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE ROLE programs LOGIN; GRANT pg_execute_server_program TO programs;
         CREATE ROLE files LOGIN; GRANT pg_read_server_files TO files;
         CREATE ROLE between; GRANT pg_write_server_files TO between; CREATE ROLE writes LOGIN NOINHERIT; GRANT between TO writes;
         CREATE ROLE database_owner LOGIN; CREATE ROLE member LOGIN; GRANT owner TO member;
         CREATE ROLE disguised LOGIN SUPERUSER; ALTER ROLE disguised SET role = reader;",
    );
    for (role, why) in [
        ("postgres", "superuser"),
        ("disguised", "superuser"),
        ("programs", "pg_execute_server_program"),
        ("files", "pg_read_server_files"),
        ("writes", "pg_write_server_files"),
        ("owner", "owns data"),
        ("member", "owns data"),
    ] {
        let client = connect(cluster.config(role)).await;
        for tool in ["query", "pg_list_schemas", "pg_health"] {
            let text = error(&client, tool, json!({ "sql": "SELECT 1" })).await;
            assert!(text.contains(why) && text.contains("--allow-privileged-role"), "{role}: {text}");
        }
        let failed = client.resources().await.unwrap_err().to_string();
        assert!(failed.contains("has more than read privileges"), "{role}: nothing is listed either: {failed}");
        let client = connect(cluster.config(role).with(|config| config.allow_privileged_role = true)).await;
        query(&client, "SELECT 1").await;
    }
    query(&connect(cluster.config("reader")).await, "SELECT 1").await;
    // Who may write may own what is written.
    let writing = cluster.config("owner").with(|config| config.access = linchpin_postgres::Access::Write);
    query(&connect(writing).await, "SELECT 1").await;
    let writing = cluster.config("postgres").with(|config| config.access = linchpin_postgres::Access::Write);
    error(&connect(writing).await, "query", json!({ "sql": "SELECT 1" })).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn only_the_schemas_that_are_allowed_are_read() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE SCHEMA app; CREATE TABLE app.open (i int); INSERT INTO app.open VALUES (7);
         CREATE SCHEMA hidden; CREATE TABLE hidden.closed (i int); INSERT INTO hidden.closed VALUES (4711); ANALYZE;",
    );
    let client = connect(cluster.config("reader").with(|config| config.schemas = vec!["app".into()])).await;
    assert_eq!(query(&client, "SELECT * FROM open").await["rows"], json!([[7]]));
    assert_eq!(query(&client, "SELECT o.i FROM app.open o").await["rows"], json!([[7]]));
    for sql in [
        "SELECT * FROM hidden.closed",
        "SELECT * FROM \"hidden\" . closed",
        "SELECT * FROM postgres.hidden.closed",
        "TABLE hidden.closed",
        "SELECT * FROM items",
        "SELECT * FROM public.items",
        "SELECT * FROM pg_stats",
        "SELECT table_to_xml('hidden.closed', true, false, '')",
        "SELECT query FROM pg_stat_activity",
    ] {
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(!text.contains("4711"), "{sql}: {text}");
    }
    for tool in ["pg_list_objects", "pg_list_schemas"] {
        let (_, text, _) = call(&client, tool, json!({})).await;
        assert!(!text.contains("hidden") && text.contains("app"), "{tool}: {text}");
    }
    error(&client, "pg_describe", json!({ "table": "hidden.closed" })).await;
    error(&client, "pg_top_queries", json!({})).await;
    let resources = client.resources().await.unwrap().items;
    assert_eq!(resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["\"app.open\" database schema"]);
    assert!(client.read(&format!("postgres://reader@127.0.0.1:{}/hidden.closed/schema", cluster.port)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_a_role_cannot_use_is_not_listed() {
    let cluster = Cluster::start();
    cluster.sql(
        "CREATE ROLE guest LOGIN; CREATE SCHEMA app; CREATE TABLE app.open (i int); GRANT USAGE ON SCHEMA app TO guest;
         GRANT SELECT ON app.open TO guest; CREATE TABLE app.secret (i int); CREATE SCHEMA shut; CREATE TABLE shut.t (i int);
         GRANT SELECT ON shut.t TO guest;",
    );
    for (grant, expected) in [
        ("", vec!["\"app.open\" database schema"]),
        ("GRANT USAGE ON SCHEMA shut TO guest", vec!["\"app.open\" database schema", "\"shut.t\" database schema"]),
    ] {
        cluster.sql(grant);
        for schemas in [vec![], vec!["app".to_owned(), "shut".to_owned()]] {
            let client = connect(cluster.config("guest").with(|config| config.schemas = schemas)).await;
            let resources = client.resources().await.unwrap().items;
            assert_eq!(resources.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), expected, "{grant}");
            let (_, text, _) = call(&client, "pg_list_objects", json!({})).await;
            assert_eq!(text.contains("shut"), !grant.is_empty(), "{grant}: {text}");
        }
    }
}

/// Statements put together at random from what confuses lexers: whatever the server makes of them, it must not call the
/// function that is written in their literals, names and comments, unless that was seen and refused.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn no_soup_of_quotes_and_comments_hides_a_call() {
    // Each is a literal, name or comment that holds the end or beginning of another, or such an end.
    const PARTS: [&str; 46] = [
        "'\\''",
        "E'a'\n'\\''",
        "'",
        "''",
        "'\\'",
        "E'\\'",
        "E'\\''",
        "'\\\\'",
        "\\",
        "E'",
        "e'a'",
        "B'",
        "B'1'",
        "N'\\'",
        "n'",
        "U&'",
        "U&'\\'",
        "'a'\n'\\'",
        "E'a'\n'\\'",
        "\"",
        "\"\\\"",
        "\"'\"",
        "'\"'",
        "$$",
        "$$'$$",
        "'$$'",
        "$a$",
        "$a$$$",
        "$a$'$a$",
        "$1",
        "a$$",
        "a$a$",
        "/*",
        "*/",
        "/*'*/",
        "/*/*'*/*/",
        "/*\"*/",
        "/*$$*/",
        "/*/*/",
        "--'\n",
        "--\"\n",
        "--$$\r",
        "--*/\n",
        "--'",
        "*/*",
        "+--\n",
    ];
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE FUNCTION m() RETURNS text LANGUAGE sql AS $f$ SELECT mark('m') $f$; SELECT m(); DELETE FROM marks",
    );
    let client = connect(cluster.config("postgres").with(|config| config.allow_privileged_role = true)).await;
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut roll = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 1_000_003).unwrap() % sides
    };
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..12_000 {
        let mut sql = "SELECT 1".to_owned();
        for part in 0..4 {
            sql.push_str([" AS a, ", ", ", " ", "", " || "][roll(5)]);
            if part == 1 {
                sql.push_str(["m()", "m() ", ", m() ", "'', m(), ''", "'a' || m()"][roll(5)]);
            } else {
                (0..=roll(2)).for_each(|_| sql.push_str(PARTS[roll(PARTS.len())]));
            }
        }
        let (failed, text, _) = call(&client, "query", json!({ "sql": sql })).await;
        answered += u32::from(!failed);
        refused += u32::from(failed && text.contains("public.m "));
    }
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0");
    assert!(answered > 30 && refused > 100, "{answered} answered, {refused} refused: this proves little");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_is_made_after_the_first_calls_is_refused_on_the_same_connection() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql("CREATE TABLE plain (i int); INSERT INTO plain VALUES (1); CREATE TABLE guarded (i int)");
    let client = connect(cluster.config("reader").with(|config| config.connections = 1)).await;
    let own = |sql: &'static str| {
        let client = &client;
        async move { query(client, sql).await["rows"].to_string() }
    };
    for _ in 0..10 {
        own("SELECT i FROM plain WHERE i = 1").await;
        own("SELECT lower('A')").await;
        own("SELECT i FROM guarded").await;
    }
    let process = cluster.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'reader'");
    assert!(process.parse::<u32>().is_ok(), "{process}");
    let cases = [
        ("CREATE FUNCTION late() RETURNS text LANGUAGE sql AS $$ SELECT mark('f') $$", "SELECT late()"),
        ("CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql AS $$ SELECT mark('o') $$", "SELECT lower(1)"),
        (
            "CREATE FUNCTION same(int, text) RETURNS bool LANGUAGE sql AS $$ SELECT mark('=') IS NOT NULL $$;
             CREATE OPERATOR = (FUNCTION = same, LEFTARG = int, RIGHTARG = text)",
            "SELECT 1 = 'a'::text",
        ),
    ];
    for (made, sql) in cases {
        cluster.sql(made);
        let refused = error(&client, "query", json!({ "sql": sql })).await;
        assert!(refused.contains("is not allowed in read-only mode"), "{sql}: {refused}");
    }
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0");
    assert_eq!(cluster.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'reader'"), process);
    // The sign would be seen.
    cluster.sql("SELECT late()");
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "1");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_function_that_is_allowed_cannot_change_what_the_next_call_is_asked() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE FUNCTION turn() RETURNS text LANGUAGE plpgsql AS $f$ DECLARE s text; BEGIN
           PERFORM pg_advisory_lock(7); PERFORM set_config('work_mem', '77MB', false);
           FOR s IN SELECT name FROM pg_prepared_statements LOOP EXECUTE format('DEALLOCATE %I', s); END LOOP;
           EXECUTE 'PREPARE linchpin_suspect(name[], name[], name[], name[]) AS SELECT false';
           RETURN (SELECT string_agg(name, ',') FROM pg_prepared_statements WHERE from_sql); END $f$",
    );
    let config = cluster.config("reader").with(|config| {
        config.connections = 1;
        config.allow_functions = vec!["public.turn".to_owned()];
    });
    let client = connect(config).await;
    for _ in 0..3 {
        query(&client, "SELECT 1").await;
        // The function does what it says.
        assert_eq!(query(&client, "SELECT turn() AS t").await["rows"], json!([["linchpin_suspect"]]));
        error(&client, "query", json!({ "sql": "SELECT mark('turned')" })).await;
        let left = query(&client, "SELECT name FROM pg_prepared_statements WHERE from_sql").await;
        assert_eq!(left["rows"], json!([]));
        assert_eq!(query(&client, "SHOW work_mem").await["rows"], json!([["4MB"]]));
    }
    assert_eq!(cluster.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_view_whose_function_forgets_what_is_prepared_costs_no_later_call() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE FUNCTION forget() RETURNS int LANGUAGE plpgsql AS $f$ DECLARE n int; BEGIN
           n := (SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'linchpin%');
           DEALLOCATE ALL; RETURN n; END $f$;
         CREATE VIEW forgetful AS SELECT forget() AS n; GRANT SELECT ON forgetful TO reader",
    );
    let client = connect(cluster.config("reader").with(|config| config.connections = 1)).await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        assert_eq!(query(&client, "SELECT 1 AS one").await["rows"], json!([[1]]));
        kept.push(query(&client, "SELECT n FROM forgetful").await["rows"][0][0].clone());
    }
    // Both are prepared at first; then nothing is, as behind a pooler.
    assert_eq!(kept, [2, 0, 0]);
    error(&client, "query", json!({ "sql": "SELECT forget()" })).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn a_function_that_is_allowed_is_that_of_its_schema_only() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    cluster.sql(
        "CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO reader;
         CREATE FUNCTION beep() RETURNS text LANGUAGE sql AS $f$ SELECT 'public'::text $f$;
         CREATE FUNCTION other.beep() RETURNS text LANGUAGE sql AS $f$ SELECT mark('other') $f$;",
    );
    let config = cluster.config("reader").with(|config| config.allow_functions = vec!["public.beep".to_owned()]);
    let client = connect(config).await;
    assert_eq!(query(&client, "SELECT beep()").await["rows"], json!([["public"]]));
    assert_eq!(query(&client, "SELECT public.beep()").await["rows"], json!([["public"]]));
    let text = error(&client, "query", json!({ "sql": "SELECT other.beep()" })).await;
    assert!(text.contains("other.beep is not allowed"), "{text}");
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0");
    cluster.sql("SELECT other.beep()");
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "1");
}

/// The text of an index is parsed by the server like any other, and what is constant in it is computed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn indexes_are_imagined_and_their_text_is_vetted() {
    let cluster = Cluster::start();
    cluster.sql(ROLES);
    // It calls itself immutable, but runs with its owner's rights, which it uses.
    cluster.sql(
        "CREATE FUNCTION sly(t text) RETURNS text LANGUAGE sql IMMUTABLE SECURITY DEFINER AS $f$ SELECT mark(t) $f$;
         CREATE FUNCTION slyop(a text, b text) RETURNS bool LANGUAGE sql IMMUTABLE SECURITY DEFINER AS $f$ SELECT mark(a) IS NULL $f$;
         CREATE OPERATOR @@@@ (LEFTARG = text, RIGHTARG = text, FUNCTION = slyop);
         INSERT INTO items SELECT i, 'item ' || i FROM generate_series(3, 20000) i; ANALYZE items",
    );
    let client = connect(cluster.config("reader")).await;
    let explain =
        |indexes: serde_json::Value| json!({ "sql": "SELECT * FROM items WHERE name = 'item 7'", "indexes": indexes });
    let bad = [
        "CREATE INDEX ON items ((sly('call') || name))",
        "CREATE INDEX ON items (name) WHERE public.sly('where') = name",
        "CREATE INDEX ON items (name) WHERE 'a'::text @@@@ 'b'",
        "CREATE INDEX ON items (name) WHERE pg_sleep(0) IS NULL",
        "CREATE INDEX ON items (name) WHERE EXISTS (SELECT FROM pg_authid)",
        "CREATE INDEX ON items (name); SELECT sly('second')",
        "SELECT sly('select')",
        "CREATE TABLE pwn (i int)",
        "CREATE UNIQUE",
        "CREATE INDEX ON items ('open",
        "",
    ];
    for text in bad {
        for indexes in [json!([text]), json!(["CREATE INDEX ON items (name)", text])] {
            let said = error(&client, "pg_explain", explain(indexes)).await;
            assert!(said.contains("Hint: "), "{text}: {said}");
        }
    }
    let said = error(&client, "pg_explain", explain(json!(vec!["CREATE INDEX ON items (name)"; 21]))).await;
    assert!(said.contains("the maximum is 20"), "{said}");
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), "0");
    if cluster.sql("SELECT count(*) FROM pg_available_extensions WHERE name = 'hypopg'") == "0" {
        assert!(std::env::var_os("LINCHPIN_WITHOUT_HYPOPG").is_some(), "the extension hypopg is not installed here");
        return;
    }
    let said = error(&client, "pg_explain", explain(json!(["CREATE INDEX ON items (name)"]))).await;
    assert!(said.contains("require the extension hypopg"), "{said}");
    cluster.sql("CREATE SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC; CREATE EXTENSION hypopg SCHEMA ext");
    // The sign would be seen: hypopg itself lets this pass.
    cluster.sql(&format!("SELECT ext.hypopg_create_index('{}')", bad[0].replace('\'', "''")));
    let left = cluster.sql("SELECT count(*) FROM marks");
    assert_ne!(left, "0");
    for text in bad {
        let said = error(&client, "pg_explain", explain(json!([text]))).await;
        assert!(said.contains("Hint: ") && !said.contains("SQLSTATE"), "the server sees {text}: {said}");
    }
    assert_eq!(cluster.sql("SELECT count(*) FROM marks"), left);
    let plan = |indexes: serde_json::Value| {
        let client = &client;
        async move { common::ok(client, "pg_explain", explain(indexes)).await.0 }
    };
    assert!(plan(json!([])).await.contains("Seq Scan"));
    for index in [
        "CREATE INDEX ON items (name)",
        "create unique index concurrently mine on public.items using btree (name text_pattern_ops, lower(name)) ;",
    ] {
        let with = plan(json!([index])).await;
        assert!(with.contains("Index Scan") && with.contains("btree_"), "{index}: {with}");
        // Nothing of it stays.
        assert!(plan(json!([])).await.contains("Seq Scan"));
    }
    let both = json!({ "sql": "SELECT * FROM items WHERE name = $1", "indexes": ["CREATE INDEX ON items (name)"] });
    let (with, _) = common::ok(&client, "pg_explain", both).await;
    assert!(with.contains("Index Scan") && with.contains("name = $1"), "{with}");
}
