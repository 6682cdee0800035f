//! `#[register]`: the unchanged `impl`, and the builder calls.

use crate::method::Method;
use crate::options::{Errors, Kind, Options};
use crate::text;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, GenericParam, ImplItem, ImplItemConst, ImplItemFn, ImplItemType, ItemImpl, LitStr, Path, Result,
    Token, parse_quote,
};

/// A marked method.
struct Item {
    options: Options,
    method: Method,
    ident: Ident,
    doc: String,
    cfgs: Vec<Attribute>,
}

/// Expands `#[register(…)]` on `item`.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let krate = errors.take(krate.parse2(options)).unwrap_or_else(|| parse_quote!(::linchpin));
    let mut item: ItemImpl = match syn::parse2(item.clone()) {
        Ok(item) => item,
        Err(_) => {
            // Other items are kept as they are, for example a struct.
            errors.at(Span::call_site(), "`#[register]` goes on the `impl` block that has the methods");
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
    };
    if let Some((path, _)) = item.trait_.clone() {
        errors.over(path, "`#[register]` goes on a type's own methods, not on the methods of a trait");
        // The attributes of the methods would complain that there is no `#[register]`.
        collect(&mut item, &krate, &mut Errors::default());
        let errors = errors.into_tokens();
        return quote!(#item #errors);
    }
    check(&item, &mut errors);
    let items = collect(&mut item, &krate, &mut errors);
    compare(&items, &mut errors);
    if items.is_empty() {
        errors.at(
            Span::call_site(),
            "there is nothing to register: mark methods with `#[tool]`, `#[resource(\"…\")]` or `#[prompt]`",
        );
    }
    let errors = errors.into_tokens();
    // After an error nothing is generated: errors that follow from the first would only distract.
    let items = if errors.is_empty() { items } else { Vec::new() };
    let register = if borrows(&item).is_some() { TokenStream::new() } else { register(&item, &items, &krate) };
    quote!(#item #register #errors)
}

/// Reads `crate = path`.
fn krate(input: ParseStream<'_>) -> Result<Path> {
    if input.is_empty() {
        return Ok(parse_quote!(::linchpin));
    }
    let usage =
        |e: Error| Error::new(e.span(), "`#[register]` knows one option: `crate = path`, where Linchpin is found");
    input.parse::<Token![crate]>().map_err(usage)?;
    input.parse::<Token![=]>().map_err(usage)?;
    input.call(Path::parse_mod_style).map_err(usage)
}

fn check(item: &ItemImpl, errors: &mut Errors) {
    if let Some(lifetime) = borrows(item) {
        errors.at(lifetime, "the state of a server must be `'static`: it cannot borrow; let it own what it holds");
    }
}

/// Where the type is said to borrow.
fn borrows(item: &ItemImpl) -> Option<Span> {
    let param = item.generics.lifetimes().next().map(|param| param.span());
    param.or_else(|| lifetime(item.self_ty.to_token_stream()))
}

/// The span of a lifetime other than `'static` in `tokens`.
fn lifetime(tokens: TokenStream) -> Option<Span> {
    let mut after_quote = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if after_quote && ident != "static" => return Some(ident.span()),
            TokenTree::Group(group) => {
                if let Some(span) = lifetime(group.stream()) {
                    return Some(span);
                }
            }
            _ => {}
        }
        after_quote = matches!(&token, TokenTree::Punct(p) if p.as_char() == '\'');
    }
    None
}

