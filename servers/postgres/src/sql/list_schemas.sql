SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'owner', pg_catalog.pg_get_userbyid(n.nspowner),
  'tables', pg_catalog.count(*) FILTER (WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,f}')), 'views', pg_catalog.count(*) FILTER (WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{v,m}')),
  'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid OPERATOR(pg_catalog.=) n.oid AND about.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_namespace'::pg_catalog.regclass AND about.objsubid OPERATOR(pg_catalog.=) 0)))::pg_catalog.text
FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
WHERE CASE WHEN $1::pg_catalog.name[] OPERATOR(pg_catalog.=) '{}' THEN pg_catalog.left(n.nspname::pg_catalog.text, 3) OPERATOR(pg_catalog.<>) 'pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema'
  ELSE n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) END AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
GROUP BY n.oid, n.nspname, n.nspowner ORDER BY n.nspname
