//! The rows that the published server lacks: a tool for each subject, with several methods.

use crate::original::{DESCRIPTION, ISSUE, MERGE_REQUEST, NO_ACTION_FORM, NUMBERS, PROJECT, is_no_action};
use crate::{people, trace};
use linchpin_rest::{
    Arg, Args, Ask, Call, boolean, get, int, is_path, list, methods, object, one_of, post, put, slashed, text,
};

const ISSUE_IID: Arg = int("issue_iid").range(1, i64::MAX).about("Its number.");
const MR_IID: Arg = int("merge_request_iid").range(1, i64::MAX).about("Its number.");
const PIPELINE: Arg = int("pipeline_id").range(1, i64::MAX).about("Id of the pipeline.");
const JOB: Arg = int("job_id").range(1, i64::MAX).about("Id of the job.");
const SIZE: Arg = int("per_page").range(1, 100).default("20").about("Items of a page.");
const BODY: Arg = text("body").chars(1_000_000).like(is_no_action, NO_ACTION_FORM).about("Markdown.");
const LABELS: Arg = list("labels").comma().opt().about("Names of labels.");
const SORT: Arg = one_of("sort", &["asc", "desc"]).unlisted();
const ORDER: Arg = one_of("order_by", &["created_at", "updated_at", "title"]).unlisted();
const REF: Arg = text("ref").opt().about("Branch, tag or commit.");
const WORDS: Arg = text("search").opt().about("In title and description.");

const ISSUE_ITEM: &str = "iid project_id title state confidential labels author.id author.username assignees.username \
    milestone.title due_date user_notes_count created_at updated_at closed_at web_url";
const MR_ITEM: &str = "iid project_id title state draft labels author.id author.username assignees.username \
    reviewers.username source_branch target_branch detailed_merge_status has_conflicts user_notes_count created_at \
    updated_at merged_at web_url";
const NOTE: &str = "id type body:8000 author.id author.username author.name system internal confidential resolvable \
    resolved created_at updated_at position.new_path position.new_line position.old_path position.old_line";
const PIPELINE_ITEM: &str = "id iid status source ref sha name user.username duration coverage created_at updated_at \
    started_at finished_at web_url detailed_status.text";
const JOB_ITEM: &str = "id name stage status ref tag allow_failure failure_reason duration created_at started_at finished_at \
    user.username pipeline.id commit.short_id commit.title artifacts_file.filename artifacts_file.size web_url";

pub(crate) const ISSUE_READ: Call = methods(
    "gitlab_issue_read",
    "Read issues",
    "issues",
    "Reads issues: list (of a project), get and notes (comments; issue_iid).",
    &[
        (
            "list",
            get("issues", "", "", "", "/projects/{project_id}/issues")
                .args(&[
                    PROJECT,
                    one_of("state", &["opened", "closed", "all"]).default("opened").about("Of the list."),
                    LABELS,
                    WORDS,
                    text("author_username").opt().about("Author."),
                    text("assignee_username").opt().about("Assignee."),
                    text("milestone").unlisted(),
                    ORDER,
                    SORT,
                    SIZE,
                ])
                .after(|rest, args, found| Box::pin(people::mark(rest, args, found)))
                .trusted(people::is_trusted)
                .list("")
                .keep(ISSUE_ITEM)
                .fewer_fields(),
        ),
        (
            "get",
            get("issue", "", "", "", "/projects/{project_id}/issues/{issue_iid}")
                .args(&[PROJECT, ISSUE_IID])
                .after(|rest, args, found| Box::pin(people::mark(rest, args, found)))
                .trusted(people::is_trusted)
                .keep(ISSUE)
                .fewer_fields(),
        ),
        (
            "notes",
            get("issue_notes", "", "", "", "/projects/{project_id}/issues/{issue_iid}/notes")
                .args(&[PROJECT, ISSUE_IID, SORT, SIZE])
                .after(|rest, args, found| Box::pin(people::mark(rest, args, found)))
                .trusted(people::is_trusted)
                .list("")
                .keep(NOTE)
                .fewer_fields(),
        ),
    ],
)
.extra();

