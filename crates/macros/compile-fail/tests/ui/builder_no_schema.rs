//! The arguments derive no `JsonSchema`.
//@ names: `NoSchema: JsonSchema` is not satisfied
//@ names: add `#[derive(JsonSchema)]` to `NoSchema`

use linchpin::prelude::*;

struct App;

#[derive(Deserialize)]
struct NoSchema {
    a: i64,
}

impl App {
    async fn f(&self, q: NoSchema) -> String {
        q.a.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
}
