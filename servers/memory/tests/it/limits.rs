//! `--max-result-bytes` holds for every tool, for the text and for the structured content, and nothing becomes unreachable.

use crate::common;

use common::{World, entity, relation};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const LIMIT: usize = 5_000;
/// A quarter for warnings, and what is around records: braces, counts, the notice.
const HELD: usize = LIMIT + LIMIT / 4 + 1_000;

/// Entities as they should be found again: many, one with more facts than an answer holds, one with very many very short ones
/// (which take the most room around them), one with facts that JSON writes longer than they are.
fn known() -> Vec<Value> {
    let fact = |n: usize| format!("fact {n} {}", "x".repeat(60));
    let of = |name: &str, texts: Vec<String>| entity(name, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut all: Vec<Value> = (0..200).map(|n| of(&format!("n{n}"), vec![fact(n), fact(n + 1)])).collect();
    all.push(of("many", (0..200).map(fact).collect()));
    all.push(of("short", (0..1_500).map(|n| format!("{n:x}")).collect()));
    all.push(of("escaped", (0..50).map(|n| format!("{n}{}", "\u{1}".repeat(40))).collect()));
    all.push(of("last", Vec::new()));
    all
}

async fn full() -> (World, Vec<Value>, Vec<Value>) {
    let relations: Vec<Value> = (0..200).map(|n| relation(&format!("n{n}"), &format!("nowhere {n}"))).collect();
    let entities = known();
    let torn = "{torn\n".repeat(200);
    let line = |value: &Value, kind: &str| {
        let mut line = json!({ "type": kind });
        line.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let mut file: String = entities.iter().map(|e| line(e, "entity")).collect();
    file.push_str(&torn);
    file.extend(relations.iter().map(|r| line(r, "relation")));
    let w = World::with(file, |config| config.max_result_bytes = LIMIT).await;
    (w, entities, relations)
}

/// An answer, held against the limit: its structured content, and how often it says that it was cut.
async fn answer(w: &World, tool: &str, args: &Value) -> Value {
    let result = w.raw(tool, args.clone()).await;
    assert!(!result.is_error(), "{tool}: {}", result.text());
    let content = result.content().unwrap();
    let blocks: Vec<&str> = content.iter().map(|block| block.as_text().unwrap()).collect();
    let text: usize = blocks.iter().map(|block| block.len()).sum();
    let structured = result.structured().unwrap().len();
    assert!(text <= HELD && structured <= HELD, "{tool} {args}: {text} bytes of text, {structured} structured");
    let value: Value = result.json().unwrap();
    let cut = value["truncated"] == true;
    assert_eq!(
        blocks.get(1).is_some_and(|notice| notice.contains("[Truncated")),
        cut,
        "{tool} {args}: {:?}",
        blocks.get(1)
    );
    if let Some(cursor) = value["next_cursor"].as_str() {
        assert!(cut && blocks[1].contains(&format!("{cursor:?}")), "{tool}: {}", blocks[1]);
    }
    value
}

/// Every answer up to the last, each with the cursor of the one before.
async fn pages(w: &World, tool: &str, mut args: Value) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let page = answer(w, tool, &args).await;
        args["cursor"] = page["next_cursor"].clone();
        pages.push(page);
        if args["cursor"].is_null() {
            return pages;
        }
        assert!(pages.len() < 2_000, "{tool} comes to no end");
    }
}