pub(crate) const ISSUE_WRITE: Call = methods(
    "gitlab_issue_write",
    "Change issues",
    "issues",
    "Changes an issue: update, comment (body). New ones: create_issue.",
    &[
        (
            "update",
            put("update_issue", "", "", "", "/projects/{project_id}/issues/{issue_iid}")
                .args(&[
                    PROJECT,
                    ISSUE_IID,
                    text("title").opt().about("One line."),
                    DESCRIPTION,
                    one_of("state_event", &["close", "reopen"]).opt().about("State."),
                    list("add_labels").comma().opt().about("Names."),
                    list("remove_labels").comma().opt().about("Names."),
                    object("assignee_ids", NUMBERS).opt().about("User ids."),
                    int("milestone_id").unlisted(),
                    text("due_date").unlisted(),
                    boolean("confidential").opt().about("Hide it from guests."),
                ])
                .after(|rest, _, found| Box::pin(people::changed(rest, found)))
                .keep(ISSUE),
        ),
        (
            "comment",
            post("comment_on_issue", "", "", "", "/projects/{project_id}/issues/{issue_iid}/notes")
                .args(&[PROJECT, ISSUE_IID, BODY, boolean("internal").unlisted()])
                .keep(NOTE),
        ),
    ],
)
.extra();

pub(crate) const MR_READ: Call = methods(
    "gitlab_mr_read",
    "Read merge requests",
    "merge_requests",
    "Reads merge requests: list (of a project); get, diffs, commits, discussions, approvals, pipelines (merge_request_iid).",
    &[
        (
            "list",
            get("merge_requests", "", "", "", "/projects/{project_id}/merge_requests")
                .args(&[
                    PROJECT,
                    one_of("state", &["opened", "closed", "merged", "locked", "all"]).default("opened").about("Of the list."),
                    LABELS,
                    WORDS,
                    text("author_username").opt().about("Author."),
                    text("reviewer_username").unlisted(),
                    text("source_branch").opt().about("From this branch."),
                    text("target_branch").unlisted(),
                    ORDER,
                    SORT,
                    SIZE,
                ])
                .after(|rest, args, found| Box::pin(people::mark(rest, args, found)))
                .trusted(people::is_trusted)
                .list("")
                .keep(MR_ITEM).fewer_fields(),
        ),
        (
            "get",
            get("merge_request", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}")
                .args(&[PROJECT, MR_IID])
                .after(|rest, args, found| Box::pin(people::mark(rest, args, found)))
                .trusted(people::is_trusted)
                .keep(MERGE_REQUEST).fewer_fields(),
        ),
        (
            "diffs",
            get("merge_request_diffs", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}/diffs")
                .args(&[PROJECT, MR_IID, SIZE])
                .before(|rest, args| Box::pin(people::of_trusted(rest, args)))
                .list("")
                .keep("old_path new_path new_file renamed_file deleted_file generated_file too_large diff:20000").fewer_fields(),
        ),
        (
            "commits",
            get("merge_request_commits", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}/commits")
                .args(&[PROJECT, MR_IID, SIZE])
                .before(|rest, args| Box::pin(people::of_trusted(rest, args)))
                .list("")
                .keep("id short_id title message:4000 author_name author_email authored_date web_url").fewer_fields(),
        ),
        (
            "discussions",
            get(
                "merge_request_discussions",
                "",
                "",
                "",
                "/projects/{project_id}/merge_requests/{merge_request_iid}/discussions",
            )
            .args(&[PROJECT, MR_IID, SIZE])
            .after(|rest, args, found| Box::pin(people::mark_notes(rest, args, found)))
            .trusted(people::has_notes)
            .list("")
            .keep(
                "id individual_note notes.id notes.type notes.body:8000 notes.author.id notes.author.username notes.system \
                 notes.resolvable notes.resolved notes.created_at notes.position.new_path notes.position.new_line \
                 notes.position.old_path notes.position.old_line",
            ).fewer_fields(),
        ),
        (
            "approvals",
            get("merge_request_approvals", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}/approvals")
                .args(&[PROJECT, MR_IID])
                .keep(
                    "approved approvals_required approvals_left user_has_approved user_can_approve approved_by.user.id \
                     approved_by.user.username approved_by.approved_at",
                ).fewer_fields(),
        ),
        (
            "pipelines",
            get("merge_request_pipelines", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}/pipelines")
                .args(&[PROJECT, MR_IID, SIZE])
                .list("")
                .keep(PIPELINE_ITEM).fewer_fields(),
        ),
    ],
)
.extra();

