//! Stages that run at the same time, each after those it needs.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::report::Report;
use crate::stages::Stage;

/// A stage that has ended.
pub(crate) struct Done {
    pub(crate) stage: &'static str,
    /// When it began, counted from the start of the run.
    pub(crate) began: Duration,
    pub(crate) took: Duration,
    pub(crate) report: Report,
}

#[derive(Default)]
struct Progress {
    /// Indices of stages that nobody has begun.
    waiting: Vec<usize>,
    /// Whether a stage that has ended failed, by its name.
    ended: BTreeMap<&'static str, bool>,
    done: Vec<(usize, Done)>,
}

impl Progress {
    /// The first stage that may begin, and the failed one that it would have needed.
    fn next(&mut self, stages: &[&Stage]) -> Option<(usize, Option<&'static str>)> {
        let selected = |name: &str| stages.iter().any(|stage| stage.name == name);
        let at = self.waiting.iter().position(|&index| {
            let after = stages[index].after.iter();
            after.filter(|name| selected(name)).all(|name| self.ended.contains_key(name))
        })?;
        let index = self.waiting.remove(at);
        let failed = stages[index].after.iter().find(|name| self.ended.get(*name) == Some(&true)).copied();
        Some((index, failed))
    }
}

/// Runs all stages, at most `slots` at a time, in their order where that is possible. A stage whose predecessor failed is
/// handed that one's name.
pub(crate) fn run(stages: &[&Stage], slots: usize, each: impl Fn(&Stage, Option<&str>) -> Done + Sync) -> Vec<Done> {
    let progress = Mutex::new(Progress { waiting: (0..stages.len()).collect(), ..Progress::default() });
    let changed = Condvar::new();
    let worker = || {
        let mut now = progress.lock().unwrap_or_else(PoisonError::into_inner);
        while !now.waiting.is_empty() {
            let Some((index, failed)) = now.next(stages) else {
                now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(now);
            let done = each(stages[index], failed);
            now = progress.lock().unwrap_or_else(PoisonError::into_inner);
            now.ended.insert(stages[index].name, failed.is_some() || done.report.counts.failed > 0);
            now.done.push((index, done));
            changed.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..slots {
            scope.spawn(worker);
        }
    });
    let mut done = progress.into_inner().unwrap_or_else(PoisonError::into_inner).done;
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::stage;

    fn done(stage: &Stage, passed: bool) -> Done {
        let report = Report::one(passed, String::new());
        Done { stage: stage.name, began: Duration::ZERO, took: Duration::ZERO, report }
    }

    #[test]
    fn a_stage_begins_after_those_it_needs_and_is_told_of_their_failure() {
        let run = |_: &crate::context::Context| unreachable!("the test runs them itself");
        let all = [
            stage("a", &["c", "not selected"], "", run),
            stage("b", &["a"], "", run),
            stage("c", &[], "", run),
            stage("d", &[], "", run),
        ];
        let order = Mutex::new(Vec::new());
        let stages: Vec<&Stage> = all.iter().collect();
        let ended = super::run(&stages, 2, |stage, failed| {
            order.lock().unwrap().push((stage.name, failed.map(String::from)));
            done(stage, stage.name != "c")
        });
        assert_eq!(ended.iter().map(|done| done.stage).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        let order = order.into_inner().unwrap();
        let at = |name: &str| order.iter().position(|(other, _)| *other == name).unwrap();
        assert!(at("c") < at("a") && at("a") < at("b"), "{order:?}");
        // What needs something that was not run has not been checked either.
        assert_eq!(order[at("a")].1.as_deref(), Some("c"));
        assert_eq!(order[at("b")].1.as_deref(), Some("a"));
        assert_eq!(order[at("d")].1, None);
    }
}
