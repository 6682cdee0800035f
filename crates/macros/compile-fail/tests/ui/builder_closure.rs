//! A closure around a future that borrows: the borrow checker refuses it, after all bounds are met, in its own words.
//@ names: lifetime may not live long enough

use linchpin::prelude::*;

struct App {
    name: String,
}

fn main() {
    let app = App { name: "app".to_owned() };
    let _ = Server::new("app", "1").state(app).tool("f", |app: &App| async move { app.name.clone() });
    let app = App { name: "app".to_owned() };
    let _ = Server::new("app", "1").state(app).tool("f", async |app: &App| app.name.clone());
}
