//! RSS and Atom as a readable list. Rejected: a feed crate, which parses into many types that are not needed here.

use super::html;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use url::Url;

/// A feed as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Feed {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
struct Item {
    title: String,
    link: String,
    date: String,
    author: String,
    summary: String,
    content: String,
}

const ITEMS_MAX: usize = 1_000;
const FIELD_BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 16;

/// Parses a feed; `None` if the text is other XML or not XML.
pub(crate) fn read(text: &str, base: Option<&Url>) -> Option<Feed> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    let mut state = State::default();
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => state.open(&tag)?,
            Event::Empty(tag) => {
                state.open(&tag)?;
                state.close();
            }
            Event::End(_) => state.close(),
            Event::Text(text) => state.text(&text.xml10_content()),
            Event::CData(text) => state.text(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let name = reference.xml10_content().into_owned();
                let plain = match name.as_str() {
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "amp" => Some('&'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => reference.resolve_char_ref().ok().flatten(),
                };
                match plain {
                    Some(c) => state.text(c.encode_utf8(&mut [0; 4])),
                    None => state.text(&format!("&{name};")),
                }
            }
            Event::Eof => break,
            _ => {}
        }
        if state.items.len() > ITEMS_MAX {
            break;
        }
    }
    state.finish(base)
}

fn is_item(name: &str) -> bool {
    name == "item" || name == "entry"
}

#[derive(Default)]
struct State {
    path: Vec<String>,
    /// How many elements of the path are items.
    within: usize,
    is_feed: bool,
    feed: Item,
    items: Vec<Item>,
}

impl State {
    fn open(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let name = tag.local_name();
        let name: &str = name.as_ref();
        // Relevant names are short; others are placeholders.
        let name = if name.len() <= NAME_BYTES_MAX { name.to_ascii_lowercase() } else { String::new() };
        if self.path.is_empty() {
            self.is_feed = matches!(name.as_str(), "rss" | "feed" | "rdf");
            if !self.is_feed {
                return None;
            }
        }
        if self.path.len() >= DEPTH_MAX {
            return None;
        }
        if is_item(&name) {
            self.items.push(Item::default());
        }
        if name == "link" {
            let (mut href, mut rel) = (None, None);
            for attribute in tag.attributes().flatten().take(16) {
                let value = attribute.value.to_string();
                match attribute.key.as_ref() {
                    "href" => href = Some(value.replace("&amp;", "&")),
                    "rel" => rel = Some(value),
                    _ => {}
                }
            }
            if let (Some(href), true) = (href, rel.as_deref().is_none_or(|rel| rel == "alternate")) {
                let target = self.target();
                if target.link.is_empty() && href.len() <= FIELD_BYTES_MAX {
                    target.link = href;
                }
            }
        }
        self.within += usize::from(is_item(&name));
        self.path.push(name);
        Some(())
    }

    fn close(&mut self) {
        self.within -= usize::from(self.path.pop().is_some_and(|name| is_item(&name)));
    }

    fn target(&mut self) -> &mut Item {
        if self.within > 0
            && let Some(item) = self.items.last_mut()
        {
            return item;
        }
        &mut self.feed
    }

    fn text(&mut self, text: &str) {
        let Some(name) = self.path.last().cloned() else { return };
        let parent = self.path.len().checked_sub(2).map(|at| self.path[at].clone()).unwrap_or_default();
        let own = matches!(parent.as_str(), "item" | "entry" | "channel" | "feed");
        let target = self.target();
        let field = match name.as_str() {
            "title" if own => &mut target.title,
            "link" if own => &mut target.link,
            "pubdate" | "published" | "updated" | "date" if own => &mut target.date,
            "creator" | "author" if own => &mut target.author,
            "name" if parent == "author" => &mut target.author,
            "description" | "summary" | "subtitle" if own => &mut target.summary,
            "content" | "encoded" if own => &mut target.content,
            _ => return,
        };
        let mut end = text.len().min(FIELD_BYTES_MAX.saturating_sub(field.len()));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        field.push_str(&text[..end]);
    }

