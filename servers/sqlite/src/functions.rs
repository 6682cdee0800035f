//! Functions of SQL whose time SQLite does not bound, made anew.
//!
//! SQLite looks at the clock between its steps, and a call of a function is one step. Searching as its own functions do it
//! takes text × pattern: minutes for what a value may hold. These give the same answers, and either take time in
//! proportion to their arguments or look at the clock themselves. What remains is bounded by [`GuardedConnection::fit`].

use memchr::{memchr, memchr2, memmem};
use rusqlite::functions::{Context, FunctionFlags, SqlFnOutput, SubType};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result, Statement, StatementStatus, ffi};
use std::borrow::Cow;

use crate::guard::{GuardedConnection, LIKE_BYTES_MAX, Policy, VALUE_BYTES_MAX, slowness};
use crate::pool;
use crate::query::Look;

/// Bytes that are worked on between two looks at the clock: some microseconds.
const CLOCK_BYTES: usize = 1 << 16;

/// Most that the lengths of the two arguments of `json_patch` may give when they are multiplied: it looks for each name of
/// one in all of the other. This is a second or less.
const PATCH_BYTES_SQUARED_MAX: usize = 2_000_000_000;

/// What JSON functions put on their results, so that others take them for JSON and not for a text.
const JSON_SUBTYPE: u32 = 74;

/// Bytes that the steps of a statement may go through in all, if each is done once and has values of the greatest length:
/// SQLite does not look up before it jumps back. This is some seconds.
const STEPS_BYTES_MAX: i64 = 4 << 30;

/// Bytes that a value may have in any statement, however many steps it has.
pub(crate) const STEP_BYTES_MIN: i32 = 1 << 20;

/// Bytes of a compiled statement that is too small for its steps to be counted.
const PROGRAM_BYTES_MIN: i32 = 8 << 10;

/// Puts these functions in the place of SQLite's own.
pub(crate) fn add(conn: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    conn.create_scalar_function("instr", 2, flags, |cx| instr(cx.get_raw(0), cx.get_raw(1)))?;
    conn.create_scalar_function("replace", 3, flags, replace)?;
    for (name, ends) in [("trim", Ends::BOTH), ("ltrim", Ends::LEFT), ("rtrim", Ends::RIGHT)] {
        conn.create_scalar_function(name, 2, flags, move |cx| trim(cx, ends))?;
    }
    conn.create_scalar_function("unhex", 2, flags, unhex)?;
    for arguments in [2, 3] {
        conn.create_scalar_function("like", arguments, flags, |cx| like(cx, &LIKE))?;
    }
    conn.create_scalar_function("glob", 2, flags, |cx| like(cx, &GLOB))?;
    let flags = flags | FunctionFlags::SQLITE_RESULT_SUBTYPE;
    conn.create_scalar_function("json_patch", 2, flags, |cx| patch(cx, "SELECT json_patch(?, ?)", Some(JSON_SUBTYPE)))?;
    conn.create_scalar_function("jsonb_patch", 2, flags, |cx| patch(cx, "SELECT jsonb_patch(?, ?)", None))
}

