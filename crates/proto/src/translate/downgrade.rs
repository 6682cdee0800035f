//! Definitions and content of a newer revision for a client of an older one. Only what has something else is read.

use linchpin_core::message::Request;
use linchpin_core::{ClientCaps, Features, Method, Reply, exact};
use serde_json::{Map, Value, json};
use std::slice;

/// The parameters of an elicitation by form as an older revision has them. An error, as a sentence, if the form has something
/// that must be filled in and that the revision does not have.
pub(super) fn form(params: &str, features: &Features) -> Result<String, String> {
    if features.icons {
        return Ok(params.to_owned());
    }
    let Ok(Value::Object(mut read)) = exact::read(params) else { return Ok(params.to_owned()) };
    read.remove("mode");
    let Some(schema) = read.get_mut("requestedSchema").and_then(Value::as_object_mut) else {
        return Ok(exact::text(&Value::Object(read)));
    };
    let required: Vec<Value> = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut lacks = None;
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.retain(|name, field| {
            let several = field["type"] == "array";
            if several && required.iter().any(|one| one == name) {
                lacks = Some(format!(
                    "the form wants several choices (`{name}`), which this client's revision does not have"
                ));
            }
            // What need not be filled in is left out.
            !several
        });
        fields.values_mut().filter_map(Value::as_object_mut).for_each(field);
    }
    lacks.map_or_else(|| Ok(exact::text(&Value::Object(read))), Err)
}

/// A field of a form as an older revision has it.
fn field(field: &mut Map<String, Value>) {
    if field.get("default").is_some_and(|default| !default.is_boolean()) {
        field.remove("default");
    }
    if let Some(Value::Array(choices)) = field.remove("oneOf") {
        let pick = |key: &str| choices.iter().map(|choice| choice[key].clone()).collect::<Vec<_>>();
        let (values, names) = (pick("const"), pick("title"));
        field.insert("enum".into(), values.into());
        field.insert("enumNames".into(), names.into());
    }
}

/// The parameters of sampling as the client has them: tools and the context of servers only if it declared them, and in
/// older revisions one block a message. An error, as a sentence, if they would mean something else.
pub(super) fn sampling(params: &str, features: &Features, caps: &ClientCaps) -> Result<String, String> {
    let tools = features.icons && caps.sampling_tools;
    if tools && caps.sampling_context {
        return Ok(params.to_owned());
    }
    let Ok(Value::Object(mut read)) = exact::read(params) else { return Ok(params.to_owned()) };
    let came = read.clone();
    if !caps.sampling_context && read.get("includeContext").is_some_and(|context| context != "none") {
        read.remove("includeContext");
    }
    if !tools {
        if read.get("toolChoice").is_some_and(|choice| choice["mode"] == "required") {
            return Err("the model is to use a tool, but this client has no tools in sampling".to_owned());
        }
        read.remove("tools");
        read.remove("toolChoice");
    }
    for message in read.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        sampled(message, features, tools)?;
    }
    Ok(if read == came { params.to_owned() } else { exact::text(&Value::Object(read)) })
}

/// A message of sampling as the client has it.
fn sampled(one: &mut Value, features: &Features, tools: bool) -> Result<(), String> {
    let Some(content) = one.get_mut("content") else { return Ok(()) };
    let blocks = content.as_array().map_or(slice::from_ref(&*content), Vec::as_slice);
    let has = |kinds: &[&str]| blocks.iter().any(|block| kinds.iter().any(|kind| block["type"] == *kind));
    if !tools && has(&["tool_use", "tool_result"]) {
        return Err("a message is about the use of a tool, but this client has no tools in sampling".to_owned());
    }
    if !features.audio && has(&["audio"]) {
        return Err("a message has audio, which this client's revision does not have".to_owned());
    }
    if !features.icons
        && let Value::Array(blocks) = content
    {
        if blocks.len() != 1 {
            let n = blocks.len();
            return Err(format!("a message to sample from has {n} blocks of content; this client's revision has one"));
        }
        *content = blocks.remove(0);
    }
    message(one, features);
    Ok(())
}

/// Who somebody is as the revision says it.
pub(super) fn implementation(who: &mut Map<String, Value>, features: &Features) {
    let newer = [
        ("title", features.titles),
        ("icons", features.icons),
        ("description", features.icons),
        ("websiteUrl", features.icons),
    ];
    for (name, has) in newer {
        if !has {
            who.remove(name);
        }
    }
}

