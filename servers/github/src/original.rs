//! The tools of npm's archived `@modelcontextprotocol/server-github`, by name, arguments and results.

use crate::commit::{create_branch, push_files, write_file};
use crate::read::{contents, contents_text, status};
use crate::scope::{inside, narrow, narrow_issues, trusted};
use linchpin_rest::{
    Arg, Args, Ask, Call, boolean, get, int, list, object, one_of, patch, post, put, segment, segments, text,
};
use serde_json::json;

/// The calls in the published order.
pub(crate) const CALLS: &[Call] = &[
    WRITE_FILE.run(|rest, args| Box::pin(write_file(rest, args))).superseded(),
    SEARCH_REPOSITORIES.superseded(),
    CREATE_REPOSITORY.superseded(),
    CONTENTS.run(|rest, args| Box::pin(contents(rest, args))).superseded(),
    PUSH_FILES.run(|rest, args| Box::pin(push_files(rest, args))).superseded(),
    CREATE_ISSUE.superseded(),
    CREATE_PULL.superseded(),
    FORK.superseded(),
    CREATE_BRANCH.run(|rest, args| Box::pin(create_branch(rest, args))).superseded(),
    LIST_COMMITS.superseded(),
    LIST_ISSUES.superseded(),
    UPDATE_ISSUE.superseded(),
    COMMENT.superseded(),
    SEARCH_CODE.superseded(),
    SEARCH_ISSUES.superseded(),
    SEARCH_USERS.superseded(),
    GET_ISSUE.superseded(),
    GET_PULL.superseded(),
    LIST_PULLS.superseded(),
    REVIEW.superseded(),
    MERGE.superseded(),
    PULL_FILES.superseded(),
    PULL_STATUS.run(|rest, args| Box::pin(status(rest, args))).superseded(),
    UPDATE_PULL_BRANCH.superseded(),
    PULL_COMMENTS.superseded(),
    PULL_REVIEWS.superseded(),
];

/// Paths of members that an object has wherever it is, with what is before them.
macro_rules! under {
    ($at:literal: $($name:literal)*) => { concat!($($at, $name, " "),*) };
}

macro_rules! person {
    ($at:literal) => { under!($at: "login" "id" "avatar_url" "url" "html_url") };
}

macro_rules! repository {
    ($at:literal) => {
        under!($at: "id" "node_id" "name" "full_name" "private" "owner.login" "owner.id" "owner.node_id" "owner.avatar_url"
            "owner.url" "owner.html_url" "owner.type" "html_url" "description" "fork" "url" "created_at" "updated_at"
            "pushed_at" "git_url" "ssh_url" "clone_url" "default_branch")
    };
}

/// What the published server keeps of an object, and what belongs to it.
const REPOSITORY: &str = repository!("");
const PULL: &str = concat!(
    "url id node_id html_url diff_url patch_url issue_url number state locked title body created_at updated_at closed_at \
     merged_at merge_commit_sha draft merged mergeable mergeable_state author_association comments review_comments commits \
     additions deletions changed_files labels.id labels.node_id labels.url labels.name labels.color labels.default \
     labels.description ",
    person!("user."),
    person!("assignee."),
    person!("assignees."),
    person!("requested_reviewers."),
    under!("head.": "label" "ref" "sha"),
    person!("head.user."),
    repository!("head.repo."),
    under!("base.": "label" "ref" "sha"),
    person!("base.user."),
    repository!("base.repo.")
);
const REFERENCE: &str = "ref node_id url object.sha object.type object.url";