    fn finish(self, base: Option<&Url>) -> Option<Feed> {
        if !self.is_feed {
            return None;
        }
        let line = |text: &str| html::text(text).split_whitespace().collect::<Vec<_>>().join(" ");
        let link = |text: &str| {
            let text = text.trim();
            let absolute = base.and_then(|base| base.join(text).ok());
            absolute.map_or_else(|| text.to_owned(), String::from)
        };
        let title = line(&self.feed.title);
        let mut out = format!("# {}\n\n", if title.is_empty() { "Feed" } else { &title });
        let summary = line(&self.feed.summary);
        if !summary.is_empty() {
            out.push_str(&format!("{summary}\n\n"));
        }
        for item in &self.items {
            let name = line(&item.title);
            let name = if name.is_empty() { "(no title)" } else { &name };
            match item.link.trim() {
                "" => out.push_str(&format!("## {name}\n\n")),
                at => out.push_str(&format!("## [{name}]({})\n\n", link(at))),
            }
            let about: Vec<String> =
                [line(&item.date), line(&item.author)].into_iter().filter(|s| !s.is_empty()).collect();
            if !about.is_empty() {
                out.push_str(&format!("*{}*\n\n", about.join(", ")));
            }
            let body = if item.summary.trim().is_empty() { &item.content } else { &item.summary };
            let body = html::text(body);
            if !body.is_empty() {
                out.push_str(&format!("{body}\n\n"));
            }
        }
        let title = (!title.is_empty()).then_some(title);
        Some(Feed { title, text: out.trim_end().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSS: &str = "<?xml version=\"1.0\"?><rss version=\"2.0\" xmlns:dc=\"x\"><channel><title>News &amp; more</title>\
        <link>http://a.test/</link><description>What happens</description><image><title>Not this</title></image>\
        <item><title><![CDATA[One <b>two</b>]]></title><link>/1</link><pubDate>Mon, 1 Jan</pubDate><dc:creator>Me</dc:creator>\
        <description>&lt;p&gt;First.&lt;/p&gt;&lt;p&gt;Second &amp;amp; third&lt;/p&gt;</description></item>\
        <item><guid>x</guid></item></channel></rss>";

    #[test]
    fn rss_and_atom_read_as_lists() {
        let base = Url::parse("http://a.test/feed").unwrap();
        let feed = read(RSS, Some(&base)).unwrap();
        assert_eq!(feed.title.as_deref(), Some("News & more"));
        assert_eq!(
            feed.text,
            "# News & more\n\nWhat happens\n\n## [One two](http://a.test/1)\n\n*Mon, 1 Jan, Me*\n\nFirst.\n\nSecond & third\n\n## (no title)"
        );
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><link rel='self' href='/self'/>\
            <entry><title>E</title><link rel='alternate' href='/e?a=1&amp;b=2'/><updated>2026-01-01</updated>\
            <author><name>Ann</name></author><content type='html'>&lt;i&gt;text&lt;/i&gt;</content></entry></feed>";
        let feed = read(atom, Some(&base)).unwrap();
        assert_eq!(feed.text, "# T\n\n## [E](http://a.test/e?a=1&b=2)\n\n*2026-01-01, Ann*\n\ntext");
    }

    #[test]
    fn other_xml_is_no_feed_and_hostile_xml_ends() {
        for other in ["<svg/>", "<a><rss/></a>", "", "plain", "<rss"] {
            assert_eq!(read(other, None), None, "{other}");
        }
        assert_eq!(read(&format!("<rss>{}", "<a>".repeat(100_000)), None), None);
        let bomb = "<!DOCTYPE rss [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><rss><channel><title>&b;</title></channel></rss>";
        assert_eq!(read(bomb, None).unwrap().title.as_deref(), Some("&b;"), "entities are not expanded");
        let many = format!("<rss><channel>{}</channel></rss>", "<item><title>x</title></item>".repeat(5_000));
        assert!(read(&many, None).unwrap().text.len() < 20_000);
    }
}
