//! The options of `#[tool(…)]`, `#[resource(…)]` and `#[prompt(…)]`.
//!
//! Nearly every option has the name of a builder method and becomes a call of it, so editors show the builder's
//! documentation on the option.

use crate::text;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitBool, LitStr, Meta, Path, Result, Token, parenthesized, token};

/// Collects errors, so that all of them are reported at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.add(Error::new(span, message));
    }

    /// Reports an error that spans all of `tokens`.
    pub(crate) fn over(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(Error::new_spanned(tokens, message));
    }

    pub(crate) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|e| self.add(e)).ok()
    }

    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(Error::into_compile_error).unwrap_or_default()
    }
}

/// The kind of a marked method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Tool,
    Resource,
    Prompt,
}

impl Kind {
    /// The kind of this attribute.
    pub(crate) fn of(attr: &Attribute) -> Option<Kind> {
        [Kind::Tool, Kind::Resource, Kind::Prompt].into_iter().find(|kind| attr.path().is_ident(kind.word()))
    }

    /// The name of the attribute and of the builder method.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Resource => "resource",
            Kind::Prompt => "prompt",
        }
    }

    fn options(self) -> &'static [(&'static str, Takes)] {
        match self {
            Kind::Tool => TOOL,
            Kind::Resource => RESOURCE,
            Kind::Prompt => PROMPT,
        }
    }
}

/// The syntax after an option's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Nothing.
    Flag,
    /// Nothing, or `= true` or `= false`.
    Choice,
    /// `= "…"`, a literal that the macro itself reads.
    Name,
    /// `= expression`.
    Value,
    /// `= expression`, repeatable.
    Values,
    /// Nothing, or `= "required"` or `= "later"`.
    Task,
    /// `(ttl_ms, public)` or `(ttl_ms, private)`.
    Cache,
    /// `(argument = path, …)`.
    Complete,
}
use Takes::{Cache, Choice, Complete, Flag, Name, Task, Value, Values};

const TOOL: &[(&str, Takes)] = &[
    ("name", Name),
    ("title", Value),
    ("description", Value),
    ("read_only", Flag),
    ("writes", Flag),
    ("destructive", Flag),
    ("additive", Flag),
    ("idempotent", Flag),
    ("open_world", Choice),
    ("alias", Values),
    ("layer", Values),
    ("scopes", Value),
    ("visible_to", Value),
    ("icon", Values),
    ("meta", Value),
    ("ui", Value),
    ("visible", Value),
    ("task", Task),
    ("resumable", Flag),
    ("task_ttl", Value),
    ("meanwhile", Value),
    ("input_schema", Value),
    ("output_schema", Value),
];
const RESOURCE: &[(&str, Takes)] = &[
    ("name", Value),
    ("title", Value),
    ("description", Value),
    ("mime_type", Value),
    ("size", Value),
    ("annotations", Value),
    ("cache", Cache),
    ("complete", Complete),
    ("layer", Values),
    ("scopes", Value),
    ("visible_to", Value),
    ("icon", Values),
    ("meta", Value),
];
const PROMPT: &[(&str, Takes)] = &[
    ("name", Name),
    ("title", Value),
    ("description", Value),
    ("complete", Complete),
    ("layer", Values),
    ("scopes", Value),
    ("visible_to", Value),
    ("icon", Values),
    ("meta", Value),
];

/// Hints that contradict each other.
const CONTRADICTIONS: &[(&str, &str)] =
    &[("read_only", "writes"), ("read_only", "destructive"), ("read_only", "additive"), ("destructive", "additive")];

/// The options of one attribute.
pub(crate) struct Options {
    pub(crate) kind: Kind,
    /// The location of the attribute.
    pub(crate) span: Span,
    /// The explicit name, for tools and prompts.
    pub(crate) name: Option<LitStr>,
    /// The URI or template of a resource.
    pub(crate) uri: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    /// A resource with an explicit name.
    pub(crate) named: bool,
    /// Unlisted names.
    pub(crate) aliases: Vec<LitStr>,
    /// Arguments or variables with completion.
    pub(crate) completes: Vec<LitStr>,
    /// Builder calls, each beginning with its dot.
    pub(crate) calls: Vec<TokenStream>,
    seen: Vec<Ident>,
}

