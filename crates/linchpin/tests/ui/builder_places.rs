//! The handler is a plain function.
//@ names: this function cannot be a handler of `App`
//@ names: a handler is an `async fn`
//@ names: is `async` missing

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

impl App {
    fn f(&self, q: Add) -> String {
        q.a.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
}
