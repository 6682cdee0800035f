//! Results: counts, and tables that line up.

/// How many checks passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Checks that held.
    pub(crate) passed: u64,
    /// Checks that did not.
    pub(crate) failed: u64,
    /// Checks that were not made; the reason is printed with them.
    pub(crate) skipped: u64,
}

impl Counts {
    /// One check with this outcome.
    pub(crate) fn one(passed: bool) -> Counts {
        Counts { passed: u64::from(passed), failed: u64::from(!passed), skipped: 0 }
    }

    /// Adds another count to this one.
    pub(crate) fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// What a stage or subcommand found.
#[derive(Default)]
pub(crate) struct Report {
    /// The sum of its checks.
    pub(crate) counts: Counts,
    /// Tables and messages for a user; shown in full when something failed.
    pub(crate) text: String,
    /// What was not checked, and why: one line each, always shown.
    pub(crate) skips: Vec<String>,
    /// What failed, and passed when it was tried again: one line each, always shown.
    pub(crate) flaky: Vec<String>,
}

impl Report {
    /// A report of one check.
    pub(crate) fn one(passed: bool, text: String) -> Report {
        Report { counts: Counts::one(passed), text, ..Report::default() }
    }

    /// A report of something that could not be checked here.
    pub(crate) fn skipped(why: String) -> Report {
        Report { counts: Counts { skipped: 1, ..Counts::default() }, skips: vec![why], ..Report::default() }
    }

    /// Adds everything of another report to this one.
    pub(crate) fn absorb(&mut self, other: Report) {
        self.counts.add(other.counts);
        self.text.push_str(&other.text);
        self.skips.extend(other.skips);
        self.flaky.extend(other.flaky);
    }

    /// Prints everything, and tells whether nothing failed.
    pub(crate) fn print(&self) -> bool {
        print!("{}", self.text);
        for skip in &self.skips {
            println!("skipped: {skip}");
        }
        for flaky in &self.flaky {
            println!("flaky: {flaky}");
        }
        println!("{}", self.counts);
        self.counts.failed == 0
    }
}

/// Lays rows out in columns as wide as their widest cell; the first row is the heading.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_run_reads_passed_failed_skipped() {
        let mut counts = Counts::one(true);
        counts.add(Counts::one(false));
        counts.add(Report::skipped("no tool".into()).counts);
        assert_eq!(counts.to_string(), "1 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "b"], ["long", "x"]].map(|row| row.map(String::from).to_vec());
        assert_eq!(table(&rows), "a     b\nlong  x\n");
    }
}
