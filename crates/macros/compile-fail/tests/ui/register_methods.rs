//! Methods that cannot be offered. All mistakes are reported at once, each where it is.
//@ names: a tool cannot take `self` or `&mut self`
//@ names: `&Cx` comes before the arguments
//@ names: take the context as `&Cx`
//@ names: arguments of a tool are owned: take `String`
//@ names: a tool cannot be generic
//@ names: an argument needs a name
//@ names: `both` can be only one of: a tool, a resource, a prompt
//@ names: take the state as `&self`

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
}

#[register]
impl App {
    #[tool]
    async fn by_value(self, q: Add) -> String {
        q.a.to_string()
    }

    #[tool]
    async fn by_mut(&mut self, q: Add) -> String {
        q.a.to_string()
    }

    #[tool]
    async fn wrong_order(&self, q: Add, cx: &Cx) -> String {
        cx.progress(1.0, None);
        q.a.to_string()
    }

    #[tool]
    async fn owned_cx(&self, cx: Cx, q: Add) -> String {
        cx.progress(1.0, None);
        q.a.to_string()
    }

    #[tool]
    async fn borrowed(&self, city: &str) -> String {
        city.to_owned()
    }

    #[tool]
    async fn generic<T>(&self) -> String {
        String::new()
    }

    #[tool]
    async fn nameless(&self, (a, b): (f64, f64)) -> String {
        (a + b).to_string()
    }

    #[tool]
    #[prompt]
    async fn both(&self) -> String {
        String::new()
    }

    #[tool]
    async fn state(_app: &App, q: Add) -> String {
        q.a.to_string()
    }
}

fn main() {
    let _ = Server::new("app", "1").with(App);
}
