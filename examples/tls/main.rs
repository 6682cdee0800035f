//! HTTPS without a proxy. The certificate may be replaced while the server runs.
//!
//! `cargo run -p linchpin-examples --example tls -- cert.pem key.pem mcp.example`
//!
//! The name is the one that clients use; without it every request would be rejected, because by default a server accepts
//! only loopback names.

use linchpin::BoxError;
use linchpin::prelude::*;
use linchpin::transport::Tls;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut args = std::env::args().skip(1);
    let (Some(cert), Some(key), Some(name)) = (args.next(), args.next(), args.next()) else {
        eprintln!("usage: tls CERT.pem KEY.pem NAME [ADDRESS]");
        std::process::exit(2);
    };
    let transport = http(args.next().unwrap_or_else(|| "0.0.0.0:8443".to_owned()))
        .tls(Tls::from_files(cert, key)?)
        .allow_host(&name)
        .on_ready(move |addr| eprintln!("https://{name}:{}/mcp", addr.port()))
        .with_graceful_shutdown(shutdown_signal());
    Server::new("tls", "1.0").tool(("hello", "Says hello."), || "Hello over TLS!").serve(transport).await?;
    Ok(())
}
