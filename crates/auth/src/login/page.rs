//! The pages a browser sees at the end of a login: plain, self-contained, gone when the program is.

use std::fmt::Write as _;

/// Maximum characters of a peer's text that are shown.
const SHOWN_CHARS_MAX: usize = 300;

/// A complete HTTP response.
pub(super) fn response(status: &str, title: &str, text: &str) -> Vec<u8> {
    let (title, text) = (escape(title), escape(text));
    let body = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font:1.1em/1.5 sans-serif;max-width:34em;margin:15vh auto;padding:0 1em}}</style>\n\
         <h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
    );
    let allow = if status.starts_with("405") { "allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'\r\n{allow}connection: close\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// The page after a successful login in the browser.
pub(super) fn done() -> Vec<u8> {
    response("200 OK", "Login finished", "You may close this window and go back to the program.")
}

/// The end of a login that the authorization server refused.
pub(super) fn refused(error: &str, description: Option<&str>) -> Vec<u8> {
    let mut text = String::from("The authorization server said: ");
    text.extend(error.chars().take(SHOWN_CHARS_MAX));
    if let Some(description) = description.filter(|description| !description.is_empty()) {
        text.push_str(" (");
        text.extend(description.chars().take(SHOWN_CHARS_MAX));
        text.push(')');
    }
    text.push_str(". You may close this window and go back to the program.");
    response("200 OK", "Login failed", &text)
}

/// Makes text that anybody may have written harmless in HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "&#{};", c as u32);
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_peer_cannot_become_markup() {
        let page = String::from_utf8(refused("<script>alert('1')</script>", Some("\"&\u{0}<img src=x>"))).unwrap();
        assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
        assert!(page.contains("&#60;script&#62;alert(&#39;1&#39;)") && page.contains("&#34;&#38; &#60;img"), "{page}");
    }

    #[test]
    fn words_of_the_peer_are_cut() {
        let page = String::from_utf8(refused("e", Some(&"ü".repeat(5000)))).unwrap();
        assert_eq!(page.matches('ü').count(), SHOWN_CHARS_MAX);
    }

    #[test]
    fn a_page_says_its_length_and_loads_nothing() {
        let page = String::from_utf8(refused("ä", None)).unwrap();
        let (head, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        assert!(head.contains("cache-control: no-store\r\n") && head.contains("default-src 'none'"), "{head}");
        assert!(!body.contains("src=") && !body.contains("href=") && !body.contains("://"), "{body}");
    }
}
