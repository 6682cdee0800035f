//! The context comes last.
//@ names: this function cannot be a handler of `App`
//@ names: a handler is an `async fn` of `(args)`, `(&App, args)` or `(&App, &Cx, args)`
//@ names: is `&Cx` after the arguments

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

impl App {
    async fn f(&self, q: Add, cx: &Cx) -> String {
        cx.progress(1.0, None);
        q.a.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
}
