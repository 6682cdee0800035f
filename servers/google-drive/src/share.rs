//! Who may see a file.

use crate::files::bare;
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Rest};

/// Refuses what does not go together: nobody gets access whom the call does not name.
pub(crate) async fn check(_: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let id = bare(args.text("file_id")).to_owned();
    args.set("file_id", id);
    let kind = args.text("type");
    let wanted = match kind {
        "user" | "group" => &["email"][..],
        "domain" => &["domain"],
        _ => &[],
    };
    for name in ["email", "domain"] {
        match (args.get(name).is_some(), wanted.contains(&name)) {
            (false, true) => return Err(ToolError::invalid(format!("Missing argument for type {kind}: {name}"))),
            (true, false) => return Err(ToolError::invalid(format!("Argument {name} is not for type {kind}"))),
            _ => {}
        }
    }
    Ok(None)
}

pub(crate) fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, domain)| !name.is_empty() && is_word(name) && is_domain(domain))
}

pub(crate) fn is_domain(text: &str) -> bool {
    text.contains('.') && is_word(text) && !text.contains(['@', '/'])
}

fn is_word(text: &str) -> bool {
    !text.chars().any(|c| c.is_whitespace() || c.is_control())
}
