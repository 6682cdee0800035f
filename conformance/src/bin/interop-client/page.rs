//! A page on the web: one answer for every request, on a free loopback port, as long as the program runs.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const PAGE: &str = "<!doctype html><html><head><title>Interop</title></head><body><article><h1>A page for servers</h1>\
    <p>Seventeen herons stand in the shallow water and wait for the evening.</p></article></body></html>";

/// Starts to serve, and tells the address.
pub(crate) fn serve() -> io::Result<String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}/page", listener.local_addr()?);
    std::thread::spawn(move || {
        for peer in listener.incoming().flatten() {
            let _ = answer(peer);
        }
    });
    Ok(address)
}

fn answer(mut peer: TcpStream) -> io::Result<()> {
    peer.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|four| four == b"\r\n\r\n") && head.len() < 16 << 10 {
        let n = peer.read(&mut part)?;
        if n == 0 {
            return Ok(());
        }
        head.extend_from_slice(&part[..n]);
    }
    let (status, kind, body) = match head.starts_with(b"GET /page ") {
        true => ("200 OK", "text/html", PAGE),
        false => ("404 Not Found", "text/plain", "there is only /page"),
    };
    let n = body.len();
    write!(peer, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {n}\r\nconnection: close\r\n\r\n{body}")
}
