//! Any text as a statement for PostgreSQL: refused, or cut into tokens that come in order, cover what they say, do not
//! depend on what follows, and hide nothing that follows.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/postgres/src/sql/lexer.rs"]
mod lexer;

use lexer::{Kind, tokens};

/// Bytes of a text that is read once for each of its tokens.
const BYTES_MAX: usize = 512;

fuzz_target!(|sql: &str| {
    let Ok(all) = tokens(sql) else { return };
    assert!(all.windows(2).all(|pair| pair[0].at < pair[1].at), "{all:?}");
    for token in &all {
        let rest = &sql[token.at..];
        let fits = match token.kind {
            Kind::Word => rest.to_ascii_lowercase().starts_with(&token.text),
            Kind::Quoted => rest.starts_with('"') && rest[1..].starts_with(&token.text.replace('"', "\"\"")),
            Kind::Literal => rest.contains('\'') || rest.starts_with('$'),
            Kind::Number => rest.starts_with(|first: char| first.is_ascii_digit() || first == '.'),
            Kind::Param => rest.starts_with('$'),
            Kind::Operator => rest.starts_with(&token.text) || token.text == "<>" && rest.starts_with("!="),
            Kind::Mark => rest.starts_with(&token.text),
        };
        assert!(fits, "{token:?} is not what stands there");
    }
    if sql.len() <= BYTES_MAX {
        for (count, token) in all.iter().enumerate() {
            assert_eq!(tokens(&sql[..token.at]).expect("a part of what was read"), all[..count]);
        }
    }
    let longer = tokens(&format!("{sql}\ndanger(")).expect("nothing is open at the end of what was read");
    assert_eq!(longer[..all.len()], all);
    let added: Vec<&str> = longer[all.len()..].iter().map(|token| token.text.as_str()).collect();
    assert_eq!(added, ["danger", "("]);
});
