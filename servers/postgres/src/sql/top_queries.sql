SELECT pg_catalog.json_build_object('query', pg_catalog.left(query, 1000), 'calls', calls,
  'total_ms', pg_catalog.round(total::pg_catalog.numeric, 2), 'mean_ms', pg_catalog.round(mean::pg_catalog.numeric, 2), 'rows', rows,
  'blocks_hit', hit, 'blocks_read', read)::pg_catalog.text
FROM (SELECT s.query, s.calls, s.rows, s.shared_blks_hit AS hit, s.shared_blks_read AS read,
  coalesce((pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.->>) 'total_exec_time')::pg_catalog.float8, (pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.->>) 'total_time')::pg_catalog.float8) AS total,
  coalesce((pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.->>) 'mean_exec_time')::pg_catalog.float8, (pg_catalog.to_jsonb(s) OPERATOR(pg_catalog.->>) 'mean_time')::pg_catalog.float8) AS mean
  FROM extension.pg_stat_statements s JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.dbid
  WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()) AS q