impl Options {
    /// Reads the attribute. Invalid options are reported to `errors`, valid ones are kept.
    pub(crate) fn parse(kind: Kind, attr: &Attribute, krate: &Path, errors: &mut Errors) -> Options {
        let mut options = Options {
            kind,
            span: attr.path().span(),
            name: None,
            uri: None,
            description: None,
            named: false,
            aliases: Vec::new(),
            completes: Vec::new(),
            calls: Vec::new(),
            seen: Vec::new(),
        };
        match &attr.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                let parsed = list.parse_args_with(|input: ParseStream<'_>| options.all(input, krate, errors));
                errors.take(parsed);
            }
            Meta::NameValue(pair) => {
                errors.at(pair.eq_token.span, format!("options stand in parentheses: `#[{}(…)]`", kind.word()));
            }
        }
        if kind == Kind::Resource && options.uri.is_none() {
            errors.at(options.span, "a resource needs its URI or template first: `#[resource(\"weather://{city}\")]`");
        }
        for (one, other) in CONTRADICTIONS {
            let given = |word: &str| options.seen.iter().find(|ident| *ident == word);
            if let (Some(_), Some(at)) = (given(one), given(other)) {
                errors.at(at.span(), format!("`{one}` and `{other}` contradict each other"));
            }
        }
        options
    }

    fn all(&mut self, input: ParseStream<'_>, krate: &Path, errors: &mut Errors) -> Result<()> {
        if self.kind == Kind::Resource && input.peek(LitStr) {
            self.uri = Some(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        while !input.is_empty() {
            if input.peek(Lit) {
                let lit: Lit = input.parse()?;
                errors.at(lit.span(), format!("an option begins with its name; {}", self.choices()));
            } else {
                let ident = Ident::parse_any(input)?;
                self.one(ident, input, krate, errors)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }

    fn choices(&self) -> String {
        let known: Vec<&str> = self.kind.options().iter().map(|(name, _)| *name).collect();
        format!("`#[{}]` knows {}", self.kind.word(), text::list(&known))
    }

    fn one(&mut self, ident: Ident, input: ParseStream<'_>, krate: &Path, errors: &mut Errors) -> Result<()> {
        let word = ident.to_string();
        let Some((_, takes)) = self.kind.options().iter().find(|(name, _)| *name == word) else {
            let hint = text::near(&word, self.kind.options().iter().map(|(name, _)| *name));
            let hint = hint.map(|near| format!(", did you mean `{near}`? ")).unwrap_or_else(|| "; ".into());
            errors.at(ident.span(), format!("unknown option `{word}`{hint}{}", self.choices()));
            return skip(input);
        };
        if !matches!(takes, Values | Complete) && self.seen.contains(&ident) {
            errors.at(ident.span(), format!("`{word}` is given twice"));
        }
        self.seen.push(ident.clone());
        match takes {
            Flag => self.flag(&ident, input, errors),
            Choice => self.choice(&ident, input),
            Task => self.task(&ident, input),
            Cache => self.cache(&ident, input, krate, errors),
            Complete => self.complete(&ident, input),
            Name | Value | Values => self.value(&ident, *takes, input, errors),
        }
    }

    fn call(&mut self, ident: &Ident, args: TokenStream) {
        self.calls.push(quote_spanned!(ident.span()=> .#ident(#args)));
    }

    fn flag(&mut self, ident: &Ident, input: ParseStream<'_>, errors: &mut Errors) -> Result<()> {
        if input.peek(Token![=]) || input.peek(token::Paren) {
            let opposite = match ident.to_string().as_str() {
                "read_only" => ", and `writes` says the opposite",
                "destructive" => ", and `additive` says the opposite",
                _ => "",
            };
            errors.at(input.span(), format!("`{ident}` takes no value: give it or leave it out{opposite}"));
            return skip(input);
        }
        self.call(ident, quote!());
        Ok(())
    }

    fn choice(&mut self, ident: &Ident, input: ParseStream<'_>) -> Result<()> {
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            input.parse::<LitBool>().map_err(|e| Error::new(e.span(), format!("`{ident}` is `true` or `false`")))?
        } else {
            LitBool::new(true, ident.span())
        };
        self.call(ident, quote!(#value));
        Ok(())
    }

    fn task(&mut self, ident: &Ident, input: ParseStream<'_>) -> Result<()> {
        const USAGE: &str = "`task` takes no value, or is `task = \"required\"` or `task = \"later\"`";
        let method = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let when = input.parse::<LitStr>().map_err(|e| Error::new(e.span(), USAGE))?;
            match when.value().as_str() {
                "required" => "task_required",
                "later" => "task_later",
                _ => return Err(Error::new(when.span(), USAGE)),
            }
        } else {
            "task"
        };
        self.call(&Ident::new(method, ident.span()), quote!());
        Ok(())
    }

    fn value(&mut self, ident: &Ident, takes: Takes, input: ParseStream<'_>, errors: &mut Errors) -> Result<()> {
        if !input.peek(Token![=]) {
            errors.at(ident.span(), format!("`{ident}` takes a value: `{ident} = …`"));
            return skip(input);
        }
        input.parse::<Token![=]>()?;
        let value: Expr = input.parse()?;
        let literal = match &value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.clone()),
            _ => None,
        };
        if takes == Name || ident == "alias" {
            match literal {
                Some(name) if takes == Name => self.name = Some(name),
                Some(alias) => {
                    self.call(ident, quote!(#alias));
                    self.aliases.push(alias);
                }
                None => errors.at(
                    value.span(),
                    format!("`{ident}` must be a string literal, so that names can be compared here"),
                ),
            }
        } else if ident == "description" {
            self.description = Some(value);
        } else {
            self.named |= ident == "name";
            self.call(ident, quote!(#value));
        }
        Ok(())
    }

    fn cache(&mut self, ident: &Ident, input: ParseStream<'_>, krate: &Path, errors: &mut Errors) -> Result<()> {
        const USAGE: &str =
            "`cache` takes milliseconds and for whom: `cache(60_000, public)` or `cache(60_000, private)`";
        if !input.peek(token::Paren) {
            errors.at(ident.span(), USAGE);
            return skip(input);
        }
        let inside;
        parenthesized!(inside in input);
        let ttl_ms: Expr = inside.parse()?;
        inside.parse::<Token![,]>().map_err(|e| Error::new(e.span(), USAGE))?;
        let scope: Ident = inside.parse().map_err(|e: Error| Error::new(e.span(), USAGE))?;
        let scope = match scope.to_string().as_str() {
            "public" => Ident::new("Public", scope.span()),
            "private" => Ident::new("Private", scope.span()),
            _ => return Err(Error::new(scope.span(), USAGE)),
        };
        self.call(ident, quote!(#ttl_ms, #krate::types::page::CacheScope::#scope));
        Ok(())
    }

    fn complete(&mut self, ident: &Ident, input: ParseStream<'_>) -> Result<()> {
        const USAGE: &str = "`complete` takes names and functions: `complete(city = Self::cities)`";
        if !input.peek(token::Paren) {
            return Err(Error::new(ident.span(), USAGE));
        }
        let inside;
        parenthesized!(inside in input);
        while !inside.is_empty() {
            let name = if inside.peek(LitStr) {
                inside.parse()?
            } else {
                let name = Ident::parse_any(&inside).map_err(|e| Error::new(e.span(), USAGE))?;
                LitStr::new(&name.unraw().to_string(), name.span())
            };
            inside.parse::<Token![=]>().map_err(|e| Error::new(e.span(), USAGE))?;
            let function: Expr = inside.parse()?;
            self.calls.push(quote_spanned!(ident.span()=> .complete_with::<Self, _, _>(#name, #function)));
            self.completes.push(name);
            if !inside.is_empty() {
                inside.parse::<Token![,]>()?;
            }
        }
        Ok(())
    }
}

/// Skips the rest of a rejected option, up to the next comma.
fn skip(input: ParseStream<'_>) -> Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn read(attr: Attribute) -> (Options, Vec<String>) {
        let mut errors = Errors::default();
        let kind = Kind::of(&attr).expect("one of ours");
        let options = Options::parse(kind, &attr, &parse_quote!(::linchpin), &mut errors);
        (options, errors.0.into_iter().flatten().map(|e| e.to_string()).collect())
    }

    #[test]
    fn every_option_becomes_a_call_of_the_builder() {
        let (options, errors) = read(parse_quote!(#[tool(
            name = "x", title = "X", description = TEXT, read_only, idempotent, open_world = false, alias = "y", alias = "z", layer = a::b, scopes = ["s"], meta = m(),
        )]));
        assert_eq!(errors, [""; 0]);
        let calls = options.calls.iter().map(|c| c.to_string().replace(' ', "")).collect::<String>();
        assert_eq!(
            calls,
            r#".title("X").read_only().idempotent().open_world(false).alias("y").alias("z").layer(a::b).scopes(["s"]).meta(m())"#
        );
        assert_eq!(
            (options.name.map(|n| n.value()), options.aliases.len(), options.description.is_some()),
            (Some("x".into()), 2, true)
        );

        let (options, errors) = read(
            parse_quote!(#[resource("a://{b}", cache(5_000, public), complete(b = Self::bs, "c-d" = cd), size = 3)]),
        );
        assert_eq!(errors, [""; 0]);
        let calls = options.calls.iter().map(|c| c.to_string().replace(' ', "")).collect::<String>();
        assert_eq!(
            calls,
            r#".cache(5_000,::linchpin::types::page::CacheScope::Public).complete_with::<Self,_,_>("b",Self::bs).complete_with::<Self,_,_>("c-d",cd).size(3)"#
        );
    }

    #[test]
    fn a_mistake_is_named_and_the_rest_is_still_read() {
        let cases: Vec<(Attribute, Vec<&str>)> = vec![
            (
                parse_quote!(#[tool(readonly, idempotent = true, title)]),
                vec![
                    "unknown option `readonly`, did you mean `read_only`? `#[tool]` knows `name`, `title`",
                    "`idempotent` takes no value",
                    "`title` takes a value",
                ],
            ),
            (
                parse_quote!(#[tool(colour = 3, title = "a", title = "b")]),
                vec!["unknown option `colour`; `#[tool]` knows", "`title` is given twice"],
            ),
            (
                parse_quote!(#[tool(read_only, destructive)]),
                vec!["`read_only` and `destructive` contradict each other"],
            ),
            (parse_quote!(#[tool(name = NAME)]), vec!["`name` must be a string literal"]),
            (
                parse_quote!(#[tool("x", open_world = 1)]),
                vec!["an option begins with its name", "`open_world` is `true` or `false`"],
            ),
            (parse_quote!(#[tool = "x"]), vec!["options stand in parentheses: `#[tool(…)]`"]),
            (parse_quote!(#[resource]), vec!["a resource needs its URI or template first"]),
            (parse_quote!(#[resource("a://b", cache(5))]), vec!["`cache` takes milliseconds and for whom"]),
            (parse_quote!(#[resource("a://b", cache(5, everyone))]), vec!["`cache` takes milliseconds and for whom"]),
            (parse_quote!(#[prompt(complete(b))]), vec!["`complete` takes names and functions"]),
        ];
        for (attr, want) in cases {
            let shown = quote!(#attr).to_string();
            let (_, errors) = read(attr);
            assert_eq!(errors.len(), want.len(), "{shown}: {errors:?}");
            for (error, want) in errors.iter().zip(want) {
                assert!(error.starts_with(want), "{shown}: {error}");
            }
        }
    }
}
