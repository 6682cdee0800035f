SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}')
  AND CASE WHEN $1::pg_catalog.name[] OPERATOR(pg_catalog.=) '{}' THEN pg_catalog.left(n.nspname::pg_catalog.text, 3) OPERATOR(pg_catalog.<>) 'pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema'
    ELSE n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) END
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
ORDER BY n.nspname OPERATOR(pg_catalog.<>) 'public', n.nspname, c.relname LIMIT $2::pg_catalog.int8
