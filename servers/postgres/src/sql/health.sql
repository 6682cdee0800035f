WITH mine AS (
  SELECT s.*, pg_catalog.quote_ident(s.schemaname) OPERATOR(pg_catalog.||) '.' OPERATOR(pg_catalog.||) pg_catalog.quote_ident(s.relname) AS label
  FROM pg_catalog.pg_stat_user_tables s WHERE $1::pg_catalog.name[] OPERATOR(pg_catalog.=) '{}' OR s.schemaname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[])
), figures AS (
  SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type OPERATOR(pg_catalog.=) 'client backend') AS connections,
    pg_catalog.current_setting('max_connections')::pg_catalog.int4 AS connections_max,
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE pg_catalog.cardinality(pg_catalog.pg_blocking_pids(pid)) OPERATOR(pg_catalog.>) 0) AS waiting,
    (SELECT pg_catalog.max(extract(epoch FROM pg_catalog.now() OPERATOR(pg_catalog.-) xact_start))::pg_catalog.int8 FROM pg_catalog.pg_stat_activity
      WHERE backend_type OPERATOR(pg_catalog.=) 'client backend' AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()) AS oldest,
    (SELECT CASE WHEN blks_hit OPERATOR(pg_catalog.+) blks_read OPERATOR(pg_catalog.>) 0 THEN pg_catalog.round(100.0 OPERATOR(pg_catalog.*) blks_hit OPERATOR(pg_catalog./) (blks_hit OPERATOR(pg_catalog.+) blks_read), 1) END FROM pg_catalog.pg_stat_database
      WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database()) AS hit,
    (SELECT pg_catalog.max(pg_catalog.age(datfrozenxid)) FROM pg_catalog.pg_database) AS age,
    (SELECT pg_catalog.json_agg(x.indexrelid::pg_catalog.regclass::pg_catalog.text) FROM pg_catalog.pg_index x JOIN mine m ON m.relid OPERATOR(pg_catalog.=) x.indrelid
      WHERE NOT x.indisvalid) AS invalid,
    (SELECT pg_catalog.json_agg(u) FROM (SELECT i.indexrelid::pg_catalog.regclass::pg_catalog.text AS index, pg_catalog.pg_relation_size(i.indexrelid) AS bytes
      FROM pg_catalog.pg_stat_user_indexes i JOIN mine m ON m.relid OPERATOR(pg_catalog.=) i.relid
      JOIN pg_catalog.pg_index x ON x.indexrelid OPERATOR(pg_catalog.=) i.indexrelid
      WHERE i.idx_scan OPERATOR(pg_catalog.=) 0 AND NOT x.indisunique AND pg_catalog.pg_relation_size(i.indexrelid) OPERATOR(pg_catalog.>) 1048576
      ORDER BY 2 DESC LIMIT 10) AS u) AS unused,
    (SELECT pg_catalog.json_agg(d) FROM (SELECT label AS table, n_dead_tup AS dead, n_live_tup AS live, last_autovacuum FROM mine
      WHERE n_dead_tup OPERATOR(pg_catalog.>) 10000 AND n_dead_tup OPERATOR(pg_catalog.>) (n_live_tup OPERATOR(pg_catalog./) 5) ORDER BY n_dead_tup DESC LIMIT 10) AS d) AS dead,
    (SELECT pg_catalog.json_agg(r) FROM (SELECT application_name AS name, state, sync_state,
      extract(epoch FROM replay_lag)::pg_catalog.float8 AS lag_s FROM pg_catalog.pg_stat_replication LIMIT 20) AS r) AS replicas,
    pg_catalog.pg_is_in_recovery() AS replica
)
SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object(
  'up_since', pg_catalog.pg_postmaster_start_time(), 'database', pg_catalog.current_database(),
  'bytes', pg_catalog.pg_database_size(pg_catalog.current_database()), 'is_replica', replica,
  'connections', connections, 'connections_max', connections_max, 'waiting_for_locks', waiting,
  'oldest_transaction_s', oldest, 'cache_hit_percent', hit, 'oldest_xid_age', age,
  'tables', (SELECT pg_catalog.count(*) FROM mine), 'invalid_indexes', invalid, 'unused_indexes', unused, 'tables_to_vacuum', dead,
  'replicas', replicas,
  'warnings', pg_catalog.array_remove(ARRAY[
    CASE WHEN connections OPERATOR(pg_catalog.>) (0.8 OPERATOR(pg_catalog.*) connections_max) THEN 'More than 80 % of the connections are in use.' END,
    CASE WHEN waiting OPERATOR(pg_catalog.>) 0 THEN waiting OPERATOR(pg_catalog.||) ' sessions wait for locks.' END,
    CASE WHEN oldest OPERATOR(pg_catalog.>) 300 THEN 'A transaction is open for more than 5 minutes; it keeps vacuum from working.' END,
    CASE WHEN hit OPERATOR(pg_catalog.<) 90 THEN 'The cache hit rate is below 90 %.' END,
    CASE WHEN age OPERATOR(pg_catalog.>) 1000000000 THEN 'Transaction numbers are half used up; check that vacuum runs.' END,
    CASE WHEN invalid IS NOT NULL THEN 'Some indexes are invalid; rebuild them.' END,
    CASE WHEN dead IS NOT NULL THEN 'Some tables have many dead rows; check autovacuum.' END], NULL)))::pg_catalog.text
FROM figures
