//! The builder's own complaints point at the method that is offered, not at `#[register]`.
//@ names: --> tests/ui/register_types.rs:33:14
//@ names: `i64` cannot be the answer of a tool
//@ names: `NoSchema: JsonSchema` is not satisfied
//@ names: --> tests/ui/register_types.rs:43:38
//@ names: `Shape: schemars::JsonSchema` is not satisfied
//@ names: add `#[derive(JsonSchema)]` to `Shape`
//@ names: has type `Rc<i64>` which is not `Send`

use linchpin::prelude::*;
use std::rc::Rc;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

#[derive(Deserialize)]
struct NoSchema {
    a: i64,
}

#[derive(Deserialize)]
enum Shape {
    Round,
}

#[register]
impl App {
    #[tool]
    async fn number(&self, q: Add) -> i64 {
        q.a
    }

    #[tool]
    async fn undescribed(&self, q: NoSchema) -> String {
        q.a.to_string()
    }

    #[tool]
    async fn loose(&self, a: i64, b: Shape) -> String {
        let Shape::Round = b;
        a.to_string()
    }

    #[tool]
    async fn held(&self, a: i64) -> String {
        let kept = Rc::new(a);
        std::future::ready(()).await;
        kept.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").with(App);
}
