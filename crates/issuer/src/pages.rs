//! The pages that users see: one function each, no scripts.
//!
//! `maud` escapes every text, so that no name of a client becomes markup.

use crate::answer::STYLE;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// What all pages of one server say.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The name of the server.
    pub(crate) name: String,
    /// Its address, as users are shown it.
    pub(crate) url: String,
}

/// What a login is about: shown on every page of it.
pub(crate) struct About<'a> {
    /// What the client is called.
    pub(crate) client: &'a str,
    /// The host that proves who the client is; `None`: nothing does.
    pub(crate) proved_by: Option<&'a str>,
    /// Whether the operator registered the client.
    pub(crate) known: bool,
    /// Where the answer goes.
    pub(crate) place: &'a str,
    /// What is asked for, in sentences.
    pub(crate) scopes: &'a [String],
    /// What is protected.
    pub(crate) resource: &'a str,
}

/// Values that go with every form of a transaction.
pub(crate) struct Form<'a> {
    /// Where it is sent.
    pub(crate) action: &'a str,
    /// The transaction.
    pub(crate) transaction: &'a str,
    /// The anti-forgery value.
    pub(crate) token: &'a str,
    /// What was wrong the last time.
    pub(crate) error: Option<&'a str>,
}

/// Asks for name and password.
pub(crate) fn login(site: &Site, about: &About<'_>, form: &Form<'_>) -> String {
    let body = html! {
        h1 { "Sign in to " (site.name) }
        (failure(form.error))
        form method="post" action=(form.action) {
            (hidden(form))
            label for="name" { "Name" }
            input id="name" name="name" autocomplete="username" autocapitalize="none" required autofocus;
            label for="password" { "Password" }
            input id="password" name="password" type="password" autocomplete="current-password" required;
            button.yes type="submit" { "Sign in" }
        }
        p { small { "Next, you will be asked whether " (who(about)) " may use this server." } }
        (server(site))
    };
    page("Sign in", None, &body)
}

/// Asks for the code that a device shows.
pub(crate) fn device(site: &Site, action: &str, error: Option<&str>) -> String {
    let body = html! {
        h1 { "Connect a device to " (site.name) }
        (failure(error))
        p { "Enter the code that your device or program shows. Continue only if you started this yourself: nobody else, whoever \
             they say they are, should give you a code." }
        form method="post" action=(action) {
            label for="code" { "Code" }
            input id="code" name="code" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="16"
                required autofocus;
            button.yes type="submit" { "Continue" }
        }
        (server(site))
    };
    page("Connect a device", None, &body)
}

/// What stands between the user and the answer on the page that asks.
pub(crate) enum Proof<'a> {
    /// The user is logged in here.
    LoggedIn(&'a str),
    /// The code that the terminal shows.
    Code,
    /// The login comes next, there.
    Upstream(&'a str),
}

/// Asks whether the client may.
pub(crate) fn consent(site: &Site, about: &About<'_>, form: &Form<'_>, proof: &Proof<'_>) -> String {
    let body = html! {
        h1 { (who(about)) " wants to use " (site.name) }
        (failure(form.error))
        dl {
            dt { "Program" }
            dd { (who(about)) }
            dt { "Redirects to" }
            dd { strong { (about.place) } }
            dt { "It will be able to" }
            dd {
                ul {
                    @for scope in about.scopes { li { (scope) } }
                    @if about.scopes.is_empty() { li { "use what this server offers to everybody who signs in" } }
                }
            }
            dt { "At" }
            dd { (about.resource) }
            @match proof {
                Proof::LoggedIn(name) => { dt { "You are signed in as" } dd { (name) } }
                Proof::Upstream(place) => { dt { "You will sign in at" } dd { strong { (place) } } }
                Proof::Code => {}
            }
        }
        p { "Continue only if you have just started this from that program yourself." }
        form method="post" action=(form.action) {
            (hidden(form))
            @if matches!(proof, Proof::Code) {
                label for="code" { "The code that the server shows in its terminal" }
                input id="code" name="code" autocomplete="off" autocapitalize="characters" spellcheck="false" autofocus;
            }
            button.yes type="submit" name="answer" value="allow" { "Allow" }
            button type="submit" name="answer" value="deny" formnovalidate { "Deny" }
        }
        (server(site))
    };
    page("Allow access?", None, &body)
}

/// Sends the browser on after a form.
pub(crate) fn onward(site: &Site, to: &str, place: &str) -> String {
    let body = html! {
        h1 { "One moment" }
        p { "You are being redirected to " (place) "." }
        p { a href=(to) { "Continue" } }
        (server(site))
    };
    page("One moment", Some(to), &body)
}

/// Says that something went wrong, without sending the browser anywhere.
pub(crate) fn problem(site: &Site, title: &str, text: &str, again: Option<&str>) -> String {
    let body = html! {
        h1 { (title) }
        p { (text) }
        @if let Some(again) = again { p { a href=(again) { "Try again" } } }
        (server(site))
    };
    page(title, None, &body)
}

fn page(title: &str, refresh: Option<&str>, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(to) = refresh { meta http-equiv="refresh" content=(format!("0; url={to}")); }
                title { (title) }
                // The policy allows this style by its hash: nothing may be escaped or added.
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

fn who(about: &About<'_>) -> Markup {
    html! {
        @match (about.proved_by, about.known) {
            (Some(host), _) => { (about.client) " of " strong { (host) } }
            (None, true) => strong { (about.client) },
            (None, false) => { "a program that calls itself “" (about.client) "” (not verified)" }
        }
    }
}

fn server(site: &Site) -> Markup {
    html! { p { small { "This is the sign-in of " (site.name) " at " strong { (site.url) } "." } } }
}

fn hidden(form: &Form<'_>) -> Markup {
    html! {
        input type="hidden" name="t" value=(form.transaction);
        input type="hidden" name="f" value=(form.token);
    }
}

fn failure(error: Option<&str>) -> Markup {
    html! { @if let Some(error) = error { p.bad role="alert" { (error) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row 60 of the table of attacks: markup stays text, and a name proves nothing.
    #[test]
    fn names_of_clients_are_text_and_not_verified() {
        let site = Site { name: "Files".to_owned(), url: "https://mcp.example".to_owned() };
        let form = Form { action: "/consent", transaction: "t", token: "f", error: Some("<i>") };
        for name in ["<script>alert(1)</script>", "Files", "\"><img src=x>"] {
            let about = About { client: name, proved_by: None, known: false, place: "<b>", scopes: &[], resource: "r" };
            let page = consent(&site, &about, &form, &Proof::Upstream("github.com"));
            assert!(page.contains("(not verified)"), "{page}");
            assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("<b>"), "{page}");
            assert!(page.contains("https://mcp.example") && page.contains("github.com"));
        }
    }
}
