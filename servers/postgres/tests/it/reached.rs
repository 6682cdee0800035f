//! What a statement reaches through what the catalogue stores: each function that leaves a mark is found by name, and what looks
//! like one of these and is not is let through. The marks are lines in the server's log, which no rollback takes back.

use crate::common;

use common::{Cluster, call, connect, error, query};
use serde_json::json;

const MARK: &str = "linchpin_reached:";

/// Makes functions that leave a mark: `bad_NAME`, with these arguments, giving this type.
fn bad(name: &str, args: &str, gives: &str) -> String {
    format!(
        "CREATE FUNCTION bad_{name}({args}) RETURNS {gives} LANGUAGE plpgsql STRICT AS
         $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'reached:{name}'; RETURN {}; END $f$;",
        if gives == "bool" { "true" } else { "$1" }
    )
}

const OBJECTS: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO reader;
CREATE TABLE src (x text, i int, n numeric); INSERT INTO src SELECT 'a', g, g FROM generate_series(1, 3) g;
-- Wherever a value becomes one of a domain.
CREATE DOMAIN checked AS text CHECK (bad_check(VALUE)); CREATE DOMAIN over AS checked; CREATE DOMAIN inside AS text CHECK (VALUE::checked IS NOT NULL);
CREATE TYPE holder AS (c checked); CREATE TYPE many AS (c checked[]); CREATE TYPE spread AS RANGE (subtype = checked);
CREATE FUNCTION takes(c checked) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE FUNCTION takes_all(VARIADIC c checked[]) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE FUNCTION gives(t text) RETURNS checked LANGUAGE plpgsql STABLE AS 'BEGIN RETURN t; END';
CREATE FUNCTION gives_out(t text, OUT a int, OUT c checked) LANGUAGE plpgsql STABLE AS 'BEGIN a := 1; c := t; END';
CREATE FUNCTION defaults(t text DEFAULT 'd'::checked) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE FUNCTION checkop(checked, int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE OPERATOR %%% (LEFTARG = checked, RIGHTARG = int, FUNCTION = checkop);
CREATE FUNCTION step(s int, c checked) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 1; END';
CREATE AGGREGATE takes_each(checked) (SFUNC = step, STYPE = int, INITCOND = '0');
CREATE FUNCTION gather(s checked, i int) RETURNS checked LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN s || i; END';
CREATE AGGREGATE keeps(int) (SFUNC = gather, STYPE = checked, INITCOND = 'k');
CREATE TABLE guarded AS SELECT * FROM src; ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON guarded USING (x::checked IS NOT NULL);
CREATE VIEW only_where AS SELECT i FROM src WHERE x::checked IS NOT NULL;
-- What aggregates consist of.
CREATE AGGREGATE has_trans(int) (SFUNC = bad_trans, STYPE = int);
CREATE AGGREGATE has_final(int) (SFUNC = int4pl, STYPE = int, FINALFUNC = bad_final);
CREATE AGGREGATE has_combine(int) (SFUNC = int4pl, STYPE = int, COMBINEFUNC = bad_combine, PARALLEL = SAFE);
CREATE AGGREGATE has_mtrans(int) (SFUNC = int4pl, STYPE = int, MSFUNC = bad_mtrans, MINVFUNC = int4mi, MSTYPE = int);
CREATE AGGREGATE has_minv(int) (SFUNC = int4pl, STYPE = int, MSFUNC = int4pl, MINVFUNC = bad_minv, MSTYPE = int);
CREATE AGGREGATE has_mfinal(int) (SFUNC = int4pl, STYPE = int, MSFUNC = int4pl, MINVFUNC = int4mi, MSTYPE = int, MFINALFUNC = bad_mfinal);
CREATE FUNCTION bad_serial(internal) RETURNS bytea LANGUAGE internal STRICT PARALLEL SAFE AS 'numeric_avg_serialize';
CREATE FUNCTION bad_deserial(bytea, internal) RETURNS internal LANGUAGE internal STRICT PARALLEL SAFE AS 'numeric_avg_deserialize';
CREATE AGGREGATE has_serial(numeric) (SFUNC = numeric_avg_accum, STYPE = internal, FINALFUNC = numeric_avg, COMBINEFUNC = numeric_avg_combine,
  SERIALFUNC = bad_serial, DESERIALFUNC = numeric_avg_deserialize);
CREATE AGGREGATE has_deserial(numeric) (SFUNC = numeric_avg_accum, STYPE = internal, FINALFUNC = numeric_avg, COMBINEFUNC = numeric_avg_combine,
  SERIALFUNC = numeric_avg_serialize, DESERIALFUNC = bad_deserial);
-- What the trees of views, policies and defaults name.
CREATE OPERATOR @@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = bad_op);
CREATE FUNCTION bad_sample(internal) RETURNS tsm_handler LANGUAGE internal STRICT AS 'tsm_bernoulli_handler';
CREATE VIEW v_function AS SELECT bad_called(i) AS c FROM src; CREATE VIEW v_operator AS SELECT i @@@ 1 AS c FROM src;
CREATE VIEW v_any AS SELECT i FROM src WHERE i @@@ ANY ('{1}'::int[]);
CREATE VIEW v_aggregate AS SELECT has_trans(i) AS c FROM src; CREATE VIEW v_window AS SELECT has_trans(i) OVER () AS c FROM src;
CREATE VIEW v_sample AS SELECT i FROM src TABLESAMPLE bad_sample (100);
CREATE VIEW v_deep AS SELECT 1 AS one WHERE EXISTS (WITH w AS (SELECT c FROM v_function) SELECT FROM w);
CREATE TABLE held AS SELECT 1 AS i; ALTER TABLE held ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON held USING ((SELECT has_trans(i) FROM src) IS NOT NULL);
CREATE FUNCTION op_default(i bool DEFAULT 1 @@@ 2) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE FUNCTION call_default(i int DEFAULT bad_called(7)) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
CREATE FUNCTION deep_default(i int DEFAULT call_default()) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN 1; END';
-- A cast to a type that is named, without a word that casts.
CREATE TYPE pair AS (a int, b text); CREATE FUNCTION bad_cast(t text) RETURNS pair LANGUAGE plpgsql AS
  $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'reached:cast'; RETURN ROW(1, t); END $f$;
