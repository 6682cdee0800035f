SELECT n.nspname::pg_catalog.text FROM pg_catalog.pg_namespace n
WHERE n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) AND NOT n.nspname OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.name[] OPERATOR(pg_catalog.||) '{pg_catalog,information_schema}'::pg_catalog.name[])
