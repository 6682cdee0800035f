//! The rows of the published server's tools.

use linchpin_kit::ToolError;
use linchpin_rest::{
    Answer, Arg, Args, Call, Rest, boolean, get, int, is_path, list, object, one_of, post, slashed, text,
};

/// A text in Markdown in which GitLab finds nothing to carry out.
pub(crate) const DESCRIPTION: Arg = text("description").opt().like(is_no_action, NO_ACTION_FORM).about("Markdown.");

pub(crate) const NO_ACTION_FORM: &str =
    "a text without quick actions, which are lines that begin with a slash and a word";

/// Whether no line is a quick action, such as `/move other/project`: GitLab would carry it out, whatever the operator allows.
pub(crate) fn is_no_action(text: &str) -> bool {
    !text.split(['\n', '\r']).any(|line| {
        let name = line.trim_start().strip_prefix('/').unwrap_or_default();
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && (end == name.len() || name[end..].starts_with(char::is_whitespace))
    })
}

pub(crate) const PROJECT: Arg = slashed("project_id").about("group/project or number.");
const FILE: Arg = slashed("file_path").about("Path in the repository.");
const BRANCH: Arg = text("branch").about("Name of the branch.");
const MESSAGE: Arg = text("commit_message").about("Of the commit.");
const REF: Arg = text("ref").about("Branch, tag or commit.");

const REPOSITORY: &str = "id name path_with_namespace description:1000 visibility default_branch web_url ssh_url_to_repo \
    http_url_to_repo created_at last_activity_at archived empty_repo star_count forks_count open_issues_count topics \
    owner.id owner.username owner.name owner.web_url namespace.full_path namespace.kind \
    forked_from_project.id forked_from_project.name forked_from_project.path_with_namespace forked_from_project.web_url \
    forked_from_project.owner.id forked_from_project.owner.username import_status";