-- A row's attribute that is none.
CREATE FUNCTION bad_attribute(s src, i int DEFAULT 1) RETURNS int LANGUAGE plpgsql AS
  $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'reached:attribute'; RETURN 1; END $f$;
-- What belongs to nobody that is known: depends on an extension, is written in C, runs with its owner's rights.
CREATE EXTENSION citext; CREATE FUNCTION bad_owner() RETURNS bool LANGUAGE plpgsql STABLE SECURITY DEFINER AS
  $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'reached:owner'; RETURN true; END $f$;
ALTER FUNCTION bad_owner() DEPENDS ON EXTENSION citext;
CREATE FUNCTION bad_file(text) RETURNS text LANGUAGE internal STABLE STRICT AS 'pg_read_file_all';
-- What only looks so.
CREATE FUNCTION other.lower(text) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION other.upper() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION x() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'; CREATE FUNCTION x(src, int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE FUNCTION other.i(src) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE OPERATOR other.+ (LEFTARG = text, RIGHTARG = text, FUNCTION = bad_join);
CREATE TYPE hours AS RANGE (subtype = int); CREATE TABLE ruled (i int);
CREATE RULE r AS ON INSERT TO ruled DO ALSO SELECT bad_called(new.i) FROM v_function;
CREATE FUNCTION shows(t text) RETURNS text LANGUAGE plpgsql STABLE AS 'BEGIN RETURN t; END';
CREATE TABLE dropped (a checked, b int); ALTER TABLE dropped DROP COLUMN a;
";

