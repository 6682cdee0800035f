//! The names of GitHub's own server that the published one lacks; what both have is in the set `official` too.

use crate::commit::delete_file;
use crate::compact as short;
use crate::original::{
    self as all, BODY, BRANCH, ISSUE, MESSAGE, NUMBER, ORDER, OWNER, PAGE, PATH, PER_PAGE, QUERY, REPO, TITLE,
};
use crate::read::status;
use crate::scope::{inside, narrow, narrow_issues, trusted};
use linchpin_rest::{Call, boolean, delete, get, methods, one_of, patch, segments, text};

const SET: &str = "official";

/// The calls: offered on request.
pub(crate) const CALLS: &[Call] = &[
    get("get_me", "Who am I", SET, "Reads the account that the token is of.", "/user")
        .always()
        .keep("login id html_url name company blog location email bio public_repos followers following created_at")
        .on_request(),
    methods(
        "issue_read",
        "Read an issue",
        SET,
        "get: an issue. get_comments, get_labels, get_sub_issues: what it has.",
        &[
            ("get", short::GET_ISSUE),
            ("get_comments", short::ISSUE_COMMENTS),
            ("get_labels", LABELS),
            ("get_sub_issues", SUB_ISSUES),
        ],
    )
    .on_request(),
    methods(
        "issue_write",
        "Write an issue",
        SET,
        "create: an issue (title). update: change one (issue_number); assignees and labels are replaced.",
        &[("create", all::CREATE_ISSUE.keep(short::WRITTEN)), ("update", all::UPDATE_ISSUE.keep(short::WRITTEN))],
    )
    .on_request(),
    methods(
        "pull_request_read",
        "Read a pull request",
        SET,
        "get: a pull request. get_files: its changed files with diffs. get_status: its checks. get_commits: its commits. \
         get_review_comments: the comments on its diff. get_reviews: its reviews. get_comments: its other comments.",
        &[
            ("get", short::GET_PULL),
            ("get_files", short::PULL_FILES),
            ("get_status", short::PULL_STATUS.run(|rest, args| Box::pin(status(rest, args)))),
            ("get_commits", PULL_COMMITS),
            ("get_review_comments", short::PULL_COMMENTS),
            ("get_reviews", short::PULL_REVIEWS),
            ("get_comments", CONVERSATION),
        ],
    )
    .on_request(),
    methods(
        "pull_request_review_write",
        "Review a pull request",
        SET,
        "create: approve, reject or comment on a pull request (event, body).",
        &[("create", all::REVIEW.keep("id state html_url"))],
    )
    .on_request(),
    patch(
        "update_pull_request",
        "Change a pull request",
        SET,
        "Changes a pull request.",
        crate::read::PULL,
    )
    .args(&[
        OWNER,
        REPO,
        NUMBER,
        TITLE.opt(),
        BODY.opt(),
        one_of("state", &["open", "closed"]).opt().about("The new one."),
        text("base").opt().about("Branch to merge into."),
        boolean("maintainer_can_modify").opt().about("Maintainers may push to head."),
    ])
    .keep(short::WRITTEN)
    .trusted(trusted)
    .on_request(),
    get(
        "search_pull_requests",
        "Search pull requests",
        SET,
        "Searches for pull requests.",
        "/search/issues",
    )
    .args(&[
        QUERY,
        PER_PAGE,
        PAGE.unlisted(),
        one_of("sort", &["comments", "reactions", "interactions", "created", "updated"]).opt().about("What by."),
        ORDER,
        all::IN_OWNER,
        all::IN_REPO,
    ])
    .adjust(|ask, args| {
            let ask = all::in_one_repository(ask, args);
            let query = format!("{} is:pr", ask.query_of("q").unwrap_or_default());
            ask.set_query("q", query)
        })
    .list("items")
    .beside("total_count incomplete_results")
    .keep("number title state draft user.login repository_url labels.name comments updated_at html_url")
    .fields()
    .narrowed(narrow_issues, inside)
    .trusted(trusted)
    .on_request(),
    delete("delete_file", "Delete a file", SET, "Deletes a file, as a commit on a branch.", crate::read::CONTENTS)
        .args(&[OWNER, REPO, PATH, MESSAGE, BRANCH])
        .once()
        .keep("commit.sha commit.html_url")
        .run(|rest, args| Box::pin(delete_file(rest, args)))
        .on_request(),
    get(
        "get_commit",
        "Read a commit",
        SET,
        "Reads a commit with its changed files and diffs.",
        "/repos/{owner}/{repo}/commits/{sha}",
    )
    .args(&[OWNER, REPO, segments("sha").about("Commit, branch or tag."), PER_PAGE.unlisted(), PAGE.unlisted()])
    .ignored(&["detail"])
    .keep(
        "sha html_url commit.message commit.author author.login parents.sha stats files.filename files.previous_filename \
         files.status files.additions files.deletions files.patch:6000",
    )
    .fields()
    .on_request(),
    named("list_branches", "List branches", "Lists branches.", "/repos/{owner}/{repo}/branches")
        .args(&[OWNER, REPO, PER_PAGE, PAGE.unlisted()])
        .keep("name commit.sha protected")
        .list(""),
    named("list_tags", "List tags", "Lists tags.", "/repos/{owner}/{repo}/tags")
        .args(&[OWNER, REPO, PER_PAGE, PAGE.unlisted()])
        .keep("name commit.sha")
        .list(""),
    named("list_releases", "List releases", "Lists releases, the newest first.", "/repos/{owner}/{repo}/releases")
        .args(&[OWNER, REPO, PER_PAGE, PAGE.unlisted()])
        .keep("id tag_name name draft prerelease published_at html_url")
        .fields()
        .list(""),
    named("get_latest_release", "Latest release", "Reads the latest release.", "/repos/{owner}/{repo}/releases/latest")
        .args(&[OWNER, REPO])
        .keep(RELEASE),
    named("get_release_by_tag", "Release of a tag", "Reads the release of a tag.", "/repos/{owner}/{repo}/releases/tags/{tag}")
        .args(&[OWNER, REPO, segments("tag").about("Its name.")])
        .keep(RELEASE),
];

