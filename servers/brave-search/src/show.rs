//! Results as text: of the published tools in their words, of others a line of JSON each.

use linchpin_rest::one_line;
use serde_json::Value;

/// Blocks of title, description and URL, with a blank line between.
pub(crate) fn web(found: &Value) -> String {
    let kinds = ["/results", "/news/results", "/videos/results", "/discussions/results", "/infobox/results"];
    let all = kinds.iter().flat_map(|kind| found.pointer(kind).and_then(Value::as_array).into_iter().flatten());
    let blocks = all.map(|page| {
        let [title, description, url] = ["title", "description", "url"].map(|name| one_line(&page[name]));
        format!("Title: {title}\nDescription: {description}\nURL: {url}")
    });
    let answers = found.pointer("/faq/results").and_then(Value::as_array).into_iter().flatten().map(|page| {
        let [question, answer, url] = ["question", "answer", "url"].map(|name| one_line(&page[name]));
        format!("Question: {question}\nAnswer: {answer}\nURL: {url}")
    });
    let key =
        found.pointer("/summarizer/key").map(|key| format!("Summarizer key: {}", key.as_str().unwrap_or_default()));
    key.into_iter().chain(blocks).chain(answers).collect::<Vec<_>>().join("\n\n")
}

/// Blocks of what is known of a place, with a line of dashes between.
pub(crate) fn local(found: &Value) -> String {
    if found["fallback"] == "web" {
        return web(found);
    }
    let places = found["results"].as_array().into_iter().flatten().map(|place| {
        let or = |name: &str, none: &str| match &place[name] {
            Value::Null => none.to_owned(),
            Value::Array(parts) => parts.iter().map(one_line).collect::<Vec<_>>().join(", "),
            value => one_line(value),
        };
        format!(
            "Name: {}\nAddress: {}\nPhone: {}\nRating: {} ({} reviews)\nPrice Range: {}\nHours: {}\nDescription: {}\n",
            or("name", ""),
            or("address", "N/A"),
            or("phone", "N/A"),
            or("rating", "N/A"),
            or("rating_count", "0"),
            or("price_range", "N/A"),
            or("hours", "N/A"),
            or("description", "No description available"),
        )
    });
    let text = places.collect::<Vec<_>>().join("\n---\n");
    if text.is_empty() { "No local results found".to_owned() } else { text }
}

/// A line of JSON for each result.
pub(crate) fn lines(found: &Value) -> String {
    let results = found["results"].as_array().into_iter().flatten();
    results.map(Value::to_string).collect::<Vec<_>>().join("\n")
}

pub(crate) fn summary(found: &Value) -> String {
    found["summary"].as_str().unwrap_or_default().to_owned()
}
