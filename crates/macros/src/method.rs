//! The shape of a method: its receiver, whether it takes the context, and its arguments.

use crate::options::{Errors, Kind};
use crate::text;
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{
    Attribute, FnArg, GenericParam, Pat, PatType, Path, Receiver, ReceiverKind, ReturnType, Safety, Signature, Type,
};

/// Types of the standard library that are a single argument, never a struct of arguments.
const VALUES: &[&str] = &[
    "Arc",
    "BTreeMap",
    "BTreeSet",
    "Box",
    "Cow",
    "Duration",
    "HashMap",
    "HashSet",
    "IpAddr",
    "Ipv4Addr",
    "Ipv6Addr",
    "NonZero",
    "Option",
    "PathBuf",
    "Rc",
    "SocketAddr",
    "String",
    "SystemTime",
    "Value",
    "Vec",
    "VecDeque",
];

/// A parameter that becomes a field of the hidden struct.
pub(crate) struct Loose {
    /// Its doc comment, and its attributes for serde and schemars.
    attrs: Vec<Attribute>,
    ident: Ident,
    ty: Type,
}

/// The parameters of a method besides its state and context.
pub(crate) enum Args {
    Nothing,
    /// A struct of the user.
    Struct,
    Loose(Vec<Loose>),
}

/// A method as the builder receives it.
pub(crate) struct Method {
    ident: Ident,
    is_async: bool,
    receiver: bool,
    cx: bool,
    pub(crate) args: Args,
    output: ReturnType,
}

