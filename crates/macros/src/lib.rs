//! The attribute macros of Linchpin: `#[register]` and, inside it, `#[tool]`, `#[resource]` and `#[prompt]`.
//!
//! Use them through the crate `linchpin` (`linchpin::register`, also in `linchpin::prelude`). The documentation there has a
//! complete example.

// Files import downwards, in this order:
//
// ```text
// register
// method
// options
// text
// ```

// This crate owns syntax, and nothing else: users could write the same builder calls themselves. It must never look into a
// method's body, and must never know what the builder does with its arguments.

mod method;
mod options;
mod register;
mod text;

use proc_macro::TokenStream;

/// Turns methods of a type into tools, resources and prompts, which `Server::with(value)` adds.
///
/// It is placed on an `impl` block of the type's inherent methods, once per type. The block itself is unchanged, except that
/// the attributes below are removed. The macro generates an `impl Register` that calls the builder for each marked method,
/// in order. Methods without an attribute are ignored.
///
/// `#[register(crate = path)]` sets the path of Linchpin if it is not `::linchpin`.
///
/// # Methods
///
/// A method is an `async fn` or a plain `fn` of `(&self, …)`, `(&self, cx: &Cx, …)`, `(cx: &Cx, …)` or `(…)`, where `…` is one
/// of these:
///
/// * **nothing**: no arguments;
/// * **one struct** that derives `Deserialize` and `JsonSchema`; its fields are the arguments;
/// * **loose parameters**: each is an argument with the parameter's name. They become the fields of a hidden struct, so they
///   can have the attributes of fields: a doc comment is the argument's description, and `#[serde(…)]` and `#[schemars(…)]`
///   work as usual. `Option` makes an argument optional. Unknown members are ignored.
///
/// *A single parameter is the struct of arguments if its type is a path whose last segment begins with an upper-case letter,
/// is not a value type of the standard library (`String`, `Option`, `Vec`, `VecDeque`, `Box`, `Rc`, `Arc`, `Cow`, the
/// maps and sets, `PathBuf`, `Duration`, `SystemTime`, `IpAddr`, `Ipv4Addr`, `Ipv6Addr`, `SocketAddr`, `NonZero`) or
/// `Value`, and the parameter has no doc comment, `#[serde]` or `#[schemars]`. All other parameters are loose.* To take
/// a single argument of another type, for example an enum of your own or a `NonZeroU32`, give it a doc comment.
///
/// Arguments are owned values: `String`, not `&str`. A type parameter of the `impl` gets the bounds `Send + Sync + 'static`;
/// it can be used in a struct of arguments, but not in a loose parameter. `#[cfg]` on a method also applies to its
/// registration.
///
/// # Options
///
/// Each option calls the builder method of the same name with the given expression. Those about tasks need the feature `tasks`.
///
/// | `#[tool(…)]` | |
/// |---|---|
/// | `name = "…"` | the tool's name; default: the method's name |
/// | `title = …` | the display name |
/// | `description = …` | default: the doc comment, with the lines of a paragraph joined |
/// | `read_only`, `writes`, `destructive`, `additive`, `idempotent` | hints about the tool's effects |
/// | `open_world`, `open_world = false` | whether the tool interacts with external systems |
/// | `alias = "…"` | an unlisted name that still works, for example of an earlier version; repeatable |
/// | `layer = path` | middleware; repeatable, the last one runs first |
/// | `scopes = ["…"]` | the scopes that a call demands |
/// | `visible_to = path` | decides for whom the tool exists: `fn(&Viewer) -> bool` |
/// | `icon = …` | repeatable |
/// | `meta = …`, `input_schema = …`, `output_schema = …` | as in the builder |
/// | `ui = "ui://…"` | the page that shows its results (MCP Apps) |
/// | `visible = "app"`, `visible = "model"` | for the page only, or for the model only; default: both |
/// | `task` | a call may become a task, for clients that support tasks |
/// | `task = "required"` | every call is a task at once (`Tool::task_required`) |
/// | `task = "later"` | the handler decides when, with `Cx::become_task` (`Tool::task_later`) |
/// | `resumable` | a task may be suspended, or restarted from the beginning after the process that ran it has died |
/// | `task_ttl = …` | how long its tasks live, a `Duration` |
/// | `meanwhile = "…"` | a text for the model to read while a task runs (2025-11-25 only) |
///
/// | `#[resource("uri or template", …)]` | |
/// |---|---|
/// | `name = …` | default: the method's name |
/// | `title = …`, `description = …`, `layer = …`, `scopes = …`, `visible_to = …`, `icon = …`, `meta = …` | as for tools |
/// | `mime_type = …`, `size = …`, `annotations = …` | as in the builder |
/// | `cache(ttl_ms, public)`, `cache(ttl_ms, private)` | how long, in milliseconds, and for whom its contents may be cached |
/// | `complete(variable = path, …)` | completion functions for the template's variables |
///
/// | `#[prompt(…)]` | |
/// |---|---|
/// | `name = "…"`, `title = …`, `description = …`, `layer = …`, `scopes = …`, `visible_to = …`, `icon = …`, `meta = …` | as for tools |
/// | `complete(argument = path, …)` | completion functions for arguments |
///
/// The variables of a template and the arguments of a prompt arrive as strings and are parsed into the parameter's
/// type: text, numbers, booleans and enums are supported.
///
/// # Errors
///
/// All errors are reported at once, each at its place: an unknown option (with the most similar one), a duplicate name, a
/// parameter that is not a variable of the template. The compiler checks the types at the method, with the builder's
/// diagnostics.
#[proc_macro_attribute]
#[doc(alias = "tool_router")]
#[doc(alias = "tool_handler")]
pub fn register(options: TokenStream, item: TokenStream) -> TokenStream {
    register::expand(options.into(), item.into()).into()
}

/// Marks a method in an `impl` block with [`#[register]`](macro@register) as a tool. See there for the options.
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("tool", item)
}

/// Marks a method in an `impl` block with [`#[register]`](macro@register) as a resource. See there for the options.
#[proc_macro_attribute]
pub fn resource(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("resource", item)
}

/// Marks a method in an `impl` block with [`#[register]`](macro@register) as a prompt. See there for the options.
#[proc_macro_attribute]
pub fn prompt(_: TokenStream, item: TokenStream) -> TokenStream {
    stray("prompt", item)
}

/// The error for an attribute outside of `#[register]`, which removes those inside of it.
fn stray(word: &str, item: TokenStream) -> TokenStream {
    let message =
        format!("`#[{word}]` has no effect here: put `#[register]` above the `impl` block that the method is in");
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).into_compile_error();
    [TokenStream::from(error), item].into_iter().collect()
}
