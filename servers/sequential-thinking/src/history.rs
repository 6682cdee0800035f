//! One history: its thoughts and branches.

use crate::Limits;
use crate::input::Step;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::mem::size_of;

/// A thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
pub struct Thought {
    /// Its number, as given by the model; not unique.
    pub thought_number: u64,
    /// The estimated total of thoughts.
    pub total_thoughts: u64,
    /// The text.
    pub thought: String,
    /// Whether another thought is needed.
    pub next_thought_needed: bool,
    /// Whether it revises an earlier one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_revision: bool,
    /// The number of the one it revises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revises_thought: Option<u64>,
    /// The number of the thought it branches from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_from_thought: Option<u64>,
    /// The branch it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<String>,
}

impl Thought {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.thought.len() + self.branch_id.as_ref().map_or(0, String::len)
    }
}

/// The thoughts of one handle.
#[derive(Debug, Default)]
pub(crate) struct History {
    kept: VecDeque<Thought>,
    /// Dropped thoughts.
    dropped: u64,
    branches: VecDeque<String>,
    branches_dropped: bool,
    /// Approximate memory use in bytes.
    bytes: usize,
}

/// The state of a history after a thought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) branches: Vec<String>,
    pub(crate) length: u64,
    pub(crate) truncated: bool,
    pub(crate) warnings: Vec<String>,
}

impl History {
    /// Adds a thought. Its text is stored only `with_text`.
    pub(crate) fn add(&mut self, step: &Step, limits: &Limits, with_text: bool) -> Standing {
        let warnings = self.warnings(step);
        if let (Some(_), Some(branch)) = (step.branch_from, &step.branch_id)
            && !self.branches.contains(branch)
        {
            self.bytes += size_of::<String>() + branch.len();
            self.branches.push_back(branch.clone());
        }
        while self.branches.len() > limits.branches_max {
            let oldest = self.branches.pop_front().unwrap_or_default();
            self.bytes -= size_of::<String>() + oldest.len();
            self.branches_dropped = true;
        }
        let thought = Thought {
            thought_number: step.number,
            total_thoughts: step.total,
            thought: if with_text { step.thought.clone() } else { String::new() },
            next_thought_needed: step.next_thought_needed,
            is_revision: step.is_revision,
            revises_thought: step.revises,
            branch_from_thought: step.branch_from,
            branch_id: step.branch_id.clone().filter(|_| with_text),
        };
        self.bytes += thought.bytes();
        self.kept.push_back(thought);
        // A single history never exceeds the limit of all together.
        while self.kept.len() > limits.thoughts_max || self.bytes > limits.bytes_max && self.kept.len() > 1 {
            let oldest = self.kept.pop_front();
            self.bytes -= oldest.as_ref().map_or(0, Thought::bytes);
            self.dropped += 1;
        }
        Standing {
            branches: self.branches.iter().cloned().collect(),
            length: self.len(),
            truncated: self.is_cut(),
            warnings,
        }
    }

    /// The number of all thoughts, including dropped ones.
    pub(crate) fn len(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Whether something was dropped.
    pub(crate) fn is_cut(&self) -> bool {
        self.dropped > 0 || self.branches_dropped
    }

    /// The number of dropped thoughts: the position of the first stored one.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The stored thoughts, from a position that counts dropped ones too.
    pub(crate) fn from(&self, place: u64) -> impl Iterator<Item = &Thought> {
        let skip = usize::try_from(place.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip)
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Possible mistakes of the model. The thought is stored anyway.
    fn warnings(&self, step: &Step) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut known = |name: &str, number: Option<u64>| {
            // A missing thought may have been dropped.
            let Some(number) = number.filter(|_| self.dropped == 0) else { return };
            if !self.kept.iter().any(|thought| thought.thought_number == number) {
                warnings.push(format!("{name}: thought {number} does not exist in this history"));
            }
        };
        known("revisesThought", step.revises);
        known("branchFromThought", step.branch_from);
        if step.branch_from.is_some() != step.branch_id.is_some() && !self.is_on_branch(step) {
            warnings.push("A branch requires both branchFromThought and branchId".to_owned());
        }
        warnings
    }

    /// Whether the thought continues a known branch.
    fn is_on_branch(&self, step: &Step) -> bool {
        step.branch_id.as_ref().is_some_and(|id| self.branches.contains(id))
    }
}
