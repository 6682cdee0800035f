//! stdio with tokio's non-blocking pipes (Linux), current-thread runtime,
//! answers batched until no more input is buffered.
use bare::{Answer, App};
use std::fs::OpenOptions;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let app = App::new(bare::stdio_args());
    // Reopening gives this process its own file description, so O_NONBLOCK stays private.
    let input = OpenOptions::new()
        .read(true)
        .open("/proc/self/fd/0")
        .expect("stdin");
    let output = OpenOptions::new()
        .write(true)
        .open("/proc/self/fd/1")
        .expect("stdout");
    let mut input =
        BufReader::with_capacity(64 << 10, pipe::Receiver::from_file(input).expect("a pipe"));
    let mut output = pipe::Sender::from_file(output).expect("a pipe");
    let (mut line, mut out) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).await.expect("read") == 0 {
            break;
        }
        if let Answer::Json(v) | Answer::Publish(v) = bare::handle(&app, &line, None) {
            out.extend_from_slice(&v);
            out.push(b'\n');
        }
        if input.buffer().is_empty() || out.len() > 256 << 10 {
            output.write_all(&out).await.expect("write");
            out.clear();
        }
    }
}
