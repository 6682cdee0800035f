//! A host that shows the skills of a server, and loads one when its user agrees.
//!
//! ```sh
//! cargo run -p linchpin-examples --example use-skill -- linchpin serve skills DIR
//! ```
//!
//! Nothing is read before the user agrees. Every file is compared with the digest that the server gave for it.

use linchpin::prelude::*;
use linchpin::skills::{Error, LoadedSkill, SkillsExt};
use linchpin::transport::Child;
use std::io::{BufRead, Write};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, args)) = words.split_first() else {
        eprintln!("usage: use-skill PROGRAM [ARGUMENT]...");
        std::process::exit(2);
    };
    let server = Client::new("use-skill", "1.0").connect(Child::new(program).args(args)).await?;
    let skills = server.skills().await?;
    for skill in skills.iter() {
        say(&format!("{}: {}", skill.name(), skill.description()));
        if yes(&format!("Load the skill {} of {program}?", skill.name())) {
            show(&skill.load().await?).await?;
        }
    }
    server.close().await;
    Ok(())
}

async fn show(skill: &LoadedSkill) -> Result<(), Error> {
    say(skill.body());
    for path in skill.files() {
        say(&format!("{path}: {} bytes", skill.file(&path).await?.len()));
    }
    // What the user has agreed to: ask again when it is another one.
    say(&format!("approved: {}", skill.resource_set().as_deref().unwrap_or("a skill that changes")));
    Ok(())
}

fn yes(question: &str) -> bool {
    say(&format!("{question} [y/N]"));
    let answer = std::io::stdin().lock().lines().next();
    matches!(answer, Some(Ok(answer)) if answer.trim().eq_ignore_ascii_case("y"))
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
