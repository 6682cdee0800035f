//! Handlers and states in the wrong places.
//@ names: a handler here takes `&()`, `&Cx` and one struct of arguments, in this order; this one does not
//@ names: is set with `.state(…)`
//@ names: a handler here takes `&App`, `&Cx` and one struct of arguments
//@ names: arguments are taken as a value
//@ names: never `&mut`
//@ names: `App` offers no tools, resources or prompts
//@ names: put `#[register]` above the `impl` block of a type of yours
//@ names: `Arc<App>` offers no tools, resources or prompts
//@ names: an `Arc` is not a type of yours: put it inside of one
//@ names: written `async |app: &App, q: Query| …`
//@ names: this function cannot be a handler

use linchpin::prelude::*;

struct App;

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    city: String,
}

impl App {
    async fn of_a_state(&self, q: Forecast) -> String {
        q.city
    }

    fn exclusive(&mut self, q: Forecast) -> String {
        q.city
    }
}

fn borrowed(q: &Forecast) -> String {
    q.city.clone()
}

fn many(_: &App, _: &Cx, q: Forecast, _: Forecast) -> String {
    q.city
}

fn main() {
    let _ = Server::new("app", "1").tool("f", App::of_a_state);
    let _ = Server::new("app", "1").state(App).tool("f", borrowed);
    let _ = Server::new("app", "1").with(App);
    let _ = Server::new("app", "1").state(App).tool("f", App::exclusive);
    let _ = Server::new("app", "1").state(App).tool("f", many);
    let _ = Server::new("app", "1").with(std::sync::Arc::new(App));
}
