SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'kind', pg_catalog.jsonb_extract_path_text(
    '{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence"}',
    c.relkind::pg_catalog.text),
  'estimated_rows', CASE WHEN c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m}') AND c.reltuples OPERATOR(pg_catalog.>=) 0 THEN c.reltuples::pg_catalog.int8 END,
  'bytes', CASE WHEN c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m}') THEN pg_catalog.pg_total_relation_size(c.oid) END,
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid OPERATOR(pg_catalog.=) c.oid AND about.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND about.objsubid OPERATOR(pg_catalog.=) 0)))::pg_catalog.text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind::pg_catalog.text OPERATOR(pg_catalog.=) ANY ($6::pg_catalog.text[])
  AND CASE WHEN $1::pg_catalog.name[] OPERATOR(pg_catalog.<>) '{}' THEN n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) AND n.nspname OPERATOR(pg_catalog.=) coalesce($2, n.nspname::pg_catalog.text)
    WHEN $2 IS NOT NULL THEN n.nspname OPERATOR(pg_catalog.=) $2::pg_catalog.name
    ELSE pg_catalog.left(n.nspname::pg_catalog.text, 3) OPERATOR(pg_catalog.<>) 'pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema' END
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.strpos(pg_catalog.lower(c.relname::pg_catalog.text), pg_catalog.lower(coalesce($3, ''))) OPERATOR(pg_catalog.>) 0
ORDER BY n.nspname, c.relname LIMIT $4::pg_catalog.int8 OFFSET $5::pg_catalog.int8
