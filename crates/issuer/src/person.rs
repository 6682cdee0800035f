//! Users, and the rules that admit them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A user who logged in, as the provider or the users file describes them.
///
/// ```
/// use linchpin_issuer::{Allow, Person};
///
/// let ada = Person::new("https://login.example.com", "248289761001").with(|ada| {
///     ada.email = Some("ada@example.com".to_owned());
///     ada.email_verified = true;
/// });
/// assert!("@example.com".parse::<Allow>()?.admits(&ada));
/// assert!(!"org:acme".parse::<Allow>()?.admits(&ada));
/// # Ok::<(), linchpin_issuer::SetupError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Person {
    /// The issuer identifier of the provider.
    pub issuer: String,
    /// The permanent identifier of the user at the provider.
    pub subject: String,
    /// The login name, if the provider has such names.
    pub login: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// The email address.
    pub email: Option<String>,
    /// Whether the provider has verified the email address.
    pub email_verified: bool,
    /// The domain that the account belongs to, according to the provider: `hd` of Google.
    pub domain: Option<String>,
    /// The tenant: `tid` of Entra.
    pub tenant: Option<String>,
    /// The organizations of the user.
    pub orgs: Vec<String>,
    /// The groups and roles of the user.
    pub groups: Vec<String>,
    /// The scopes that the user may be granted; `None` for all.
    pub scopes: Option<Vec<String>>,
}

impl Person {
    /// Creates a user with only an issuer and a subject.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Person {
        Person { issuer: issuer.into(), subject: subject.into(), ..Person::default() }
    }

    /// Returns the user with the changes that a closure makes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The `sub` of tokens: issuers have no fragment, so the first `#` divides.
    pub(crate) fn principal(&self) -> String {
        format!("{}#{}", self.issuer, self.subject)
    }

    /// What the user is called on pages.
    pub(crate) fn shown(&self) -> &str {
        let names = [&self.name, &self.login, &self.email];
        names.into_iter().flatten().next().map_or(&self.subject, |name| name.as_str())
    }
}

/// A rule that decides which users may log in. If there are several rules, a user must match one of them. Where users
/// of any tenant can log in (Entra with the tenant `common`), a user must match one of the rules `tenant:` and, if
/// there are others, also one of these.
///
/// | text | users |
/// |---|---|
/// | `@example.com` | with an account of the domain, or, if the provider names none, a verified email address there |
/// | `user:ada` | with this login name, verified email address or subject, of which only the subject never changes |
/// | `org:acme` | in this organization |
/// | `group:staff` | in this group, or with this role |
/// | `tenant:8eaef023-…` | of this tenant |
///
/// ```
/// use linchpin_issuer::{Allow, Person};
///
/// let admins = Allow::if_(|who: &Person| who.groups.iter().any(|group| group == "admins"));
/// let ada = Person::new("https://login.example.com", "ada").with(|ada| ada.groups.push("admins".to_owned()));
/// assert!(admins.admits(&ada) && !"group:staff".parse::<Allow>()?.admits(&ada));
/// # Ok::<(), linchpin_issuer::SetupError>(())
/// ```
#[derive(Clone)]
pub struct Allow(Rule);

#[derive(Clone)]
enum Rule {
    Anyone,
    Domain(String),
    User(String),
    Org(String),
    Group(String),
    Tenant(String),
    If(Arc<dyn Fn(&Person) -> bool + Send + Sync>),
}

impl Allow {
    /// Admits all users who can log in at the provider. At many providers, anyone can create an account.
    pub fn anyone() -> Allow {
        Allow(Rule::Anyone)
    }

    /// Admits users for whom a function returns `true`.
    pub fn if_(admits: impl Fn(&Person) -> bool + Send + Sync + 'static) -> Allow {
        Allow(Rule::If(Arc::new(admits)))
    }

    /// Returns whether the rule admits a user.
    pub fn admits(&self, person: &Person) -> bool {
        let same = |one: &Option<String>, other: &str| one.as_ref().is_some_and(|one| one.eq_ignore_ascii_case(other));
        let among = |list: &[String], one: &str| list.iter().any(|item| item.eq_ignore_ascii_case(one));
        let mail = person.email.as_deref().filter(|_| person.email_verified);
        match &self.0 {
            Rule::Anyone => true,
            // A provider that names domains knows better than the mail's text.
            Rule::Domain(domain) => match &person.domain {
                Some(own) => own.eq_ignore_ascii_case(domain),
                None if person.issuer == GOOGLE => false,
                None => mail
                    .and_then(|mail| mail.rsplit_once('@'))
                    .is_some_and(|(_, host)| host.eq_ignore_ascii_case(domain)),
            },
            Rule::User(user) => {
                same(&person.login, user)
                    || mail.is_some_and(|mail| mail.eq_ignore_ascii_case(user))
                    || person.subject == *user
            }
            Rule::Org(org) => among(&person.orgs, org),
            Rule::Group(group) => among(&person.groups, group),
            Rule::Tenant(tenant) => same(&person.tenant, tenant),
            Rule::If(admits) => admits(person),
        }
    }

    /// Whether one of the rules fits a user, or there are none. Where tenants are chosen by rules, it must also fit one
    /// of those: the administrators of a tenant name its groups and roles, and those of other tenants count for
    /// nothing.
    pub(crate) fn all_admit(rules: &[Allow], of_any_tenant: bool, person: &Person) -> bool {
        let (tenants, others): (Vec<_>, Vec<_>) = rules.iter().partition(|rule| of_any_tenant && rule.is_tenant());
        let fits = |rules: &[&Allow]| rules.is_empty() || rules.iter().any(|rule| rule.admits(person));
        fits(&tenants) && fits(&others)
    }

