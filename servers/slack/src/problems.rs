//! Failures. Slack tells most of them with a status of success: `{"ok": false, "error": "not_in_channel"}`.

use linchpin_kit::ErrorKind;
use linchpin_rest::Problems;
use serde_json::Value;

/// Our first lines, where Slack's words are, and what they mean.
pub(crate) const PROBLEMS: Problems = Problems::PLAIN
    .words(&[
        (200, "Slack API error"),
        (429, "Slack API error: too many requests"),
        (0, "Slack API error: {status} {reason}"),
    ])
    .message(&["error", "needed", "response_metadata.messages"])
    .failed(failed)
    .advise(advice);

/// The kind of Slack's code for a failure.
fn failed(answer: &Value) -> Option<ErrorKind> {
    if answer["ok"].as_bool() != Some(false) {
        return None;
    }
    Some(match answer["error"].as_str().unwrap_or_default() {
        "ratelimited" | "rate_limited" => ErrorKind::Limited { retry_after: None },
        "missing_scope"
        | "not_authed"
        | "invalid_auth"
        | "account_inactive"
        | "token_revoked"
        | "token_expired"
        | "no_permission"
        | "not_allowed_token_type"
        | "access_denied"
        | "not_in_channel"
        | "restricted_action"
        | "cant_update_message"
        | "ekm_access_denied"
        | "org_login_required"
        | "team_access_not_granted"
        | "paid_only"
        | "is_archived"
        | "edit_window_closed" => ErrorKind::Denied,
        "already_reacted" | "duplicate_message_not_allowed" => ErrorKind::Conflict,
        "no_text"
        | "msg_too_long"
        | "too_long"
        | "too_many_reactions"
        | "too_many_users"
        | "users_list_not_supplied" => ErrorKind::Invalid,
        code if code.ends_with("_not_found") || code.ends_with("_not_visible") => ErrorKind::NotFound,
        code if code.starts_with("invalid_") || code.starts_with("bad_") => ErrorKind::Invalid,
        _ => ErrorKind::Upstream { status: None },
    })
}

/// What can be done about the code of a search.
pub(crate) fn advice_on_user(answer: &Value) -> Option<&'static str> {
    Some(match answer["error"].as_str()? {
        "not_authed" | "invalid_auth" | "account_inactive" | "token_revoked" | "token_expired" => {
            "The operator must check SLACK_USER_TOKEN."
        }
        "not_allowed_token_type" => "SLACK_USER_TOKEN must be a user's token (xoxp-).",
        _ => return advice(answer),
    })
}

/// What can be done about a code.
fn advice(answer: &Value) -> Option<&'static str> {
    Some(match answer["error"].as_str()? {
        "missing_scope" => "The operator must add the scope that Slack names to the app, and install it again.",
        "not_authed" | "invalid_auth" | "account_inactive" | "token_revoked" | "token_expired" => {
            "The operator must check SLACK_BOT_TOKEN."
        }
        "not_allowed_token_type" => "SLACK_BOT_TOKEN must be a bot token (xoxb-), SLACK_USER_TOKEN a user's (xoxp-).",
        "not_in_channel" => "Somebody must invite the app to the channel: /invite @app.",
        "channel_not_found" => "It does not exist, or the app is not in it. Ids are in slack_list_channels.",
        "user_not_found" | "users_not_found" => "Ids are in slack_get_users.",
        "thread_not_found" | "message_not_found" => "Timestamps are in slack_get_channel_history.",
        "already_reacted" => "The reaction is there already; nothing is to be done.",
        "invalid_name" => "Use the name of an emoji without colons.",
        "cant_update_message" => "Only messages of this app can be corrected.",
        _ => return None,
    })
}