/// The statement, and the function it must be refused for.
const REACHED: [(&str, &str); 47] = [
    ("SELECT takes('a')", "check"),
    ("SELECT takes(x) FROM src", "check"),
    ("SELECT takes_all('a', 'b')", "check"),
    ("SELECT gives('a')", "check"),
    ("SELECT * FROM gives_out('a')", "check"),
    ("SELECT defaults()", "check"),
    ("SELECT 'a'::text %%% 1", "check"),
    ("SELECT takes_each(x) FROM src", "check"),
    ("SELECT keeps(i) FROM src", "check"),
    ("SELECT i FROM guarded", "check"),
    ("SELECT i FROM only_where", "check"),
    ("SELECT 'a'::checked", "check"),
    ("SELECT 'a'::over", "check"),
    ("SELECT 'a'::inside", "check"),
    ("SELECT over 'a'", "check"),
    ("SELECT '(a)'::holder", "check"),
    ("SELECT '(\"{a}\")'::many", "check"),
    ("SELECT '{a}'::_checked", "check"),
    ("SELECT '[a,b]'::spread", "check"),
    ("SELECT spread('a', 'b')", "check"),
    ("SELECT x FROM src WHERE x IN (SELECT x::checked FROM src)", "check"),
    ("SELECT has_trans(i) FROM src", "trans"),
    ("SELECT has_final(i) FROM src", "final"),
    ("SELECT has_combine(i) FROM src", "combine"),
    ("SELECT has_mtrans(i) OVER (ROWS 1 PRECEDING) FROM src", "mtrans"),
    ("SELECT has_minv(i) OVER (ROWS 1 PRECEDING) FROM src", "minv"),
    ("SELECT has_mfinal(i) OVER (ROWS 1 PRECEDING) FROM src", "mfinal"),
    ("SELECT has_serial(n) FROM src", "serial"),
    ("SELECT has_deserial(n) FROM src", "deserial"),
    ("SELECT * FROM v_function", "called"),
    ("SELECT * FROM v_operator", "op"),
    ("SELECT * FROM v_any", "op"),
    ("SELECT * FROM v_aggregate", "trans"),
    ("SELECT * FROM v_window", "trans"),
    ("SELECT * FROM v_sample", "sample"),
    ("SELECT * FROM v_deep", "called"),
    ("SELECT * FROM public.v_deep", "called"),
    ("SELECT i FROM held", "trans"),
    ("SELECT op_default()", "op"),
    ("SELECT call_default()", "called"),
    ("SELECT deep_default()", "called"),
    ("SELECT src.bad_attribute FROM src", "attribute"),
    ("SELECT (src).bad_attribute FROM src", "attribute"),
    ("SELECT bad_owner()", "owner"),
    ("SELECT bad_file('PG_VERSION')", "file"),
    ("SELECT 1 @@@ 2", "op"),
    ("SELECT 1 OPERATOR(public.@@@) 2", "op"),
];

/// Statements that come to the cast.
const CASTS: [&str; 2] = ["SELECT x::pair FROM src", "SELECT CAST(x AS pair) FROM src"];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_the_catalogue_leads_to_is_found_by_name() {
    let cluster = Cluster::start();
    let functions = [
        ("check", "t text", "bool"),
        ("trans", "a int, b int", "int"),
        ("final", "a int", "int"),
        ("combine", "a int, b int", "int"),
        ("mtrans", "a int, b int", "int"),
        ("minv", "a int, b int", "int"),
        ("mfinal", "a int", "int"),
        ("op", "a int, b int", "bool"),
        ("called", "a int", "int"),
        ("join", "a text, b text", "text"),
    ];
    let functions: String = functions.into_iter().map(|(name, args, gives)| bad(name, args, gives)).collect();
    cluster.sql(&(functions + OBJECTS));
    let marks = || cluster.log().matches(MARK).count();
    let before = marks();
    for role in ["reader", "postgres"] {
        let client = connect(cluster.config(role).with(|config| config.allow_privileged_role = true)).await;
        for (sql, function) in REACHED {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            assert!(text.contains(&format!("public.bad_{function}")), "{role}: {sql}: {text}");
            assert_eq!(marks(), before, "{role}: {sql}");
        }
        if cluster.major() >= 14 {
            for sql in ["SELECT '{[a,b]}'::spread_multirange", "SELECT spread_multirange('[a,b]')"] {
                let text = error(&client, "query", json!({ "sql": sql })).await;
                assert!(text.contains("public.bad_check"), "{role}: {sql}: {text}");
            }
        }
        // Whoever wants it can be told why: where it is not named itself.
        let text = error(&client, "query", json!({ "sql": "SELECT * FROM v_deep" })).await;
        assert!(text.contains("through view v_deep"), "{text}");
        for sql in [
            "SELECT lower('A'), upper('a')",
            "SELECT src.x, src.i, (src).n FROM src",
            "SELECT 'a' || 'b', 1 + 2",
            "SELECT lower(hours(1, 2)), hours(1, 2, '[]') @> 1",
            "SELECT i FROM ruled",
            "SELECT b FROM dropped",
            "SELECT 1::text, CAST('2' AS int)",
            "SELECT sum(i), avg(n), max(x) FROM src",
        ] {
            query(&client, sql).await;
        }
    }
    // A cast is found wherever a statement casts, or names the type that it gives.
    cluster.sql("CREATE CAST (text AS pair) WITH FUNCTION bad_cast(text)");
    let client = connect(cluster.config("reader")).await;
    for sql in CASTS {
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(text.contains("public.bad_cast (through the cast from text to pair)"), "{sql}: {text}");
    }
    // Also to a type that has another name in the grammar.
    cluster.sql(&bad("number", "p pair", "int").replace("RETURN $1", "RETURN 1"));
    cluster.sql("CREATE CAST (pair AS int) WITH FUNCTION bad_number(pair); DROP CAST (text AS pair)");
    let text = error(&client, "query", json!({ "sql": "SELECT ROW(1, 'x')::pair::int" })).await;
    assert!(text.contains("public.bad_number (through the cast from pair to integer)"), "{text}");
    cluster.sql("DROP CAST (pair AS int); CREATE CAST (text AS pair) WITH FUNCTION bad_cast(text)");
    // Where a type is named without one of these words, too.
    cluster.sql(
        &bad("json", "j json", "json")
            .replace("RETURNS json", "RETURNS pair")
            .replace("RETURN $1", "RETURN ROW(1, 'x')"),
    );
    cluster.sql("DROP CAST (text AS pair); CREATE CAST (json AS pair) WITH FUNCTION bad_json(json)");
    let named = if cluster.major() >= 16 { "SELECT JSON_OBJECT('a': 1 RETURNING pair)" } else { "SELECT pair 'x'" };
    let text = error(&client, "query", json!({ "sql": named })).await;
    assert!(text.contains("public.bad_json (through the cast from json to pair)"), "{text}");
    // But not where only a function takes that type: the value is one already, or becomes one in an implicit way.
    cluster.sql(&bad("text", "p pair", "text").replace("RETURN $1", "RETURN 'x'"));
    cluster.sql("CREATE CAST (pair AS text) WITH FUNCTION bad_text(pair)");
    query(&client, "SELECT shows('a')").await;
    query(&client, "SELECT lower('A')").await;
    cluster.sql("DROP CAST (pair AS text)");
    assert_eq!(marks(), before);
    // The marks would be seen. What runs only in parallel, or in C, or does not fit, leaves none.
    let silent = ["combine", "serial", "deserial", "sample", "file"];
    // Later versions refuse that themselves.
    if cluster.major() == 16 {
        let before = marks();
        let _ = cluster.psql("postgres", &format!("BEGIN READ ONLY; {named}; ROLLBACK"));
        assert!(marks() > before, "{named}");
    }
    cluster.sql("CREATE CAST (text AS pair) WITH FUNCTION bad_cast(text)");
    let casts = CASTS.map(|sql| (sql, "cast"));
    for (sql, function) in REACHED.into_iter().chain(casts).filter(|(_, function)| !silent.contains(function)) {
        let before = marks();
        let role = if sql.contains("guarded") || sql.contains("held") { "reader" } else { "postgres" };
        let _ = cluster.psql(role, &format!("BEGIN READ ONLY; {sql}; ROLLBACK"));
        assert!(marks() > before, "{sql} never comes to {function}");
    }
}

