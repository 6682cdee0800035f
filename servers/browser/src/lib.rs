//! A browser for models: an MCP server that drives Chrome, Chromium or Edge.
//!
//! It has the tools and resources of npm's `server-puppeteer` under the same names and with the same texts, and a set of
//! tools that work on accessibility snapshots.
//!
//! - [`Config`]: the configuration; [`BrowserServer`]: the server;
//! - `cdp`: the DevTools protocol over pipes: `Cdp` (a connection), `CdpSession` (`call`, `call_within`, `post`,
//!   `events`), bounded everywhere;
//! - `launch`: finds a browser and starts it: safe flags, a fresh profile, no TCP port, no process that outlives us;
//! - `egress` and `proxy`: where it may connect, enforced twice: for each request that the browser announces (CDP
//!   `Fetch`), and in a local proxy that connects to checked addresses only, without which the browser reaches nothing;
//! - `browser`: a running browser, and what happens in it before anybody asks (`Fetch`, dialogs, consoles, new targets);
//! - `context`: what one client sees of it: its cookies, its `Page`s (tabs), its console, its requests;
//! - `page`: one tab: navigation, evaluation, input, pictures;
//! - `session`: a client's side: its context, opened on its first call and disposed with its session, and its screenshots;
//! - `tools`: one file a group.
//!
//! For a tool: `let page = self.session(cx)?.page().await?`, or `session.with_page(limit, |page| async { … })`, which ends in time and
//! restarts what is stuck. `page.cdp()` is the `CdpSession` of the tab's main frame; frames of other sites have
//! sessions of their own (`page.frames()`).
//!
//! This crate must not know transports, eras or command lines. It must never connect anywhere by itself but in `proxy`.

// Files import downwards, in this order:
//
// ```text
// tools
// session
// context
// browser
// page
// launch
// proxy
// egress
// config
// cdp
// ```

mod cdp;
mod config;
mod egress;

pub use config::{Config, Viewport};
