//! One JSON message a line, with a limit on how long a test waits for one.

use serde_json::Value;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};

/// A stream of lines.
pub(crate) struct Lines<T> {
    input: BufReader<ReadHalf<T>>,
    output: WriteHalf<T>,
    /// What of the next line came already; a wait that is given up loses nothing.
    partial: String,
}

impl<T: AsyncRead + AsyncWrite> Lines<T> {
    pub(crate) fn new(stream: T) -> Lines<T> {
        let (input, output) = tokio::io::split(stream);
        Lines { input: BufReader::new(input), output, partial: String::new() }
    }

    /// Writes one line.
    pub(crate) async fn write(&mut self, line: &str) -> io::Result<()> {
        self.output.write_all(format!("{line}\n").as_bytes()).await?;
        self.output.flush().await
    }

    /// The next message. `None` if none comes within `wait`.
    ///
    /// # Errors
    /// The stream ends, or the line is not JSON.
    pub(crate) async fn read(&mut self, wait: Duration) -> io::Result<Option<Value>> {
        // A read that is dropped halfway keeps what it read in `partial`.
        let read = async {
            loop {
                let chunk = self.input.fill_buf().await?;
                if chunk.is_empty() {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the stream"));
                }
                let end = chunk.iter().position(|b| *b == b'\n');
                let taken = end.map_or(chunk.len(), |at| at + 1);
                self.partial.push_str(&String::from_utf8_lossy(&chunk[..taken]));
                self.input.consume(taken);
                if end.is_some() {
                    return Ok(std::mem::take(&mut self.partial));
                }
            }
        };
        match tokio::time::timeout(wait, read).await {
            Err(_) => Ok(None),
            Ok(line) => {
                let line = line?;
                let not_json = |e| {
                    io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("the server wrote a line that is not JSON ({e}): {line}"),
                    )
                };
                serde_json::from_str(&line).map(Some).map_err(not_json)
            }
        }
    }
}
