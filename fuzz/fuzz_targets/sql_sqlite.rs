//! Any text as a statement for SQLite: what it begins with does not depend on blanks, comments and semicolons before it,
//! and a second statement behind a whole one is seen.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the whole file of the server")]
#[path = "../../servers/sqlite/src/statement.rs"]
mod statement;

use statement::{Outline, quote};

fuzz_target!(|sql: &str| {
    let name = quote(sql);
    assert!(name.len() >= 2 && name[1..name.len() - 1].replace("\"\"", "").find('"').is_none());
    let Some(look) = Outline::at(sql) else { return };
    assert!(look.verb().chars().all(|c| !c.is_ascii_lowercase()));
    // Panics where it is not a place between characters.
    let rest = &sql[look.start..];
    let again = Outline::at(&format!(" /* ; */ ;-- x\n{rest}")).expect("a statement");
    assert_eq!((again.verb(), again.more), (look.verb(), look.more));
    // A name in quotes is one token, whatever is in it.
    let whole = format!("SELECT {name}");
    assert!(!Outline::at(&whole).expect("a statement").more);
    assert!(Outline::at(&format!("{whole};{rest}")).expect("a statement").more);
});
