//! Any bytes as a line of a memory file: a record is written as it was read, also with another value in it and back.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/memory/src/format.rs"]
mod format;

use format::{Entity, Line, read_line};

fuzz_target!(|bytes: &[u8]| {
    let Some(Line::Entity(record)) = read_line(bytes) else { return };
    let Some(Line::Entity(again)) = read_line(record.line.as_bytes()) else { panic!("{} is a record", record.line) };
    assert_eq!((&again.value, &again.line), (&record.value, &record.line));
    let mut more = record.value.clone();
    more.observations.push("more".to_owned());
    let changed = record.with(more.clone());
    let Some(Line::Entity(read)) = read_line(changed.line.as_bytes()) else { panic!("{} is a record", changed.line) };
    assert_eq!(read.value, more);
    let back: Entity = changed.with(record.value.clone()).value;
    assert_eq!(back, record.value);
});