impl GuardedConnection {
    /// Bounds the values of what SQLite runs by itself while it prepares a statement: reading the schema it goes through
    /// `sqlite_stat1`, whose definition is the file's and may compute anything.
    pub(crate) fn unfit(&self) -> rusqlite::Result<()> {
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, STEP_BYTES_MIN).map(drop)
    }

    /// Bounds the values of a statement: the more steps it has, the shorter they are. Without that, a thousand columns that
    /// each join two long texts would take minutes in which nothing can stop them.
    pub(crate) fn fit(&self, statement: &Statement<'_>, sql: &str) -> rusqlite::Result<()> {
        let bytes = statement.get_status(StatementStatus::MemUsed);
        let small = bytes < PROGRAM_BYTES_MIN && !self.gate.slow();
        let steps = if small { 1 } else { self.steps(sql).unwrap_or(bytes / 64).max(1) }.max(self.hidden_steps());
        let most = i32::try_from(STEPS_BYTES_MAX / i64::from(steps)).unwrap_or(i32::MAX);
        let most = most.clamp(STEP_BYTES_MIN, VALUE_BYTES_MAX);
        self.conn.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).map(drop)
    }

    /// How many steps the programs may have that virtual tables run by themselves, as far as the longest definition of the
    /// schema tells: in a file made to do harm, their own tables may compute anything.
    fn hidden_steps(&self) -> i32 {
        const BYTES_PER_STEP: i64 = 16;
        if !self.gate.shadows() {
            return 1;
        }
        let policy = self.gate.policy();
        self.gate.set(Policy::Read);
        let longest =
            self.conn.query_row("SELECT max(octet_length(sql)) FROM main.sqlite_master", [], |row| row.get(0));
        self.gate.set(policy);
        longest.map_or(i32::MAX, |bytes: Option<i64>| {
            i32::try_from(bytes.unwrap_or(0) / BYTES_PER_STEP).unwrap_or(i32::MAX).max(1)
        })
    }

    /// How many steps the program of a statement has, with those of the triggers it sets off.
    fn steps(&self, sql: &str) -> Option<i32> {
        let look = Look::at(sql).filter(|look| !matches!(look.verb(), "EXPLAIN" | "PRAGMA"))?;
        let mut program = self.conn.prepare(&format!("EXPLAIN {}", &sql[look.start..])).ok()?;
        let (mut rows, mut steps) = (program.raw_query(), 0_i32);
        while let Some(row) = rows.next().ok()? {
            // A call is shown as `name(arguments)`.
            let detail = row.get::<_, Option<String>>(5).ok()?;
            let called = detail.as_deref().and_then(|detail| detail.split_once('('));
            steps = steps.saturating_add(called.and_then(|(name, _)| slowness(name)).unwrap_or(1));
        }
        Some(steps)
    }
}

/// Says when a call is over, in the middle of a function.
struct Clock {
    left: usize,
}

impl Clock {
    fn new() -> Clock {
        Clock { left: CLOCK_BYTES }
    }

    /// Counts bytes that were worked on.
    fn tick(&mut self, bytes: usize) -> Result<()> {
        if bytes < self.left {
            self.left -= bytes;
            return Ok(());
        }
        self.left = CLOCK_BYTES;
        if pool::is_over() { Err(failure(ffi::SQLITE_INTERRUPT, None)) } else { Ok(()) }
    }
}

fn failure(code: i32, message: Option<&str>) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), message.map(str::to_owned))
}

/// A text that need not be UTF-8, as SQLite's need not be.
struct Text(Vec<u8>);