/// Collects the marked methods and removes their attributes.
fn collect(item: &mut ItemImpl, krate: &Path, errors: &mut Errors) -> Vec<Item> {
    let generics = item.generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(param.ident.clone()),
        GenericParam::Const(param) => Some(param.ident.clone()),
        GenericParam::Lifetime(_) => None,
    });
    let generics: Vec<Ident> = generics.collect();
    let mut items = Vec::new();
    for member in &mut item.items {
        match member {
            ImplItem::Fn(method) => {
                let marks = take_marks(&mut method.attrs);
                let Some((kind, mark)) = marks.first() else { continue };
                if let Some((_, second)) = marks.get(1) {
                    errors.over(
                        second,
                        format!("`{}` can be only one of: a tool, a resource, a prompt", method.sig.ident),
                    );
                }
                let options = Options::parse(*kind, mark, krate, errors);
                let shape = Method::read(*kind, &mut method.sig, &item.self_ty, &generics, errors);
                let item = read(options, shape, method);
                check_names(&item, errors);
                items.push(item);
            }
            ImplItem::Const(ImplItemConst { attrs, .. }) | ImplItem::Type(ImplItemType { attrs, .. }) => {
                for (kind, mark) in take_marks(attrs) {
                    errors.over(mark, format!("`#[{}]` goes on a method", kind.word()));
                }
            }
            _ => {}
        }
    }
    items
}

fn take_marks(attrs: &mut Vec<Attribute>) -> Vec<(Kind, Attribute)> {
    let marks = attrs.iter().filter_map(|attr| Some((Kind::of(attr)?, attr.clone()))).collect();
    attrs.retain(|attr| Kind::of(attr).is_none());
    marks
}

fn read(options: Options, shape: Method, method: &ImplItemFn) -> Item {
    let cfgs = method.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).cloned().collect();
    Item { options, method: shape, ident: method.sig.ident.clone(), doc: text::doc(&method.attrs), cfgs }
}

impl Item {
    /// The name of a tool or prompt, and the default name of a resource.
    fn name(&self) -> LitStr {
        let default = || LitStr::new(&self.ident.unraw().to_string(), self.ident.span());
        self.options.name.clone().unwrap_or_else(default)
    }

    /// The keys that must be unique within the kind.
    fn keys(&self) -> Vec<LitStr> {
        match self.options.kind {
            Kind::Resource => self.options.uri.iter().cloned().collect(),
            _ => std::iter::once(self.name()).chain(self.options.aliases.iter().cloned()).collect(),
        }
    }
}