#[tokio::test]
async fn every_answer_holds_the_limit_and_pages_show_everything() {
    let (w, entities, relations) = full().await;
    let names: Vec<&str> = entities.iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(answer(&w, "read_graph", &json!({})).await["truncated"], true);
    for (tool, args) in [
        ("memory_read_page", json!({ "limit": 1_000 })),
        ("search_nodes", json!({ "query": "" })),
        ("open_nodes", json!({ "names": names })),
    ] {
        let pages = pages(&w, tool, args).await;
        let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut order = Vec::new();
        for entity in pages.iter().flat_map(|page| page["entities"].as_array().unwrap()) {
            let name = entity["name"].as_str().unwrap();
            if order.last() != Some(&name) {
                order.push(name);
            }
            seen.entry(name.to_owned()).or_default().extend(entity["observations"].as_array().unwrap().clone());
        }
        assert_eq!(order, names, "{tool}");
        for entity in &entities {
            assert!(
                seen[entity["name"].as_str().unwrap()] == *entity["observations"].as_array().unwrap(),
                "{tool} {entity}"
            );
        }
        let shown: Vec<&Value> = pages.iter().flat_map(|page| page["relations"].as_array().unwrap()).collect();
        assert_eq!(shown, relations.iter().collect::<Vec<_>>(), "{tool}");
        assert!(pages.len() > 15, "{tool}: {}", pages.len());
    }
    let found = pages(&w, "memory_search", json!({ "query": "fact", "limit": 100 })).await;
    let shown: usize = found.iter().map(|page| page["results"].as_array().unwrap().len()).sum();
    assert_eq!((shown, found[0]["total"].as_u64()), (201, Some(201)));
}

#[tokio::test]
async fn every_change_and_the_history_hold_the_limit() {
    let (w, ..) = full().await;
    let long = |n: usize| format!("{n} {}", "name ".repeat(300));
    let made: Vec<Value> = (0..30).map(|n| entity(&long(n), &["x"])).collect();
    let linked: Vec<Value> = (0..30).map(|n| relation(&long(n), &long(n + 100))).collect();
    let facts: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    for (tool, args, cut) in [
        ("create_entities", json!({ "entities": made }), true),
        ("create_relations", json!({ "relations": linked }), true),
        ("create_relations", json!({ "relations": [relation(&"f\u{1}".repeat(4_000), &"t".repeat(9_000))] }), true),
        ("add_observations", json!({ "observations": [{ "entityName": "n1", "contents": facts }] }), true),
        ("memory_merge_entities", json!({ "names": ["many", "n1"], "into": "n2" }), true),
        ("delete_observations", json!({ "deletions": [{ "entityName": "n2", "observations": facts }] }), false),
        ("delete_entities", json!({ "entityNames": (0..30).map(long).collect::<Vec<_>>() }), false),
        ("memory_undo", json!({}), false),
        ("delete_relations", json!({ "relations": [relation("n5", "nowhere 5")] }), false),
    ] {
        let value = answer(&w, tool, &args).await;
        assert_eq!(value["truncated"] == true, cut, "{tool}");
    }
    for name in ["a", "b", "c"] {
        w.create(&[name]).await;
    }
    for args in [json!({ "limit": 100 }), json!({})] {
        let pages = pages(&w, "memory_history", args).await;
        let ids: Vec<u64> = pages
            .iter()
            .flat_map(|page| page["changes"].as_array().unwrap())
            .map(|c| c["id"].as_u64().unwrap())
            .collect();
        assert_eq!(ids, (1..=12).rev().collect::<Vec<_>>());
        assert!(pages.len() > 3, "{}", pages.len());
    }
    assert_eq!(pages(&w, "memory_history", json!({ "name": "n1" })).await.len(), 1);
}

/// What is larger than an answer all by itself.
#[tokio::test]
async fn even_the_smallest_limit_is_held_by_one_record() {
    let w = World::with("", |config| config.max_result_bytes = 1_000).await;
    let name = "n\u{1}".repeat(5_000);
    let all: Vec<Value> = (0..3).map(|n| entity(&format!("{n}{name}"), &[&"o\"".repeat(9_000), "p"])).collect();
    w.call("create_entities", json!({ "entities": all })).await;
    for (tool, args) in [
        ("memory_read_page", json!({})),
        ("search_nodes", json!({ "query": "" })),
        ("memory_search", json!({ "query": "n p" })),
        ("memory_history", json!({})),
    ] {
        let shown = pages(&w, tool, args).await;
        let lists = ["entities", "results", "changes"]
            .map(|list| shown.iter().filter_map(|page| page[list].as_array()).map(Vec::len).sum::<usize>());
        assert!(
            lists.contains(&if tool == "memory_history" {
                1
            } else if tool == "memory_search" {
                3
            } else {
                6
            }),
            "{tool}: {lists:?}"
        );
    }
}
