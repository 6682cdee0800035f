//! Results as text: Slack's JSON in one line, as the published server shows it.

use serde_json::{Value, json};

/// An answer.
pub(crate) fn whole(answer: &Value) -> String {
    without_paging(answer).to_string()
}

/// A page of a list; the cursor of the next one is where Slack has it.
pub(crate) fn page(answer: &Value) -> String {
    let mut shown = without_paging(answer);
    let next = answer["next_cursor"].as_str().unwrap_or_default();
    shown["response_metadata"] = json!({ "next_cursor": next });
    shown.to_string()
}

/// Without the members that are ours.
fn without_paging(answer: &Value) -> Value {
    let mut shown = answer.clone();
    if let Some(members) = shown.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "truncated" | "next_cursor"));
    }
    shown
}