/// On a standby the numbers of transactions say less: one can end, and a snapshot says the same as before.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn on_a_standby_what_was_harmless_is_asked_about_again() {
    let mut primary = Cluster::with("local replication all trust", "max_prepared_transactions=10\nhot_standby=on");
    primary.sql("CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE TABLE people (first text); INSERT INTO people VALUES ('Ada')");
    let standby = primary.standby();
    assert_eq!(standby.sql("SELECT pg_is_in_recovery()"), "t");
    // Two transactions are under way: the one that began first stays so, and a third has ended.
    primary.sql("BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'first'");
    primary.sql(
        "BEGIN; CREATE FUNCTION late(people) RETURNS text LANGUAGE plpgsql AS
         $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'reached:late'; RETURN 'late'; END $f$; PREPARE TRANSACTION 'second'",
    );
    primary.sql("CREATE TABLE third (i int)");
    let replayed = |what: &str| {
        for _ in 0..400 {
            if standby.sql(what) == "1" {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        panic!("it does not come: {what}");
    };
    replayed("SELECT count(*) FROM pg_class WHERE relname = 'third'");
    let client = connect(standby.config("reader")).await;
    let sql = "SELECT p.late FROM people p";
    for _ in 0..4 {
        let (_, text, _) = call(&client, "query", json!({ "sql": sql })).await;
        assert!(text.contains("42703"), "{text}");
    }
    let snapshot = "SELECT txid_current_snapshot()";
    let before = standby.sql(snapshot);
    primary.sql("COMMIT PREPARED 'second'");
    replayed("SELECT count(*) FROM pg_proc WHERE proname = 'late'");
    assert_eq!(standby.sql(snapshot), before, "that is what this is about");
    for _ in 0..2 {
        let text = error(&client, "query", json!({ "sql": sql })).await;
        assert!(text.contains("public.late") && text.contains("not allowed in read-only mode"), "{text}");
    }
    assert!(!standby.log().contains(MARK));
    standby.sql(sql);
    assert!(standby.log().contains(MARK));
    primary.sql("ROLLBACK PREPARED 'first'");
}
