SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', p.proname,
  'kind', pg_catalog.jsonb_extract_path_text(
    '{"f": "function", "p": "procedure", "a": "aggregate", "w": "window function"}', p.prokind::pg_catalog.text),
  'arguments', pg_catalog.pg_get_function_identity_arguments(p.oid), 'returns', pg_catalog.pg_get_function_result(p.oid),
  'volatility', pg_catalog.jsonb_extract_path_text(
    '{"i": "immutable", "s": "stable", "v": "volatile"}', p.provolatile::pg_catalog.text),
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid OPERATOR(pg_catalog.=) p.oid AND about.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND about.objsubid OPERATOR(pg_catalog.=) 0)))::pg_catalog.text
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
WHERE CASE WHEN $1::pg_catalog.name[] OPERATOR(pg_catalog.<>) '{}' THEN n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) AND n.nspname OPERATOR(pg_catalog.=) coalesce($2, n.nspname::pg_catalog.text)
    WHEN $2 IS NOT NULL THEN n.nspname OPERATOR(pg_catalog.=) $2::pg_catalog.name
    ELSE pg_catalog.left(n.nspname::pg_catalog.text, 3) OPERATOR(pg_catalog.<>) 'pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema' END
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.strpos(pg_catalog.lower(p.proname::pg_catalog.text), pg_catalog.lower(coalesce($3, ''))) OPERATOR(pg_catalog.>) 0
ORDER BY n.nspname, p.proname, p.oid LIMIT $4::pg_catalog.int8 OFFSET $5::pg_catalog.int8
