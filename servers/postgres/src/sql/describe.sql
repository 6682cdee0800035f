SELECT pg_catalog.json_strip_nulls(pg_catalog.json_build_object('schema', n.nspname, 'name', c.relname, 'kind', pg_catalog.jsonb_extract_path_text(
    '{"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table", "S": "sequence"}',
    c.relkind::pg_catalog.text),
  'owner', pg_catalog.pg_get_userbyid(c.relowner), 'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid OPERATOR(pg_catalog.=) c.oid AND about.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND about.objsubid OPERATOR(pg_catalog.=) 0),
  'estimated_rows', CASE WHEN c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,m}') AND c.reltuples OPERATOR(pg_catalog.>=) 0 THEN c.reltuples::pg_catalog.int8 END,
  'bytes', CASE WHEN c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m}') THEN pg_catalog.pg_total_relation_size(c.oid) END,
  'row_security', CASE WHEN c.relrowsecurity THEN true END,
  'partitioned_by', CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'p' THEN pg_catalog.pg_get_partkeydef(c.oid) END))::pg_catalog.text,
  (SELECT pg_catalog.json_strip_nulls(pg_catalog.json_agg(pg_catalog.json_build_object('name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
      'nullable', NOT a.attnotnull, 'default', pg_catalog.pg_get_expr(d.adbin, d.adrelid),
      'identity', pg_catalog.jsonb_extract_path_text('{"a": "always", "d": "by default"}', a.attidentity::pg_catalog.text),
      'generated', CASE WHEN a.attgenerated OPERATOR(pg_catalog.<>) '' THEN true END,
      'comment', (SELECT about.description FROM pg_catalog.pg_description about
    WHERE about.objoid OPERATOR(pg_catalog.=) c.oid AND about.classoid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass AND about.objsubid OPERATOR(pg_catalog.=) a.attnum)) ORDER BY a.attnum))::pg_catalog.text
    FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum
    WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', k.conname, 'kind', pg_catalog.jsonb_extract_path_text(
      '{"p": "primary key", "u": "unique", "f": "foreign key", "c": "check", "x": "exclusion"}', k.contype::pg_catalog.text),
      'definition', pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.contype DESC, k.conname)::pg_catalog.text
    FROM pg_catalog.pg_constraint k WHERE k.conrelid OPERATOR(pg_catalog.=) c.oid AND k.contype OPERATOR(pg_catalog.=) ANY ('{p,u,f,c,x}')),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('name', i.relname, 'definition', pg_catalog.pg_get_indexdef(i.oid),
      'valid', x.indisvalid) ORDER BY i.relname)::pg_catalog.text
    FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid OPERATOR(pg_catalog.=) x.indexrelid WHERE x.indrelid OPERATOR(pg_catalog.=) c.oid),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_object('table', k.conrelid::pg_catalog.regclass::pg_catalog.text, 'definition',
      pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.conname)::pg_catalog.text
    FROM pg_catalog.pg_constraint k WHERE k.confrelid OPERATOR(pg_catalog.=) c.oid AND k.contype OPERATOR(pg_catalog.=) 'f'),
  (SELECT pg_catalog.json_agg(pg_catalog.pg_get_triggerdef(t.oid) ORDER BY t.tgname)::pg_catalog.text
    FROM pg_catalog.pg_trigger t WHERE t.tgrelid OPERATOR(pg_catalog.=) c.oid AND NOT t.tgisinternal),
  CASE WHEN c.relkind OPERATOR(pg_catalog.=) ANY ('{v,m}') THEN pg_catalog.to_json(pg_catalog.pg_get_viewdef(c.oid, true))::pg_catalog.text END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.=) $3::pg_catalog.name AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,f,S}')
  AND CASE WHEN $2::pg_catalog.text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname OPERATOR(pg_catalog.=) $2::pg_catalog.name END
  AND ($1::pg_catalog.name[] OPERATOR(pg_catalog.=) '{}' OR n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]))
LIMIT 1
