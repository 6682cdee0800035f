//! Downgrades definitions and content to a revision: unsupported parts are removed or replaced, never sent.

use linchpin_core::Features;
use linchpin_types::content::{Annotations, ContentBlock, Icon, ResourceContents};
use linchpin_types::lifecycle::Implementation;
use linchpin_types::meta::Meta;
use linchpin_types::prompt::Prompt;
use linchpin_types::resource::{Resource, ResourceTemplate};
use linchpin_types::tool::Tool;
use serde_json::{Value, json};

/// A content block as `features` can carry it. Audio and links become text where they do not exist.
pub(crate) fn content(mut block: ContentBlock, features: &Features) -> ContentBlock {
    match &mut block {
        ContentBlock::Audio(audio) if !features.audio => {
            return ContentBlock::text(format!(
                "[audio, {}, {} bytes in base64: this client's protocol revision has no audio]",
                audio.mime_type,
                audio.data.len()
            ));
        }
        ContentBlock::ResourceLink(link) if !features.resource_links => {
            let about = link.description.as_deref().map(|d| format!(" ({d})")).unwrap_or_default();
            return ContentBlock::text(format!("{}: {}{about}", link.name, link.uri));
        }
        ContentBlock::Text(b) => common(&mut b.annotations, &mut b.meta, features),
        ContentBlock::Image(b) => common(&mut b.annotations, &mut b.meta, features),
        ContentBlock::Audio(b) => common(&mut b.annotations, &mut b.meta, features),
        ContentBlock::ResourceLink(b) => {
            common(&mut b.annotations, &mut b.meta, features);
            icons(&mut b.icons, features);
        }
        ContentBlock::Resource(b) => {
            common(&mut b.annotations, &mut b.meta, features);
            contents(&mut b.resource, features);
        }
        // An unknown kind is supported by the revision that introduced it.
        _ => {}
    }
    block
}

/// Resource contents as `features` can carry them.
pub(crate) fn contents(contents: &mut ResourceContents, features: &Features) {
    if !features.titles {
        match contents {
            ResourceContents::Text(c) => c.meta = None,
            ResourceContents::Blob(c) => c.meta = None,
        }
    }
}

/// A tool definition as `features` can carry it.
pub(crate) fn tool(mut t: Tool, features: &Features) -> Tool {
    if !features.titles {
        // Before tools had titles, their annotations did.
        if let Some(title) = t.title.take().filter(|_| features.tool_annotations) {
            t.annotations.get_or_insert_default().title.get_or_insert(title);
        }
        t.meta = None;
    }
    if !features.structured
        || (!features.structured_any && t.output_schema.as_ref().is_some_and(|s| !object_schema(s.get())))
    {
        t.output_schema = None;
    }
    if !features.tool_annotations {
        t.annotations = None;
    }
    if !features.tool_execution {
        t.execution = None;
    }
    icons(&mut t.icons, features);
    t
}

/// A resource definition as `features` can carry it.
pub(crate) fn resource(mut r: Resource, features: &Features) -> Resource {
    title(&mut r.title, features);
    common(&mut r.annotations, &mut r.meta, features);
    icons(&mut r.icons, features);
    r
}

/// A template definition as `features` can carry it.
pub(crate) fn template(mut t: ResourceTemplate, features: &Features) -> ResourceTemplate {
    title(&mut t.title, features);
    common(&mut t.annotations, &mut t.meta, features);
    icons(&mut t.icons, features);
    t
}

/// A prompt definition as `features` can carry it.
pub(crate) fn prompt(mut p: Prompt, features: &Features) -> Prompt {
    title(&mut p.title, features);
    if !features.titles {
        p.meta = None;
    }
    for argument in &mut p.arguments {
        title(&mut argument.title, features);
    }
    icons(&mut p.icons, features);
    p
}

/// An implementation's name card as `features` can carry it.
pub(crate) fn implementation(mut i: Implementation, features: &Features) -> Implementation {
    title(&mut i.title, features);
    if !features.icons {
        i.description = None;
        i.website_url = None;
    }
    icons(&mut i.icons, features);
    i
}

/// Downgrades the schema of a form to `features`. An error says what the client's revision does not support.
pub(crate) fn form(schema: &mut Value, features: &Features) -> Result<(), String> {
    if !features.elicitation {
        return Err("the client's protocol revision has no elicitation".into());
    }
    if features.icons {
        return Ok(());
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return Ok(()) };
    for (name, field) in properties {
        if field["type"] == "array" {
            return Err(format!("the client's protocol revision does not support multi-select fields (`{name}`)"));
        }
        let Some(field) = field.as_object_mut() else { continue };
        if field.get("default").is_some_and(|d| !d.is_boolean()) {
            field.remove("default");
        }
        if let Some(Value::Array(choices)) = field.remove("oneOf") {
            let pick = |key: &str| choices.iter().map(|c| c[key].clone()).collect::<Vec<_>>();
            field.insert("enum".into(), json!(pick("const")));
            field.insert("enumNames".into(), json!(pick("title")));
        }
    }
    Ok(())
}

/// Whether the root of a schema has `"type": "object"`.
pub(crate) fn object_schema(schema: &str) -> bool {
    serde_json::from_str::<Value>(schema).is_ok_and(|s| s["type"] == "object")
}

fn common(annotations: &mut Option<Annotations>, meta: &mut Option<Meta>, features: &Features) {
    if !features.titles {
        *meta = None;
        if let Some(a) = annotations {
            a.last_modified = None;
        }
    }
}

fn title(title: &mut Option<String>, features: &Features) {
    if !features.titles {
        *title = None;
    }
}

fn icons(icons: &mut Vec<Icon>, features: &Features) {
    if !features.icons {
        icons.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linchpin_types::version::Revision;

    #[test]
    fn a_resource_keeps_its_size_in_every_revision_and_its_title_from_the_one_that_has_it() {
        for (at, revision) in Revision::ALL.into_iter().enumerate() {
            let given = Resource::new("a:b", "b").with_size(7u64).with_title("t");
            let fitted = resource(given, Features::of(revision));
            assert_eq!((fitted.size, fitted.title.is_some()), (Some(7), at >= 2), "{revision}");
        }
    }
}
