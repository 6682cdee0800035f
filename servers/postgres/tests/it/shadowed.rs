//! A search path on which somebody else's schema stands before PostgreSQL's own: what this server asks for itself never comes to
//! what is in there. Whatever does says so in the server's log, which no rollback takes back.

use crate::common;

use common::{Cluster, call, connect, error, ok, query};
use linchpin_postgres::{Access, Config};
use serde_json::json;

/// The name of what was called, and that it was: see `cry` below.
const CRY: &str = "linchpin_evil:";

/// A schema with everything that PostgreSQL's has, each of which cries out: its functions and operators, those that would fit
/// better than its own for the types of the catalogue, and its types, as domains.
const EVIL: &str = r#"
CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.cry(who pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS
  $f$ BEGIN RAISE WARNING '%', 'linchpin_' || 'evil:' || who; RETURN true; END $f$;
SET search_path = pg_catalog;
SET client_min_messages = error;
DO $do$
DECLARE f record; args text; made int := 0; kinds text[] := '{text,name,"\"char\"",bpchar,oid,regclass,regproc,regtype,int2,int4,int8,numeric,bool}';
  lefty text; righty text; op text;
  body text := $b$ AS $q$BEGIN PERFORM evil.cry(%L); RETURN NULL; END$q$ LANGUAGE plpgsql$b$;
BEGIN
  FOR f IN SELECT p.*, pg_get_function_identity_arguments(p.oid) AS args, format_type(p.prorettype, NULL) AS gives
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE nspname = 'pg_catalog' AND prokind IN ('f', 'a') AND NOT proretset
  LOOP
    BEGIN
      EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS %s', f.proname, regexp_replace(f.args, '"any"', 'anyelement', 'g'), f.gives)
        || format(body, 'function ' || f.proname);
      made := made + 1;
    EXCEPTION WHEN OTHERS THEN NULL; END;
  END LOOP;
  FOR f IN SELECT o.*, format_type(oprleft, NULL) AS l, format_type(oprright, NULL) AS r, format_type(oprresult, NULL) AS gives
    FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE nspname = 'pg_catalog' AND oprkind = 'b' AND oprresult <> 0
  LOOP
    BEGIN
      EXECUTE format('CREATE FUNCTION evil.op%s(%s, %s) RETURNS %s', f.oid, f.l, f.r, f.gives) || format(body, 'operator ' || f.oprname);
      EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.op%s)', f.oprname, f.l, f.r, f.oid);
      made := made + 1;
    EXCEPTION WHEN OTHERS THEN NULL; END;
  END LOOP;
  FOREACH op IN ARRAY '{=,<>,<,>,<=,>=,||,~,+,-,*,/,->>}'::text[] LOOP
    FOREACH lefty IN ARRAY kinds LOOP FOREACH righty IN ARRAY kinds LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION evil.fits(a %s, b %s, op%s bool) RETURNS bool', lefty, righty, md5(op)) || format(body, 'better ' || op);
        EXECUTE format('CREATE FUNCTION evil.fits%s(a %s, b %s) RETURNS bool', md5(op), lefty, righty) || format(body, 'better ' || op);
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.fits%s)', op, lefty, righty, md5(op));
        made := made + 1;
      EXCEPTION WHEN OTHERS THEN NULL; END;
    END LOOP; END LOOP;
  END LOOP;
  FOR f IN SELECT typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE nspname = 'pg_catalog' AND typtype = 'b' AND typname NOT LIKE '\_%'
  LOOP
    EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%I CHECK (evil.cry(%L))', f.typname, f.typname, 'type ' || f.typname);
    made := made + 1;
  END LOOP;
  -- Tables and views of the names that are asked.
  FOR f IN SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'pg_catalog' AND relkind IN ('r', 'v') LOOP
    EXECUTE format('CREATE VIEW evil.%I AS SELECT evil.cry(%L) AS oid', f.relname, 'relation ' || f.relname);
    made := made + 1;
  END LOOP;
  IF made < 2500 THEN RAISE EXCEPTION 'only % were made', made; END IF;
END $do$;
GRANT SELECT ON ALL TABLES IN SCHEMA evil TO PUBLIC;
"#;

const DATA: &str = "
CREATE TABLE items (id int PRIMARY KEY, label text NOT NULL DEFAULT 'x', kind char(3)); INSERT INTO items VALUES (1, 'one', 'abc');
CREATE TABLE notes (item int REFERENCES items, at timestamptz); CREATE INDEX ON notes (at);
CREATE VIEW named AS SELECT id, upper(label) AS label FROM items;
CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TABLE moods (m mood, all_of mood[]); INSERT INTO moods VALUES ('good', '{good,bad}');
CREATE FUNCTION same(i int) RETURNS int LANGUAGE sql IMMUTABLE AS $f$ SELECT i $f$;
CREATE EXTENSION pg_stat_statements;
CREATE ROLE victim LOGIN; GRANT pg_read_all_data TO victim; GRANT pg_read_all_stats TO victim;
GRANT ALL ON ALL TABLES IN SCHEMA public TO victim; GRANT USAGE ON SCHEMA public TO victim;
";

