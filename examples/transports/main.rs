//! One server on several transports at the same time: Streamable HTTP for all revisions, the HTTP+SSE of 2024-11-05 beside it,
//! and a Unix socket for other programs of the same user.
//!
//! `cargo run -p linchpin-examples --example transports -- 127.0.0.1:8931 /tmp/hello.sock`

use linchpin::prelude::*;
use linchpin::transport::unix;

fn server() -> Server {
    Server::new("hello", "1.0").tool(Tool::new("hello", "Says hello.").read_only(), |cx: &Cx| {
        let revision = cx.revision();
        async move { format!("Hello, client of {revision}!") }
    })
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8931".to_owned());
    let socket = args.next().unwrap_or_else(|| "hello.sock".to_owned());
    let over_http = http(address)
        .with_sse()
        .on_ready(|address| eprintln!("http://{address}/mcp and http://{address}/sse"))
        .with_graceful_shutdown(shutdown_signal());
    let over_socket = unix(socket).with_graceful_shutdown(shutdown_signal());
    tokio::try_join!(server().serve(over_http), server().serve(over_socket))?;
    Ok(())
}
