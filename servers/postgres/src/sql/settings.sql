SELECT pg_catalog.set_config('statement_timeout', $1, true), pg_catalog.set_config('lock_timeout', $2, true),
  pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true),
  pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', $5::pg_catalog.text, CASE WHEN path OPERATOR(pg_catalog.<>) '' THEN path END), true),
  pg_catalog.set_config('standard_conforming_strings', 'on', true), pg_catalog.set_config('bytea_output', 'hex', true),
  pg_catalog.set_config('datestyle', 'ISO', true), pg_catalog.set_config('intervalstyle', 'postgres', true),
  pg_catalog.set_config('extra_float_digits', '1', true), pg_catalog.set_config('jit', 'off', true)
FROM coalesce($4, pg_catalog.current_setting('search_path')) AS path