impl Method {
    /// Reads a signature, and removes the macro's attributes from its parameters. `generics` are the type and const
    /// parameters of the `impl`.
    pub(crate) fn read(
        kind: Kind,
        sig: &mut Signature,
        state: &Type,
        generics: &[Ident],
        errors: &mut Errors,
    ) -> Method {
        let word = kind.word();
        let ident = sig.ident.clone();
        if let Safety::Unsafe(token) = &sig.safety {
            errors.at(token.span, format!("a {word} is called by clients and cannot be `unsafe`"));
        }
        for param in &sig.generics.params {
            if !matches!(param, GenericParam::Lifetime(_)) {
                errors.over(param, format!("a {word} cannot be generic: its types make its schema"));
            }
        }
        let (is_async, output) = (sig.asyncness.is_some(), sig.output.clone());
        let mut method = Method { ident, is_async, receiver: false, cx: false, args: Args::Nothing, output };
        let mut params = Vec::new();
        for input in &mut sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    method.receiver = true;
                    if !shared(receiver) {
                        let why = "calls run at the same time and share the state \
                                   (a `Mutex` or an atomic makes it changeable)";
                        let message = format!("a {word} cannot take `self` or `&mut self`; take `&self`: {why}");
                        errors.over(&*receiver, message);
                    }
                }
                FnArg::Typed(param) => method.param(kind, param, state, &mut params, errors),
            }
        }
        method.args = arguments(params, generics, errors);
        method
    }

    fn param(&mut self, kind: Kind, param: &mut PatType, state: &Type, params: &mut Vec<PatType>, errors: &mut Errors) {
        let own: Vec<Attribute> = param.attrs.iter().filter(|a| ours(a)).cloned().collect();
        param.attrs.retain(|a| !ours(a));
        match &*param.ty {
            Type::Reference(reference) if last(&reference.elem).is_some_and(|name| name == "Cx") => {
                if reference.mutability.is_some() {
                    errors.over(&param.ty, "take the context as `&Cx`");
                } else if self.cx {
                    errors.over(&param.ty, "there is one context: take `&Cx` once");
                } else if !params.is_empty() {
                    errors.over(&*param, "`&Cx` comes before the arguments: `(&self, cx: &Cx, …)`");
                }
                self.cx = true;
            }
            Type::Reference(reference)
                if is_self(&reference.elem) || last(&reference.elem).is_some_and(|name| last(state) == Some(name)) =>
            {
                errors.over(&*param, "take the state as `&self`");
            }
            Type::Reference(reference) => {
                let owned = match &*reference.elem {
                    Type::Slice(_) => "a `Vec`".to_owned(),
                    elem if last(elem).is_some_and(|name| name == "str") => "`String`".to_owned(),
                    elem => format!("`{}`", elem.to_token_stream()),
                };
                errors.over(&param.ty, format!("arguments of a {} are owned: take {owned}", kind.word()));
            }
            Type::ImplTrait(_) => errors.over(&param.ty, "an argument needs a type of its own, which makes its schema"),
            ty if last(ty).is_some_and(|name| name == "Cx") => errors.over(&param.ty, "take the context as `&Cx`"),
            _ => {
                let gated = param.attrs.iter().find(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr"));
                if let Some(gated) = gated {
                    errors.over(gated, "an argument cannot depend on a `cfg`; put it on the whole method");
                }
                params.push(PatType { attrs: own, ..param.clone() });
            }
        }
    }

    /// Whether the builder needs an adapter for the method.
    fn adapted(&self) -> bool {
        matches!(self.args, Args::Loose(_))
    }

    /// The handler for the builder, after `Self::`.
    pub(crate) fn handler(&self) -> Ident {
        if self.adapted() {
            format_ident!("__linchpin_{}", self.ident.unraw(), span = self.ident.span())
        } else {
            self.ident.clone()
        }
    }

    /// The names of loose parameters for clients; those with attributes may have other names.
    pub(crate) fn loose(&self) -> Option<Vec<(Ident, bool)>> {
        match &self.args {
            Args::Nothing => Some(Vec::new()),
            Args::Struct => None,
            Args::Loose(loose) => Some(
                loose.iter().map(|l| (l.ident.clone(), l.attrs.iter().any(|a| !a.path().is_ident("doc")))).collect(),
            ),
        }
    }

    /// The hidden struct of loose parameters, and the function that destructures it.
    pub(crate) fn adapter(&self, cfgs: &[Attribute], krate: &Path) -> (TokenStream, TokenStream) {
        let Args::Loose(loose) = &self.args else { return Default::default() };
        let (ident, output, span) = (&self.ident, &self.output, self.ident.span());
        let name = format_ident!("__{}Args", text::camel(&ident.to_string()), span = span);
        let private = quote!(#krate::__private).to_string();
        let (serde, schemars) = (format!("{private}::serde"), format!("{private}::schemars"));
        let (idents, types): (Vec<_>, Vec<_>) = loose.iter().map(|l| (&l.ident, &l.ty)).unzip();
        let attrs = loose.iter().map(|l| &l.attrs);
        // An attribute may give a type without a schema one.
        let plain = loose.iter().filter(|l| l.attrs.iter().all(|a| a.path().is_ident("doc"))).map(|l| &l.ty);
        let hidden = quote! {
            #(#cfgs)*
            const _: () = { #( #krate::__private::described::<#plain>(); )* };
            #(#cfgs)*
            #[derive(#krate::__private::serde::Deserialize, #krate::__private::schemars::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            struct #name { #( #(#attrs)* #idents: #types, )* }
        };
        let take_state = self.receiver.then(|| quote!(&self,));
        let take_cx = self.cx.then(|| quote!(cx: &#krate::Cx,));
        let state = self.receiver.then(|| quote!(self,));
        let cx = self.cx.then(|| quote!(cx,));
        let (asynced, awaited) = match self.is_async {
            true => (quote!(async), quote!(.await)),
            false => Default::default(),
        };
        let adapted = self.handler();
        let adapter = quote_spanned! {span=>
            #(#cfgs)*
            #[doc(hidden)]
            #asynced fn #adapted(#take_state #take_cx args: #name) #output {
                Self::#ident(#state #cx #(args.#idents),*) #awaited
            }
        };
        (hidden, adapter)
    }
}

/// Decides between a struct of arguments and loose parameters.
fn arguments(params: Vec<PatType>, generics: &[Ident], errors: &mut Errors) -> Args {
    if params.is_empty() {
        return Args::Nothing;
    }
    if let [one] = &params[..]
        && one.attrs.is_empty()
        && looks_like_struct(&one.ty)
    {
        return Args::Struct;
    }
    let mut loose = Vec::new();
    for param in params {
        let Pat::Ident(pat) = &*param.pat else {
            errors.over(&param.pat, "an argument needs a name, which clients will use");
            continue;
        };
        if pat.by_ref.is_some() || pat.subpat.is_some() {
            errors.over(&param.pat, "an argument needs a plain name, which clients will use");
            continue;
        }
        if let Some(name) = mentions(param.ty.to_token_stream(), generics) {
            let why = format!("a loose argument cannot use `{name}`; put the arguments into a struct of your own");
            errors.over(&param.ty, why);
            continue;
        }
        loose.push(Loose { attrs: param.attrs, ident: pat.ident.clone(), ty: *param.ty });
    }
    Args::Loose(loose)
}

/// Whether it is `&self`, also in its explicit form.
fn shared(receiver: &Receiver) -> bool {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, mutable) => mutable.is_none(),
        ReceiverKind::Typed(_, ty) => matches!(&**ty, Type::Reference(r) if r.mutability.is_none() && is_self(&r.elem)),
        _ => false,
    }
}

/// The parameter attributes that the macro consumes.
fn ours(attr: &Attribute) -> bool {
    ["doc", "serde", "schemars"].iter().any(|name| attr.path().is_ident(name))
}

fn last(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Paren(inner) => last(&inner.elem),
        Type::Group(inner) => last(&inner.elem),
        _ => None,
    }
}