    pub(crate) fn needs_orgs(&self) -> bool {
        matches!(self.0, Rule::Org(_) | Rule::Group(_) | Rule::If(_))
    }

    pub(crate) fn is_tenant(&self) -> bool {
        matches!(self.0, Rule::Tenant(_))
    }
}

/// Google's issuer: a Google account with somebody's mail address is not an account of that domain.
pub(crate) const GOOGLE: &str = "https://accounts.google.com";

impl FromStr for Allow {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Allow, SetupError> {
        let rule = match text.split_once(':') {
            _ if text.starts_with('@') && text.len() > 1 => Rule::Domain(text[1..].to_owned()),
            Some((_, "")) => return Err(SetupError::allow(text)),
            Some(("user", user)) => Rule::User(user.to_owned()),
            Some(("org", org)) => Rule::Org(org.to_owned()),
            Some(("group", group)) => Rule::Group(group.to_owned()),
            Some(("tenant", tenant)) => Rule::Tenant(tenant.to_owned()),
            _ => return Err(SetupError::allow(text)),
        };
        Ok(Allow(rule))
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rule::Anyone => f.write_str("anyone"),
            Rule::Domain(domain) => write!(f, "@{domain}"),
            Rule::User(user) => write!(f, "user:{user}"),
            Rule::Org(org) => write!(f, "org:{org}"),
            Rule::Group(group) => write!(f, "group:{group}"),
            Rule::Tenant(tenant) => write!(f, "tenant:{tenant}"),
            Rule::If(_) => f.write_str("a rule of the server's own"),
        }
    }
}

impl fmt::Debug for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allow({self})")
    }
}

/// The error for an invalid configuration. Its message is one line that says what to do.
///
/// # Example
///
/// ```
/// use linchpin_issuer::{Issuer, Upstream};
///
/// let issuer = Issuer::new("https://mcp.example.com")
///     .upstream(Upstream::github("Iv1.8a61f9b3a7aba766", "secret"))
///     .allow("acme");
/// let error = issuer.check().unwrap_err();
/// assert!(error.to_string().contains("use @domain, user:NAME, org:NAME"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupError(String);

impl SetupError {
    pub(crate) fn new(what: impl Into<String>) -> SetupError {
        SetupError(what.into())
    }

    fn allow(text: &str) -> SetupError {
        SetupError(format!("{text:?} is not a rule: use @domain, user:NAME, org:NAME, group:NAME or tenant:ID"))
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row 97 of the table of attacks: outside the rule, mail not verified, the domain only in the mail's text.
    #[test]
    fn rules_admit_whom_they_name_and_nobody_else() {
        let base = Person::new("https://idp.example", "17");
        let mail = |mail: &str, verified| {
            base.clone().with(|p| (p.email, p.email_verified) = (Some(mail.to_owned()), verified))
        };
        let google = |domain: Option<&str>| {
            mail("ada@acme.example", true).with(|p| {
                p.issuer = GOOGLE.to_owned();
                p.domain = domain.map(str::to_owned);
            })
        };
        let rows = [
            ("@acme.example", mail("ada@acme.example", true), true),
            ("@acme.example", mail("ada@ACME.example", true), true),
            ("@acme.example", mail("ada@acme.example", false), false),
            ("@acme.example", mail("ada@notacme.example", true), false),
            ("@acme.example", mail("ada@acme.example.evil", true), false),
            ("@acme.example", mail("ada@acme.example@evil", true), false),
            ("@acme.example", google(None), false),
            ("@acme.example", google(Some("acme.example")), true),
            ("@acme.example", google(Some("evil.example")), false),
            ("user:ada@acme.example", mail("ada@acme.example", true), true),
            ("user:ada@acme.example", mail("ada@acme.example", false), false),
            ("user:17", base.clone(), true),
            ("user:1", base.clone(), false),
            ("org:acme", base.clone().with(|p| p.orgs = vec!["Acme".to_owned()]), true),
            ("org:acme", base.clone().with(|p| p.groups = vec!["acme".to_owned()]), false),
            ("group:staff", base.clone().with(|p| p.groups = vec!["staff".to_owned()]), true),
            ("tenant:t", base.clone().with(|p| p.tenant = Some("t".to_owned())), true),
            ("tenant:t", base.clone(), false),
        ];
        for (rule, person, admitted) in rows {
            assert_eq!(rule.parse::<Allow>().unwrap().admits(&person), admitted, "{rule} {person:?}");
        }
        let rules = ["tenant:ours", "group:admins"].map(|rule| rule.parse::<Allow>().unwrap());
        let of = |tenant: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            base.clone().with(|p| (p.tenant, p.groups) = (Some(tenant.to_owned()), groups))
        };
        for (person, of_any_tenant, admitted) in [
            (of("ours", &["admins"]), true, true),
            (of("ours", &[]), true, false),
            (of("theirs", &["admins"]), true, false),
            (of("theirs", &["admins"]), false, true),
        ] {
            assert_eq!(Allow::all_admit(&rules, of_any_tenant, &person), admitted, "{of_any_tenant} {person:?}");
        }
        for wrong in ["", "@", "acme", "org:", "mail:ada", "*"] {
            assert!(wrong.parse::<Allow>().is_err(), "{wrong}");
        }
    }
}