pub(crate) const WRITE_FILE: Call = put(
    "create_or_update_file",
    "Write a file",
    "original official",
    "Creates or replaces one file, as a commit on a branch. For several: push_files.",
    "/repos/{owner}/{repo}/contents/{path}",
)
.args(&[
    OWNER,
    REPO,
    PATH,
    // It may be empty.
    object("content", r#"{"type":"string"}"#).about("The new text."),
    MESSAGE,
    BRANCH,
    text("sha").opt().about("Blob SHA of the file to replace; without it, that of the file as it is."),
])
.once()
.keep(
    "content.name content.path content.sha content.size content.url content.html_url content.git_url content.download_url \
     content.type content._links commit.sha commit.node_id commit.url commit.html_url commit.author commit.committer \
     commit.message commit.tree commit.parents",
);

pub(crate) const SEARCH_REPOSITORIES: Call = get(
    "search_repositories",
    "Search repositories",
    "original official",
    "Searches for repositories.",
    "/search/repositories",
)
.args(&[
    text("query").wire("q").aliases(&["q"]).about("With qualifiers, such as user:octocat language:rust."),
    PAGE,
    PER_PAGE_CAMEL,
    one_of("sort", &["stars", "forks", "help-wanted-issues", "updated"]).unlisted(),
    ORDER.unlisted(),
])
.ignored(&["minimal_output"])
.list("items")
.beside("total_count incomplete_results")
.keep(REPOSITORY)
.narrowed(narrow, inside);

pub(crate) const CREATE_REPOSITORY: Call = post(
    "create_repository",
    "Create a repository",
    "original official",
    "Creates a repository in your account. It is public unless private is true.",
    "/user/repos",
)
.args(&[
    text("name").about("Its name."),
    text("description").opt().about("One line."),
    boolean("private").opt().about("Not public."),
    boolean("autoInit").wire("auto_init").opt().aliases(&["auto_init"]).about("With a README."),
])
.keep(REPOSITORY);

pub(crate) const CONTENTS: Call = get(
    "get_file_contents",
    "Read a file or directory",
    "original official",
    "Reads a file, or lists a directory.",
    "/repos/{owner}/{repo}/contents",
)
.args(&[
    OWNER,
    REPO,
    PATH.about("Empty for the root."),
    text("branch").opt().aliases(&["ref", "sha"]).about("Branch, tag or commit."),
])
.keep("type name path sha size url html_url git_url download_url encoding _links content:24000 binary left_out target submodule_git_url")
.text(contents_text);

pub(crate) const PUSH_FILES: Call = post(
    "push_files",
    "Push files",
    "original official",
    "Commits several files on a branch at once. Never forces; fails if others push meanwhile.",
    "",
)
.args(&[OWNER, REPO, BRANCH, object("files", FILES).about("All of the commit."), MESSAGE])
.destructive()
.keep("ref node_id url object.sha object.type object.url note");

pub(crate) const CREATE_ISSUE: Call =
    post("create_issue", "Create an issue", "original", "Creates an issue.", "/repos/{owner}/{repo}/issues").args(&[
        OWNER,
        REPO,
        TITLE,
        BODY.opt(),
        ASSIGNEES,
        MILESTONE,
        LABELS,
    ]);

pub(crate) const CREATE_PULL: Call = post(
    "create_pull_request",
    "Create a pull request",
    "original official",
    "Creates a pull request.",
    "/repos/{owner}/{repo}/pulls",
)
.args(&[
    OWNER,
    REPO,
    TITLE,
    BODY.opt(),
    text("head").about("Branch with the changes; of a fork, user:branch."),
    text("base").about("Branch to merge into."),
    boolean("draft").opt().about("Not ready yet."),
    boolean("maintainer_can_modify").opt().about("Maintainers may push to head."),
])
.keep(PULL);

pub(crate) const FORK: Call = post(
    "fork_repository",
    "Fork a repository",
    "original official",
    "Forks a repository.",
    "/repos/{owner}/{repo}/forks",
)
.args(&[OWNER, REPO, text("organization").opt().about("Where to; without it, your account.")])
.again()
.keep(concat!(repository!(""), repository!("parent."), repository!("source.")));

pub(crate) const CREATE_BRANCH: Call =
    post("create_branch", "Create a branch", "original official", "Creates a branch.", "")
        .args(&[
            OWNER,
            REPO,
            text("branch").about("The new name."),
            text("from_branch").opt().about("Without it, the default branch."),
        ])
        .keep(REFERENCE);

pub(crate) const LIST_COMMITS: Call = get(
    "list_commits",
    "List commits",
    "original official",
    "Lists commits, the newest first.",
    "/repos/{owner}/{repo}/commits",
)
.args(&[
    OWNER,
    REPO,
    text("sha").opt().about("Branch, tag or commit to begin at."),
    PAGE,
    PER_PAGE_CAMEL,
    text("path").unlisted(),
    text("author").unlisted(),
    text("since").unlisted(),
    text("until").unlisted(),
])
.list("");

pub(crate) const LIST_ISSUES: Call = get(
    "list_issues",
    "List issues",
    "original official",
    "Lists issues. Pull requests are among them, with a member pull_request.",
    "/repos/{owner}/{repo}/issues",
)
.args(&[
    OWNER,
    REPO,
    DIRECTION,
    list("labels").comma().opt().about("All of these."),
    PAGE,
    PER_PAGE,
    text("since").opt().about("Such as 2026-01-31T00:00:00Z."),
    one_of("sort", &["created", "updated", "comments"]).opt().about("Default created."),
    STATE,
])
.list("")
.trusted(trusted);

pub(crate) const UPDATE_ISSUE: Call = patch(
    "update_issue",
    "Change an issue",
    "original",
    "Changes an issue. Assignees and labels are replaced.",
    "/repos/{owner}/{repo}/issues/{issue_number}",
)
.args(&[
    OWNER,
    REPO,
    ISSUE,
    TITLE.opt(),
    BODY.opt(),
    ASSIGNEES,
    MILESTONE,
    LABELS,
    one_of("state", &["open", "closed"]).opt().about("The new one."),
    one_of("state_reason", &["completed", "not_planned", "duplicate", "reopened"]).unlisted(),
    text("type").unlisted(),
])
.trusted(trusted);

pub(crate) const COMMENT: Call = post(
    "add_issue_comment",
    "Comment",
    "original official",
    "Adds a comment to an issue or a pull request.",
    "/repos/{owner}/{repo}/issues/{issue_number}/comments",
)
.args(&[OWNER, REPO, ISSUE, BODY]);

pub(crate) const SEARCH_CODE: Call =
    get("search_code", "Search code", "original official", "Searches for code in default branches.", "/search/code")
        .args(&[QUERY, ORDER.unlisted(), PAGE, PER_PAGE, text("sort").unlisted()])
        .list("items")
        .beside("total_count incomplete_results")
        .narrowed(narrow, inside);

pub(crate) const SEARCH_ISSUES: Call = get(
    "search_issues",
    "Search issues",
    "original official",
    "Searches for issues or pull requests: is:issue or is:pr must be in the query.",
    "/search/issues",
)
.args(&[
    QUERY,
    ORDER,
    PAGE,
    PER_PAGE,
    one_of("sort", SORTS_OF_ISSUES).opt().about("Default best match."),
    IN_OWNER,
    IN_REPO,
])
.adjust(in_one_repository)
.list("items")
.beside("total_count incomplete_results search_type")
.narrowed(narrow_issues, inside)
.trusted(trusted);

pub(crate) const SEARCH_USERS: Call =
    get("search_users", "Search users", "original official", "Searches for users and organizations.", "/search/users")
        .args(&[
            QUERY,
            ORDER,
            PAGE,
            PER_PAGE,
            one_of("sort", &["followers", "repositories", "joined"]).opt().about("Default best match."),
        ])
        .list("items")
        .beside("total_count incomplete_results")
        .always();

pub(crate) const GET_ISSUE: Call =
    get("get_issue", "Read an issue", "original", "Reads an issue.", "/repos/{owner}/{repo}/issues/{issue_number}")
        .args(&[OWNER, REPO, ISSUE])
        .narrowed(narrow, inside)
        .trusted(trusted);

pub(crate) const GET_PULL: Call =
    get("get_pull_request", "Read a pull request", "original", "Reads a pull request.", crate::read::PULL)
        .args(&[OWNER, REPO, NUMBER])
        .keep(PULL)
        .trusted(trusted);

pub(crate) const LIST_PULLS: Call = get(
    "list_pull_requests",
    "List pull requests",
    "original official",
    "Lists pull requests.",
    "/repos/{owner}/{repo}/pulls",
)
.args(&[
    OWNER,
    REPO,
    STATE,
    text("head").opt().about("Such as user:branch."),
    text("base").opt().about("Branch that they merge into."),
    one_of("sort", &["created", "updated", "popularity", "long-running"]).opt().about("Default created."),
    DIRECTION,
    PER_PAGE,
    PAGE,
])
.list("")
.keep(PULL)
.trusted(trusted);

pub(crate) const REVIEW: Call = post(
    "create_pull_request_review",
    "Review a pull request",
    "original",
    "Reviews a pull request.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews",
)
.args(&[
    OWNER,
    REPO,
    NUMBER,
    text("commit_id").opt().aliases(&["commitID"]).about("Default its newest commit."),
    BODY.opt().about("Markdown; an approval needs none."),
    one_of("event", &["APPROVE", "REQUEST_CHANGES", "COMMENT"]).about("The verdict."),
    object("comments", COMMENTS).opt().about("Each at a line of the file, or at a position in the diff."),
])
.keep("id node_id user.login user.id user.avatar_url user.url user.html_url body state html_url pull_request_url commit_id submitted_at author_association");

pub(crate) const MERGE: Call = put(
    "merge_pull_request",
    "Merge a pull request",
    "original official",
    "Merges a pull request.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/merge",
)
.args(&[OWNER, REPO, NUMBER, COMMIT_TITLE, COMMIT_MESSAGE, MERGE_METHOD, text("sha").unlisted()])
.once();

pub(crate) const PULL_FILES: Call = get(
    "get_pull_request_files",
    "Files of a pull request",
    "original",
    "Lists the changed files of a pull request with their diffs.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/files",
)
.args(&[OWNER, REPO, NUMBER, PAGE.unlisted(), PER_PAGE.unlisted()])
.list("");

pub(crate) const PULL_STATUS: Call = get(
    "get_pull_request_status",
    "Checks of a pull request",
    "original",
    "Reads the commit status and the check runs of a pull request's newest commit.",
    "",
)
.args(&[OWNER, REPO, NUMBER])
.keep(
    "state sha total_count statuses.url statuses.state statuses.description statuses.target_url statuses.context \
     statuses.created_at statuses.updated_at check_runs.name check_runs.status check_runs.conclusion check_runs.html_url \
     check_runs.output.title check_runs.started_at check_runs.completed_at statuses_left_out check_runs_left_out",
);

pub(crate) const UPDATE_PULL_BRANCH: Call = put(
    "update_pull_request_branch",
    "Update the branch of a pull request",
    "original official",
    "Merges the base branch into the branch of a pull request.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/update-branch",
)
.args(&[
    OWNER,
    REPO,
    NUMBER,
    text("expected_head_sha").opt().aliases(&["expectedHeadSha"]).about("Fail if its newest commit is another."),
])
.additive()
.once()
.tidy(|answer| *answer = json!({ "success": true }));

pub(crate) const PULL_COMMENTS: Call = get(
    "get_pull_request_comments",
    "Review comments of a pull request",
    "original",
    "Lists the comments on the diff of a pull request.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/comments",
)
.args(&[OWNER, REPO, NUMBER, PAGE.unlisted(), PER_PAGE.unlisted()])
.list("")
.trusted(trusted);

pub(crate) const PULL_REVIEWS: Call = get(
    "get_pull_request_reviews",
    "Reviews of a pull request",
    "original",
    "Lists the reviews of a pull request.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/reviews",
)
.args(&[OWNER, REPO, NUMBER, PAGE.unlisted(), PER_PAGE.unlisted()])
.list("")
.trusted(trusted);

pub(crate) const OWNER: Arg = segment("owner").about("User or organization.");
pub(crate) const REPO: Arg = segment("repo").about("Repository.");
pub(crate) const ISSUE: Arg = int("issue_number").range(1, i64::MAX).about("Its number.");
pub(crate) const NUMBER: Arg = int("pull_number").range(1, i64::MAX).aliases(&["pullNumber"]).about("Its number.");
pub(crate) const TITLE: Arg = text("title").about("One line.");
pub(crate) const BODY: Arg = text("body").about("Markdown.");
const ASSIGNEES: Arg = list("assignees").opt().about("Logins.");
const MILESTONE: Arg = int("milestone").opt().about("Its number.");
const LABELS: Arg = list("labels").opt().about("Names.");
pub(crate) const STATE: Arg = one_of("state", &["open", "closed", "all"]).opt().about("Default open.");
pub(crate) const COMMIT_TITLE: Arg = text("commit_title").opt().about("Instead of GitHub's.");
pub(crate) const COMMIT_MESSAGE: Arg = text("commit_message").opt().about("Instead of GitHub's.");
pub(crate) const MERGE_METHOD: Arg =
    one_of("merge_method", &["merge", "squash", "rebase"]).opt().about("Default merge.");
pub(crate) const PATH: Arg = segments("path").about("In the repository.");
pub(crate) const BRANCH: Arg = text("branch").about("Where to commit.");
pub(crate) const MESSAGE: Arg = text("message").about("Of the commit.");
pub(crate) const QUERY: Arg = text("q").aliases(&["query"]).about("With qualifiers, such as repo:octocat/hello.");
pub(crate) const ORDER: Arg = one_of("order", &["asc", "desc"]).opt().about("Default desc.");
pub(crate) const DIRECTION: Arg = one_of("direction", &["asc", "desc"]).opt().about("Default desc.");
pub(crate) const PAGE: Arg = int("page").range(1, i64::MAX).opt().about("From 1.");
pub(crate) const PER_PAGE: Arg = int("per_page").range(1, 100).opt().aliases(&["perPage"]).about("Default 30.");
const PER_PAGE_CAMEL: Arg =
    int("perPage").wire("per_page").range(1, 100).opt().aliases(&["per_page"]).about("Default 30.");

/// The repository of a search, beside its query.
pub(crate) const IN_OWNER: Arg = text("owner").local().unlisted();
pub(crate) const IN_REPO: Arg = text("repo").local().unlisted();

/// A search in the repository that is named beside the query.
pub(crate) fn in_one_repository(ask: Ask, args: &Args) -> Ask {
    match (args.text("owner"), args.text("repo")) {
        ("", _) | (_, "") => ask,
        (owner, repo) => {
            let query = format!("{} repo:{owner}/{repo}", ask.query_of("q").unwrap_or_default());
            ask.set_query("q", query)
        }
    }
}

const FILES: &str = r#"{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}"#;

const COMMENTS: &str = r#"{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"},"position":{"type":"integer"},"body":{"type":"string"}},"required":["path","body"]}}"#;

const SORTS_OF_ISSUES: &[&str] = &[
    "comments",
    "reactions",
    "reactions-+1",
    "reactions--1",
    "reactions-smile",
    "reactions-thinking_face",
    "reactions-heart",
    "reactions-tada",
    "interactions",
    "created",
    "updated",
];
