//! Addresses without passwords.

/// A value with the password of an address hidden: what is to be pasted is printed, and may be kept.
pub(super) fn without_login(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else { return value.to_owned() };
    let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match (authority.rsplit_once('@'), authority.rsplit_once(':')) {
        (Some((login, place)), _) => match login.split_once(':') {
            Some((user, password)) if !password.is_empty() => format!("{scheme}://{user}:PASSWORD@{place}{after}"),
            _ => value.to_owned(),
        },
        // A password that has a slash in it ends further on.
        (None, Some((_, port))) if after.contains('@') && !port.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{scheme}://…")
        }
        _ => value.to_owned(),
    }
}
