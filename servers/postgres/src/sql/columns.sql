SELECT a.attname::pg_catalog.text, CASE WHEN t.typtype OPERATOR(pg_catalog.=) 'd' THEN
    CASE WHEN b.typelem OPERATOR(pg_catalog.<>) 0 AND b.typlen OPERATOR(pg_catalog.=) '-1' THEN 'ARRAY'
      WHEN bn.nspname OPERATOR(pg_catalog.=) 'pg_catalog' THEN pg_catalog.format_type(t.typbasetype, NULL) ELSE 'USER-DEFINED' END
  ELSE CASE WHEN t.typelem OPERATOR(pg_catalog.<>) 0 AND t.typlen OPERATOR(pg_catalog.=) '-1' THEN 'ARRAY'
    WHEN tn.nspname OPERATOR(pg_catalog.=) 'pg_catalog' THEN pg_catalog.format_type(a.atttypid, NULL) ELSE 'USER-DEFINED' END END
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) t.typnamespace
LEFT JOIN pg_catalog.pg_type b ON b.oid OPERATOR(pg_catalog.=) t.typbasetype LEFT JOIN pg_catalog.pg_namespace bn ON bn.oid OPERATOR(pg_catalog.=) b.typnamespace
WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.name AND c.relname OPERATOR(pg_catalog.=) $2::pg_catalog.name AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f}')
  AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY a.attnum
