//! What the suite's `checks.json` says, counted strictly.

use serde_json::Value;

use crate::report::Counts;

/// One line of a table: a scenario's checks by the status the suite gave them.
#[derive(Default)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) success: u64,
    pub(super) failure: u64,
    pub(super) warning: u64,
    pub(super) skipped: u64,
    pub(super) info: u64,
    /// Why checks were skipped that nobody can pass; they are counted as skipped and not as failed.
    pub(super) excuses: Vec<&'static str>,
    /// What went wrong, for a user.
    pub(super) problems: String,
}

/// A check that no implementation of the revision can exercise, and which the suite therefore skips.
pub(super) struct Excused {
    pub(super) scenario: &'static str,
    /// A part of the check's description, which no other has.
    pub(super) about: &'static str,
    pub(super) why: &'static str,
}

impl Row {
    pub(super) fn named(name: &str) -> Row {
        Row { name: name.to_string(), ..Row::default() }
    }

    pub(super) fn broken(name: &str, why: &str) -> Row {
        let mut row = Row::named(name);
        row.fail(why);
        row
    }

    /// Counts one more failure.
    pub(super) fn fail(&mut self, why: &str) {
        self.failure += 1;
        self.problems.push_str(&format!("  {}: {}\n", self.name, why.trim_end().replace('\n', "\n    ")));
    }

    pub(super) fn add(&mut self, other: &Row) {
        self.success += other.success;
        self.failure += other.failure;
        self.warning += other.warning;
        self.skipped += other.skipped;
        self.info += other.info;
        self.excuses.extend(&other.excuses);
    }

    /// Warnings are failures, and so are skipped checks without an excuse: what is not checked is not proved.
    pub(super) fn counts(&self) -> Counts {
        let excused = self.excuses.len() as u64;
        let skipped = self.skipped.saturating_sub(excused);
        Counts { passed: self.success, failed: self.failure + self.warning + skipped, skipped: excused }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let Row { name, success, failure, warning, skipped, info, .. } = self;
        let verdict = if self.counts().failed == 0 { "pass" } else { "FAIL" };
        let mut cells = vec![name.clone(), verdict.to_string()];
        cells.extend([success, failure, warning, skipped, info].map(u64::to_string));
        cells
    }
}

/// The heading of a table of rows.
pub(super) fn heading(name: &str) -> Vec<String> {
    let words = [name, "", "success", "failure", "warning", "skipped", "info"];
    words.map(String::from).to_vec()
}

/// Counts the checks of one scenario; a scenario that proved nothing failed.
pub(super) fn judge(scenario: &str, text: &str, excused: &[Excused]) -> Row {
    let Ok(Value::Array(checks)) = serde_json::from_str::<Value>(text) else {
        return Row::broken(scenario, "its checks.json is not a JSON array");
    };
    let mut row = Row::named(scenario);
    for check in &checks {
        let status = check["status"].as_str().unwrap_or("(none)");
        let word = |key: &str| check[key].as_str().unwrap_or_default();
        match status {
            "SUCCESS" => row.success += 1,
            "WARNING" => row.warning += 1,
            "SKIPPED" => row.skipped += 1,
            "INFO" => row.info += 1,
            _ => row.failure += 1,
        }
        let excuse = |excused: &&Excused| excused.scenario == scenario && word("description").contains(excused.about);
        match excused.iter().find(excuse).filter(|_| status == "SKIPPED") {
            Some(excused) => row.excuses.push(excused.why),
            // What passed between client and mock is listed as INFO, without a judgement.
            None if status == "SUCCESS" || status == "INFO" && word("errorMessage").is_empty() => {}
            None => row.problems.push_str(&format!(
                "  {scenario}: {status} {}: {}\n    {}\n",
                word("id"),
                word("description"),
                word("errorMessage").replace('\n', "\n    ")
            )),
        }
    }
    if row.success == 0 && row.counts().failed == 0 {
        return Row::broken(scenario, "not one check succeeded");
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(statuses: &[&str]) -> Counts {
        let checks: Vec<Value> =
            statuses.iter().map(|status| serde_json::json!({ "id": "x", "status": status })).collect();
        judge("s", &Value::Array(checks).to_string(), &[]).counts()
    }

    #[test]
    fn warnings_skipped_checks_and_unknown_statuses_are_failures() {
        for status in ["FAILURE", "WARNING", "SKIPPED", "(new)"] {
            assert_eq!(counts(&["SUCCESS", status]).failed, 1, "{status}");
        }
        assert_eq!(counts(&["SUCCESS", "INFO"]).failed, 0);
    }

    #[test]
    fn a_scenario_that_proves_nothing_fails() {
        assert_eq!(counts(&[]).failed, 1);
        assert_eq!(counts(&["INFO"]).failed, 1);
        assert_eq!(judge("s", "not json", &[]).counts().failed, 1);
    }

    #[test]
    fn an_excuse_holds_for_its_own_check_and_only_while_that_is_skipped() {
        let excused = [Excused { scenario: "s", about: "on hello", why: "nobody says hello" }];
        let check = |status: &str, about: &str| serde_json::json!({ "status": status, "description": about });
        let judged = |scenario: &str, checks: &[Value]| {
            judge(scenario, &Value::Array(checks.to_vec()).to_string(), &excused).counts()
        };
        let fine = check("SUCCESS", "");
        let skipped = check("SKIPPED", "a header on hello");
        let pair = [fine.clone(), skipped.clone()];
        assert_eq!(judged("s", &pair), Counts { passed: 1, failed: 0, skipped: 1 });
        assert_eq!(judged("other", &pair).failed, 1);
        assert_eq!(judged("s", &[fine.clone(), check("SKIPPED", "a header on goodbye")]).failed, 1);
        assert_eq!(judged("s", &[fine, check("FAILURE", "a header on hello")]).failed, 1);
        assert_eq!(judged("s", &[skipped]).failed, 1, "nothing was proved");
    }
}
