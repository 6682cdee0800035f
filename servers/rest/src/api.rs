//! An API as data: what all endpoints have in common, and the endpoints.

use crate::profile::{Base, Classes, Key, Limits, Pages, Profile, Scope};
use crate::{Call, Config, Problems};
use linchpin_kit::{ToolError, ToolSpec, Vars};

/// An API: its address, its key, its habits, and its [calls](Call).
///
/// Made in a constant with [`Api::new`] and the methods below; see the [crate's example](crate).
#[derive(Debug, Clone, Copy)]
pub struct Api {
    pub(crate) profile: Profile,
    pub(crate) calls: &'static [Call],
}

impl Api {
    /// Describes an API by the short name of the server (`github`; also in `MCP_GITHUB_TIMEOUT`), its name for people and the
    /// URL that all paths begin with.
    #[must_use]
    pub const fn new(service: &'static str, title: &'static str, base: &'static str, calls: &'static [Call]) -> Api {
        let profile = Profile {
            service,
            title,
            base,
            bases: &[],
            base_variables: &[],
            key: Key::NONE,
            headers: &[],
            items: "items",
            pages: Pages::One,
            limits: Limits::NONE,
            classes: Classes::One,
            problems: Problems::PLAIN,
            scope: Scope::None,
            authors: "third parties",
            instructions: "",
        };
        Api { profile, calls }
    }

    /// Sets further URLs, for rows that are [`at`](crate::Call::at) one of them.
    #[must_use]
    pub const fn bases(self, bases: &'static [Base]) -> Api {
        Api { profile: Profile { bases, ..self.profile }, ..self }
    }

    /// Sets variables that replace the URL, for servers of one's own.
    #[must_use]
    pub const fn base_variables(self, names: &'static [&'static str]) -> Api {
        Api { profile: Profile { base_variables: names, ..self.profile }, ..self }
    }

    /// Sets where the key comes from and how it is sent.
    #[must_use]
    pub const fn key(self, key: Key) -> Api {
        Api { profile: Profile { key, ..self.profile }, ..self }
    }

    /// Sets headers of every request.
    #[must_use]
    pub const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Api {
        Api { profile: Profile { headers, ..self.profile }, ..self }
    }

    /// Sets the name of lists in structured content. Default `items`.
    #[must_use]
    pub const fn items(self, name: &'static str) -> Api {
        Api { profile: Profile { items: name, ..self.profile }, ..self }
    }

    /// Sets how lists are paged, unless a row says otherwise.
    #[must_use]
    pub const fn pages(self, pages: Pages) -> Api {
        Api { profile: Profile { pages, ..self.profile }, ..self }
    }

    /// Sets what the API says about its limits.
    #[must_use]
    pub const fn limits(self, limits: Limits) -> Api {
        Api { profile: Profile { limits, ..self.profile }, ..self }
    }

    /// Sets which requests share a limit. Default all.
    #[must_use]
    pub const fn classes(self, classes: Classes) -> Api {
        Api { profile: Profile { classes, ..self.profile }, ..self }
    }

    /// Sets how failures are told.
    #[must_use]
    pub const fn problems(self, problems: Problems) -> Api {
        Api { profile: Profile { problems, ..self.profile }, ..self }
    }

    /// Sets what an operator can restrict the server to.
    #[must_use]
    pub const fn scope(self, scope: Scope) -> Api {
        Api { profile: Profile { scope, ..self.profile }, ..self }
    }

    /// Sets who wrote what results contain, for the line that says so: `web pages`. Default `third parties`.
    #[must_use]
    pub const fn authors(self, who: &'static str) -> Api {
        Api { profile: Profile { authors: who, ..self.profile }, ..self }
    }

    /// Sets the server's instructions for models.
    #[must_use]
    pub const fn instructions(self, text: &'static str) -> Api {
        Api { profile: Profile { instructions: text, ..self.profile }, ..self }
    }
}

impl Config {
    /// Reads the variables that the API's own clients have: those of the key, which may also be in a file (`…_FILE`) or the
    /// keyring (`…_KEYRING`), and those of the URL. For the `then` of the server's [`options!`](linchpin_kit::options).
    ///
    /// # Errors
    /// When the key cannot be read. Errors never contain it.
    pub fn settle_for(&mut self, api: &Api, vars: Vars<'_>) -> Result<(), ToolError> {
        self.key = vars.secret_of(api.profile.key.variables)?;
        let own = || api.profile.base_variables.iter().find_map(|variable| vars.text(variable));
        self.api_url = self.api_url.take().or_else(own);
        Ok(())
    }
}

/// The tools of a table, for [`Service::tools`](linchpin_kit::Service::tools).
///
/// ```
/// use linchpin_kit::Service;
/// # use linchpin_rest::{Call, get, specs};
/// const CALLS: &[Call] = &[get("list_notes", "List notes", "notes", "Lists all notes.", "/notes")];
/// const SERVICE: Service = Service { name: "notes", tools: &specs::<{ CALLS.len() }>(CALLS) };
/// assert!(SERVICE.tools[0].open_world && !SERVICE.tools[0].writes);
/// ```
///
/// # Panics
/// If `N` is not the number of rows; in a constant that is a compile error.
#[must_use]
pub const fn specs<const N: usize>(calls: &[Call]) -> [ToolSpec; N] {
    assert!(calls.len() == N, "N is not the number of rows");
    let mut all = [calls[0].spec; N];
    let mut n = 1;
    while n < N {
        all[n] = calls[n].spec;
        n += 1;
    }
    all
}
