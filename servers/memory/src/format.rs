//! The published file format, line by line: lenient reading, byte-exact writing.
//!
//! A file is UTF-8 JSON Lines, entities first, then relations, joined by line feeds, without one at the end. Unknown
//! content is never dropped: unknown keys keep their position in the line, and lines of unknown types and invalid lines
//! stay after the line they followed.

use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// An entity of the knowledge graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entity {
    /// The unique name.
    pub(crate) name: String,
    /// The type, for example `person`.
    pub(crate) entity_type: String,
    /// Facts about it, one each.
    pub(crate) observations: Vec<String>,
}

/// A directed relation between two entities.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Relation {
    /// The name of the source entity.
    pub(crate) from: String,
    /// The name of the target entity.
    pub(crate) to: String,
    /// The type, in active voice, for example `works at`.
    pub(crate) relation_type: String,
}

/// A record and its line in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    /// The whole line, including unknown keys.
    pub(crate) line: Box<str>,
}

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Entity(Written<Entity>),
    Relation(Written<Relation>),
    /// An object of another type: kept and ignored.
    Other,
    /// An invalid line, kept and reported, with what is wrong with it.
    Unreadable(&'static str),
}

/// A record with a line of its own in the file.
pub(crate) trait Record: Sized {
    /// The line as the published server writes it.
    fn line(&self) -> Box<str>;
    /// The keys of this record; the first is the type.
    const KEYS: &'static [&'static str];
    /// The values of the keys after the first.
    fn values(&self) -> Vec<Box<RawValue>>;

    /// Without unknown keys.
    fn plain(self) -> Written<Self> {
        Written { line: self.line(), value: self }
    }
}

/// An entity's line; fields are in the order of the keys.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EntityLine<N, O> {
    r#type: EntityTag,
    name: N,
    entity_type: N,
    observations: O,
}

/// A relation's line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RelationLine<N> {
    r#type: RelationTag,
    from: N,
    to: N,
    relation_type: N,
}

#[derive(Serialize, Deserialize)]
enum EntityTag {
    #[serde(rename = "entity")]
    Entity,
}

#[derive(Serialize, Deserialize)]
enum RelationTag {
    #[serde(rename = "relation")]
    Relation,
}

