//! The handler keeps something that is not `Send` across an `await`.
//@ names: future cannot be sent between threads safely
//@ names: has type `Rc<i64>` which is not `Send`
//@ names: await occurs here

use linchpin::prelude::*;
use std::rc::Rc;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

impl App {
    async fn f(&self, q: Add) -> String {
        let kept = Rc::new(q.a);
        std::future::ready(()).await;
        kept.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
}
