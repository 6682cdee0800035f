//! Whether clients' roots may decide what a server reaches. That depends on who the clients can be.

use crate::fail::Failure;
use crate::place::Clients;
use linchpin_kit::RootsPolicy;

/// What a server may reach, as far as its configuration says.
#[allow(dead_code, reason = "which servers have it depends on the build")]
pub(crate) struct Reach<'c> {
    /// What clients' roots do; `None` where nobody said.
    pub(crate) roots: &'c mut Option<RootsPolicy>,
    /// Whether something is named that may be reached.
    pub(crate) named: bool,
    /// What to name, and how.
    pub(crate) how: &'static str,
}

impl Reach<'_> {
    /// Fills in what roots do where nobody said. A client that started the program may say by its roots what it is for, as with
    /// the published servers. Over HTTP the client may be anybody, and its roots the whole disk: there they widen nothing unless
    /// that was asked for. Answers a warning.
    ///
    /// # Errors
    /// Over HTTP, when nothing is named and roots are not to decide either.
    pub(crate) fn decide(self, name: &str, clients: Clients) -> Result<Option<String>, Failure> {
        if clients != Clients::Anybody {
            if !self.named && self.roots.is_none() {
                *self.roots = Some(RootsPolicy::Use);
            }
            return Ok(None);
        }
        match *self.roots {
            Some(RootsPolicy::Replace) => {}
            Some(RootsPolicy::Use) if !self.named => {}
            _ if self.named => return Ok(None),
            _ => {
                return Err(Failure::usage(format!("over HTTP, {name} must be told what it may reach"))
                    .hint(format!("name {}", self.how)));
            }
        }
        Ok(Some(format!(
            "warning: the roots that clients name decide what {name} may reach: everybody who can connect over HTTP can \
             reach whatever you can; to prevent that, do not set roots and name {}",
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
            let decided = Reach { roots: &mut roots, named, how: "it" }.decide("x", clients);
            let decided = decided.ok().map(|warning| (roots, warning.is_some()));
            assert_eq!(decided, then, "{given:?} {named} {clients:?}");
        }
    }
}