const RELEASE: &str = "id tag_name name draft prerelease author.login created_at published_at html_url assets.name assets.size \
                       assets.browser_download_url body:8000";

/// A row that reads and is offered on request.
const fn named(name: &'static str, title: &'static str, description: &'static str, path: &'static str) -> Call {
    get(name, title, SET, description, path).on_request()
}

const LABELS: Call = named("get_labels", "", "", "/repos/{owner}/{repo}/issues/{issue_number}/labels")
    .args(&[OWNER, REPO, ISSUE, PER_PAGE, PAGE.unlisted()])
    .keep("name description color")
    .list("")
    .narrowed(narrow, inside);

const SUB_ISSUES: Call = named("get_sub_issues", "", "", "/repos/{owner}/{repo}/issues/{issue_number}/sub_issues")
    .args(&[OWNER, REPO, ISSUE, PER_PAGE, PAGE.unlisted()])
    .keep("number title state repository_url")
    .list("")
    .narrowed(narrow, inside)
    .trusted(trusted);

const PULL_COMMITS: Call = named("get_commits", "", "", "/repos/{owner}/{repo}/pulls/{pull_number}/commits")
    .args(&[OWNER, REPO, NUMBER, PER_PAGE, PAGE.unlisted()])
    .keep("sha commit.message:1000 commit.author.name commit.author.date author.login")
    .list("");

const CONVERSATION: Call = named("get_comments", "", "", "/repos/{owner}/{repo}/issues/{pull_number}/comments")
    .args(&[OWNER, REPO, NUMBER, PER_PAGE, PAGE.unlisted()])
    .keep("id user.login author_association created_at body:8000")
    .list("")
    .narrowed(narrow, inside)
    .trusted(trusted);
