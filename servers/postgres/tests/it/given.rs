//! Functions that are given a type, a function, a table or a statement as an argument are refused. The mark is a line in the server's log, which no transaction
//! takes back.

use crate::common;

use common::{Cluster, connect, error, query};
use serde_json::json;

const MADE: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE FUNCTION marks(i int) RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN RAISE LOG 'the mark'; RETURN true; END $f$;
CREATE DOMAIN checked AS int CHECK (marks(VALUE));
CREATE TYPE holder AS (a checked);
CREATE TYPE span AS RANGE (subtype = checked);
CREATE FUNCTION body() RETURNS int LANGUAGE sql AS $f$ SELECT array_length('{1}'::checked[], 1) $f$;
CREATE TYPE mood AS ENUM ('glad');
CREATE TABLE moods (c mood); INSERT INTO moods VALUES ('glad');
CREATE VIEW told AS SELECT to_json(c)::text AS t FROM moods;
CREATE TABLE plain (id int, name varchar); INSERT INTO plain VALUES (1, 'one');
";

/// The statement, and since which version it makes the mark where nothing holds it.
const BY_TYPE: &[(&str, u32)] = &[
    ("SELECT array_in('{1}'::cstring, 'checked'::regtype::oid, -1)", 12),
    ("SELECT pg_catalog.array_in('{1}', 'checked'::regtype, -1)", 12),
    ("SELECT \"array_in\"('{1}', (SELECT oid FROM pg_type WHERE typname LIKE 'checke%'), -1)", 12),
    ("SELECT domain_in('1', 'checked'::regtype, -1)", 12),
    ("SELECT record_in('(1)', 'holder'::regtype, -1)", 12),
    ("SELECT range_in('[1,2]', 'span'::regtype, -1)", 12),
    ("SELECT multirange_in('{[1,2]}', (SELECT oid FROM pg_type WHERE typname LIKE 'span_m%')::oid, -1)", 14),
    ("SELECT pg_input_is_valid('{1}', 'checked[]')", 16),
    ("SELECT * FROM pg_input_error_info('{1}', 'checked[]')", 16),
    ("SELECT fmgr_sql_validator('body'::regproc)", 12),
];

/// What could run, write, lock or tell something else, whatever version has it.
const REFUSED: &[&str] = &[
    "SELECT array_recv(NULL, 0, 0)",
    "SELECT domain_recv(NULL, 0, 0)",
    "SELECT record_recv(NULL, 0, 0)",
    "SELECT range_recv(NULL, 0, 0)",
    "SELECT enum_in('glad', 'mood'::regtype)",
    "SELECT enum_recv(NULL, 'mood'::regtype)",
    "SELECT anyarray_in('{1}')",
    "SELECT int4in('1')",
    "SELECT array_agg_finalfn(NULL, NULL::int)",
    "SELECT fmgr_c_validator('marks'::regproc)",
    "SELECT fmgr_internal_validator('marks'::regproc)",
    "SELECT plpgsql_validator('marks'::regproc)",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT query_to_xmlschema('SELECT 1', true, true, '')",
    "SELECT query_to_xml_and_xmlschema('SELECT 1', true, true, '')",
    "SELECT table_to_xml('told', true, true, '')",
    "SELECT schema_to_xml('public', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT cursor_to_xml('x', 1, true, true, '')",
    "SELECT cursor_to_xmlschema('x', true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(name) FROM plain')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')",
    "SELECT set_config('work_mem', '1GB', false)",
    "SELECT nextval('x')",
    "SELECT currtid2('plain', '(0,1)')",
    "SELECT lo_get(1)",
    "SELECT lo_unlink(1)",
    "SELECT loread(1, 1)",
    "SELECT pg_extension_config_dump('plain', '')",
    "SELECT pg_logical_emit_message(true, 'a', 'b')",
    "SELECT * FROM pg_logical_slot_get_changes('s', NULL, NULL)",
    "SELECT pg_replication_origin_create('x')",
    "SELECT binary_upgrade_set_next_pg_type_oid(1)",
    "SELECT brin_summarize_new_values('plain')",
    "SELECT gin_clean_pending_list('plain')",
    "SELECT amvalidate(1)",
    "SELECT pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')",
    "SELECT pg_export_snapshot()",
    "SELECT pg_import_system_collations('pg_catalog')",
    "SELECT pg_backup_start('x')",
    "SELECT pg_start_backup('x')",
    "SELECT pg_promote()",
    "SELECT pg_wal_replay_pause()",
    "SELECT pg_log_backend_memory_contexts(1)",
    "SELECT pg_stat_reset_single_table_counters('plain'::regclass)",
    "SELECT pg_stat_clear_snapshot()",
    "SELECT pg_restore_relation_stats('relation', 'plain')",
    "SELECT setseed(0.5)",
];

/// What goes on working, also where these types are; with `::` and CAST, or a column of type text, all casts count.
const WORKS: &[&str] = &[
    "SELECT c FROM moods",
    "SELECT count(c), max(c) FROM moods",
    "SELECT name || '!' FROM plain",
    "SELECT to_json(plain), row_to_json(p), quote_literal(p.id) FROM plain p, plain",
    "SELECT json_agg(id), array_agg(id), string_agg(name, ','), percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM plain",
    "SELECT id FROM plain TABLESAMPLE system (100)",
    "SELECT id FROM plain TABLESAMPLE bernoulli (100)",
    "SELECT format_type(23, -1), to_regclass('plain'), pg_get_viewdef('told', true)",
    "SELECT has_table_privilege('plain', 'SELECT'), to_tsvector('english', 'cats') @@ to_tsquery('cat')",
    "SELECT int4range(1, 2), numrange(1, 2) && numrange(2, 3), varchar 'x', interval '1 day'",
];

fn marks(cluster: &Cluster) -> usize {
    cluster.log().matches("LOG:  the mark").count()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn nothing_runs_by_way_of_an_argument() {
    let cluster = Cluster::start();
    cluster.sql(MADE);
    for role in ["reader", "postgres"] {
        let client = connect(cluster.config(role).with(|config| config.allow_privileged_role = true)).await;
        let before = marks(&cluster);
        for (sql, since) in BY_TYPE {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            let absent = *since > cluster.major() && text.contains("SQLSTATE 42883");
            assert!(absent || text.contains("is not allowed in read-only mode"), "{sql}: {text}");
            error(&client, "pg_explain", json!({ "sql": sql })).await;
            assert_eq!(marks(&cluster), before, "{role}: {sql}");
        }
        for sql in REFUSED {
            let text = error(&client, "query", json!({ "sql": sql })).await;
            let absent = text.contains("SQLSTATE 42883");
            assert!(absent || text.contains("is not allowed in read-only mode"), "{sql}: {text}");
        }
        for sql in WORKS {
            query(&client, sql).await;
        }
        assert_eq!(marks(&cluster), before, "{role}");
    }
    // Where nothing holds them they run, in a transaction that only reads.
    for (sql, since) in BY_TYPE.iter().filter(|(_, since)| *since <= cluster.major()) {
        let before = marks(&cluster);
        let ran = cluster.psql("postgres", &format!("BEGIN READ ONLY; {sql}; ROLLBACK;"));
        assert!(marks(&cluster) > before, "since {since}: {sql}: {ran:?}");
    }
}
