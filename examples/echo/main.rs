//! A tool, a resource and a prompt that say what they are told.

use linchpin::prelude::*;

struct Echo;

#[register]
impl Echo {
    /// Echoes a message.
    #[tool(read_only)]
    fn echo(message: String) -> String {
        format!("Tool echo: {message}")
    }

    /// A message as a resource.
    #[resource("echo://{message}")]
    fn message(message: String) -> String {
        format!("Resource echo: {message}")
    }

    /// Asks to process a message.
    #[prompt]
    fn process(message: String) -> String {
        format!("Please process this message: {message}")
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    Server::new("echo", "1.0").with(Echo).serve(stdio()).await
}
