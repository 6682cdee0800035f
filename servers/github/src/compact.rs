//! The compact set: nine tools whose methods are the published ones, with short results.

use crate::commit::{create_branch, push_files, write_file};
use crate::original::{
    self as all, BODY, COMMIT_MESSAGE, COMMIT_TITLE, DIRECTION, ISSUE, MERGE_METHOD, NUMBER, ORDER, OWNER, PAGE,
    PER_PAGE, REPO, STATE, TITLE,
};
use crate::read::{contents, status};
use crate::scope::{inside, narrow, trusted};
use linchpin_rest::{Arg, Call, boolean, get, list, methods, one_of, put, text};

const SET: &str = "compact";

/// The calls.
pub(crate) const CALLS: &[Call] = &[
    methods(
        "github_search",
        "Search GitHub",
        SET,
        "Searches repositories, code, issues (the query must have is:issue or is:pr) or users. Queries have GitHub's qualifiers: \
         repo:octocat/hello is:open label:bug language:rust.",
        &[
            ("repositories", SEARCH_REPOSITORIES),
            ("code", SEARCH_CODE),
            ("issues", SEARCH_ISSUES),
            ("users", SEARCH_USERS),
        ],
    )
    .extra(),
    methods(
        "github_repos_read",
        "Read a repository",
        SET,
        "contents: a file's text, or a directory (path; empty for the root). commits: of a branch (sha), a file (path) or an \
         author.",
        &[("contents", CONTENTS.run(|rest, args| Box::pin(contents(rest, args)))), ("commits", LIST_COMMITS)],
    )
    .extra(),
    methods(
        "github_repos_write",
        "Create repositories and branches",
        SET,
        "create: a repository in your account (name), public unless private is true. fork: owner, repo. branch: a new branch \
         (owner, repo, branch).",
        &[
            ("create", all::CREATE_REPOSITORY.keep(REPOSITORY)),
            ("fork", all::FORK.keep(REPOSITORY)),
            ("branch", all::CREATE_BRANCH.keep(REFERENCE).run(|rest, args| Box::pin(create_branch(rest, args)))),
        ],
    )
    .extra(),
    methods(
        "github_files_write",
        "Write files",
        SET,
        "Commits on a branch. write: one file (path, content). push: several (files). Never forces; fails if others push \
         meanwhile.",
        &[
            ("write", WRITE_FILE.run(|rest, args| Box::pin(write_file(rest, args)))),
            ("push", all::PUSH_FILES.keep("ref object.sha note").run(|rest, args| Box::pin(push_files(rest, args)))),
        ],
    )
    .extra(),
    methods(
        "github_issues_read",
        "Read issues",
        SET,
        "list: the issues of a repository; pull requests are among them. get: one (issue_number). comments: its comments, or \
         those of a pull request (issue_number).",
        &[("list", LIST_ISSUES), ("get", GET_ISSUE), ("comments", ISSUE_COMMENTS)],
    )
    .extra(),
    methods(
        "github_issues_write",
        "Write issues",
        SET,
        "create: an issue (title). update: change one (issue_number); assignees and labels are replaced. comment: on an issue or a \
         pull request (issue_number, body).",
        &[
            ("create", all::CREATE_ISSUE.keep(WRITTEN)),
            ("update", all::UPDATE_ISSUE.keep(WRITTEN)),
            ("comment", all::COMMENT.keep("id html_url")),
        ],
    )
    .extra(),
    methods(
        "github_pulls_read",
        "Read pull requests",
        SET,
        "list: the pull requests of a repository. All others need pull_number. get: one. files: its changed files with diffs. \
         status: its checks. comments: those on its diff. reviews: its reviews.",
        &[
            ("list", LIST_PULLS),
            ("get", GET_PULL),
            ("files", PULL_FILES),
            ("status", PULL_STATUS.run(|rest, args| Box::pin(status(rest, args)))),
            ("comments", PULL_COMMENTS),
            ("reviews", PULL_REVIEWS),
        ],
    )
    .extra(),
    methods(
        "github_pulls_write",
        "Write pull requests",
        SET,
        "create: a pull request (title, head, base). review: approve, reject or comment on one (pull_number, event, body). \
         update_branch: merge the base into its branch (pull_number).",
        &[
            ("create", CREATE_PULL),
            ("review", all::REVIEW.keep("id state html_url")),
            ("update_branch", all::UPDATE_PULL_BRANCH),
        ],
    )
    .extra(),
    MERGE.extra(),
];

const REPOSITORY: &str = "full_name html_url private default_branch parent.full_name";
const REFERENCE: &str = "ref object.sha";
pub(crate) const WRITTEN: &str = "number title state html_url";

const QUERY: Arg = text("query").wire("q").aliases(&["q"]).about("Words and qualifiers.");

const SEARCH_REPOSITORIES: Call = all::SEARCH_REPOSITORIES
    .args(&[
        QUERY,
        PER_PAGE,
        PAGE.unlisted(),
        one_of("sort", &["stars", "forks", "help-wanted-issues", "updated"]).opt().about("What by."),
        ORDER.unlisted(),
    ])
    .keep("full_name description:300 private archived stargazers_count language updated_at html_url")
    .fields();

const SEARCH_CODE: Call =
    all::SEARCH_CODE.args(&[QUERY, PER_PAGE, PAGE.unlisted()]).keep("repository.full_name path html_url").fields();

