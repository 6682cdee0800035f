//! Parameters of queries and forms.

use crate::limits::{FORM_BYTES_MAX, PARAM_BYTES_MAX, PARAMS_MAX};

/// The parameters of a request, decoded.
pub(crate) struct Params(Vec<(String, String)>);

/// Why parameters are refused; the text is for their sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl Params {
    /// Parses a query or a form body.
    pub(crate) fn parse(text: &[u8]) -> Result<Params, Malformed> {
        if text.len() > FORM_BYTES_MAX {
            return Err(Malformed("the request is too long"));
        }
        let mut params = Vec::new();
        for (name, value) in form_urlencoded::parse(text) {
            if params.len() == PARAMS_MAX {
                return Err(Malformed("the request has too many parameters"));
            }
            if name.len() > PARAM_BYTES_MAX || value.len() > PARAM_BYTES_MAX {
                return Err(Malformed("a parameter is too long"));
            }
            params.push((name.into_owned(), value.into_owned()));
        }
        Ok(Params(params))
    }

    /// Returns a parameter. One without a value is as good as absent (RFC 6749, section 3.1).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Checks that no parameter but `resource` is there twice (RFC 6749, section 3.1; RFC 8707).
    pub(crate) fn check_single(&self) -> Result<(), Malformed> {
        let twice = |at: usize, name: &str| self.0[..at].iter().any(|(known, _)| known == name);
        match self.0.iter().enumerate().any(|(at, (name, _))| name != "resource" && twice(at, name)) {
            true => Err(Malformed("a parameter is there twice")),
            false => Ok(()),
        }
    }
}

/// Adds parameters to the query of a URL, as it is.
pub(crate) fn with_query(url: &str, params: &[(&str, &str)]) -> String {
    let mut out = url.to_owned();
    let (mut separator, fragment) = match out.find('#') {
        Some(at) => (if out[..at].contains('?') { '&' } else { '?' }, out.split_off(at)),
        None => (if out.contains('?') { '&' } else { '?' }, String::new()),
    };
    for (name, value) in params {
        out.push(separator);
        out.extend(form_urlencoded::byte_serialize(name.as_bytes()));
        out.push('=');
        out.extend(form_urlencoded::byte_serialize(value.as_bytes()));
        separator = '&';
    }
    out.push_str(&fragment);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_bounded_and_single() {
        let params = Params::parse(b"a=1&b=&resource=x&resource=y&c=%26+d").unwrap();
        assert_eq!((params.get("a"), params.get("b"), params.get("c")), (Some("1"), None, Some("& d")));
        assert_eq!(params.all("resource").collect::<Vec<_>>(), ["x", "y"]);
        assert!(params.check_single().is_ok());
        assert!(Params::parse(b"a=1&a=1").unwrap().check_single().is_err());
        let many = "a=1&".repeat(PARAMS_MAX + 1);
        let long = format!("a={}", "x".repeat(PARAM_BYTES_MAX + 1));
        for refused in [many, long, "x".repeat(FORM_BYTES_MAX + 1)] {
            assert!(Params::parse(refused.as_bytes()).is_err());
        }
    }

    #[test]
    fn queries_grow_before_the_fragment() {
        assert_eq!(with_query("app://x", &[("a", "b c")]), "app://x?a=b+c");
        assert_eq!(with_query("https://x/?y=1", &[("a", "&"), ("b", "ü")]), "https://x/?y=1&a=%26&b=%C3%BC");
    }
}
