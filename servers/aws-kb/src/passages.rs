//! What was retrieved, in one form wherever it is stored, and as text.

use linchpin_rest::{Args, Ask};
use serde_json::{Map, Value, json};

/// Characters of a passage that its source repeats.
const SNIPPET_CHARS: usize = 200;

/// Where each kind of storage says what the source is.
const SOURCES: [(&str, &str); 8] = [
    ("s3Location", "uri"),
    ("webLocation", "url"),
    ("confluenceLocation", "url"),
    ("salesforceLocation", "url"),
    ("sharePointLocation", "url"),
    ("kendraDocumentLocation", "uri"),
    ("customDocumentLocation", "id"),
    ("sqlLocation", "query"),
];

/// A model that reranks must be named with the kind of reranking.
pub(crate) fn reranked(ask: Ask, args: &Args) -> Ask {
    match args.get("rerank_model") {
        None => ask,
        Some(_) => ask.member(
            "retrievalConfiguration.vectorSearchConfiguration.rerankingConfiguration.type",
            json!("BEDROCK_RERANKING_MODEL"),
        ),
    }
}

/// Gives every passage the same members: `text`, `score`, `uri`, `file_name`, `id` and `metadata`.
pub(crate) fn tidy(answer: &mut Value) {
    let Some(passages) = answer.get_mut("retrievalResults").and_then(Value::as_array_mut) else { return };
    for (at, passage) in passages.iter_mut().enumerate() {
        *passage = passage_of(passage, at);
    }
}

fn passage_of(found: &Value, at: usize) -> Value {
    let (content, location) = (&found["content"], &found["location"]);
    let text = match (content["text"].as_str(), content["row"].as_array()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(row)) => {
            let cell = |cell: &Value| {
                let name = cell["columnName"].as_str().unwrap_or_default();
                format!("{name}: {}", cell["columnValue"].as_str().unwrap_or_default())
            };
            row.iter().map(cell).collect::<Vec<_>>().join("\n")
        }
        (None, None) => String::new(),
    };
    let uri = SOURCES.iter().find_map(|(kind, member)| location[kind][member].as_str());
    let metadata: Map<String, Value> = found["metadata"].as_object().cloned().unwrap_or_default();
    let id = metadata.get("x-amz-bedrock-kb-chunk-id").and_then(Value::as_str);
    let id = id.map_or_else(|| format!("chunk-{at}"), str::to_owned);
    // The service's own members are said otherwise.
    let own = metadata.into_iter().filter(|(name, _)| !name.starts_with("x-amz-bedrock-kb-")).collect::<Map<_, _>>();
    let mut passage = json!({ "text": text, "score": found["score"], "id": id });
    if let Some(uri) = uri {
        passage["uri"] = json!(uri);
        passage["file_name"] = json!(file_name(uri));
    }
    if !own.is_empty() {
        passage["metadata"] = Value::Object(own);
    }
    passage
}

/// The last part of a URI for people: without underscores, and without `.txt`.
fn file_name(uri: &str) -> String {
    let name = uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri).replace('_', " ");
    name.strip_suffix(".txt").map_or_else(|| name.clone(), str::to_owned)
}

fn passages(result: &Value) -> impl Iterator<Item = &Value> {
    result["results"].as_array().into_iter().flatten()
}

/// The first block: the texts.
pub(crate) fn context(result: &Value) -> String {
    let texts: Vec<&str> =
        passages(result).filter_map(|one| one["text"].as_str()).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() {
        "Context: (nothing was found)".to_owned()
    } else {
        format!("Context: {}", texts.join("\n\n"))
    }
}

/// The second block: where they are from.
pub(crate) fn sources(result: &Value) -> String {
    let source = |(at, one): (usize, &Value)| {
        let text = one["text"].as_str().unwrap_or_default();
        let snippet: String = text.chars().take(SNIPPET_CHARS).collect();
        let name = one["file_name"].as_str().map_or_else(|| format!("Source-{at}"), str::to_owned);
        json!({ "id": one["id"], "fileName": name, "snippet": snippet, "score": one["score"] })
    };
    let sources: Vec<Value> = passages(result).enumerate().map(source).collect();
    format!("RAG Sources: {}", Value::Array(sources))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_location_has_a_uri() {
        for (kind, member) in SOURCES {
            let found =
                json!({ "content": { "text": "T" }, "location": { "type": "X", kind: { member: "s3://b/a_b.txt" } } });
            let passage = passage_of(&found, 4);
            assert_eq!((&passage["uri"], &passage["file_name"]), (&json!("s3://b/a_b.txt"), &json!("a b")), "{kind}");
            assert_eq!(passage["id"], "chunk-4");
        }
        let row = json!({ "content": { "row": [{ "columnName": "a", "columnValue": "1" }, { "columnName": "b" }] } });
        assert_eq!(passage_of(&row, 0)["text"], "a: 1\nb: ");
    }
}
