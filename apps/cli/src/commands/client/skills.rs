//! `linchpin skills` and `linchpin skill`: lists skills, loads one, and verifies what is read.

use crate::client::session::{self, Session, TalkArgs};
use crate::client::target::TargetArgs;
use crate::exit::Exit;
use crate::fail::Failure;
use crate::show::bar::busy;
use crate::show::out::{self, Out, count, near, summary};
use clap::{Args, ValueHint};
use linchpin::client::Client;
use linchpin::skills::{Error, LoadedSkill, RemoteSkill, SkillsExt};
use linchpin::types::capability::extension;
use serde_json::json;
use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    /// A URL, a socket, a transcript, or a command and its arguments.
    #[arg(value_name = "TARGET")]
    words: Vec<String>,

    /// Load every skill, read all of its files, and verify them.
    #[arg(long)]
    verify: bool,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SkillArgs {
    /// The target, unless set by an option, and the URI of the skill's SKILL.md.
    #[arg(value_name = "WORDS")]
    words: Vec<String>,

    /// Print this file of the skill, by its path below the skill's directory.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["out", "json"])]
    file: Option<String>,

    /// Write all verified files below this directory, which must be new or empty.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, alias = "save", conflicts_with = "json")]
    out: Option<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    talk: TalkArgs,
}

/// Servers of revisions with sessions tell of skills to those who declare them.
pub(crate) fn declared(client: Client) -> Client {
    client.extension(extension::SKILLS, &json!({}))
}

/// The failure for an error of a skill.
fn failed(session: &Session, error: Error) -> Failure {
    match error {
        Error::Request(error) => session.told(&error),
        Error::NotOffered(why) => Failure::new(why).exit(Exit::Usage),
        other => Failure::new(other.to_string()).exit(Exit::Protocol),
    }
}

pub(crate) fn list(args: SkillsArgs) -> Result<(), Failure> {
    let target = args.target.resolve(args.words.clone())?;
    session::run_with(&args.talk, target, declared, async |session| {
        let skills = busy("listing skills", session.connection.skills()).await.map_err(|e| failed(session, e))?;
        let mut out = Out::new();
        if args.talk.json {
            let entries: Vec<_> = skills.iter().map(|skill| skill.entry()).collect();
            out.json(&json!({ "skills": entries }))?;
        } else {
            let style = out.style;
            let row = |skill: &RemoteSkill| (style.bold(&skill.uri), style.dim(&summary(skill.description(), 100)));
            out.table(&skills.iter().map(row).collect::<Vec<_>>())?;
            out.summary(&[(skills.len(), "skill")])?;
        }
        let mut bad = skills.refused.len();
        for refused in &skills.refused {
            out::note(format!("{} is refused: {}", refused.name, refused.why));
        }
        if args.verify {
            for skill in skills.iter() {
                let verified = async { verify(skill.load().await).await };
                if let Err(error) = busy(&format!("verifying {}", skill.uri), verified).await {
                    bad += 1;
                    out::note(format!("{}: {error}", skill.uri));
                }
            }
        }
        out.flush()?;
        match bad {
            0 => Ok(()),
            bad => Err(Failure::new(format!("{} cannot be used", count(bad, "skill"))).exit(Exit::Protocol)),
        }
    })
}

/// Reads all files of a skill.
async fn verify(loaded: Result<LoadedSkill, Error>) -> Result<(), Error> {
    let loaded = loaded?;
    for file in loaded.files() {
        loaded.file(&file).await?;
    }
    match loaded.verified() {
        true => Ok(()),
        false => Err(Error::Invalid("it has no digests".to_owned())),
    }
}

pub(crate) fn one(mut args: SkillArgs) -> Result<(), Failure> {
    let target = args.target.restrict_to(&mut args.words)?;
    let [uri] = args.words.as_slice() else {
        return Err(Failure::usage("expected one URI").hint("`linchpin skills` lists the skills"));
    };
    session::run_with(&args.talk, target, declared, async |session| {
        let skill = match busy(&format!("reading {uri}"), session.connection.skill(uri)).await {
            Ok(skill) => skill,
            Err(error) => {
                let failure = failed(session, error);
                let known = busy("listing skills", session.connection.skills())
                    .await
                    .map(|skills| skills.items)
                    .unwrap_or_default();
                return Err(
                    match near(uri, known.iter().map(|skill| skill.uri.as_str())).filter(|meant| meant != uri) {
                        Some(meant) => failure.hint(format!("did you mean {meant}?")),
                        None => failure,
                    },
                );
            }
        };
        let loaded = busy(&format!("loading {uri}"), skill.load()).await.map_err(|e| failed(session, e))?;
        let mut out = Out::new();
        if let Some(directory) = &args.out {
            let written = busy("writing files", write_all(session, &loaded, directory)).await?;
            out::note(format!("{} below {}", count(written, "verified file"), directory.display()));
            return Ok(());
        }
        if args.talk.json {
            out.json(loaded.entry())?;
        } else if let Some(path) = &args.file {
            let bytes = busy(&format!("reading {path}"), loaded.file(path)).await.map_err(|e| failed(session, e))?;
            match std::str::from_utf8(&bytes) {
                Ok(text) => out.text(text)?,
                Err(_) if out.is_terminal() => {
                    return Err(Failure::usage(format!("{path} is not text")).hint("write it to a pipe or a file"));
                }
                Err(_) => out.bytes(&bytes)?,
            }
        } else {
            out.text(loaded.text())?;
        }
        Ok(out.flush()?)
    })
}

/// Writes the files of a skill below a directory that is new or empty. None of them can be run.
async fn write_all(session: &Session, loaded: &LoadedSkill, directory: &Path) -> Result<usize, Failure> {
    if !loaded.verified() {
        return Err(Failure::new("the skill has no digests; only verified files are written").exit(Exit::Protocol));
    }
    let cannot =
        |what: &Path, why: &dyn std::fmt::Display| Failure::new(format!("cannot write {}: {why}", what.display()));
    let files = loaded.files();
    let mut seen = HashSet::new();
    for file in &files {
        let bad = file.split('/').find_map(linchpin::skills::refused_name);
        if let Some(why) = bad {
            return Err(Failure::new(format!("{file:?} is not written: {why}")).exit(Exit::Protocol));
        }
        if !seen.insert(file.to_lowercase()) {
            return Err(Failure::new(format!("two files differ only in case: {file:?}")).exit(Exit::Protocol));
        }
    }
    fs::create_dir_all(directory).map_err(|e| cannot(directory, &e))?;
    if fs::read_dir(directory).map_err(|e| cannot(directory, &e))?.next().is_some() {
        return Err(Failure::usage(format!("{} is not empty", directory.display())));
    }
    for file in &files {
        let bytes = loaded.file(file).await.map_err(|e| failed(session, e))?;
        let place = directory.join(file);
        let written = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            // Nothing that is there is followed or replaced.
            fs::File::create_new(&place)?.write_all(&bytes)
        });
        written.map_err(|e| cannot(&place, &e))?;
    }
    Ok(files.len())
}