fn is_self(ty: &Type) -> bool {
    last(ty).is_some_and(|name| name == "Self")
}

fn looks_like_struct(ty: &Type) -> bool {
    last(ty).map(Ident::to_string).is_some_and(|name| name.starts_with(char::is_uppercase) && !VALUES.contains(&&*name))
}

/// The first of `names`, or `Self`, in `tokens`.
fn mentions(tokens: TokenStream, names: &[Ident]) -> Option<Ident> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" || names.contains(&ident) => Some(ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn read(mut sig: Signature) -> Method {
        let mut errors = Errors::default();
        let method = Method::read(Kind::Tool, &mut sig, &parse_quote!(Weather), &[], &mut errors);
        assert_eq!(errors.into_tokens().to_string(), "");
        method
    }

    #[test]
    fn one_parameter_of_a_struct_type_is_the_arguments_and_all_else_is_loose() {
        let cases: Vec<(Signature, &str)> = vec![
            (parse_quote!(async fn f(&self)), "nothing"),
            (parse_quote!(async fn f(&self, cx: &Cx)), "nothing"),
            (parse_quote!(fn f()), "nothing"),
            (parse_quote!(async fn f(&self, q: Forecast)), "struct"),
            (parse_quote!(async fn f(&self, Forecast { city }: my::Forecast)), "struct"),
            (parse_quote!(async fn f(self: &Self, cx: &linchpin::Cx, q: Page<u8>)), "struct"),
            (parse_quote!(async fn f(q: NoArgs)), "struct"),
            (parse_quote!(async fn f(&self, city: String)), "loose"),
            (parse_quote!(async fn f(&self, city: std::string::String)), "loose"),
            (parse_quote!(async fn f(&self, days: Option<Forecast>)), "loose"),
            (parse_quote!(async fn f(&self, n: u8)), "loose"),
            (parse_quote!(async fn f(&self, at: (f64, f64))), "loose"),
            (parse_quote!(async fn f(&self, at: [f64; 2])), "loose"),
            (parse_quote!(async fn f(&self, #[doc = " Which."] color: Color)), "loose"),
            (parse_quote!(async fn f(&self, #[serde(default)] color: Color)), "loose"),
            (parse_quote!(async fn f(&self, q: Forecast, deep: Depth)), "loose"),
        ];
        for (sig, want) in cases {
            let shown = sig.to_token_stream().to_string();
            let got = match read(sig).args {
                Args::Nothing => "nothing",
                Args::Struct => "struct",
                Args::Loose(_) => "loose",
            };
            assert_eq!(got, want, "{shown}");
        }
    }

    #[test]
    fn the_builder_takes_a_method_as_it_is_wherever_it_can() {
        let cases: Vec<(Signature, &str)> = vec![
            (parse_quote!(async fn f(&self, q: Forecast)), "f"),
            (parse_quote!(async fn f(&self, cx: &Cx, q: Forecast)), "f"),
            (parse_quote!(async fn f(q: Forecast)), "f"),
            (parse_quote!(async fn f(cx: &Cx, q: Forecast)), "f"),
            (parse_quote!(async fn f(&self)), "f"),
            (parse_quote!(fn f(cx: &Cx)), "f"),
            (parse_quote!(fn f(&self, city: String)), "__linchpin_f"),
            (parse_quote!(async fn r#type(&self, a: u8)), "__linchpin_type"),
        ];
        for (sig, want) in cases {
            let shown = sig.to_token_stream().to_string();
            assert_eq!(read(sig).handler(), want, "{shown}");
        }
    }
}
