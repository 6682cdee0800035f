SELECT f.why, (SELECT n.nspname::pg_catalog.text FROM pg_catalog.pg_namespace n WHERE n.oid OPERATOR(pg_catalog.=) f.pronamespace),
  f.proname::pg_catalog.text, f.provolatile::pg_catalog.text,
  (SELECT l.lanpltrusted OR f.prokind OPERATOR(pg_catalog.=) 'a' OR l.lanname OPERATOR(pg_catalog.=) 'internal'
      AND f.prosrc OPERATOR(pg_catalog.~) '^(multirange_constructor[0-2]|range_constructor[23])$'
    FROM pg_catalog.pg_language l WHERE l.oid OPERATOR(pg_catalog.=) f.prolang),
  f.prosecdef, f.oid OPERATOR(pg_catalog.<) 16384,
  coalesce((SELECT e.extname::pg_catalog.text FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND d.objid OPERATOR(pg_catalog.=) f.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'), ''),
  f.raw
FROM (
  SELECT '' AS why, p.*, '{2275,2281}'::pg_catalog.oid[] OPERATOR(pg_catalog.&&) p.proargtypes::pg_catalog.oid[] AS raw
  FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.name[])) AS called(schema, name)
  JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) called.name
  WHERE CASE WHEN called.schema OPERATOR(pg_catalog.=) '' THEN pg_catalog.pg_function_is_visible(p.oid)
    ELSE p.pronamespace OPERATOR(pg_catalog.=) (SELECT n.oid FROM pg_catalog.pg_namespace n
      WHERE n.nspname OPERATOR(pg_catalog.=) called.schema::pg_catalog.name) END
  UNION ALL
  SELECT 'a name after a dot', p.*, '{2275,2281}'::pg_catalog.oid[] OPERATOR(pg_catalog.&&) p.proargtypes::pg_catalog.oid[]
  FROM pg_catalog.pg_proc p
  WHERE p.proname OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.name[]) AND p.pronargs OPERATOR(pg_catalog.>) 0
    AND p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults OPERATOR(pg_catalog.<=) 1
    AND pg_catalog.pg_function_is_visible(p.oid)
  UNION ALL
  SELECT 'operator ' OPERATOR(pg_catalog.||) o.oprname, p.*, false
  FROM pg_catalog.pg_operator o
  CROSS JOIN LATERAL (SELECT q.* FROM pg_catalog.pg_proc q WHERE q.oid OPERATOR(pg_catalog.=) o.oprcode OFFSET 0) p
  WHERE o.oprname OPERATOR(pg_catalog.=) ANY ($4::pg_catalog.name[])
    AND ($5::pg_catalog.bool
      OR CASE WHEN p.oid OPERATOR(pg_catalog.=) o.oprcode THEN pg_catalog.pg_operator_is_visible(o.oid) END)
) AS f
WHERE f.oid OPERATOR(pg_catalog.>=) 16384 OR f.provolatile OPERATOR(pg_catalog.=) 'v'
  OR f.proname OPERATOR(pg_catalog.=) ANY ($6::pg_catalog.name[]) OR f.raw
ORDER BY 1, 2, 3
