//! `linchpin audit`: what an audit log says.

use crate::fail::Failure;
use crate::show::out::{Out, count, note};
use clap::{Args, ValueHint};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// The file written by --audit.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Only this event: authorize, callback, login, consent, code, token, refresh, assertion, device, register, revoke, or
    /// the method of a call.
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,

    /// Only this outcome: refused, issued, granted, ok, error, …
    #[arg(long, value_name = "VERDICT")]
    verdict: Option<String>,

    /// Only entries of this principal.
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,

    /// Only entries of this client.
    #[arg(long, value_name = "ID")]
    client: Option<String>,

    /// Only the last N entries.
    #[arg(long, value_name = "N")]
    last: Option<usize>,

    /// Print the entries as they are: JSON.
    #[arg(long)]
    json: bool,
}

/// The longest line that is looked at, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

impl AuditArgs {
    fn wants(&self, line: &Map<String, Value>) -> bool {
        let is = |wanted: &Option<String>, names: [&str; 2]| {
            let Some(wanted) = wanted else { return true };
            names.iter().any(|name| line.get(*name).and_then(Value::as_str) == Some(wanted))
        };
        is(&self.event, ["event", "method"])
            && is(&self.verdict, ["verdict", "outcome"])
            && is(&self.principal, ["principal", ""])
            && is(&self.client, ["client", ""])
    }
}

pub(crate) fn run(args: &AuditArgs) -> Result<(), Failure> {
    let failed = |e| Failure::usage(format!("cannot read {}: {e}", args.file.display()));
    let mut file = BufReader::new(File::open(&args.file).map_err(failed)?);
    let (mut found, mut good, mut broken) = (VecDeque::new(), 0, 0);
    let mut out = Out::new();
    loop {
        let mut line = Vec::new();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let parsed = serde_json::from_slice::<Map<String, Value>>(&line).ok();
        let Some(members) = parsed.filter(|_| line.len() <= LINE_BYTES_MAX) else {
            broken += usize::from(!line.trim_ascii().is_empty());
            continue;
        };
        good += 1;
        if !args.wants(&members) {
            continue;
        }
        match args.last {
            None => show(&mut out, &members, args.json)?,
            Some(last) => {
                found.push_back(members);
                if found.len() > last {
                    found.pop_front();
                }
            }
        }
    }
    for members in &found {
        show(&mut out, members, args.json)?;
    }
    out.flush()?;
    if broken > 0 && good == 0 {
        return Err(Failure::new(format!("{} is not an audit log: no line of it can be read", args.file.display())));
    }
    if broken > 0 {
        note(format!("{} of {} cannot be read", count(broken, "line"), args.file.display()));
    }
    Ok(())
}

fn show(out: &mut Out, members: &Map<String, Value>, json: bool) -> Result<(), Failure> {
    if json {
        return Ok(out.json_line(&Value::Object(members.clone()))?);
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let first = |one: &str, other: &str| if text(one).is_empty() { text(other) } else { text(one) }.to_owned();
    let mut line = format!("{}  {} {}", text("time"), first("event", "method"), first("verdict", "outcome"));
    for (word, value) in [
        ("", first("item", "name")),
        ("for ", text("principal").to_owned()),
        ("by ", text("client").to_owned()),
        ("from ", text("address").to_owned()),
        ("token ", text("token").to_owned()),
    ] {
        if !value.is_empty() {
            line.push_str(&format!("  {word}{value}"));
        }
    }
    Ok(out.line(line)?)
}