fn json(value: &impl Serialize) -> String {
    // Strings and lists of strings always serialize.
    serde_json::to_string(value).unwrap_or_default()
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

impl Record for Entity {
    fn line(&self) -> Box<str> {
        let Entity { name, entity_type, observations } = self;
        json(&EntityLine { r#type: EntityTag::Entity, name, entity_type, observations }).into()
    }

    const KEYS: &'static [&'static str] = &["type", "name", "entityType", "observations"];

    fn values(&self) -> Vec<Box<RawValue>> {
        vec![raw(&self.name), raw(&self.entity_type), raw(&self.observations)]
    }
}

impl Record for Relation {
    fn line(&self) -> Box<str> {
        let Relation { from, to, relation_type } = self;
        json(&RelationLine { r#type: RelationTag::Relation, from, to, relation_type }).into()
    }

    const KEYS: &'static [&'static str] = &["type", "from", "to", "relationType"];

    fn values(&self) -> Vec<Box<RawValue>> {
        vec![raw(&self.from), raw(&self.to), raw(&self.relation_type)]
    }
}

impl<T: Record> Written<T> {
    /// The same line with another value: unknown keys keep their position and text.
    pub(crate) fn with(&self, value: T) -> Written<T> {
        if self.line == self.value.line() {
            return value.plain();
        }
        let Ok(Members(mut members)) = serde_json::from_str::<Members>(&self.line) else { return value.plain() };
        for (key, new) in T::KEYS[1..].iter().zip(value.values()) {
            // Of a repeated key the last one counts, as in JavaScript.
            match members.iter_mut().rev().find(|(name, _)| name == key) {
                Some(member) => member.1 = new,
                None => members.push(((*key).to_owned(), new)),
            }
        }
        Written { line: write_members(&members), value }
    }

    /// The same value with the unknown keys of `other` that this line lacks.
    pub(crate) fn adopting(&self, other: &Written<T>) -> Written<T>
    where
        T: Clone,
    {
        if other.line == other.value.line() {
            return self.clone();
        }
        let (Ok(Members(mut members)), Ok(Members(more))) =
            (serde_json::from_str::<Members>(&self.line), serde_json::from_str::<Members>(&other.line))
        else {
            return self.clone();
        };
        for member in more {
            if !members.iter().any(|(name, _)| *name == member.0) {
                members.push(member);
            }
        }
        Written { line: write_members(&members), value: self.value.clone() }
    }
}

/// The members of an object in order, with values as written.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

fn write_members(members: &[(String, Box<RawValue>)]) -> Box<str> {
    let mut line = String::from("{");
    for (at, (key, value)) in members.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        line.push_str(&json(key));
        line.push(':');
        line.push_str(value.get());
    }
    line.push('}');
    line.into()
}

/// Parses a line without its line feed. `None` for a blank one.
pub(crate) fn read_line(line: &[u8]) -> Option<Line> {
    // All of them, so that the line does not change however often it is read and written.
    let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    let line = &line[..end];
    let Ok(text) = std::str::from_utf8(line) else {
        return Some(Line::Unreadable("is not valid UTF-8"));
    };
    if text.trim().is_empty() {
        return None;
    }
    // Nearly every line has exactly the known keys, type first, so a wrong guess costs little.
    if let Ok(EntityLine { name, entity_type, observations, .. }) = serde_json::from_str(text) {
        return Some(Line::Entity(Entity { name, entity_type, observations }.plain()));
    }
    if let Ok(RelationLine { from, to, relation_type, .. }) = serde_json::from_str(text) {
        return Some(Line::Relation(Relation { from, to, relation_type }.plain()));
    }
    Some(read_members(text))
}

fn read_members(text: &str) -> Line {
    let members = match serde_json::from_str::<Members>(text) {
        Ok(Members(members)) => members,
        Err(_) if serde_json::from_str::<&RawValue>(text).is_ok() => return Line::Unreadable("is not a JSON object"),
        Err(_) => return Line::Unreadable("is not valid JSON"),
    };
    let last = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.get());
    let text_of = |key: &str| last(key).and_then(|value| serde_json::from_str::<String>(value).ok());
    let only = |keys: &[&str]| members.iter().all(|(name, _)| keys.contains(&name.as_str()));
    match text_of("type").as_deref() {
        Some("entity") => {
            let list = last("observations").and_then(|value| serde_json::from_str::<Vec<String>>(value).ok());
            match (text_of("name"), text_of("entityType"), list) {
                (Some(name), Some(entity_type), Some(observations)) => {
                    let entity = Entity { name, entity_type, observations };
                    Line::Entity(kept(entity, text, only(Entity::KEYS)))
                }
                _ => Line::Unreadable("is an entity without name, entityType or observations"),
            }
        }
        Some("relation") => match (text_of("from"), text_of("to"), text_of("relationType")) {
            (Some(from), Some(to), Some(relation_type)) => {
                let relation = Relation { from, to, relation_type };
                Line::Relation(kept(relation, text, only(Relation::KEYS)))
            }
            _ => Line::Unreadable("is a relation without from, to or relationType"),
        },
        Some(_) => Line::Other,
        None => Line::Unreadable("has no type"),
    }
}

/// A line with unknown keys stays as written; others get the published form.
fn kept<T: Record>(value: T, text: &str, only_known: bool) -> Written<T> {
    if only_known { value.plain() } else { Written { line: text.into(), value } }
}

/// Counts bytes and line feeds.
#[derive(Default)]
struct Count {
    bytes: usize,
    lines: usize,
}

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len();
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The length of a value as JSON.
pub(crate) fn written(value: &impl Serialize) -> usize {
    let mut count = Count::default();
    // Strings and lists of strings always serialize, and counting does not fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.bytes
}

/// The length of a value in indented JSON at this depth, with its separator.
pub(crate) fn indented(value: &impl Serialize, depth: usize) -> usize {
    let mut count = Count::default();
    let _ = serde_json::to_writer_pretty(&mut count, value);
    count.bytes + (count.lines + 1) * 2 * depth + 2
}

/// The beginning of a text that takes at most `bytes_max` bytes as JSON.
pub(crate) fn fitting(text: &str, bytes_max: usize) -> &str {
    let mut bytes = 2_usize;
    let end = text.char_indices().find(|(_, c)| {
        bytes += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            c if *c < ' ' => 6,
            c => c.len_utf8(),
        };
        bytes > bytes_max
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Additional bytes of a text in an indented list, and of an entity besides its texts.
const LINE_BYTES: usize = 12;
pub(crate) const ENTITY_BYTES: usize = 100;

/// The first texts that take at most `bytes_max` bytes in an indented list, but at least the beginning of one.
pub(crate) fn first_of(texts: &[String], bytes_max: usize) -> Vec<String> {
    let mut room = bytes_max;
    let fits = |text: &&String| {
        let left = room.checked_sub(written(text) + LINE_BYTES);
        room = left.unwrap_or_default();
        left.is_some()
    };
    let whole: Vec<String> = texts.iter().take_while(fits).cloned().collect();
    match texts.first() {
        Some(first) if whole.is_empty() => vec![fitting(first, bytes_max).to_owned()],
        _ => whole,
    }
}

/// The text, or its beginning if it takes more than `bytes_max` bytes as JSON.
pub(crate) fn shown(text: &str, bytes_max: usize) -> String {
    let part = fitting(text, bytes_max);
    if part.len() == text.len() { text.to_owned() } else { format!("{part}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(line: &str) -> Written<Entity> {
        match read_line(line.as_bytes()) {
            Some(Line::Entity(entity)) => entity,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn plain_records_are_written_as_published() {
        let e = Entity { name: "a\"\n\u{1}\u{7f}\u{2028}é".into(), entity_type: "t".into(), observations: vec![] };
        assert_eq!(
            &*e.line(),
            "{\"type\":\"entity\",\"name\":\"a\\\"\\n\\u0001\u{7f}\u{2028}é\",\"entityType\":\"t\",\"observations\":[]}"
        );
        let r = Relation { from: "a".into(), to: "b".into(), relation_type: "r".into() };
        assert_eq!(&*r.line(), r#"{"type":"relation","from":"a","to":"b","relationType":"r"}"#);
    }

    #[test]
    fn lines_with_only_known_keys_take_the_published_form() {
        let wanted = r#"{"type":"entity","name":"a","entityType":"t","observations":["x"]}"#;
        for line in [
            wanted,
            r#"{ "type": "entity", "name": "a", "entityType": "t", "observations": [ "x" ] }"#,
            r#"{"observations":["x"],"entityType":"t","name":"a","type":"entity"}"#,
            r#"{"name":"z","type":"entity","name":"a","entityType":"t","observations":["x"]}"#,
            "{\"type\":\"entity\",\"name\":\"\\u0061\",\"entityType\":\"t\",\"observations\":[\"x\"]}\r",
        ] {
            assert_eq!(&*entity(line).line, wanted, "{line}");
        }
    }

    #[test]
    fn unknown_keys_keep_their_place_and_their_text_through_changes() {
        let line = r#"{"id":1.50,"type":"entity","name":"a","x":{"b": [1e400]},"entityType":"t","observations":[],"é":"\u0041"}"#;
        let read = entity(line);
        assert_eq!(&*read.line, line);
        let more = read.with(Entity { observations: vec!["o".into()], ..read.value.clone() });
        assert_eq!(&*more.line, line.replace("[]", "[\"o\"]"));
        let back = more.with(read.value.clone());
        assert_eq!(&*back.line, line);
    }

    #[test]
    fn unknown_keys_can_be_taken_over() {
        let into = entity(r#"{"type":"entity","name":"a","entityType":"t","observations":[],"x":1}"#);
        let from = entity(r#"{"x":2,"type":"entity","name":"b","entityType":"t","observations":[],"y":[3.0]}"#);
        assert_eq!(
            &*into.adopting(&from).line,
            r#"{"type":"entity","name":"a","entityType":"t","observations":[],"x":1,"y":[3.0]}"#
        );
    }

    #[test]
    fn what_is_not_a_record_is_told_apart() {
        for (line, what) in [
            (&b"{\"type\":\"note\",\"a\":1}"[..], Line::Other),
            (b"{\"a\":1}", Line::Unreadable("has no type")),
            (b"{\"type\":1}", Line::Unreadable("has no type")),
            (b"[1]", Line::Unreadable("is not a JSON object")),
            (b"{\"type\":\"ent", Line::Unreadable("is not valid JSON")),
            (b"\xff", Line::Unreadable("is not valid UTF-8")),
            (
                b"{\"type\":\"entity\",\"name\":1}",
                Line::Unreadable("is an entity without name, entityType or observations"),
            ),
            (
                b"{\"type\":\"relation\",\"from\":\"a\"}",
                Line::Unreadable("is a relation without from, to or relationType"),
            ),
        ] {
            assert_eq!(read_line(line), Some(what), "{}", String::from_utf8_lossy(line));
        }
        for blank in [&b""[..], b"  ", b"\r", b"\t\r"] {
            assert_eq!(read_line(blank), None);
        }
    }
}
