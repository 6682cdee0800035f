//! The context comes last, or there are two arguments.
//@ names: a handler here takes `&App`, `&Cx` and one struct of arguments, in this order; this one does not
//@ names: any of the three may be left out

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

fn loose(a: String, b: String) -> String {
    a + &b
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
    let _ = Server::new("app", "1").tool("f", loose);
}
