//! `#[offer]` and, inside it, `#[tool]`, `#[resource]` and `#[prompt]`.

mod method;
mod offer;
mod options;
mod text;

use proc_macro::TokenStream;

/// Offers methods of a type as tools, resources and prompts.
#[proc_macro_attribute]
pub fn offer(options: TokenStream, item: TokenStream) -> TokenStream {
    offer::expand(options.into(), item.into()).into()
}