pub(crate) const MR_WRITE: Call = methods(
    "gitlab_mr_write",
    "Change merge requests",
    "merge_requests",
    "Changes a merge request: update, comment, approve, merge.",
    &[
        (
            "update",
            put("update_merge_request", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}")
                .args(&[
                    PROJECT,
                    MR_IID,
                    text("title").opt().about("One line."),
                    DESCRIPTION,
                    text("target_branch").unlisted(),
                    one_of("state_event", &["close", "reopen"]).opt().about("State."),
                    list("add_labels").comma().opt().about("Names."),
                    list("remove_labels").comma().opt().about("Names."),
                    object("assignee_ids", NUMBERS).opt().about("User ids."),
                    object("reviewer_ids", NUMBERS).opt().about("User ids."),
                    int("milestone_id").unlisted(),
                ])
                .after(|rest, _, found| Box::pin(people::changed(rest, found)))
                .keep(MERGE_REQUEST),
        ),
        (
            "comment",
            post(
                "comment_on_merge_request",
                "",
                "",
                "",
                "/projects/{project_id}/merge_requests/{merge_request_iid}/notes",
            )
            .args(&[PROJECT, MR_IID, BODY])
            .keep(NOTE),
        ),
        (
            "approve",
            post(
                "approve_merge_request",
                "",
                "",
                "",
                "/projects/{project_id}/merge_requests/{merge_request_iid}/approve",
            )
            .args(&[PROJECT, MR_IID, text("sha").opt().about("Expected head.")])
            .keep("approved approvals_required approvals_left approved_by.user.username"),
        ),
        (
            "merge",
            put("merge", "", "", "", "/projects/{project_id}/merge_requests/{merge_request_iid}/merge")
                .args(&[
                    PROJECT,
                    MR_IID,
                    text("sha").opt().about("Expected head."),
                    boolean("squash").opt().about("One commit."),
                    boolean("should_remove_source_branch").unlisted(),
                    boolean("auto_merge").opt().about("Once CI passes."),
                    text("merge_commit_message").unlisted(),
                ])
                .once()
                .adjust(with_former_name)
                .after(|rest, _, found| Box::pin(people::changed(rest, found)))
                .keep(MERGE_REQUEST),
        ),
    ],
)
.extra();

/// Before GitLab 17.11, which does not know `auto_merge`, a merge that should wait would not.
fn with_former_name(ask: Ask, args: &Args) -> Ask {
    match args.get("auto_merge") {
        Some(value) => ask.member("merge_when_pipeline_succeeds", value.clone()),
        None => ask,
    }
}

pub(crate) const PIPELINE_READ: Call = methods(
    "gitlab_pipeline_read",
    "Read pipelines",
    "pipelines",
    "Reads pipelines: list; get and jobs (pipeline_id); job and trace (end of its log; job_id).",
    &[
        (
            "list",
            get("pipelines", "", "", "", "/projects/{project_id}/pipelines")
                .args(&[
                    PROJECT,
                    REF,
                    text("sha").unlisted(),
                    one_of("status", &["running", "pending", "success", "failed", "canceled", "skipped", "manual"])
                        .opt()
                        .about("Of the list."),
                    SIZE,
                ])
                .list("")
                .keep(PIPELINE_ITEM)
                .fewer_fields(),
        ),
        (
            "get",
            get("pipeline", "", "", "", "/projects/{project_id}/pipelines/{pipeline_id}")
                .args(&[PROJECT, PIPELINE])
                .keep(PIPELINE_ITEM)
                .fewer_fields(),
        ),
        (
            "jobs",
            get("pipeline_jobs", "", "", "", "/projects/{project_id}/pipelines/{pipeline_id}/jobs")
                .args(&[PROJECT, PIPELINE, boolean("include_retried").unlisted(), SIZE])
                .list("")
                .keep(JOB_ITEM)
                .fewer_fields(),
        ),
        (
            "job",
            get("job", "", "", "", "/projects/{project_id}/jobs/{job_id}")
                .args(&[PROJECT, JOB])
                .keep(JOB_ITEM)
                .fewer_fields(),
        ),
        ("trace", trace::TRACE.run(|rest, args| Box::pin(trace::tail(rest, args)))),
    ],
)
.extra();

