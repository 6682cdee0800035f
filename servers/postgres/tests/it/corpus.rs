//! What is vetted without a grammar must not refuse what only reads: a corpus of statements in many styles, each of which the server
//! itself accepts, and the few that are refused all the same, with the reason.

use crate::common;

use common::{Cluster, call, connect};
use serde_json::json;

const DATA: &str = "
CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader;
CREATE TYPE mood AS ENUM ('low', 'fair', 'high');
CREATE TYPE span AS (first int, last int);
CREATE TYPE floatrange AS RANGE (subtype = float8, subtype_diff = float8mi);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE DOMAIN shortname AS text COLLATE \"C\" CHECK (char_length(VALUE) < 20);
CREATE TABLE emp (id int PRIMARY KEY, name shortname NOT NULL, dept text, boss int REFERENCES emp, pay numeric(10,2), hired date,
  tags text[], feel mood DEFAULT 'fair', doc jsonb, reach int4range, twice numeric GENERATED ALWAYS AS (pay * 2) STORED);
INSERT INTO emp VALUES
  (1, 'Ann', 'ops', NULL, 900, '2019-01-05', '{a,b}', 'high', '{\"k\": [1, 2, {\"x\": \"y\"}], \"n\": null}', '[1,9)'),
  (2, 'Bob', 'ops', 1, 500, '2020-02-29', '{b}', 'low', '{\"k\": []}', '[3,5]'),
  (3, 'Cid', 'dev', 1, 700, '2021-07-01', NULL, 'fair', NULL, NULL),
  (4, 'Dee', 'dev', 3, 650, '2022-12-31', '{}', 'fair', '{\"k\": 7}', 'empty');
CREATE TABLE dept (dept text PRIMARY KEY, city text, \"Mixed Case\" int DEFAULT 1, \"select\" int DEFAULT 2);
INSERT INTO dept (dept, city) VALUES ('ops', 'Oslo'), ('dev', 'Bern'), ('law', NULL);
CREATE TABLE points (at point, box box, line lseg, circle circle);
INSERT INTO points VALUES ('(1,2)', '(0,0),(3,3)', '[(0,0),(1,1)]', '<(0,0),2>');
CREATE TABLE texts (id int, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED);
INSERT INTO texts VALUES (1, 'The quick brown foxes jumped'), (2, 'over the lazy dogs');
CREATE INDEX ON texts USING gin (words);
CREATE TABLE parent (i int, t text); CREATE TABLE child (extra int) INHERITS (parent);
INSERT INTO parent VALUES (1, 'p'); INSERT INTO child VALUES (2, 'c', 3);
CREATE TABLE parts (i int, v text) PARTITION BY RANGE (i);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10); CREATE TABLE parts_2 PARTITION OF parts DEFAULT;
INSERT INTO parts VALUES (1, 'one'), (50, 'fifty');
CREATE TABLE secrets (who text, what text); INSERT INTO secrets VALUES ('reader', 'mine'), ('other', 'theirs');
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON secrets USING (who = current_user);
CREATE VIEW staff AS SELECT e.name, d.city FROM emp e JOIN dept d USING (dept);
CREATE VIEW chain AS WITH RECURSIVE up AS (SELECT id, boss, 0 AS depth FROM emp UNION ALL
  SELECT up.id, e.boss, depth + 1 FROM up JOIN emp e ON e.id = up.boss) SELECT * FROM up;
