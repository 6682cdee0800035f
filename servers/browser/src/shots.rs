//! Screenshots as resources, each for the clients who took one of its name.

use linchpin::types::content::ResourceContents;
use linchpin::{Cx, Error, Handle, NoArgs, Resource};
use linchpin_kit::ToolChoice;
use std::sync::Arc;

const PNG: &str = "image/png";

/// The URI of a screenshot. Braces would make it a template.
pub(crate) fn shot_uri(choice: &ToolChoice, name: &str) -> String {
    choice.uri(&format!("screenshot://{}", name.replace('{', "%7B").replace('}', "%7D")))
}

/// Adds the resource of screenshots with this name, which exists for those who took one; `shot` is a caller's own.
pub(crate) fn list(
    handle: &Handle,
    uri: &str,
    name: &str,
    shot: impl Fn(&Cx) -> Option<Arc<str>> + Clone + Send + Sync + 'static,
) {
    let resource = Resource::new(uri)
        .name(format!("Screenshot: {name}"))
        .title(format!("Screenshot: {name}"))
        .mime_type(PNG)
        .visible_to(|_| false);
    let read = move |cx: &Cx, _: NoArgs| {
        let shot = shot(cx);
        let uri = cx.uri().unwrap_or_default().to_owned();
        async move {
            let shot = shot.ok_or_else(Error::not_found)?;
            Ok::<_, Error>(ResourceContents::blob_base64(uri, &*shot).with_mime_type(PNG))
        }
    };
    // It is there already where another client has one of this name.
    let _ = handle.resources().insert(resource, read);
}