fn cries(cluster: &Cluster) -> Vec<String> {
    let log = cluster.log();
    log.lines().filter(|line| line.contains(CRY)).map(str::to_owned).collect()
}

fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    cluster.sql(EVIL);
    // Public comes last: names of tables are found, those of everything else elsewhere before.
    cluster.sql("ALTER ROLE victim SET search_path = evil, pg_catalog, public");
    assert_eq!(cries(&cluster), [""; 0], "nothing has called it yet");
    cluster
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn our_own_questions_never_come_to_what_stands_before_pg_catalog() {
    let cluster = cluster();
    let client = connect(cluster.config("victim")).await;
    for round in 0..3 {
        assert_eq!(query(&client, "SELECT id, label FROM public.items").await["rows"], json!([[1, "one"]]), "{round}");
        assert_eq!(query(&client, "SELECT public.same(9)").await["rows"], json!([[9]]), "{round}");
        assert_eq!(query(&client, "TABLE named").await["row_count"], 1, "{round}");
        let (text, moods) = ok(&client, "query", json!({ "sql": "TABLE moods" })).await;
        assert_eq!(moods["columns"][1]["type"], "mood[]", "{text}");
        // And what the caller's statement would come to there is refused.
        for sql in [
            "SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text",
            "SELECT lower('A')",
            "SELECT id FROM items WHERE id IN (1)",
            "SELECT CASE id WHEN 1 THEN 2 END FROM items",
        ] {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            assert!(text.contains("evil.") && text.contains("not allowed in read-only mode"), "{sql}: {text}");
        }
        let (plan, _) = ok(&client, "pg_explain", json!({ "sql": "SELECT id FROM public.items" })).await;
        assert!(plan.contains("Seq Scan"), "{plan}");
    }
    every_tool(&cluster, cluster.config("victim")).await;
    // With schemas that are allowed, which are the path, others are asked.
    let limited = cluster.config("victim").with(|config| config.schemas = vec!["evil".into(), "public".into()]);
    every_tool(&cluster, limited).await;
    let writing = cluster.config("victim").with(|config| {
        config.access = Access::Write;
        config.allow_privileged_role = true;
    });
    every_tool(&cluster, writing).await;
    assert_eq!(cries(&cluster), [""; 0]);
    // The cries would be heard: what is not ours comes to all of it.
    for (sql, what) in [
        ("SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text", "operator ="),
        ("SELECT relname FROM pg_catalog.pg_class c WHERE relkind = ANY ('{r}'::pg_catalog.text[])", "better ="),
        ("SELECT lower('A'::pg_catalog.text)", "function lower"),
        ("SELECT 'a'::text", "type text"),
        ("SELECT * FROM pg_roles", "relation pg_roles"),
    ] {
        let before = cries(&cluster).len();
        // Read-only, as ours are.
        let _ = cluster.psql("victim", &format!("BEGIN READ ONLY; {sql}; ROLLBACK"));
        let cried = &cries(&cluster)[before..];
        assert!(cried.iter().any(|line| line.contains(&format!("{CRY}{what}"))), "{sql}: {cried:?}");
    }
}

/// Calls everything there is once, whatever it says.
async fn every_tool(cluster: &Cluster, config: Config) {
    let before = cries(cluster);
    let (limited, writes) = (!config.schemas.is_empty(), config.access == Access::Write);
    let client = connect(config).await;
    let mut calls = vec![
        ("pg_list_schemas", json!({})),
        ("pg_list_objects", json!({})),
        ("pg_list_objects", json!({ "schema": "public", "search": "item" })),
        ("pg_list_objects", json!({ "kind": "function", "schema": "public" })),
        ("pg_list_objects", json!({ "kind": "view", "schema": "public" })),
        ("pg_describe", json!({ "table": "items" })),
        ("pg_describe", json!({ "table": "public.notes" })),
        ("pg_describe", json!({ "table": "named" })),
        ("pg_explain", json!({ "sql": "SELECT id FROM public.items" })),
        ("pg_health", json!({})),
        ("query", json!({ "sql": "SELECT id FROM public.items" })),
        ("query", json!({ "sql": "SELECT m FROM moods" })),
        ("query", json!({ "sql": "SHOW work_mem" })),
    ];
    if !limited {
        calls.push(("pg_top_queries", json!({ "sort": "mean" })));
    }
    if writes {
        calls.push((
            "pg_execute",
            json!({ "statements": ["UPDATE public.items SET label = 'two'", "UPDATE items SET label = 'one'"] }),
        ));
        calls.push(("pg_explain", json!({ "sql": "SELECT id FROM public.items", "analyze": true })));
    }
    for (tool, args) in calls {
        let (failed, text, _) = call(&client, tool, args.clone()).await;
        assert_eq!(cries(cluster), before, "{tool} {args}");
        assert!(!failed, "{tool} {args}: {text}");
    }
    let resources = client.resources().await.unwrap().items;
    let items = resources.iter().find(|resource| resource.uri.ends_with("/items/schema")).expect("a table is listed");
    let contents = client.read(&items.uri).await.unwrap();
    assert!(format!("{contents:?}").contains("character"), "{contents:?}");
    assert_eq!(cries(cluster), before, "resources");
}