/// Checks names as the server does at startup, but with their location.
fn check_names(item: &Item, errors: &mut Errors) {
    let Options { kind, uri, completes, .. } = &item.options;
    for key in item.keys() {
        let (value, allowed) = (key.value(), |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if *kind == Kind::Tool && !((1..=128).contains(&value.len()) && value.bytes().all(allowed)) {
            errors.at(key.span(), "a tool's name is 1 to 128 letters, digits, `_`, `-` or `.`");
        }
    }
    let loose = item.method.loose();
    match (kind, uri) {
        (Kind::Resource, Some(uri)) => {
            let known = text::variables(&uri.value());
            for (ident, renamed) in loose.unwrap_or_default() {
                unknown(
                    &ident.unraw().to_string(),
                    ident.span(),
                    renamed,
                    &known,
                    "a variable of the template",
                    errors,
                );
            }
            for name in completes {
                unknown(&name.value(), name.span(), false, &known, "a variable of the template", errors);
            }
        }
        (Kind::Prompt, _) => {
            let Some(loose) = loose.filter(|l| l.iter().all(|(_, renamed)| !renamed)) else { return };
            let known: Vec<String> = loose.iter().map(|(ident, _)| ident.unraw().to_string()).collect();
            for name in completes {
                unknown(&name.value(), name.span(), false, &known, "an argument of the prompt", errors);
            }
        }
        _ => {}
    }
}

fn unknown(name: &str, span: Span, renamed: bool, known: &[String], what: &str, errors: &mut Errors) {
    if renamed || known.iter().any(|k| k == name) {
        return;
    }
    let hint = match (text::near(name, known.iter().map(String::as_str)), known.is_empty()) {
        (Some(near), _) => format!(", did you mean `{near}`?"),
        (None, true) => "; there is none".to_owned(),
        (None, false) => format!("; there is {}", text::list(known)),
    };
    errors.at(span, format!("`{name}` is not {what}{hint}"));
}

/// Reports duplicate names, unless a `cfg` may separate them; then the server checks at startup.
fn compare(items: &[Item], errors: &mut Errors) {
    let mut seen: Vec<(Kind, String, &Item)> = Vec::new();
    for item in items {
        let kind = item.options.kind;
        for key in item.keys() {
            let value = key.value();
            let other = seen.iter().find(|(k, v, other)| {
                *k == kind
                    && *v == value
                    && (std::ptr::eq(*other, item) || (other.cfgs.is_empty() && item.cfgs.is_empty()))
            });
            match other {
                Some((_, _, other)) if std::ptr::eq(*other, item) => {
                    errors.at(key.span(), format!("`{}` has the name `{value}` twice", item.ident));
                }
                Some((_, _, other)) => {
                    let both = format!("`{}` and `{}`", other.ident, item.ident);
                    let what = if kind == Kind::Resource { "are both at" } else { "are both called" };
                    errors.at(key.span(), format!("two {}s, {both}, {what} `{value}`", kind.word()));
                }
                None => seen.push((kind, value, item)),
            }
        }
    }
}

/// Generates `impl Register` with its bounds.
fn register(item: &ItemImpl, items: &[Item], krate: &Path) -> TokenStream {
    let state = &item.self_ty;
    let mut generics = item.generics.clone();
    let params: Vec<Ident> = generics.type_params().map(|param| param.ident.clone()).collect();
    if !params.is_empty() {
        let bounds = generics.make_where_clause();
        for param in params {
            bounds.predicates.push(parse_quote!(#param: ::core::marker::Send + ::core::marker::Sync + 'static));
        }
    }
    let (params, _, bounds) = generics.split_for_impl();
    let cfgs = item.attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let (hidden, adapters): (Vec<_>, Vec<_>) = items.iter().map(|item| item.method.adapter(&item.cfgs, krate)).unzip();
    let adapters =
        adapters.iter().any(|a| !a.is_empty()).then(|| quote!(impl #params #state #bounds { #(#adapters)* }));
    let server = Ident::new("server", Span::mixed_site());
    let additions = items.iter().map(|item| addition(item, &server, krate));
    quote! {
        #(#cfgs)*
        #[allow(deprecated, non_snake_case, unused_qualifications, clippy::all, clippy::pedantic)]
        const _: () = {
            #(#hidden)*
            #adapters
            #[automatically_derived]
            impl #params #krate::Register for #state #bounds {
                fn register(#server: #krate::Server<Self>) -> #krate::Server<Self> {
                    #(#additions)*
                    #server
                }
            }
        };
    }
}

/// Generates one builder call. It carries the method's location for errors at startup.
fn addition(item: &Item, server: &Ident, krate: &Path) -> TokenStream {
    let Options { kind, uri, description, named, calls, .. } = &item.options;
    let (name, handler, cfgs) = (item.name(), item.method.handler(), &item.cfgs);
    let doc = &item.doc;
    let description =
        description.as_ref().map(ToTokens::to_token_stream).or_else(|| (!doc.is_empty()).then(|| quote!(#doc)));
    let definition = match kind {
        Kind::Tool => {
            let description = description.unwrap_or_else(|| quote!(""));
            quote!(#krate::Tool::new(#name, #description))
        }
        Kind::Prompt => {
            let description = description.unwrap_or_else(|| quote!(""));
            quote!(#krate::Prompt::new(#name, #description))
        }
        Kind::Resource => {
            let name = (!named).then(|| quote!(.name(#name)));
            let description = description.map(|text| quote!(.description(#text)));
            quote!(#krate::Resource::new(#uri) #name #description)
        }
    };
    let word = Ident::new(kind.word(), item.ident.span());
    let added = quote_spanned!(item.ident.span()=> #server.#word(#definition #(#calls)*, Self::#handler));
    quote!(#(#cfgs)* let #server = #added;)
}
