//! `#[offer]` and, inside it, `#[tool]`, `#[resource]` and `#[prompt]`.
//!
//! This crate owns sugar, and nothing else: what it writes a person could have written with the builder. It must never
//! look into a method's body, and must never know what the builder does with what it is given.
//!
//! Use it through the facade (`linchpin::offer`, also in `linchpin::prelude`), whose documentation has an example that
//! is tested.

mod method;
mod offer;
mod options;
mod text;

use proc_macro::TokenStream;

/// Offers methods of a type as tools, resources and prompts, so that `Server::with(value)` adds them all.
///
/// It stands on an `impl` block of the type's own methods, once per type. The block stays as it was written, except
/// that the attributes below are taken off; added is an `impl Offer` that calls the builder for each marked method, in
/// order. Methods without a mark are left alone.
///
/// `#[offer(crate = path)]` says where Linchpin is found when it is not `::linchpin`.
///
/// # Methods
///
/// A method is an `async fn` or a plain `fn` of `(&self, …)`, `(&self, cx: &Cx, …)`, `(cx: &Cx, …)` or `(…)`. In place of the
/// dots stands one of these:
///
/// * **nothing**: no arguments;
/// * **one struct** that derives `Deserialize` and `JsonSchema`; its fields are the arguments;
/// * **loose parameters**: each is an argument of its own name. They become the fields of a hidden struct, so what would
///   stand on a field may stand on them: a doc comment is the argument's description, and `#[serde(…)]` and
///   `#[schemars(…)]` work as usual. `Option` makes one optional. Members that are not known are ignored.
///
/// Which of the two last it is: *a single parameter is the struct of arguments if its type is a path whose last word
/// begins with an upper-case letter, is not a value type of the standard library (`String`, `Option`, `Vec`, `Box`,
/// `Rc`, `Arc`, `Cow`, the maps and sets, `PathBuf`, `Duration`, `SystemTime`, IP and socket addresses, `NonZero`) or
/// `Value`, and no doc comment, `#[serde]` or `#[schemars]` stands on the parameter. Everything else is loose.* So to
/// take a single argument of a type of your own, an enum for example, give it a doc comment.
///
/// Arguments are owned values: `String`, not `&str`. A type parameter of the `impl` gets the bounds
/// `Send + Sync + 'static`, and may stand in a struct of arguments, but not in a loose parameter. `#[cfg]` on a method
/// counts for what it offers, too.
///
/// # Options
///
/// Each calls the builder's method of the same name, with whatever expression is given.
///
/// | `#[tool(…)]` | |
/// |---|---|
/// | `name = "…"` | the tool's name; default: the method's |
/// | `title = …` | a name for people |
/// | `description = …` | default: the doc comment, with the lines of a paragraph joined |
/// | `read_only`, `writes`, `destructive`, `additive`, `idempotent` | what it does to the world |
/// | `open_world`, `open_world = false` | whether it reaches beyond a closed world |
/// | `alias = "…"` | a name of earlier versions that still works; repeatable |
/// | `layer = path` | middleware; repeatable, the last one runs first |
/// | `icon = …` | repeatable |
/// | `meta = …`, `input_schema = …`, `output_schema = …` | as in the builder |
///
/// | `#[resource("uri or template", …)]` | |
/// |---|---|
/// | `name = …` | default: the method's |
/// | `title = …`, `description = …`, `layer = …`, `icon = …`, `meta = …` | as for tools |
/// | `mime_type = …`, `size = …`, `annotations = …` | as in the builder |
/// | `cache(ttl_ms, public)`, `cache(ttl_ms, private)` | how long, in milliseconds, and for whom its contents may be cached |
/// | `complete(variable = path, …)` | functions that suggest values of the template's variables |
///
/// | `#[prompt(…)]` | |
/// |---|---|
/// | `name = "…"`, `title = …`, `description = …`, `layer = …`, `icon = …`, `meta = …` | as for tools |
/// | `complete(argument = path, …)` | functions that suggest values of arguments |
///
/// The variables of a template and the arguments of a prompt arrive as strings and become what the parameter's type
/// says: numbers and booleans are parsed.
///
/// # Mistakes
///
/// All of them are reported at once, each where it is: an option that does not exist (with the one that was probably meant),
/// two things of the same name, a parameter that is not a variable of the template. What the types must satisfy the compiler checks at the method, in the builder's own words.
#[proc_macro_attribute]
pub fn offer(options: TokenStream, item: TokenStream) -> TokenStream {
    offer::expand(options.into(), item.into()).into()
}

/// Marks a method of an `impl` block with [`#[offer]`](macro@offer) as a tool. The options are described there.
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("tool", item)
}

/// Marks a method of an `impl` block with [`#[offer]`](macro@offer) as a resource. The options are described there.
#[proc_macro_attribute]
pub fn resource(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("resource", item)
}

/// Marks a method of an `impl` block with [`#[offer]`](macro@offer) as a prompt. The options are described there.
#[proc_macro_attribute]
pub fn prompt(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("prompt", item)
}

/// `#[offer]` takes these attributes off; what is still there stands somewhere else.
fn stray(word: &str, item: TokenStream) -> TokenStream {
    let message =
        format!("`#[{word}]` has no effect here: put `#[offer]` above the `impl` block that the method is in");
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).into_compile_error();
    [TokenStream::from(error), item].into_iter().collect()
}