pub(crate) const PIPELINE_WRITE: Call = methods(
    "gitlab_pipeline_write",
    "Run pipelines",
    "pipelines",
    "Runs a pipeline (run; ref), or retries or cancels one (pipeline_id), or plays, retries or cancels a job (job_id).",
    &[
        (
            "run",
            post("run_pipeline", "", "", "", "/projects/{project_id}/pipeline")
                .args(&[
                    PROJECT,
                    text("ref").about("Branch or tag."),
                    object(
                        "variables",
                        r#"{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"},"value":{"type":"string"}},"required":["key","value"]}}"#,
                    )
                    .opt()
                    .about("Of the pipeline."),
                ])
                .keep(PIPELINE_ITEM),
        ),
        (
            "retry",
            post("retry_pipeline", "", "", "", "/projects/{project_id}/pipelines/{pipeline_id}/retry")
                .args(&[PROJECT, PIPELINE])
                .keep(PIPELINE_ITEM),
        ),
        (
            "cancel",
            post("cancel_pipeline", "", "", "", "/projects/{project_id}/pipelines/{pipeline_id}/cancel")
                .args(&[PROJECT, PIPELINE])
                .destructive()
                .keep(PIPELINE_ITEM),
        ),
        (
            "play_job",
            post("play_job", "", "", "", "/projects/{project_id}/jobs/{job_id}/play").args(&[PROJECT, JOB]).keep(JOB_ITEM),
        ),
        (
            "retry_job",
            post("retry_job", "", "", "", "/projects/{project_id}/jobs/{job_id}/retry").args(&[PROJECT, JOB]).keep(JOB_ITEM),
        ),
        (
            "cancel_job",
            post("cancel_job", "", "", "", "/projects/{project_id}/jobs/{job_id}/cancel")
                .args(&[PROJECT, JOB])
                .destructive()
                .keep(JOB_ITEM),
        ),
    ],
)
.extra();

pub(crate) const SEARCH: Call = get(
    "gitlab_search",
    "Search a project",
    "search",
    "Searches a project: its code (blobs), commits, issues, merge requests, comments (notes) or wiki.",
    "/projects/{project_id}/search",
)
.args(&[
    PROJECT,
    one_of("scope", &["blobs", "commits", "issues", "merge_requests", "milestones", "notes", "wiki_blobs"]).about("Where."),
    text("search").chars(1_000).about("Words."),
    REF,
    SIZE,
])
.after(|rest, args, found| Box::pin(people::mark_found(rest, args, found)))
.trusted(people::is_trusted)
.list("")
.keep(
    "basename data:4000 path filename ref startline project_id id short_id title message:1000 author_name author_email \
     committed_date iid state confidential labels author.id author.username description:1000 source_branch target_branch \
     body:1000 noteable_type noteable_iid slug created_at updated_at web_url",
)
.extra();

pub(crate) const REPO_TREE: Call = get(
    "gitlab_repo_tree",
    "List a directory",
    "files",
    "Lists the files of a project, or of one of its directories.",
    "/projects/{project_id}/repository/tree",
)
.args(&[
    PROJECT,
    text("path").opt().like(is_path, "the path of a directory").about("The top without it."),
    REF,
    boolean("recursive").opt().about("With all below."),
    SIZE.default("100"),
])
.list("")
.keep("name path type mode id")
.extra();

pub(crate) const WIKI: Call = methods(
    "gitlab_wiki",
    "Read the wiki",
    "wiki",
    "Reads the wiki of a project: list (its pages), get (slug).",
    &[
        (
            "list",
            get("wikis", "", "", "", "/projects/{project_id}/wikis")
                .args(&[PROJECT])
                .list("")
                .keep("title slug format"),
        ),
        (
            "get",
            get("wiki_page", "", "", "", "/projects/{project_id}/wikis/{slug}")
                .args(&[PROJECT, slashed("slug").about("From the list."), text("version").unlisted()])
                .keep("title slug format encoding content:20000"),
        ),
    ],
)
.extra();
