//! A server with a skill: instructions that tell a model how to use its tool, and a file that they mention.
//!
//! ```sh
//! cargo run -p linchpin-examples --example skills
//! ```
//!
//! Here the skill is part of the program. `Skills::dir("skills")` serves a directory instead, and notices when it changes.

use linchpin::prelude::*;
use linchpin::skills::Skills;

struct Shop;

#[register]
impl Shop {
    /// Refunds an order.
    #[tool(destructive)]
    fn refund(&self, order: u32, cents: u32) -> String {
        format!("{cents} cents of order {order} are on their way")
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let skills = Skills::embedded([
        ("refunds/SKILL.md", include_str!("refunds/SKILL.md")),
        ("refunds/limits.md", include_str!("refunds/limits.md")),
    ]);
    Server::new("shop", "1.0").with(skills).with(Shop).serve(stdio()).await
}