pub(crate) const CREATE_OR_UPDATE_FILE: Call = post(
    "create_or_update_file",
    "Create or update a file",
    "files",
    "Commits one file: creates it, or replaces what it contains.",
    "/projects/{project_id}/repository/files/{file_path}",
)
.args(&[
    PROJECT,
    FILE,
    object("content", r#"{"type":"string"}"#).about("All of the file."),
    MESSAGE,
    BRANCH,
    text("previous_path").opt().like(is_path, "the path of a file").about("Moves the file from there."),
])
.destructive();

pub(crate) const SEARCH_REPOSITORIES: Call =
    get("search_repositories", "Search projects", "projects", "Searches projects by name and path.", "/projects")
        .args(&[
            text("search").chars(1_000).about("A part of the name or path."),
            int("page").range(1, 10_000).default("1").about("From 1."),
            int("per_page").range(1, 100).default("20").about("Results of a page."),
        ])
        .narrowed(
            |ask, _| ask,
            |project, only| {
                let is = |one: &String| {
                    let path = project["path_with_namespace"].as_str().unwrap_or_default();
                    one.eq_ignore_ascii_case(path) || project["id"].as_u64().is_some_and(|id| *one == id.to_string())
                };
                only.iter().any(is)
            },
        )
        .pages(linchpin_rest::Pages::One)
        .list("items")
        .beside("count next_page")
        .keep(REPOSITORY);

pub(crate) const CREATE_REPOSITORY: Call =
    post("create_repository", "Create a project", "projects", "Creates a project.", "/projects")
        .args(&[
            text("name").about("Of the project."),
            text("description").opt().about("In Markdown."),
            one_of("visibility", &["private", "internal", "public"]).opt().about("Who sees it."),
            boolean("initialize_with_readme").opt().about("Begin with a README."),
        ])
        .keep(REPOSITORY);

pub(crate) const GET_FILE_CONTENTS: Call = get(
    "get_file_contents",
    "Read a file",
    "files",
    "Reads a file; of a directory, lists what is in it.",
    "/projects/{project_id}/repository/files/{file_path}",
)
.args(&[PROJECT, FILE.about("/ is the top."), REF.default("HEAD")])
.keep(
    "type entries.name entries.path entries.type entries.mode entries.id file_name file_path size encoding \
     content:20000 content_sha256 ref blob_id commit_id last_commit_id execute_filemode \
     left_out more",
);

pub(crate) const PUSH_FILES: Call = post(
    "push_files",
    "Push files",
    "files",
    "Commits several files at once: creates those that are new, and replaces what the others contain.",
    "/projects/{project_id}/repository/commits",
)
.args(&[
    PROJECT,
    BRANCH,
    object(
        "files",
        r#"{"type":"array","items":{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}}"#,
    )
    .about("Paths and all of their contents."),
    MESSAGE,
    text("start_branch").opt().about("Creates the branch from this one."),
])
.destructive()
.keep(
    "id short_id title message author_name author_email authored_date committer_name committer_email committed_date \
     web_url parent_ids stats",
);

pub(crate) const ISSUE: &str = "id iid project_id title description:20000 state confidential issue_type labels \
    author.id author.username author.name author.web_url assignees.id assignees.username assignees.name \
    milestone.id milestone.iid milestone.title due_date weight user_notes_count upvotes downvotes severity \
    created_at updated_at closed_at web_url task_completion_status";

pub(crate) const CREATE_ISSUE: Call =
    post("create_issue", "Create an issue", "issues", "Creates an issue.", "/projects/{project_id}/issues")
        .args(&[
            PROJECT,
            text("title").about("One line."),
            DESCRIPTION,
            object("assignee_ids", NUMBERS).opt().about("User ids."),
            list("labels").comma().opt().about("Names of labels."),
            int("milestone_id").opt().about("Id of a milestone."),
        ])
        .keep(ISSUE);

pub(crate) const NUMBERS: &str = r#"{"type":"array","items":{"type":"integer"}}"#;

pub(crate) const MERGE_REQUEST: &str = "id iid project_id title description:20000 state draft merged_at labels \
    author.id author.username author.name author.web_url assignees.id assignees.username reviewers.id reviewers.username \
    source_branch target_branch source_project_id target_project_id sha merge_commit_sha squash_commit_sha \
    detailed_merge_status merge_status has_conflicts diff_refs changes_count milestone.id milestone.title user_notes_count \
    blocking_discussions_resolved head_pipeline.id head_pipeline.status head_pipeline.web_url \
    created_at updated_at closed_at web_url references.full";

pub(crate) const CREATE_MERGE_REQUEST: Call = post(
    "create_merge_request",
    "Create a merge request",
    "merge_requests",
    "Creates a merge request.",
    "/projects/{project_id}/merge_requests",
)
.args(&[
    PROJECT,
    text("title").about("One line."),
    DESCRIPTION,
    text("source_branch").about("With the changes."),
    text("target_branch").about("To merge into."),
    boolean("draft").opt().local().about("Not to be merged yet."),
    boolean("allow_collaboration").opt().about("Members of the target may push to the source."),
])
.before(|_, args| Box::pin(as_draft(args)))
.keep(MERGE_REQUEST);

/// A draft is one by its title.
async fn as_draft(args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let title = args.text("title").to_owned();
    let is_draft = ["draft:", "[draft]", "(draft)"].iter().any(|mark| title.to_lowercase().starts_with(mark));
    if args.is_on("draft") && !is_draft {
        args.set("title", format!("Draft: {title}"));
    }
    Ok(None)
}

pub(crate) const FORK_REPOSITORY: Call = post(
    "fork_repository",
    "Fork a project",
    "projects",
    "Forks a project into your namespace, or another.",
    "/projects/{project_id}/fork",
)
.args(&[PROJECT, text("namespace").opt().about("Full path of the group.")])
.before(|rest, _| Box::pin(unrestricted(rest)))
.keep(REPOSITORY);

/// A fork is another project.
async fn unrestricted(rest: &Rest) -> Result<Option<Answer>, ToolError> {
    match rest.config().only.is_empty() {
        true => Ok(None),
        false => Err(ToolError::denied("This server is restricted to projects, and a fork would be another one")),
    }
}

pub(crate) const CREATE_BRANCH: Call = post(
    "create_branch",
    "Create a branch",
    "files",
    "Creates a branch.",
    "/projects/{project_id}/repository/branches",
)
.args(&[PROJECT, BRANCH, REF.default("HEAD")])
.keep(
    "name merged protected default can_push web_url commit.id commit.short_id commit.title commit.author_name \
     commit.committed_date commit.web_url",
);
