//! Floor for HTTP in front of a child process: each body becomes a line with an id of ours, each line a body with the client's.
//! `bare-http-pipe PORT [--each] COMMAND ARGS…`: one child, or one for each connection.
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// The text with its id replaced, and that id.
fn with_id(text: &[u8], id: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let head: Head<'_> = serde_json::from_slice(text).ok()?;
    let old = head.id?.get().as_bytes();
    let at = old.as_ptr() as usize - text.as_ptr() as usize;
    let mut out = Vec::with_capacity(text.len() + 24);
    out.extend_from_slice(&text[..at]);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(&text[at + old.len()..]);
    Some((out, old.to_vec()))
}

struct State {
    waiting: Mutex<(u64, HashMap<u64, oneshot::Sender<Vec<u8>>>)>,
    lines: mpsc::UnboundedSender<Vec<u8>>,
}

async fn serve(state: Arc<State>, req: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let Ok(body) = req.into_body().collect().await else { return Ok(response) };
    let body = body.to_bytes();
    let (answer, answered) = oneshot::channel();
    let number = {
        let mut waiting = state.waiting.lock().expect("no panics");
        waiting.0 += 1;
        let number = waiting.0;
        waiting.1.insert(number, answer);
        number
    };
    let Some((line, id)) = with_id(&body, &number.to_string()) else {
        state.waiting.lock().expect("no panics").1.remove(&number);
        let _ = state.lines.send(body.to_vec());
        *response.status_mut() = StatusCode::ACCEPTED;
        return Ok(response);
    };
    let _ = state.lines.send(line);
    let Ok(reply) = answered.await else { return Ok(response) };
    let id = String::from_utf8_lossy(&id).into_owned();
    let Some((reply, _)) = with_id(&reply, &id) else { return Ok(response) };
    *response.body_mut() = Full::new(reply.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Starts a child and the tasks that write to it and read from it.
fn start(command: &[String]) -> Arc<State> {
    let mut child = tokio::process::Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the command");
    let (mut stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    let (lines, mut queued) = mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        while let Some(mut line) = queued.recv().await {
            line.push(b'\n');
            while let Ok(more) = queued.try_recv() {
                line.extend_from_slice(&more);
                line.push(b'\n');
            }
            if stdin.write_all(&line).await.is_err() {
                return;
            }
        }
    });
    let state = Arc::new(State { waiting: Mutex::default(), lines });
    let heard = Arc::downgrade(&state);
    tokio::spawn(async move {
        let _child = child;
        let mut stdout = BufReader::with_capacity(64 << 10, stdout);
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).await.is_ok_and(|n| n > 0) {
            let number = serde_json::from_slice::<Head<'_>>(&line).ok().and_then(|head| head.id?.get().parse::<u64>().ok());
            let Some(state) = heard.upgrade() else { return };
            let answer = number.and_then(|number| state.waiting.lock().expect("no panics").1.remove(&number));
            if let Some(answer) = answer {
                let _ = answer.send(line.trim_ascii_end().to_vec());
            }
            line.clear();
        }
    });
    state
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let port: u16 = args[1].parse().expect("a port");
    let each = args[2] == "--each";
    let command: Arc<[String]> = args[if each { 3 } else { 2 }..].into();
    let shared = (!each).then(|| start(&command));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("bind");
    loop {
        let Ok((tcp, _)) = listener.accept().await else { continue };
        let _ = tcp.set_nodelay(true);
        let (shared, command) = (shared.clone(), command.clone());
        tokio::spawn(async move {
            let state = shared.unwrap_or_else(|| start(&command));
            let service = hyper::service::service_fn(move |req| serve(state.clone(), req));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(hyper_util::rt::TokioIo::new(tcp), service)
                .await;
        });
    }
}
