//! A tool, a resource and a prompt that answer with a number.
//@ names: `i64` cannot be the answer of a tool
//@ names: return `String`, `Json<T>`
//@ names: `i64` cannot be the contents of a resource
//@ names: return `String`, `Vec<u8>`, `Markdown`
//@ names: `i64` cannot be the answer of a prompt
//@ names: return `String` (one message of the user)
//@ names: `i64` cannot be the answer of a handler
//@ names: a tool returns `String`, `Json<T>`

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

impl App {
    async fn f(&self, q: Add) -> i64 {
        q.a
    }
}

fn plain(q: Add) -> i64 {
    q.a
}

fn main() {
    let _ = Server::new("app", "1").tool("f", plain);
    let _ = Server::new("app", "1").state(App).tool("f", App::f);
    let _ = Server::new("app", "1").state(App).resource("app://{a}", App::f);
    let _ = Server::new("app", "1").state(App).prompt("f", App::f);
}
