SELECT c.oid, c.modifier, pg_catalog.format_type(c.oid, c.modifier),
  CASE WHEN t.typinput OPERATOR(pg_catalog.=) 'pg_catalog.array_in'::pg_catalog.regproc THEN e.typdelim END,
  CASE WHEN e.typtype OPERATOR(pg_catalog.=) 'd' THEN e.typbasetype ELSE e.oid END
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[])) AS c(oid, modifier)
LEFT JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) c.oid LEFT JOIN pg_catalog.pg_type e ON e.oid OPERATOR(pg_catalog.=) t.typelem
