//! The rows, the published ones first.

use crate::{DIRECT, POST, USER, calls, show};
use linchpin_rest::{Arg, Call, boolean, get, int, list_of, one_of, post, text};

/// The calls, the published ones first.
pub const CALLS: &[Call] = &[
    get(
        "slack_list_channels",
        "List channels",
        "channels",
        "Lists the channels this server may use, with their ids, topics and purposes.",
        "/conversations.list",
    )
    .args(&[
        LIMIT.range(1, 200).default("100"),
        list_of("types", &["public_channel", "private_channel", "mpim", "im"]).comma().unlisted(),
        TEAM,
    ])
    .fixed(&[("exclude_archived", "true")])
    .always()
    .before(|rest, args| Box::pin(calls::channels(rest, args)))
    .list("channels")
    .items("channels")
    .keep(
        "id name is_channel is_group is_im is_mpim is_private is_archived is_general is_member is_shared is_ext_shared \
         user topic.value purpose.value num_members created creator",
    )
    .beside("ok")
    .text(show::page),
    POST_MESSAGE.args(&[CHANNEL, MESSAGE]),
    post(
        "slack_reply_to_thread",
        "Reply in a thread",
        "messages",
        "Posts a reply in the thread of a message.",
        "/chat.postMessage",
    )
    .args(&[CHANNEL, THREAD, MESSAGE])
    .fixed(QUIET)
    .form()
    .needs(POST)
    .before(|rest, args| Box::pin(calls::posting(rest, args)))
    .keep(POSTED)
    .text(show::whole),
    post("slack_add_reaction", "Add a reaction", "messages", "Adds an emoji reaction to a message.", "/reactions.add")
        .args(&[
            CHANNEL,
            TIMESTAMP,
            text("reaction").wire("name").chars(100).about("Name of the emoji, such as thumbsup."),
        ])
        .form()
        .again()
        .before(|rest, args| Box::pin(calls::about_message(rest, args)))
        .text(show::whole),
    get(
        "slack_get_channel_history",
        "Read a channel",
        "channels",
        "Reads the messages of a channel, the newest first. Threads are read with slack_get_thread_replies.",
        "/conversations.history",
    )
    .args(&[CHANNEL, LIMIT.default("10"), OLDEST, LATEST, INCLUSIVE])
    .before(|rest, args| Box::pin(calls::about_message(rest, args)))
    .list("messages")
    .items("messages")
    .after(|rest, _, found| Box::pin(calls::mark(rest, found)))
    .trusted(calls::is_trusted)
    .keep(MESSAGES)
    .beside("ok has_more pin_count")
    .text(show::page),
    get(
        "slack_get_thread_replies",
        "Read a thread",
        "channels",
        "Reads a thread, the oldest message first.",
        "/conversations.replies",
    )
    .args(&[CHANNEL, THREAD.wire("ts"), LIMIT.opt(), OLDEST, LATEST, INCLUSIVE])
    .before(|rest, args| Box::pin(calls::about_message(rest, args)))
    .list("messages")
    .items("messages")
    .after(|rest, _, found| Box::pin(calls::mark(rest, found)))
    .trusted(calls::is_trusted)
    .keep(MESSAGES)
    .beside("ok has_more")
    .text(show::page),
    get("slack_get_users", "List people", "people", "Lists the people and bots of the workspace.", "/users.list")
        .args(&[LIMIT.range(1, 200).default("100"), TEAM])
        .always()
        .before(|rest, args| Box::pin(calls::in_team(rest, args)))
        .list("members")
        .items("members")
        .keep(
            "id team_id name deleted real_name tz is_bot is_app_user is_admin is_owner is_restricted is_ultra_restricted \
             profile.real_name profile.display_name profile.title profile.email profile.status_text profile.status_emoji",
        )
        .beside("ok")
        .text(show::page),
    get(
        "slack_get_user_profile",
        "Read a profile",
        "people",
        "Reads the profile of a user: name, title, status, contact.",
        "/users.profile.get",
    )
    .args(&[text("user_id").wire("user").about("An id such as U0123456789, or @name.")])
    .fixed(&[("include_labels", "true")])
    .always()
    .before(|rest, args| Box::pin(calls::about_person(rest, args)))
    .keep(
        "ok profile.real_name profile.display_name profile.first_name profile.last_name profile.title profile.pronouns \
         profile.email profile.phone profile.skype profile.start_date profile.status_text profile.status_emoji \
         profile.status_expiration profile.huddle_state profile.bot_id profile.fields",
    )
    .text(show::whole),
    post(
        "slack_update_message",
        "Correct a message",
        "messages",
        "Replaces the text of a message that this app has posted.",
        "/chat.update",
    )
    .args(&[CHANNEL, TIMESTAMP.wire("ts"), MESSAGE])
    .fixed(ANEW)
    .form()
    .destructive()
    .again()
    .needs(POST)
    .before(|rest, args| Box::pin(calls::posting(rest, args)))
    .keep(POSTED)
    .text(show::whole)
    .extra(),
    get(
        "slack_get_permalink",
        "Link to a message",
        "messages",
        "Returns the address of a message.",
        "/chat.getPermalink",
    )
    .args(&[CHANNEL, TIMESTAMP.wire("message_ts")])
    .before(|rest, args| Box::pin(calls::about_message(rest, args)))
    .text(show::whole)
    .extra(),
    get(
        "slack_get_file",
        "Read a file",
        "messages",
        "Tells about a file and returns the text of snippets. Other contents are not downloaded.",
        "/files.info",
    )
    .args(&[text("file_id").wire("file").chars(40).like(is_id, "an id such as F0123456789").about("From a message.")])
    .always()
    .before(|rest, args| Box::pin(calls::file(rest, args)))
    .keep(
        "ok content:20000 file.id file.name file.title file.mimetype file.filetype file.size file.user file.created \
         file.permalink file.preview:4000 file.channels file.groups file.ims file.is_external",
    )
    .text(show::whole)
    .extra(),
    get(
        "slack_list_usergroups",
        "List user groups",
        "people",
        "Lists the user groups of the workspace, with the ids of their members.",
        "/usergroups.list",
    )
    .args(&[boolean("include_users").opt().default("true").about("Return the members."), TEAM])
    .always()
    .before(|rest, args| Box::pin(calls::in_team(rest, args)))
    .pages(linchpin_rest::Pages::One)
    .list("usergroups")
    .items("usergroups")
    .keep("id handle name description user_count users is_external date_update")
    .beside("ok")
    .text(show::page)
    .extra(),
    post(
        "slack_open_dm",
        "Open a direct message",
        "people",
        "Opens a direct message with one person or several, and returns the id of its channel.",
        "/conversations.open",
    )
    .args(&[linchpin_rest::list("user_ids").wire("users").comma().about("Ids such as U0123456789, or @name; at most 8.")])
    .form()
    .again()
    .needs(DIRECT)
    .before(|rest, args| Box::pin(calls::people(rest, args)))
    .keep("ok no_op already_open channel.id channel.user channel.is_im channel.is_mpim")
    .text(show::whole)
    .extra(),
    SEARCH.run(|rest, args| Box::pin(calls::search(rest, args))),
];