/// The result as the client's revision has it.
pub(super) fn downgraded(request: &Request, mut reply: Reply) -> Reply {
    let features = request.caller.features();
    let Some(method) = request.known().filter(|method| differs(*method, features, reply.body())) else { return reply };
    reply.edit_exactly(|body| {
        let list = match method {
            Method::ToolsCall => "content",
            Method::PromptsGet => "messages",
            Method::ResourcesRead => "contents",
            Method::ToolsList => "tools",
            Method::PromptsList => "prompts",
            Method::ResourcesList => "resources",
            _ => "resourceTemplates",
        };
        for item in body.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            match method {
                Method::ToolsCall => block(item, features),
                Method::PromptsGet => message(item, features),
                Method::ResourcesRead => contents(item, features),
                _ => item.as_object_mut().into_iter().for_each(|item| definition(method, item, features)),
            }
        }
    });
    reply
}

/// Whether a result may have something that the revision does not have. It may be in a text, too: then nothing is changed.
fn differs(method: Method, features: &Features, body: &str) -> bool {
    let has = |what: &str| body.contains(what);
    let newer = (!features.titles && (has("\"title\"") || has("\"_meta\""))) || (!features.icons && has("\"icons\""));
    match method {
        Method::ToolsCall | Method::PromptsGet => {
            newer || (!features.audio && has("\"audio\"")) || (!features.resource_links && has("\"resource_link\""))
        }
        Method::ToolsList => {
            newer
                || (!features.structured_any && has("\"outputSchema\""))
                || (!features.tool_annotations && has("\"annotations\""))
                || (!features.tool_execution && has("\"execution\""))
        }
        Method::ResourcesRead | Method::ResourcesList | Method::ResourcesTemplatesList | Method::PromptsList => newer,
        _ => false,
    }
}

fn definition(method: Method, item: &mut Map<String, Value>, features: &Features) {
    if !features.titles {
        let title = item.remove("title");
        item.remove("_meta");
        // Before tools had titles, their annotations did.
        if let Some(title) = title.filter(|_| method == Method::ToolsList && features.tool_annotations)
            && let Some(annotations) = item.entry("annotations").or_insert_with(|| json!({})).as_object_mut()
        {
            annotations.entry("title").or_insert(title);
        }
        for argument in item.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten() {
            argument.as_object_mut().into_iter().for_each(|argument| drop(argument.remove("title")));
        }
    }
    if !features.icons {
        item.remove("icons");
    }
    if method != Method::ToolsList {
        return;
    }
    let keeps = |schema: &Value| features.structured && (features.structured_any || schema["type"] == "object");
    if item.get("outputSchema").is_some_and(|schema| !keeps(schema)) {
        item.remove("outputSchema");
    }
    if !features.tool_annotations {
        item.remove("annotations");
    }
    if !features.tool_execution {
        item.remove("execution");
    }
}

fn message(message: &mut Value, features: &Features) {
    match message.get_mut("content") {
        Some(Value::Array(blocks)) => blocks.iter_mut().for_each(|inner| block(inner, features)),
        Some(inner) => block(inner, features),
        None => {}
    }
}

fn contents(contents: &mut Value, features: &Features) {
    if let Some(contents) = contents.as_object_mut().filter(|_| !features.titles) {
        contents.remove("_meta");
    }
}

/// A block of content; one of a kind that the revision does not have becomes text.
fn block(block: &mut Value, features: &Features) {
    let text = match block["type"].as_str() {
        Some("audio") if !features.audio => {
            let bytes = block["data"].as_str().map_or(0, str::len);
            let kind = block["mimeType"].as_str().unwrap_or("of unknown type");
            format!("[audio, {kind}, {bytes} bytes in base64: this client's protocol revision has no audio]")
        }
        Some("resource_link") if !features.resource_links => {
            let (name, uri) = (block["name"].as_str().unwrap_or("resource"), block["uri"].as_str().unwrap_or_default());
            let about = block["description"].as_str().map(|text| format!(" ({text})")).unwrap_or_default();
            format!("{name}: {uri}{about}")
        }
        _ => {
            if let Some(members) = block.as_object_mut() {
                if !features.titles {
                    members.remove("_meta");
                }
                if !features.icons {
                    members.remove("icons");
                }
                members.get_mut("resource").into_iter().for_each(|inner| contents(inner, features));
            }
            return;
        }
    };
    *block = json!({ "type": "text", "text": text });
}
