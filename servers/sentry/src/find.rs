//! Organizations, projects, teams, releases; and the projects of a search.

use crate::name;
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Args, Ask};

/// The request for what is to be found.
pub(crate) fn request(_: Ask, args: &Args) -> Ask {
    let path = match args.text("kind") {
        "organizations" => "/organizations/",
        "projects" => "/organizations/{organization}/projects/",
        "teams" => "/organizations/{organization}/teams/",
        _ => "/organizations/{organization}/releases/",
    };
    let ask = Ask::get(path).fill(args).query("per_page", "100");
    if args.get("query").is_some() { ask.query("query", args.text("query")) } else { ask }
}

/// Slugs of projects become a part of the query: older installations take only ids as the parameter.
pub(crate) async fn projects(args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let (ids, slugs): (Vec<&str>, Vec<&str>) =
        args.list("project").into_iter().partition(|one| name::is_project_id(one));
    if slugs.is_empty() {
        return Ok(None);
    }
    if !ids.is_empty() {
        return Err(ToolError::invalid("project has both slugs and ids").hint("Give slugs only, or ids only."));
    }
    let term =
        if let [slug] = slugs[..] { format!("project:{slug}") } else { format!("project:[{}]", slugs.join(",")) };
    let query = format!("{} {term}", args.text("query"));
    args.set("query", query.trim());
    args.set("project", Vec::<String>::new());
    Ok(None)
}
