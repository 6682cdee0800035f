//! Structured answers whose types cannot be written, or cannot be described.
//@ names: `NoSerialize: serde::Serialize` is not satisfied
//@ names: consider adding `#[derive(serde::Serialize)]` to your `NoSerialize` type
//@ names: `NoSchema: JsonSchema` is not satisfied
//@ names: add `#[derive(JsonSchema)]` to `NoSchema`
//@ names: the `T` of `Json<T>` derives `Serialize` and `JsonSchema`

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

#[derive(JsonSchema)]
struct NoSerialize {
    a: i64,
}

#[derive(Serialize)]
struct NoSchema {
    a: i64,
}

impl App {
    async fn f(&self, q: Add) -> Result<Json<NoSerialize>> {
        Ok(Json(NoSerialize { a: q.a }))
    }

    async fn g(&self, q: Add) -> Json<NoSchema> {
        Json(NoSchema { a: q.a })
    }

    fn h(&self, q: Add) -> Json<NoSchema> {
        Json(NoSchema { a: q.a })
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
    let _ = Server::new("app", "1").state(App).tool("g", App::g);
    let _ = Server::new("app", "1").state(App).tool("h", App::h);
}