CREATE MATERIALIZED VIEW pay_by_dept AS SELECT dept, sum(pay) AS pay FROM emp GROUP BY dept;
CREATE FUNCTION add_up(a int, b int DEFAULT 10) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
CREATE FUNCTION names_of(d text) RETURNS TABLE (n text, p numeric) LANGUAGE sql STABLE AS 'SELECT name, pay FROM emp WHERE dept = d';
CREATE FUNCTION grade(e emp) RETURNS text LANGUAGE sql STABLE AS $$SELECT CASE WHEN e.pay > 600 THEN 'A' ELSE 'B' END$$;
CREATE FUNCTION many(VARIADIC xs int[]) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT sum(x) FROM unnest(xs) x';
CREATE FUNCTION looped(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$DECLARE s int := 0; BEGIN FOR i IN 1..n LOOP s := s + i; END LOOP; RETURN s; END$$;
CREATE FUNCTION span_length(s span) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT s.last - s.first';
CREATE FUNCTION span_close(a span, b span) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT abs(a.first - b.first) < 3';
CREATE OPERATOR <~> (LEFTARG = span, RIGHTARG = span, FUNCTION = span_close, COMMUTATOR = <~>);
CREATE FUNCTION keep_longest(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT CASE WHEN length(b) > coalesce(length(a), 0) THEN b ELSE a END';
CREATE AGGREGATE longest(text) (SFUNC = keep_longest, STYPE = text);
CREATE COLLATION plain (provider = libc, locale = 'C');
CREATE SCHEMA \"Other Place\"; CREATE TABLE \"Other Place\".\"T\" (\"a.b\" int); INSERT INTO \"Other Place\".\"T\" VALUES (1);
CREATE EXTENSION hstore; CREATE EXTENSION pg_trgm; CREATE EXTENSION citext; CREATE EXTENSION intarray; CREATE EXTENSION ltree;
CREATE EXTENSION cube; CREATE EXTENSION fuzzystrmatch; CREATE EXTENSION unaccent; CREATE EXTENSION pgcrypto; ANALYZE;
";

/// From which major version on, and the statement.
const READS: [(u32, &str); 162] = [
    // Lists, aliases, literals.
    (0, "SELECT"),
    (0, "select 1 as one, 2 two, 3 \"three four\""),
    (0, "SELECT ALL * FROM dept"),
    (0, "TABLE dept"),
    (0, "VALUES (1, lower('A')), (2, NULL)"),
    (0, "VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC LIMIT 1"),
    (0, "((SELECT 1) UNION ALL (VALUES (2))) ORDER BY 1"),
    (0, "SELECT d.* FROM dept AS d (a, b, c, d)"),
    (0, "SELECT \"Mixed Case\", \"select\" FROM dept WHERE \"dept\".\"city\" IS NOT NULL"),
    (0, "SELECT \"T\".\"a.b\" FROM \"Other Place\".\"T\""),
    (0, "SELECT postgres.public.emp.name FROM postgres.public.emp"),
    (0, "SELECT 'it''s', E'tab\\there', E'\\u00e9\\x41\\101', $$do$$, $tag$a $$ b; delete from x$tag$"),
    (0, "SELECT U&'d\\0061t\\+000061', U&'d!0061t' UESCAPE '!'"),
    (0, "SELECT 'one'\n  'two' -- and\n 'three'"),
    (0, "SELECT B'1010', X'1F', N'national', 1., .5, 1e10, 1.5E-3"),
    (0, "SELECT - 1, + 2, -(-3), @ -5, |/ 25.0, ||/ 27.0, ~ 5, 2 ^ 10, 5 % 3, 5 # 3, 1 << 4"),
    (0, "SELECT /* outer /* inner ; update */ still */ 1 -- insert into\n, 2"),
    (0, "SELECT 1 /* multi\nline */ + /**/ 2;;"),
    (0, "SELECT true AND NOT false OR NULL, true IS UNKNOWN, (1 = 1) IS NOT FALSE"),
    (
        0,
        "SELECT DATE '2020-02-29', TIME '04:05', TIMESTAMP '2020-01-01 00:00', INTERVAL '1' YEAR, interval '2 days' day to second",
    ),
    (
        0,
        "SELECT current_date IS NOT NULL, current_timestamp(0) IS NOT NULL, localtime IS NOT NULL, current_user, session_user",
    ),
    (0, "SELECT current_schema, current_catalog, current_role, user"),
    // Conditions.
    (0, "SELECT * FROM emp WHERE pay BETWEEN SYMMETRIC 700 AND 500 AND name NOT LIKE '_o%' ESCAPE '!'"),
    (0, "SELECT name FROM emp WHERE name ILIKE 'a%' OR name SIMILAR TO '(B|C)%' OR name ~* '^d' OR name !~ 'x'"),
    (
        0,
        "SELECT name FROM emp WHERE dept IN ('ops', 'law') AND id NOT IN (SELECT boss FROM emp WHERE boss IS NOT NULL)",
    ),
    (
        0,
        "SELECT name FROM emp WHERE pay >= ALL (SELECT pay FROM emp) OR pay = ANY (ARRAY[500, 650]) OR id = SOME ('{3}'::int[])",
    ),
    (0, "SELECT name FROM emp WHERE (dept, pay) = ('ops', 500) OR ROW(id, dept) IN (SELECT 3, 'dev')"),
    (0, "SELECT name FROM emp WHERE boss IS DISTINCT FROM 1 AND tags IS NOT NULL"),
    (0, "SELECT name FROM emp e WHERE EXISTS (SELECT FROM emp WHERE boss = e.id)"),
    (0, "SELECT CASE dept WHEN 'ops' THEN 1 WHEN 'dev' THEN 2 END, CASE WHEN pay > 600 THEN 'a' ELSE 'b' END FROM emp"),
    (0, "SELECT COALESCE(boss, 0), NULLIF(dept, 'ops'), GREATEST(1, 2, id), LEAST(id, 2) FROM emp"),
    (0, "SELECT * FROM emp WHERE tags && ARRAY['a'] OR tags @> '{b}' OR 'b' = ANY (tags)"),
    (0, "SELECT (date '2020-01-01', date '2020-02-01') OVERLAPS (date '2020-01-15', interval '1 month')"),
    (0, "SELECT 'a' < 'b' COLLATE \"C\", 'a' COLLATE plain = 'A', name COLLATE pg_catalog.\"C\" FROM emp"),
    (13, "SELECT '<a/>' IS DOCUMENT, 'ab' IS NORMALIZED, normalize('e\\u0301', NFC)"),
    // Joins.
    (0, "SELECT * FROM emp JOIN dept USING (dept)"),
    (0, "SELECT * FROM emp NATURAL JOIN dept"),
    (0, "SELECT e.name, b.name FROM emp e LEFT OUTER JOIN emp b ON b.id = e.boss"),
    (0, "SELECT * FROM emp e FULL JOIN dept d ON e.dept = d.dept RIGHT JOIN (VALUES (1)) v(x) ON true"),
    (0, "SELECT count(*) FROM emp CROSS JOIN dept, parts"),
    (0, "SELECT * FROM (emp e JOIN dept d USING (dept)) AS j (k)"),
    (0, "SELECT e.name, l.n FROM emp e, LATERAL (SELECT count(*) AS n FROM emp WHERE boss = e.id) l"),
    (0, "SELECT e.name, t.* FROM emp e LEFT JOIN LATERAL unnest(e.tags) WITH ORDINALITY AS t (tag, at) ON true"),
    (0, "SELECT * FROM ONLY parent UNION ALL SELECT i, t FROM child"),
    (0, "SELECT * FROM parent * WHERE i > 0"),
    (0, "SELECT tableoid::regclass, ctid, xmin IS NOT NULL, * FROM parts"),
    (14, "SELECT x.dept FROM emp JOIN dept USING (dept) AS x"),
    // Grouping, windows, sets.
    (
        0,
        "SELECT dept, count(*), sum(pay) FILTER (WHERE pay > 600), avg(DISTINCT pay) FROM emp GROUP BY dept HAVING count(*) > 1",
    ),
    (0, "SELECT dept, feel, count(*), grouping(dept, feel) FROM emp GROUP BY GROUPING SETS ((dept, feel), (dept), ())"),
    (0, "SELECT dept, feel, count(*) FROM emp GROUP BY ROLLUP (dept, feel) ORDER BY 1 NULLS FIRST, 2 NULLS LAST"),
    (0, "SELECT dept, feel, count(*) FROM emp GROUP BY CUBE (dept, feel), id"),
    (14, "SELECT dept, count(*) FROM emp GROUP BY DISTINCT ROLLUP (dept), ROLLUP (dept, feel)"),
    (
        0,
        "SELECT string_agg(name, ', ' ORDER BY name DESC), array_agg(id), json_agg(name), jsonb_object_agg(name, pay) FROM emp",
    ),
    (
        0,
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY pay), mode() WITHIN GROUP (ORDER BY dept), rank(600) WITHIN GROUP (ORDER BY pay) FROM emp",
    ),
    (
        0,
        "SELECT bool_and(pay > 0), every(id > 0), bit_or(id), stddev_samp(pay), corr(id, pay), regr_slope(pay, id) FROM emp",
    ),
    (
        0,
        "SELECT name, rank() OVER (PARTITION BY dept ORDER BY pay DESC), lag(pay, 1, 0.0) OVER w, ntile(2) OVER w FROM emp WINDOW w AS (ORDER BY hired)",
    ),
    (0, "SELECT sum(pay) OVER (ORDER BY hired ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM emp"),
    (0, "SELECT sum(pay) OVER (ORDER BY hired RANGE BETWEEN '1 year' PRECEDING AND UNBOUNDED FOLLOWING) FROM emp"),
    (
        0,
        "SELECT first_value(name) OVER (w GROUPS 1 PRECEDING), nth_value(name, 2) OVER (w) FROM emp WINDOW w AS (PARTITION BY dept ORDER BY id)",
    ),
    (0, "SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept, pay DESC"),
    (0, "SELECT dept FROM emp INTERSECT SELECT dept FROM dept EXCEPT ALL SELECT 'law'"),
    (0, "SELECT * FROM emp ORDER BY pay USING >, name ASC OFFSET 1 ROW FETCH FIRST 2 ROWS ONLY"),
    (13, "SELECT * FROM emp ORDER BY dept FETCH NEXT ROW WITH TIES"),
    (
        0,
        "SELECT longest(name), (SELECT max(l) FROM (SELECT longest(name) OVER (ORDER BY id) AS l FROM emp) q) FROM emp",
    ),
    // WITH.
    (0, "WITH a AS (SELECT 1 AS x), b (y) AS (SELECT x + 1 FROM a) SELECT * FROM a, b"),
    (0, "WITH RECURSIVE n (i) AS (VALUES (1) UNION SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n"),
    (0, "WITH a AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (SELECT 2) TABLE a UNION TABLE b"),
    (
        14,
        "WITH RECURSIVE t AS (SELECT id, boss FROM emp UNION ALL SELECT e.id, e.boss FROM emp e JOIN t ON e.boss = t.id) SEARCH DEPTH FIRST BY id SET o CYCLE id SET is_cycle USING path SELECT * FROM t",
    ),
    (0, "SELECT (WITH x AS (SELECT 2 AS two) SELECT two FROM x) + 1"),
    // Casts and types.
    (0, "SELECT CAST('7' AS positive), '12'::int8::text, int4 '5', 'x'::char(3), '1.5'::numeric(5, 2), float8 '1e3'"),
    (0, "SELECT '5'::double precision, '1'::bit varying(3), '10:00+02'::time with time zone, 'a'::character varying"),
    (
        0,
        "SELECT 'emp'::regclass, 'int4'::regtype, 'lower(text)'::regprocedure, '+(int4,int4)'::regoperator, 'public'::regnamespace",
    ),
    (0, "SELECT 'high'::mood > 'low', enum_range(NULL::mood), enum_first('low'::mood)"),
    (0, "SELECT ROW(1, 5)::span, (ROW(1, 5)::span).last, span_length((2, 9)::span), ((3, 4)::span).*"),
    (0, "SELECT (1, 2)::span <~> (2, 9)::span, (1, 2)::span OPERATOR(public.<~>) (7, 8)::span"),
    (0, "SELECT 'shorty'::shortname, NULL::positive, ARRAY[1, 2]::positive[]"),
    (0, "SELECT pg_typeof(1 + 1.5), pg_typeof(NULL), pg_typeof('x'::unknown)"),
    (0, "SELECT text(5), int4(3.7), bpchar('x'), date('2020-01-01'), timestamptz('2020-01-01')"),
    (
        0,
        "SELECT 12::money, '$1,000.50'::money / 2, '192.168.0.1/24'::inet >>= '192.168.0.7', host('10.1.2.3'::inet), macaddr '08:00:2b:01:02:03'",
    ),
    (
        0,
        "SELECT '550e8400-e29b-41d4-a716-446655440000'::uuid, '\\xDEADBEEF'::bytea, decode('AQI=', 'base64'), encode('abc', 'hex')",
    ),
    // Arrays.
    (0, "SELECT (ARRAY[[1, 2], [3, 4]])[2][1], (ARRAY[1, 2, 3])[2:3], ('{1,2}'::int[])[:1], '[0:1]={5,6}'::int[]"),
    (
        0,
        "SELECT array_append(tags, 'z'), tags || '{q}', cardinality(tags), array_to_string(tags, '-'), array_position(tags, 'b') FROM emp",
    ),
    (0, "SELECT unnest(ARRAY[1, 2]), generate_subscripts('{a,b}'::text[], 1)"),
    (0, "SELECT ARRAY(SELECT id FROM emp ORDER BY id), array_dims('{{1},{2}}'::int[]), array_fill(0, ARRAY[2, 2])"),
    (0, "SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) AS u (n, t)"),
    (0, "SELECT '{1,2,3}'::int[] & '{2}', icount('{1,2}'), sort('{3,1}'::int[])"),
    // JSON.
    (
        0,
        "SELECT doc -> 'k' -> 0, doc ->> 'n', doc #> '{k,2,x}', doc #>> '{k,2}', doc ? 'k', doc ?| ARRAY['a'], doc ?& '{k,n}' FROM emp",
    ),
    (
        0,
        "SELECT doc @> '{\"k\": 7}', doc - 'k', doc #- '{k,0}', doc || '{\"z\": 1}', jsonb_set(doc, '{k}', '1') FROM emp",
    ),
    (0, "SELECT jsonb_path_query(doc, '$.k[*] ? (@ > 1)'), doc @? '$.k', doc @@ '$.k == 7' FROM emp"),
    (0, "SELECT jsonb_path_query_array('[1,2,3]', 'strict $[*] ? (@ >= $min)', '{\"min\": 2}', silent => true)"),
    (
        0,
        "SELECT key, value FROM jsonb_each('{\"a\": 1, \"b\": {\"c\": 2}}') UNION ALL SELECT key, to_jsonb(value) FROM json_each_text('{\"a\": \"x\"}')",
    ),
    (0, "SELECT * FROM jsonb_to_recordset('[{\"a\": 1, \"b\": \"x\"}]') AS t (a int, b text)"),
    (0, "SELECT * FROM json_populate_record(NULL::span, '{\"first\": 1, \"last\": 2}')"),
    (
        0,
        "SELECT row_to_json(e), to_jsonb(e) - 'doc', jsonb_build_object('a', 1, 'b', ARRAY[2]), jsonb_pretty(doc) FROM emp e",
    ),
    (14, "SELECT doc['k'][2]['x'] FROM emp"),
    (16, "SELECT JSON_OBJECT('a': 1, 'b': 2 ABSENT ON NULL), JSON_ARRAY(1, 2, NULL NULL ON NULL), '{}' IS JSON OBJECT"),
    (17, "SELECT * FROM JSON_TABLE('[{\"a\": 1}]', '$[*]' COLUMNS (n FOR ORDINALITY, a int PATH '$.a')) AS j"),
    (
        17,
        "SELECT JSON_VALUE('{\"a\": 1}', '$.a' RETURNING int DEFAULT 0 ON EMPTY), JSON_EXISTS('{}', '$.a'), JSON_QUERY('[1]', '$' WITH WRAPPER)",
    ),
    // Ranges, geometry, full text, XML.
    (
        0,
        "SELECT int4range(1, 5) @> 3, '[1,2)'::numrange && numrange(1.5, 4), reach * '[2,4]', upper(reach), isempty(reach) FROM emp",
    ),
    (
        0,
        "SELECT daterange('2020-01-01', NULL, '[]') -|- '(,2020-01-01)', '[1.5,2)'::floatrange, floatrange(1, 2, '[]'), range_merge('[1,2)'::int4range, '[5,6)')",
    ),
    (
        14,
        "SELECT '{[1,3),[5,7)}'::int4multirange + '{[2,6)}', int4multirange(int4range(1, 2)), unnest('{[1,3)}'::int4multirange), range_agg(reach), floatmultirange(floatrange(1, 2)) FROM emp",
    ),
    (
        0,
        "SELECT at <-> '(0,0)', box # '(1,1),(2,2)', @@ circle, line ?# '[(0,1),(1,0)]', at <@ box, # '((0,0),(1,1))'::path, @-@ line FROM points",
    ),
    (
        0,
        "SELECT point(1, 2) + point '(3,4)', box(point(0, 0), point(1, 1)), area(circle), center(box), circle '<(0,0),1>' ~= circle FROM points",
    ),
    (
        0,
        "SELECT id, ts_rank(words, q), ts_headline('english', body, q) FROM texts, to_tsquery('english', 'fox & !dog | jump:*') q WHERE words @@ q",
    ),
    (
        0,
        "SELECT websearch_to_tsquery('\"quick brown\" -dog'), 'a:1A b:2'::tsvector || 'c:1', setweight(words, 'B'), strip(words) FROM texts",
    ),
    (
        0,
        "SELECT phraseto_tsquery('lazy dogs') <-> 'x'::tsquery, tsquery 'a & b' && 'c', !! 'x'::tsquery, numnode('a & b'::tsquery)",
    ),
    (0, "SELECT * FROM ts_debug('simple', 'a b') LIMIT 1"),
    (
        0,
        "SELECT XMLELEMENT(NAME a, XMLATTRIBUTES(1 AS b), 'x'), XMLFOREST(1 AS c), XMLCONCAT('<a/>', '<b/>'), XMLPARSE(CONTENT 'x<y/>')",
    ),
    (
        0,
        "SELECT xpath('/a/b/text()', '<a><b>x</b></a>'), XMLEXISTS('//b' PASSING BY VALUE '<a><b/></a>'), XMLSERIALIZE(CONTENT '<a/>'::xml AS text)",
    ),
    (
        0,
        "SELECT t.* FROM XMLTABLE('/r/i' PASSING '<r><i n=\"1\">x</i></r>' COLUMNS o FOR ORDINALITY, n int PATH '@n', v text PATH 'text()') AS t",
    ),
    (
        0,
        "SELECT XMLAGG(XMLELEMENT(NAME n, name) ORDER BY id), XMLPI(NAME php, 'x'), XMLROOT('<a/>', VERSION '1.0', STANDALONE YES) FROM emp",
    ),
    // Functions in every form.
    (
        0,
        "SELECT EXTRACT(EPOCH FROM hired), extract(isodow from hired), date_part('year', hired), date_trunc('month', hired) FROM emp",
    ),
    (0, "SELECT SUBSTRING('abcdef' FROM 2 FOR 3), OVERLAY('abc' PLACING 'X' FROM 2), POSITION('b' IN 'abc')"),
    (
        0,
        "SELECT TRIM(BOTH 'x' FROM 'xax'), trim(leading from ' a'), trim('  b '), btrim('zbz', 'z'), lpad('1', 3, '0'), 'a' || 1 || NULL",
    ),
    (
        0,
        "SELECT timestamptz '2020-01-01 00:00+00' AT TIME ZONE 'Europe/Oslo', timezone('UTC', now()) IS NOT NULL, age(date '2021-01-01', date '2020-01-01')",
    ),
    (
        0,
        "SELECT format('%s %I %L %1$s', 'a', 'b c', 'd''e'), concat_ws('-', 1, NULL, 2), quote_literal('x'), to_char(1234.5, 'FM9,999.00')",
    ),
    (
        0,
        "SELECT regexp_replace('abc', '(b)', '<\\1>', 'g'), regexp_matches('a1b2', '\\d', 'g'), split_part('a,b', ',', 2), string_to_array('a,b', ',')",
    ),
    (0, "SELECT add_up(1), add_up(1, 2), add_up(a => 1, b => 2), add_up(1, b := 5), looped(10)"),
    (
        0,
        "SELECT many(1, 2, 3), many(VARIADIC ARRAY[4, 5]), num_nonnulls(1, NULL), greatest(VARIADIC_FREE, 1) FROM (SELECT 2 AS VARIADIC_FREE) q",
    ),
    (0, "SELECT n.n, n.p FROM names_of('dev') n"),
    (0, "SELECT e.grade, grade(e), (e).grade, e.name FROM emp e"),
    (0, "SELECT * FROM ROWS FROM (generate_series(1, 3), unnest('{a,b}'::text[])) WITH ORDINALITY AS r (n, t, at)"),
    (0, "SELECT generate_series('2020-01-01'::timestamp, '2020-01-03', '1 day'), width_bucket(5.0, 0, 10, 5)"),
    (
        0,
        "SELECT random() >= 0, gen_random_uuid() IS NOT NULL, clock_timestamp() >= now(), pg_backend_pid() > 0, version() LIKE 'Postgre%'",
    ),
    (0, "SELECT md5('a'), sha256('a'), hashtext('a') IS NOT NULL, digest('a', 'sha1'), crypt('a', '$1$saltsalt')"),
    (
        0,
        "SELECT similarity('word', 'words'), 'word' % 'words', 'a' <-> 'b', levenshtein('a', 'b'), soundex('x'), unaccent('é')",
    ),
    (
        0,
        "SELECT 'a=>1'::hstore -> 'a', 'a=>1, b=>2'::hstore ?& '{a,b}', hstore('k', 'v') || 'x=>y', akeys('a=>1'), each('a=>1')",
    ),
    (0, "SELECT 'a.b.c'::ltree <@ 'a.b', 'a.b'::ltree ~ '*.b', subpath('a.b.c', 1), nlevel('a.b')"),
    (0, "SELECT cube(ARRAY[1, 2]) @> cube(1, 1), cube_dim('(1,2)'), 'Abc'::citext = 'aBC', 'x'::citext LIKE 'X'"),
    (0, "SELECT setseed_is_not_here FROM (SELECT 1 AS setseed_is_not_here) q"),
    (0, "SELECT (SELECT max(pay) FROM emp) - pay AS gap, ARRAY(VALUES (1), (2)) FROM emp"),
    (0, "SELECT nullif(count(*), 0) FROM emp TABLESAMPLE SYSTEM (50) REPEATABLE (7)"),
    (0, "SELECT count(*) FROM emp TABLESAMPLE bernoulli (100)"),
    (13, "SELECT num_nulls(NULL, 1), gcd(12, 8), lcm(4, 6), trim_scale(1.500), min_scale(1.20)"),
    (
        14,
        "SELECT date_bin('15 min', timestamp '2020-01-01 00:20', timestamp '2000-01-01'), string_to_table('a,b', ','), bit_count(B'101')",
    ),
    (
        15,
        "SELECT regexp_count('abab', 'a'), regexp_like('a', 'A', 'i'), regexp_substr('abc', 'b.'), unistr('d\\0061t')",
    ),
    (
        16,
        "SELECT any_value(name), array_shuffle('{1}'::int[]), array_sample('{1}'::int[], 1), random_normal() IS NOT NULL FROM emp",
    ),
    // Views, policies, partitions, inheritance, other objects.
    (0, "SELECT * FROM staff WHERE city LIKE 'O%'"),
    (0, "SELECT max(depth) FROM chain"),
    (0, "SELECT * FROM pay_by_dept"),
    (0, "SELECT what FROM secrets"),
    (0, "SELECT i FROM parts WHERE i < 10"),
    (0, "SELECT twice, feel FROM emp WHERE feel >= 'fair'"),
    (0, "SELECT whole FROM emp whole"),
    (0, "SELECT (emp).name, (emp.reach), emp.*::text FROM emp"),
    // The catalogue.
    (
        0,
        "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND relkind = 'r'",
    ),
    (0, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"),
    (0, "SELECT pg_get_viewdef('staff'::regclass, true), pg_get_indexdef(indexrelid) FROM pg_index LIMIT 2"),
    (
        0,
        "SELECT pg_size_pretty(pg_total_relation_size('emp')), obj_description('emp'::regclass), col_description('emp'::regclass, 1)",
    ),
    (0, "SELECT pid, state FROM pg_stat_activity WHERE pid = pg_backend_pid()"),
    (0, "SELECT has_table_privilege('emp', 'select'), pg_table_is_visible('emp'::regclass), to_regclass('nothing')"),
    (0, "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'emp'"),
    (0, "SELECT datname, pg_encoding_to_char(encoding) FROM pg_database"),
    (0, "SELECT name, setting FROM pg_settings WHERE name = 'work_mem'"),
    (0, "SELECT current_setting('work_mem'), current_setting('not.there', true)"),
    // Words that look like more than they are.
    (
        0,
        "SELECT key, share, lock, value, no, copy, call, begin, \"end\" FROM (SELECT 1 AS key, 2 AS share, 3 AS lock, 4 AS value, 5 AS no, 6 AS copy, 7 AS call, 8 AS begin, 9 AS \"end\") q",
    ),
    (0, "SELECT 'DROP TABLE emp; COMMIT' AS \"delete from emp; --\""),
    (0, "SELECT substring('for update' for 3), 'into' AS a, overlay('abc' placing 'x' from 1 for 1)"),
    (0, "EXPLAIN (COSTS OFF, FORMAT JSON) SELECT * FROM emp JOIN dept USING (dept)"),
    (0, "EXPLAIN VERBOSE WITH a AS (SELECT 1) TABLE a"),
    (0, "SHOW search_path"),
    (0, "SHOW TIME ZONE"),
];

/// What only reads and is refused all the same, and what of the reason the message names.
const REFUSED: [(u32, &str, &str); 12] = [
    // Versions, and the setting `standard_conforming_strings`, read these differently.
    (0, "SELECT U&\"d\\0061t\" FROM (SELECT 1 AS dat) q", "U&"),
    (0, "SELECT E'a'\n'b'", "continue"),
    (16, "SELECT 1_000", "without underscores"),
    (16, "SELECT 0xFF", "in decimal"),
    // It calls a function by the name of a type; views only.
    (0, "SELECT TREAT('1' AS int4)", "TREAT"),
    // Bare words that begin what changes something.
    (0, "SELECT update FROM (SELECT 1 AS update) q", "UPDATE"),
    (0, "SELECT merge FROM (SELECT 1 AS merge) q", "MERGE"),
    // It takes SQL as text.
    (0, "SELECT query_to_xml('SELECT 1', true, false, '')", "query_to_xml"),
    (0, "SELECT * FROM ts_stat('SELECT words FROM texts')", "ts_stat"),
    // They change the session or the server, or take time.
    (0, "SELECT set_config('work_mem', '5MB', true)", "set_config"),
    (0, "SELECT setseed(0.5)", "setseed"),
    (0, "SELECT pg_sleep(0)", "pg_sleep"),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: cargo xtask test --only postgres"]
async fn what_only_reads_is_answered() {
    let cluster = Cluster::start();
    cluster.sql(DATA);
    let client = connect(cluster.config("reader")).await;
    let mut wrong = Vec::new();
    let known = |since: u32| cluster.major() >= since;
    for (_, sql) in READS.iter().filter(|(since, _)| known(*since)) {
        let theirs = cluster.psql("reader", &format!("{sql};"));
        let (failed, text, _) = call(&client, "query", json!({ "sql": sql })).await;
        if let Err(why) = theirs {
            wrong.push(format!("the server refuses {sql}: {why}"));
        } else if failed {
            wrong.push(format!("{sql}: {text}"));
        }
    }
    for (_, sql, reason) in REFUSED.iter().filter(|(since, ..)| known(*since)) {
        let (failed, text, _) = call(&client, "query", json!({ "sql": sql })).await;
        if !failed || !text.contains(reason) || !text.contains("Hint: ") || text.contains("SQLSTATE") {
            wrong.push(format!("{sql}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
