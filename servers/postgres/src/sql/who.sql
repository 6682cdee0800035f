SELECT pg_catalog.bool_or(r.rolsuper),
  coalesce((SELECT pg_catalog.min(g.rolname::pg_catalog.text) FROM pg_catalog.pg_roles g
    WHERE g.rolname OPERATOR(pg_catalog.=) ANY ('{pg_execute_server_program,pg_read_server_files,pg_write_server_files}')
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))), ''),
  EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE c.relkind OPERATOR(pg_catalog.=) ANY ('{r,p,v,m,S,f}') AND pg_catalog.left(n.nspname::pg_catalog.text, 3) OPERATOR(pg_catalog.<>) 'pg_' AND n.nspname OPERATOR(pg_catalog.<>) 'information_schema'
    AND (pg_catalog.pg_has_role(session_user, c.relowner, 'MEMBER') OR pg_catalog.pg_has_role(current_user, c.relowner, 'MEMBER')))
  OR EXISTS (SELECT FROM pg_catalog.pg_database d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    AND (pg_catalog.pg_has_role(session_user, d.datdba, 'MEMBER') OR pg_catalog.pg_has_role(current_user, d.datdba, 'MEMBER'))),
  pg_catalog.bool_or(r.rolsuper) OR EXISTS (SELECT FROM pg_catalog.pg_roles g WHERE g.rolname OPERATOR(pg_catalog.=) 'pg_read_all_settings'
    AND (pg_catalog.pg_has_role(session_user, g.oid, 'MEMBER') OR pg_catalog.pg_has_role(current_user, g.oid, 'MEMBER'))),
  pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_encoding'),
  pg_catalog.pg_backend_pid()
FROM pg_catalog.pg_roles r WHERE r.rolname OPERATOR(pg_catalog.=) ANY (ARRAY[session_user, current_user])