const SEARCH_ISSUES: Call = all::SEARCH_ISSUES
    .args(&[
        QUERY,
        PER_PAGE,
        PAGE.unlisted(),
        one_of("sort", &["comments", "reactions", "interactions", "created", "updated"]).opt().about("What by."),
        ORDER.unlisted(),
        all::IN_OWNER,
        all::IN_REPO,
    ])
    .keep("number title state user.login repository_url labels.name comments updated_at pull_request.html_url")
    .fields();

const SEARCH_USERS: Call = all::SEARCH_USERS
    .args(&[
        QUERY,
        PER_PAGE,
        PAGE.unlisted(),
        one_of("sort", &["followers", "repositories", "joined"]).opt().about("What by."),
        ORDER.unlisted(),
    ])
    .keep("login type html_url")
    .fields();

const CONTENTS: Call = all::CONTENTS.keep("type name path size sha content:24000 binary left_out target");

const WRITE_FILE: Call = all::WRITE_FILE.keep("content.path content.sha content.html_url commit.sha commit.html_url");

const LIST_COMMITS: Call = all::LIST_COMMITS
    .args(&[
        OWNER,
        REPO,
        text("sha").opt().about("Branch or commit."),
        text("path").opt().about("In the repository."),
        text("author").opt().about("Login or email."),
        text("since").opt().about("Such as 2026-01-31T00:00:00Z."),
        text("until").unlisted(),
        PER_PAGE,
        PAGE.unlisted(),
    ])
    .keep("sha commit.message:1000 commit.author.name commit.author.date author.login")
    .fields();

const LIST_ISSUES: Call = all::LIST_ISSUES
    .args(&[
        OWNER,
        REPO,
        STATE,
        list("labels").comma().opt().about("All of these."),
        text("since").opt().about("Such as 2026-01-31T00:00:00Z."),
        one_of("sort", &["created", "updated", "comments"]).opt().about("What by."),
        DIRECTION.unlisted(),
        PER_PAGE,
        PAGE.unlisted(),
    ])
    .keep("number title state user.login labels.name comments updated_at pull_request.html_url")
    .fields();

pub(crate) const GET_ISSUE: Call = all::GET_ISSUE
    .keep(
        "number title state state_reason user.login labels.name assignees.login milestone.number milestone.title comments \
         created_at updated_at closed_at html_url body:8000",
    )
    .fields();

pub(crate) const ISSUE_COMMENTS: Call =
    get("list_issue_comments", "", SET, "", "/repos/{owner}/{repo}/issues/{issue_number}/comments")
        .args(&[OWNER, REPO, ISSUE, PER_PAGE, PAGE.unlisted()])
        .list("")
        .keep("id user.login author_association created_at body:8000")
        .fields()
        .narrowed(narrow, inside)
        .trusted(trusted);

const LIST_PULLS: Call = all::LIST_PULLS
    .args(&[
        OWNER,
        REPO,
        STATE,
        text("head").opt().about("Such as user:branch."),
        text("base").opt().about("Branch."),
        one_of("sort", &["created", "updated", "popularity", "long-running"]).opt().about("What by."),
        DIRECTION.unlisted(),
        PER_PAGE,
        PAGE.unlisted(),
    ])
    .keep("number title state draft user.login head.label base.ref updated_at")
    .fields();

pub(crate) const GET_PULL: Call = all::GET_PULL
    .keep(
        "number title state draft merged mergeable mergeable_state user.login labels.name requested_reviewers.login head.label \
         head.sha base.ref base.sha commits additions deletions changed_files created_at updated_at html_url body:8000",
    )
    .fields();

const CREATE_PULL: Call = all::CREATE_PULL
    .args(&[
        OWNER,
        REPO,
        TITLE,
        BODY.opt(),
        text("head").about("Branch, or user:branch."),
        text("base").about("Branch."),
        boolean("draft").opt().about("Not ready yet."),
        boolean("maintainer_can_modify").unlisted(),
    ])
    .keep(WRITTEN);

pub(crate) const PULL_FILES: Call =
    all::PULL_FILES.keep("filename previous_filename status additions deletions patch:6000").fields();

pub(crate) const PULL_STATUS: Call = all::PULL_STATUS.keep(
    "state sha statuses.context statuses.state statuses.description statuses.target_url check_runs.name check_runs.status \
     check_runs.conclusion check_runs.html_url statuses_left_out check_runs_left_out",
);

pub(crate) const PULL_COMMENTS: Call = all::PULL_COMMENTS
    .keep("id in_reply_to_id user.login author_association path line original_line side created_at body:8000 diff_hunk:600")
    .fields();

pub(crate) const PULL_REVIEWS: Call =
    all::PULL_REVIEWS.keep("id user.login author_association state commit_id submitted_at body:8000").fields();

const MERGE: Call = put(
    "github_pulls_merge",
    "Merge a pull request",
    SET,
    "Merges a pull request. With sha, only if that is its newest commit.",
    "/repos/{owner}/{repo}/pulls/{pull_number}/merge",
)
.args(&[
    OWNER,
    REPO,
    NUMBER,
    MERGE_METHOD,
    COMMIT_TITLE.unlisted(),
    COMMIT_MESSAGE,
    text("sha").opt().about("Of its newest commit."),
])
.once();