impl ToSql for Text {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

/// A value as the text that SQLite makes of it; nothing for NULL.
fn text(value: ValueRef<'_>) -> Result<Option<Cow<'_, [u8]>>> {
    Ok(Some(match value {
        ValueRef::Null => return Ok(None),
        ValueRef::Integer(integer) => Cow::Owned(integer.to_string().into_bytes()),
        ValueRef::Real(_) => match ask("SELECT CAST(? AS TEXT)", &[value])? {
            Value::Text(text) => Cow::Owned(text.into_bytes()),
            _ => return Ok(None),
        },
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cow::Borrowed(bytes),
    }))
}

/// What an untouched SQLite says to this, for what is too odd to be done again and short enough to be let alone.
fn ask(sql: &str, values: &[ValueRef<'_>]) -> Result<Value> {
    thread_local! {
        static UNTOUCHED: Result<Connection> = Connection::open_in_memory();
    }
    UNTOUCHED.with(|conn| {
        let conn = conn.as_ref().map_err(|_| failure(ffi::SQLITE_NOMEM, None))?;
        let mut statement = conn.prepare(sql)?;
        for (index, value) in (1..).zip(values) {
            statement.raw_bind_parameter(index, ToSqlOutput::Borrowed(*value))?;
        }
        let mut rows = statement.raw_query();
        rows.next()?.map_or(Ok(Value::Null), |row| row.get(0))
    })
}

/// What SQLite sees of a text where it stops at the first NUL.
fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

/// The character at this place, which is moved behind it; 0 at the end. Bytes that are no UTF-8 are read as SQLite reads
/// them: leniently, and as many bytes that go on a character as there are.
fn next(bytes: &[u8], at: &mut usize) -> u32 {
    let Some(&first) = bytes.get(*at) else { return 0 };
    *at += 1;
    let mut code = u32::from(match first {
        ..0xc0 => return first.into(),
        0xc0..0xe0 => first & 0x1f,
        0xe0..0xf0 => first & 0x0f,
        0xf0..0xf8 => first & 0x07,
        0xf8..0xfc => first & 0x03,
        0xfc..0xfe => first & 0x01,
        0xfe.. => 0,
    });
    while let Some(&byte) = bytes.get(*at)
        && goes_on(byte)
    {
        code = (code << 6).wrapping_add(u32::from(byte & 0x3f));
        *at += 1;
    }
    if code < 0x80 || code & 0xffff_f800 == 0xd800 || code & 0xffff_fffe == 0xfffe { 0xfffd } else { code }
}

/// Whether a byte goes on a character that began before it.
fn goes_on(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Where a text begins in another, in characters from 1; in bytes if both are binary.
fn instr(hay: ValueRef<'_>, needle: ValueRef<'_>) -> Result<Option<i64>> {
    let binary = matches!((hay, needle), (ValueRef::Blob(_), ValueRef::Blob(_)));
    let (Some(hay), Some(needle)) = (text(hay)?, text(needle)?) else { return Ok(None) };
    Clock::new().tick(hay.len() + needle.len())?;
    // A text is found only where a character begins.
    let found = if !binary && needle.first().is_some_and(|first| goes_on(*first)) {
        hay.starts_with(&needle).then_some(0)
    } else {
        memmem::find(&hay, &needle)
    };
    let place = |at: usize| {
        let before = if binary || at == 0 { at } else { 1 + hay[1..at].iter().filter(|byte| !goes_on(**byte)).count() };
        i64::try_from(before + 1).unwrap_or(i64::MAX)
    };
    Ok(Some(found.map_or(0, place)))
}

/// A text with every occurrence of another one replaced.
fn replace(cx: &Context<'_>) -> Result<Option<Text>> {
    let (Some(whole), Some(old)) = (text(cx.get_raw(0))?, text(cx.get_raw(1))?) else { return Ok(None) };
    let mut clock = Clock::new();
    clock.tick(whole.len() + old.len())?;
    // SQLite looks at the first byte only, to know whether there is anything to look for.
    if matches!(old.first(), None | Some(0)) {
        return Ok(Some(Text(whole.into_owned())));
    }
    let Some(new) = text(cx.get_raw(2))? else { return Ok(None) };
    let mut out = Vec::with_capacity(whole.len());
    let mut done = 0;
    for at in memmem::find_iter(&whole, old.as_ref()) {
        clock.tick(at - done + new.len())?;
        out.extend_from_slice(&whole[done..at]);
        out.extend_from_slice(&new);
        done = at + old.len();
        if out.len() > VALUE_BYTES_MAX as usize {
            return Err(failure(ffi::SQLITE_TOOBIG, None));
        }
    }
    out.extend_from_slice(&whole[done..]);
    Ok(Some(Text(out)))
}

/// Which ends of a text are trimmed.
#[derive(Debug, Clone, Copy)]
struct Ends {
    left: bool,
    right: bool,
}

impl Ends {
    const BOTH: Ends = Ends { left: true, right: true };
    const LEFT: Ends = Ends { left: true, right: false };
    const RIGHT: Ends = Ends { left: false, right: true };
}

/// A text without the characters of a set at its ends.
fn trim(cx: &Context<'_>, ends: Ends) -> Result<Option<Text>> {
    let (Some(whole), Some(set)) = (text(cx.get_raw(0))?, text(cx.get_raw(1))?) else { return Ok(None) };
    let (mut rest, set) = (whole.as_ref(), until_nul(&set));
    let mut clock = Clock::new();
    clock.tick(rest.len() + set.len())?;
    if set.is_ascii() {
        let mut is_in = [false; 256];
        set.iter().for_each(|byte| is_in[usize::from(*byte)] = true);
        while ends.left && rest.first().is_some_and(|byte| is_in[usize::from(*byte)]) {
            rest = &rest[1..];
        }
        while ends.right && rest.last().is_some_and(|byte| is_in[usize::from(*byte)]) {
            rest = &rest[..rest.len() - 1];
        }
        return Ok(Some(Text(rest.to_vec())));
    }
    if ends.left {
        while !rest.is_empty()
            && let Some(length) = member(set, |member| rest.starts_with(member), &mut clock)?
        {
            rest = &rest[length..];
        }
    }
    if ends.right {
        while !rest.is_empty()
            && let Some(length) = member(set, |member| rest.ends_with(member), &mut clock)?
        {
            rest = &rest[..rest.len() - length];
        }
    }
    Ok(Some(Text(rest.to_vec())))
}

/// The length of the first character of a set that fits.
fn member(set: &[u8], fits: impl Fn(&[u8]) -> bool, clock: &mut Clock) -> Result<Option<usize>> {
    let mut at = 0;
    while at < set.len() {
        let start = at;
        next(set, &mut at);
        clock.tick(at - start)?;
        if fits(&set[start..at]) {
            return Ok(Some(at - start));
        }
    }
    Ok(None)
}

/// The bytes that hexadecimal digits stand for, with the characters of a set between them.
fn unhex(cx: &Context<'_>) -> Result<Option<Vec<u8>>> {
    let (Some(digits), Some(set)) = (text(cx.get_raw(0))?, text(cx.get_raw(1))?) else { return Ok(None) };
    let digits = until_nul(&digits);
    let mut clock = Clock::new();
    clock.tick(digits.len() + set.len())?;
    let value = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut out, mut at) = (Vec::with_capacity(digits.len() / 2), 0);
    while let Some(byte) = digits.get(at) {
        let Some(high) = value(*byte) else {
            if !contains(&set, next(digits, &mut at), &mut clock)? {
                return Ok(None);
            }
            continue;
        };
        let Some(low) = digits.get(at + 1).and_then(|byte| value(*byte)) else { return Ok(None) };
        out.push(high << 4 | low);
        at += 2;
    }
    Ok(Some(out))
}

fn contains(set: &[u8], wanted: u32, clock: &mut Clock) -> Result<bool> {
    let mut at = 0;
    while at < set.len() {
        let start = at;
        if next(set, &mut at) == wanted {
            return Ok(true);
        }
        clock.tick(at - start)?;
    }
    Ok(false)
}

/// JSON changed by a patch, by SQLite itself, if that will not take long.
fn patch(cx: &Context<'_>, sql: &str, subtype: SubType) -> Result<impl SqlFnOutput + use<>> {
    let length = |value: ValueRef<'_>| match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    let (target, patch) = (cx.get_raw(0), cx.get_raw(1));
    Clock::new().tick(length(target) + length(patch))?;
    if length(target).saturating_mul(length(patch)) > PATCH_BYTES_SQUARED_MAX {
        return Err(failure(ffi::SQLITE_TOOBIG, None));
    }
    let patched = ask(sql, &[target, patch])?;
    let subtype = subtype.filter(|_| patched != Value::Null);
    Ok((patched, subtype))
}

/// A language of patterns.
#[derive(Debug, Clone, Copy)]
struct Style {
    /// Stands for any characters; 0 for none.
    all: u32,
    /// Stands for one character; 0 for none.
    one: u32,
    /// Takes the meaning from the character behind it; 0 for none.
    escape: u32,
    /// Whether `[` begins a set of characters.
    sets: bool,
    /// Whether ASCII letters of both cases are the same.
    folds: bool,
}

const LIKE: Style = Style { all: '%' as u32, one: '_' as u32, escape: 0, sets: false, folds: true };
const GLOB: Style = Style { all: '*' as u32, one: '?' as u32, escape: 0, sets: true, folds: false };

/// Whether a text is like a pattern: `like(pattern, text)`, `like(pattern, text, escape)`, `glob(pattern, text)`.
fn like(cx: &Context<'_>, style: &Style) -> Result<Option<bool>> {
    let mut style = *style;
    let pattern = text(cx.get_raw(0))?;
    if pattern.as_ref().is_some_and(|pattern| pattern.len() > LIKE_BYTES_MAX) {
        return Err(failure(ffi::SQLITE_ERROR, Some("LIKE or GLOB pattern too complex")));
    }
    if cx.len() == 3 {
        let Some(escape) = text(cx.get_raw(2))? else { return Ok(None) };
        let (escape, mut end) = (until_nul(&escape), 0);
        style.escape = next(escape, &mut end);
        if escape.is_empty() || end < escape.len() {
            return Err(failure(ffi::SQLITE_ERROR, Some("ESCAPE expression must be a single character")));
        }
        for special in [&mut style.all, &mut style.one] {
            if *special == style.escape {
                *special = 0;
            }
        }
    }
    let (Some(pattern), Some(whole)) = (pattern, text(cx.get_raw(1))?) else { return Ok(None) };
    let mut clock = Clock::new();
    clock.tick(whole.len())?;
    style.matches(until_nul(&pattern), until_nul(&whole), &mut clock).map(Some)
}

impl Style {
    fn matches(&self, pattern: &[u8], text: &[u8], clock: &mut Clock) -> Result<bool> {
        let (mut p, mut t) = (0, 0);
        // What follows the last wildcard, and the place in the text where that was tried last. Earlier wildcards need not be
        // tried again: what follows them was found as early as can be.
        let mut again: Option<(usize, usize)> = None;
        loop {
            let start = t;
            let c = next(pattern, &mut p);
            let fits = if c == 0 {
                if t == text.len() {
                    return Ok(true);
                }
                false
            } else if c == self.all {
                if p == pattern.len() {
                    return Ok(true);
                }
                let Some(begin) = self.candidate(&pattern[p..], text, t) else { return Ok(false) };
                clock.tick(begin - t)?;
                t = begin;
                again = Some((p, t));
                true
            } else {
                self.fits(c, pattern, &mut p, text, &mut t)
            };
            clock.tick(t - start + 1)?;
            if fits {
                continue;
            }
            let Some((behind, tried)) = &mut again else { return Ok(false) };
            let mut at = *tried;
            if next(text, &mut at) == 0 {
                return Ok(false);
            }
            let Some(begin) = self.candidate(&pattern[*behind..], text, at) else { return Ok(false) };
            clock.tick(begin - *tried)?;
            *tried = begin;
            (p, t) = (*behind, begin);
        }
    }

    /// The first place from `at` on where a pattern could begin.
    fn candidate(&self, pattern: &[u8], text: &[u8], at: usize) -> Option<usize> {
        let first = *pattern.first()?;
        let code = u32::from(first);
        if !first.is_ascii() || [self.all, self.one, self.escape].contains(&code) || self.sets && first == b'[' {
            return Some(at);
        }
        let found = if self.folds {
            memchr2(first.to_ascii_lowercase(), first.to_ascii_uppercase(), &text[at..])
        } else {
            memchr(first, &text[at..])
        };
        found.map(|found| at + found)
    }

    /// Whether the next character of the text is what this one of the pattern stands for. Both are moved on.
    fn fits(&self, c: u32, pattern: &[u8], p: &mut usize, text: &[u8], t: &mut usize) -> bool {
        if self.sets && c == u32::from(b'[') {
            return in_set(pattern, p, next(text, t));
        }
        let (c, plain) = if c == self.escape { (next(pattern, p), true) } else { (c, false) };
        let found = next(text, t);
        // A pattern that ends with the escape character is like nothing.
        if c == 0 || found == 0 {
            return false;
        }
        let fold = |code: u32| u8::try_from(code).ok().filter(u8::is_ascii).map(|byte| byte.to_ascii_lowercase());
        c == found || self.folds && fold(c).is_some() && fold(c) == fold(found) || c == self.one && !plain
    }
}

/// Whether a character is in the set that begins here, behind its `[`. One that is not closed holds nothing.
fn in_set(pattern: &[u8], p: &mut usize, found: u32) -> bool {
    if found == 0 {
        return false;
    }
    let is = |code: u32, c: char| code == u32::from(c);
    let mut c = next(pattern, p);
    let inverted = is(c, '^');
    if inverted {
        c = next(pattern, p);
    }
    let mut seen = false;
    if is(c, ']') {
        seen = is(found, ']');
        c = next(pattern, p);
    }
    let mut before = 0;
    while c != 0 && !is(c, ']') {
        let ranges = before > 0 && is(c, '-') && pattern.get(*p).is_some_and(|byte| *byte != b']');
        if ranges {
            c = next(pattern, p);
            seen |= before <= found && found <= c;
            before = 0;
        } else {
            seen |= c == found;
            before = c;
        }
        c = next(pattern, p);
    }
    c != 0 && seen != inverted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random and are the same every time.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % sides
        }

        /// Pieces in a row: short, and chosen so that much of it matches.
        fn pieces(&mut self, pieces: &[&[u8]], most: usize) -> Vec<u8> {
            (0..self.roll(most + 1)).flat_map(|_| pieces[self.roll(pieces.len())].to_vec()).collect()
        }

        fn value(&mut self, pieces: &[&[u8]], most: usize) -> Value {
            match self.roll(20) {
                0 => Value::Null,
                1 => Value::Integer([0, 1, -1, 11, 1_010, i64::MIN][self.roll(6)]),
                2 => Value::Real([0.0, 1.0, -1.5, 1e300, 0.1, 1e-7, f64::INFINITY, 123_456_789.125][self.roll(8)]),
                3..6 => Value::Blob(self.pieces(pieces, most)),
                // A text of any bytes, which `Value` cannot say: a blob that is cast.
                _ => Value::Text(self.pieces(pieces, most).iter().map(|byte| format!("{byte:02x}")).collect()),
            }
        }
    }

    /// `typeof`, `hex` and whether it is JSON of what a function says to arguments; texts are given as digits, see above.
    fn said(conn: &Connection, function: &str, arguments: &[Value]) -> std::result::Result<Vec<Value>, String> {
        let places: Vec<&str> = arguments
            .iter()
            .map(|value| if matches!(value, Value::Text(_)) { "CAST(unhex(?) AS TEXT)" } else { "?" })
            .collect();
        let sql = format!("SELECT typeof(r), hex(r), subtype(r) FROM (SELECT {function}({}) AS r)", places.join(", "));
        let mut statement = conn.prepare(&sql).unwrap();
        statement
            .query_row(rusqlite::params_from_iter(arguments), |row| (0..3).map(|at| row.get(at)).collect())
            .map_err(|error| error.to_string())
    }

    fn both() -> (Connection, Connection) {
        let ours = Connection::open_in_memory().unwrap();
        add(&ours).unwrap();
        (ours, Connection::open_in_memory().unwrap())
    }

    #[test]
    fn these_functions_say_what_those_of_sqlite_say() {
        let (ours, theirs) = both();
        let plain: &[&[u8]] = &[
            b"a",
            b"a",
            b"b",
            b"A",
            b"ab",
            b"\xc3\xa9",
            b"\xe2\x82\xac",
            b"\xf0\x9f\x98\x80",
            b"\0",
            b" ",
            b"1",
            b"-",
            b".",
            b"\xc3",
            b"\xa9",
            b"\xff",
            b"\xc1\x81\x82\x83",
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\xf9\x80",
            b"\xfd\xbf\xbf",
        ];
        let pattern: &[&[u8]] = &[
            b"%",
            b"_",
            b"*",
            b"?",
            b"[",
            b"]",
            b"^",
            b"-",
            b"[^",
            b"[]",
            b"[a-b]",
            b"[^a]",
            b"a",
            b"b",
            b"A",
            b"B",
            b"\\",
            b"\xc3\xa9",
            b"\xc3\x89",
            b"\xa9",
            b"\xe2\x82\xac",
            b"\0",
            b"%%",
            b"%_",
            b"\\%",
            b"[b-",
            b"-]",
        ];
        let digits: &[&[u8]] = &[b"00", b"aF", b"1", b"-", b"\xc3\xa9", b" ", b"g", b"\0", b"\xa9", b"7f", b"E0"];
        let json: &[&[u8]] = &[
            b"{}",
            b"{\"a\":1}",
            b"{\"a\":null,\"b\":{\"c\":2}}",
            b"[1]",
            b"null",
            b"{\"b\":{\"c\":null}}",
            b"",
            b"x",
        ];
        let escapes: &[&[u8]] = &[b"\\", b"a", b"%", b"_", b"\xc3\xa9", b"ab", b"", b"\xff", b"["];
        let mut dice = Dice(7);
        let (mut same, mut told) = (0, 0);
        for _ in 0..40_000 {
            let (function, arguments) = match dice.roll(12) {
                0 | 1 => ("instr", vec![dice.value(plain, 12), dice.value(plain, 3)]),
                2 | 3 => ("replace", vec![dice.value(plain, 12), dice.value(plain, 2), dice.value(plain, 3)]),
                4 => (["trim", "ltrim", "rtrim"][dice.roll(3)], vec![dice.value(plain, 8), dice.value(plain, 6)]),
                5 => ("unhex", vec![dice.value(digits, 6), dice.value(digits, 4)]),
                6 | 7 => ("like", vec![dice.value(pattern, 6), dice.value(plain, 8)]),
                8 => ("like", vec![dice.value(pattern, 6), dice.value(pattern, 8), dice.value(escapes, 1)]),
                9 | 10 => ("glob", vec![dice.value(pattern, 8), dice.value(pattern, 8)]),
                _ => (["json_patch", "jsonb_patch"][dice.roll(2)], vec![dice.value(json, 1), dice.value(json, 1)]),
            };
            let (we, they) = (said(&ours, function, &arguments), said(&theirs, function, &arguments));
            assert_eq!(we, they, "{function} {arguments:?}");
            same += 1;
            told +=
                usize::from(matches!(they.as_deref(), Ok([_, Value::Text(hex), _]) if hex != "30" && !hex.is_empty()));
        }
        assert!(told * 4 > same, "enough of it said something: {told} of {same}");
    }

    #[test]
    fn texts_that_came_from_other_functions_are_still_json_or_not() {
        let (ours, theirs) = both();
        for sql in [
            "SELECT json_array(json_patch('{\"a\":1}', '{\"a\":2}'))",
            "SELECT json_array(json(json_patch('{}', jsonb('{\"a\":[2]}'))))",
            "SELECT json_object('a', replace('[1]', '1', '2'))",
            "SELECT json_array(trim('[1]x', 'x'))",
            "SELECT hex(jsonb_patch('{\"a\":1}', '{\"b\":null}'))",
        ] {
            let said = |conn: &Connection| conn.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
            assert_eq!(said(&ours), said(&theirs), "{sql}");
        }
    }

    #[test]
    fn the_same_in_databases_of_utf_16() {
        for encoding in ["UTF-16le", "UTF-16be"] {
            let (ours, theirs) = both();
            for conn in [&ours, &theirs] {
                conn.execute_batch(&format!(
                    "PRAGMA encoding = '{encoding}'; CREATE TABLE t(a, b);
                     INSERT INTO t VALUES ('naïve €uro 😀', 'ï'), ('aXbXc', 'X'), ('😀😀x', '😀'), ('%a', '%'), (12.5, 2);"
                ))
                .unwrap();
            }
            for sql in ["instr(a, b)", "replace(a, b, '-')", "trim(a, b)", "a LIKE '%' || b || '%'", "a GLOB '*[😀X]*'"]
            {
                let sql = format!("SELECT group_concat({sql}, '|') FROM t");
                let said = |conn: &Connection| conn.query_row(&sql, [], |row| row.get::<_, String>(0)).unwrap();
                assert_eq!(said(&ours), said(&theirs), "{sql}");
            }
        }
    }

    #[test]
    fn they_may_be_used_where_sqlite_asks_for_functions_that_do_no_harm() {
        let (ours, _) = both();
        ours.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).unwrap();
        ours.execute_batch(
            "CREATE TABLE t(a, b AS (replace(a, 'x', 'y')), CHECK (a LIKE 'x%')); CREATE INDEX i ON t(instr(a, 'x'));
             CREATE INDEX p ON t(a) WHERE a GLOB 'x*'; CREATE VIEW v AS SELECT trim(a, 'x') AS a FROM t;
             INSERT INTO t(a) VALUES ('xz');",
        )
        .unwrap();
        let found = ours.query_row("SELECT a || b FROM (SELECT v.a, t.b FROM v, t)", [], |row| row.get::<_, String>(0));
        assert_eq!(found.unwrap(), "zyz");
    }
}
