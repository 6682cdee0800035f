//! The arguments derive no `Deserialize`.
//@ names: `NoDeserialize: serde::Deserialize<'de>` is not satisfied
//@ names: consider adding `#[derive(serde::Deserialize)]` to your `NoDeserialize` type

use linchpin::prelude::*;

struct App;

#[derive(JsonSchema)]
struct NoDeserialize {
    a: i64,
}

impl App {
    async fn f(&self, q: NoDeserialize) -> String {
        q.a.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
}
