//! The tools, one file a group.

pub(crate) mod browser;
pub(crate) mod puppeteer;

use linchpin_kit::ToolSpec;

/// All tools, those of the published server first.
pub(crate) const ALL: &[ToolSpec] = &all();

const fn all() -> [ToolSpec; puppeteer::TOOLS.len() + browser::TOOLS.len()] {
    let mut all = [puppeteer::TOOLS[0]; puppeteer::TOOLS.len() + browser::TOOLS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at.checked_sub(puppeteer::TOOLS.len()) {
            None => puppeteer::TOOLS[at],
            Some(at) => browser::TOOLS[at],
        };
        at += 1;
    }
    all
}
