//! `#[register]` where it does not belong.
//@ names: `#[register]` goes on the `impl` block that has the methods
//@ names: `#[register]` goes on a type's own methods
//@ names: the state of a server must be `'static`
//@ names: there is nothing to register: mark methods with
//@ names: a loose argument cannot use `T`; put the arguments into a struct of your own
//@ names: `#[register]` knows one option: `crate = path`
//@ names: `#[tool]` goes on a method
//@ names: `#[tool]` has no effect here: put `#[register]` above the `impl` block

use linchpin::prelude::*;

#[register]
struct Nothing;

trait Speaks {
    fn speak(&self) -> String;
}

#[register]
impl Speaks for Nothing {
    #[tool]
    fn speak(&self) -> String {
        String::new()
    }
}

struct Empty;

#[register]
impl Empty {}

struct Borrows<'a>(&'a str);

#[register]
impl Borrows<'_> {
    #[tool]
    async fn text(&self) -> String {
        self.0.to_owned()
    }
}

struct Holds<T>(T);

#[register(krate = linchpin)]
impl<T> Holds<T> {
    #[tool]
    const NAME: &'static str = "held";

    #[tool]
    async fn put(&self, more: Vec<T>) -> String {
        more.len().to_string()
    }
}

struct Forgotten;

impl Forgotten {
    #[tool]
    async fn text(&self) -> String {
        String::new()
    }
}

fn main() {}
