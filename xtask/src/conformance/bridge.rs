//! The suite through `linchpin bridge`, in every pass between the eras. What it cannot pass there is listed with the reason, as in
//! `docs/TRANSLATION.md`; nothing else may fail.

use anyhow::{Context as _, Result};

use super::judge::{Row, heading};
use super::{Suite, Wanted, at_least, client, server};
use crate::context::Context;
use crate::report::{Report, table};

/// A revision of the suite, how the bridge reaches the fixture server or our client reaches it, and what it speaks with them.
struct Pass {
    name: &'static str,
    /// Whose place in the suite the bridge and our side take.
    role: Role,
    revision: &'static str,
    through: &'static str,
    era: &'static str,
    /// How many checks are known to succeed; a suite that quietly checks less proves less.
    successes_min: u64,
    /// Scenarios that need not pass, and why.
    but: &'static [(&'static str, &'static str)],
    /// Whether only `--all` runs it.
    long: bool,
}

#[derive(PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

const POLLING: (&str, &str) =
    ("server-sse-polling", "whether a stream is polled for is between the two ends of one HTTP connection");

const PASSES: &[Pass] = &[
    Pass {
        role: Role::Server,
        name: "session to session",
        revision: "2025-11-25",
        through: "stdio",
        era: "legacy",
        successes_min: 81,
        but: &[POLLING],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "session to session",
        revision: "2025-11-25",
        through: "http",
        era: "legacy",
        successes_min: 81,
        but: &[POLLING],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "session to session",
        revision: "2025-06-18",
        through: "sse",
        era: "legacy",
        successes_min: 56,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "stateless to stateless",
        revision: "2026-07-28",
        through: "http",
        era: "modern",
        successes_min: 242,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "stateless to stateless",
        revision: "2026-07-28",
        through: "stdio",
        era: "modern",
        successes_min: 242,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "session to stateless",
        revision: "2025-11-25",
        through: "stdio",
        era: "modern",
        successes_min: 81,
        but: &[POLLING],
        long: false,
    },
    Pass {
        role: Role::Server,
        name: "session to stateless",
        revision: "2025-06-18",
        through: "http",
        era: "modern",
        successes_min: 56,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Server,
        name: "stateless to session",
        revision: "2026-07-28",
        through: "stdio",
        era: "legacy",
        successes_min: 153,
        but: &[],
        long: false,
    },
    Pass {
        role: Role::Client,
        name: "session to session",
        revision: "2025-11-25",
        through: "stdio",
        era: "legacy",
        successes_min: 20,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Client,
        name: "stateless to session",
        revision: "2025-11-25",
        through: "stdio",
        era: "modern",
        successes_min: 20,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Client,
        name: "session to stateless",
        revision: "2026-07-28",
        through: "stdio",
        era: "legacy",
        successes_min: 65,
        but: &[],
        long: true,
    },
    Pass {
        role: Role::Client,
        name: "stateless to stateless",
        revision: "2026-07-28",
        through: "stdio",
        era: "modern",
        successes_min: 68,
        but: &[],
        long: true,
    },
];

/// Runs the passes.
pub(crate) fn check(context: &Context) -> Result<Report> {
    let suite = Suite::find(context)?;
    let mut report = Report::default();
    let mut totals = vec![heading("pass")];
    let mut left = 0;
    for pass in PASSES {
        if pass.long && !context.all {
            left += 1;
            continue;
        }
        let wanted = Wanted { through: Some(pass.through), era: Some(pass.era), ..Wanted::default() };
        let revisions = if pass.role == Role::Server { server::REVISIONS } else { client::REVISIONS };
        let revision = revisions.iter().find(|one| one.name == pass.revision).context("no such revision")?;
        let (whose, rows) = match pass.role {
            Role::Server => ("", server::run(context, &suite, revision, &wanted)?),
            Role::Client => ("client: ", client::run(context, &suite, revision, &wanted)?),
        };
        let title = format!("{whose}{} ({}), {}", pass.name, pass.through, pass.revision);
        let (mut rows, excused): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| !pass.but.iter().any(|(scenario, _)| *scenario == row.name));
        for row in &excused {
            let why = pass.but.iter().find(|(scenario, _)| *scenario == row.name).map_or("", |(_, why)| why);
            report.skips.push(format!("{title}: {}: {why}", row.name));
        }
        at_least(&mut rows, pass.successes_min);
        let mut sum = Row::named(&title);
        rows.iter().for_each(|row| sum.add(row));
        for row in &rows {
            report.text.push_str(&row.problems);
        }
        report.counts.add(sum.counts());
        totals.push(sum.cells());
    }
    if left > 0 {
        report.skips.push(format!("{left} of {} passes: only with --all", PASSES.len()));
    }
    report.text.push_str(&table(&totals));
    Ok(report)
}
