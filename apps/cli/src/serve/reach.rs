//! Decides whether clients' roots determine what a server can access, by who its clients are.

use super::place::Clients;
use crate::fail::Failure;
use linchpin_kit::RootsPolicy;

/// What a server can access, according to its configuration.
#[allow(dead_code, reason = "which servers have it depends on the build")]
pub(crate) struct Reach<'c> {
    /// How clients' roots are used; `None` if unset.
    pub(crate) roots: &'c mut Option<RootsPolicy>,
    /// Whether the configuration names something to access.
    pub(crate) named: bool,
    /// What to name, and how, for hints.
    pub(crate) how: &'static str,
}

impl Reach<'_> {
    /// Sets the roots policy if it is unset. A client that started the program may choose what it accesses by its roots, as with
    /// the published servers. Over HTTP the client may be anyone, and its roots the whole disk: there they never widen access
    /// unless configured. Returns a warning, or a note for a user who starts it `by_hand`.
    ///
    /// # Errors
    /// Over HTTP, when nothing is named and roots are not used either.
    pub(crate) fn decide(self, name: &str, clients: Clients, by_hand: bool) -> Result<Option<String>, Failure> {
        if clients != Clients::Anybody {
            if !self.named && self.roots.is_none() {
                *self.roots = Some(RootsPolicy::Use);
            }
            let roots_only = !self.named && *self.roots == Some(RootsPolicy::Use);
            return Ok((by_hand && roots_only).then(|| {
                format!("note: {name} will only serve the client's roots; to choose yourself, pass {}", self.how)
            }));
        }
        match *self.roots {
            Some(RootsPolicy::Replace) => {}
            Some(RootsPolicy::Use) if !self.named => {}
            _ if self.named => return Ok(None),
            _ => {
                return Err(Failure::usage(format!(
                    "over HTTP, {name} needs an explicit choice of what clients can access"
                ))
                .hint(format!("pass {}", self.how)));
            }
        }
        Ok(Some(format!(
            "warning: the client's roots decide what {name} can access: anyone who can connect over HTTP can access \
             everything you can; to prevent that, do not set roots and name {}",
            self.how
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_http_roots_widen_nothing_unless_that_was_asked_for() {
        use Clients::{Anybody, Parent, SameUser};
        use RootsPolicy::{Ignore, Narrow, Replace, Use};
        // The policy that was given, whether something is named, who the clients are; the policy then, and whether there is a
        // warning. `None`: the server does not start.
        for (given, named, clients, then) in [
            (None, false, Parent, Some((Some(Use), false))),
            (None, false, SameUser, Some((Some(Use), false))),
            (None, false, Anybody, None),
            (None, true, Parent, Some((None, false))),
            (None, true, Anybody, Some((None, false))),
            (Some(Ignore), false, Parent, Some((Some(Ignore), false))),
            (Some(Ignore), false, Anybody, None),
            (Some(Ignore), true, Anybody, Some((Some(Ignore), false))),
            (Some(Narrow), false, Anybody, None),
            (Some(Narrow), true, Anybody, Some((Some(Narrow), false))),
            (Some(Use), false, Parent, Some((Some(Use), false))),
            (Some(Use), false, Anybody, Some((Some(Use), true))),
            // Beside what is named, these roots add nothing.
            (Some(Use), true, Anybody, Some((Some(Use), false))),
            (Some(Replace), true, Parent, Some((Some(Replace), false))),
            (Some(Replace), true, Anybody, Some((Some(Replace), true))),
            (Some(Replace), false, Anybody, Some((Some(Replace), true))),
        ] {
            let mut roots = given;
            let decided = Reach { roots: &mut roots, named, how: "it" }.decide("x", clients, false);
            let decided = decided.ok().map(|warning| (roots, warning.is_some()));
            assert_eq!(decided, then, "{given:?} {named} {clients:?}");
        }
    }

    #[test]
    fn who_starts_it_by_hand_is_told_that_only_roots_are_served() {
        for (given, named, told) in [
            (None, false, true),
            (Some(RootsPolicy::Use), false, true),
            (None, true, false),
            (Some(RootsPolicy::Ignore), false, false),
        ] {
            for by_hand in [true, false] {
                let mut roots = given;
                let reach = Reach { roots: &mut roots, named, how: "a directory: DIR" };
                let note = reach.decide("x", Clients::Parent, by_hand).unwrap();
                assert_eq!(note.is_some_and(|note| note.ends_with("pass a directory: DIR")), told && by_hand);
            }
        }
    }
}
