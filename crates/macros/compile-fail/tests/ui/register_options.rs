//! Options and names that are wrong, with what was probably meant.
//@ names: unknown option `readonly`, did you mean `read_only`? `#[tool]` knows `name`, `title`
//@ names: unknown option `mimetype`, did you mean `mime_type`?
//@ names: unknown option `read_only`; `#[prompt]` knows `name`
//@ names: `idempotent` takes no value
//@ names: `read_only` and `destructive` contradict each other
//@ names: two tools, `first` and `second`, are both called `twice`
//@ names: two tools, `third` and `fourth`, are both called `third`
//@ names: two resources, `page` and `page_again`, are both at `app://{city}`
//@ names: a tool's name is 1 to 128 letters
//@ names: `citty` is not a variable of the template, did you mean `city`?
//@ names: `town` is not an argument of the prompt
//@ names: a resource needs its URI or template first

use linchpin::prelude::*;
use linchpin::Completion;

struct App;

async fn cities(asked: Completion) -> Vec<String> {
    asked.filter(["Oslo"])
}

#[register]
impl App {
    #[tool(readonly)]
    async fn near(&self) {}

    #[resource("app://near", mimetype = "text/plain")]
    async fn near_too(&self) -> String {
        String::new()
    }

    #[prompt(read_only)]
    async fn of_a_tool(&self) -> String {
        String::new()
    }

    #[tool(idempotent = true)]
    async fn valued(&self) {}

    #[tool(read_only, destructive)]
    async fn torn(&self) {}

    #[tool(name = "twice")]
    async fn first(&self) {}

    #[tool(name = "twice")]
    async fn second(&self) {}

    #[tool]
    async fn third(&self) {}

    #[tool(alias = "third")]
    async fn fourth(&self) {}

    #[resource("app://{city}")]
    async fn page(&self, citty: String) -> String {
        citty
    }

    #[resource("app://{city}")]
    async fn page_again(&self, city: String) -> String {
        city
    }

    #[tool(name = "with spaces")]
    async fn spaced(&self) {}

    #[prompt(complete(town = cities))]
    async fn completed(&self, city: String) -> String {
        city
    }

    #[resource]
    async fn nowhere(&self) -> String {
        String::new()
    }
}

fn main() {
    let _ = Server::new("app", "1").with(App);
}
