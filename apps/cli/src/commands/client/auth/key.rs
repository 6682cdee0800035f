//! `linchpin auth key`: keys for servers.

use crate::fail::Failure;
use crate::show::out::{Out, note};
use clap::{Args, Subcommand, ValueHint};
use linchpin::guard::{Keys, Scopes};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Create a key, add it to a file, and print it once. The file holds only its hash.
    #[command(before_help = "\
Examples:
  linchpin auth key new laptop
  linchpin auth key new ci --scopes read --days 90 --file keys.toml
")]
    New(New),
}

#[derive(Debug, Args)]
struct New {
    /// Name of the key: lower-case letters, digits and hyphens.
    name: String,

    /// Scopes of the key.
    #[arg(long, value_name = "SCOPE,...", value_delimiter = ',')]
    scopes: Vec<String>,

    /// Expire after this many days.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,

    /// Comment in the file.
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,

    /// The file; created if missing.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "keys.toml")]
    file: PathBuf,
}

pub(super) fn run(args: KeyArgs) -> Result<(), Failure> {
    let What::New(new) = args.what;
    let scopes: Scopes = new.scopes.iter().collect();
    if scopes.len() != new.scopes.len() {
        return Err(Failure::usage(
            "--scopes: a scope is printable ASCII without spaces, quotes or backslashes, and named once",
        ));
    }
    // Without a key it is as good as new.
    if std::fs::read_to_string(&new.file).is_ok_and(|text| text.lines().any(|line| line.trim_start().starts_with('[')))
    {
        let keys = Keys::file(&new.file).map_err(Failure::usage)?;
        if keys.list().iter().any(|(name, _)| *name == new.name) {
            let why = format!("{} has a key {} already", new.file.display(), new.name);
            return Err(Failure::usage(why).hint("remove its lines to end that key, or choose another name"));
        }
    }
    let end = new.days.map(|days| SystemTime::now() + Duration::from_secs(u64::from(days) * 86_400));
    let key = Keys::create(&new.name, &scopes, end, &new.note).map_err(Failure::usage)?;
    let failed = |e| Failure::new(format!("cannot write to {}: {e}", new.file.display()));
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new.file).map_err(failed)?;
    let gap = if file.metadata().map_err(failed)?.len() > 0 { "\n" } else { "" };
    file.write_all(format!("{gap}{}", key.entry).as_bytes()).map_err(failed)?;
    note(format!("added {} to {}; the key is shown this once:", key.name, new.file.display()));
    let mut out = Out::new();
    out.line(key.token.expose())?;
    Ok(out.flush()?)
}
