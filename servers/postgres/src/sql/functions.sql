WITH named(oid, why, direct) AS (
  SELECT p.oid, '', true
  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) AS called(schema, name)
  JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) called.name::pg_catalog.name
  WHERE CASE WHEN called.schema OPERATOR(pg_catalog.=) '' THEN pg_catalog.pg_function_is_visible(p.oid)
    ELSE p.pronamespace OPERATOR(pg_catalog.=) (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname OPERATOR(pg_catalog.=) called.schema::pg_catalog.name) END
  UNION ALL
  SELECT p.oid, 'a name after a dot', true FROM pg_catalog.pg_proc p
  WHERE p.proname OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.name[]) AND p.pronargs OPERATOR(pg_catalog.>) 0 AND p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults OPERATOR(pg_catalog.<=) 1
    AND pg_catalog.pg_function_is_visible(p.oid)
  UNION ALL
  SELECT o.oprcode, 'operator ' OPERATOR(pg_catalog.||) o.oprname, false FROM pg_catalog.pg_operator o
  WHERE o.oprname OPERATOR(pg_catalog.=) ANY ($4::pg_catalog.name[]) AND ($5::pg_catalog.bool OR pg_catalog.pg_operator_is_visible(o.oid))
)
SELECT DISTINCT named.why, n.nspname::pg_catalog.text, p.proname::pg_catalog.text, p.provolatile::pg_catalog.text,
  l.lanpltrusted OR p.prokind OPERATOR(pg_catalog.=) 'a'
    OR l.lanname OPERATOR(pg_catalog.=) 'internal' AND p.prosrc OPERATOR(pg_catalog.~) '^(multirange_constructor[0-2]|range_constructor[23])$',
  p.prosecdef, p.oid OPERATOR(pg_catalog.<) 16384, coalesce(e.extname::pg_catalog.text, ''),
  named.direct AND ('{2275,2281}'::pg_catalog.oid[] OPERATOR(pg_catalog.&&) p.proargtypes::pg_catalog.oid[])
FROM named
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) named.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
LEFT JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.objid OPERATOR(pg_catalog.=) p.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'
LEFT JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
WHERE p.oid OPERATOR(pg_catalog.>=) 16384 OR p.provolatile OPERATOR(pg_catalog.=) 'v' OR p.proname OPERATOR(pg_catalog.=) ANY ($6::pg_catalog.name[])
  OR named.direct AND ('{2275,2281}'::pg_catalog.oid[] OPERATOR(pg_catalog.&&) p.proargtypes::pg_catalog.oid[])
ORDER BY 1, 2, 3