const POST_MESSAGE: Call = post(
    "slack_post_message",
    "Post a message",
    "messages",
    "Posts a message in a channel. Mentions of people and channels notify nobody, unless the operator allows it.",
    "/chat.postMessage",
)
.fixed(QUIET)
.form()
.needs(POST)
.before(|rest, args| Box::pin(calls::posting(rest, args)))
.keep(POSTED)
.text(show::whole);

pub(crate) const SEARCH: Call = get(
    "slack_search",
    "Search messages",
    "search",
    "Searches messages. The query may have in:#channel, from:@name, before:2026-01-31, has:link.",
    "/search.messages",
)
.args(&[
    text("query").chars(500),
    int("count").range(1, 100).default("20").about("Number of results."),
    int("page").range(1, 100).default("1"),
    one_of("sort", &["score", "timestamp"]).default("score"),
    one_of("sort_dir", &["asc", "desc"]).unlisted(),
])
.always()
.after(|rest, _, found| Box::pin(calls::mark(rest, found)))
.trusted(calls::is_trusted)
.pages(linchpin_rest::Pages::One)
.list("matches")
.items("matches")
.keep("type channel.id channel.name user username ts text permalink")
.fewer_fields()
.beside("ok query total paging")
.text(show::page)
.needs(USER)
.extra();

const CHANNEL: Arg = text("channel_id").wire("channel").chars(100).about("An id such as C0123456789, or #name.");
const MESSAGE: Arg = text("text").chars(40_000).about("In Slack's mrkdwn: *bold*, _italic_, `code`, <url|text>.");
const THREAD: Arg =
    text("thread_ts").like(is_timestamp, TIMESTAMP_FORM).about("Timestamp of the first message: 1234567890.123456.");
const TIMESTAMP: Arg = text("timestamp").like(is_timestamp, TIMESTAMP_FORM).about("Of the message: 1234567890.123456.");
const OLDEST: Arg = text("oldest").opt().like(is_timestamp, TIMESTAMP_FORM).about("Only after this timestamp.");
const LATEST: Arg = text("latest").opt().like(is_timestamp, TIMESTAMP_FORM).about("Only before this timestamp.");
const INCLUSIVE: Arg = boolean("inclusive").opt().about("Include these two.");
const LIMIT: Arg = int("limit").range(1, 999).about("Most items of a page.");
const TEAM: Arg = text("team_id").chars(40).unlisted();

const TIMESTAMP_FORM: &str = "a timestamp such as 1234567890.123456";

/// Slack must not fetch what a message links to: the address may carry what a model was told to leak.
const QUIET: &[(&str, &str)] = &[("unfurl_links", "false"), ("unfurl_media", "false")];

/// The same for a correction. It would make mentions of plain words (@channel) without `parse`, and keep what else the message
/// has: blocks are shown instead of its text.
const ANEW: &[(&str, &str)] = &[QUIET[0], QUIET[1], ("parse", "none"), ("blocks", "[]"), ("attachments", "[]")];

const POSTED: &str = "ok channel ts text message.type message.subtype message.text message.user message.username \
    message.bot_id message.app_id message.thread_ts message.ts";

const MESSAGES: &str = "type subtype hidden ts thread_ts parent_user_id user username bot_id app_id text topic purpose \
    reply_count reply_users_count latest_reply edited.user edited.ts reactions.name reactions.count reactions.users \
    attachments.title attachments.title_link attachments.text attachments.fallback attachments.from_url \
    attachments.author_name attachments.service_name files.id files.name files.title files.mimetype files.size \
    files.permalink inviter";

/// A timestamp of Slack, also as in addresses of messages: with `p`, or without its period.
fn is_timestamp(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.strip_prefix('p').unwrap_or(text).split_once('.') {
        Some((seconds, rest)) => seconds.len() <= 12 && digits(seconds) && rest.len() <= 6 && digits(rest),
        None => text.len() <= 17 && digits(text.strip_prefix('p').unwrap_or(text)),
    }
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
