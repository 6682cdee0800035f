//! Incremental HTTP/1.1 response reader.
use crate::ops::find;

/// How many body bytes are kept for checking.
const KEEP: usize = 4096;

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Head,
    Fixed(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailer,
    UntilClose,
    Done,
}

/// Incremental HTTP/1.1 response reader. It keeps the head and the first
/// [`KEEP`] bytes of the body and counts the rest.
pub struct Parser {
    state: State,
    line: Vec<u8>,
    pub status: u16,
    pub session: Option<String>,
    pub body: Vec<u8>,
    pub body_len: usize,
    pub sse: bool,
    pub close: bool,
}

impl Parser {
    pub fn new() -> Self {
        Parser {
            state: State::Head,
            line: Vec::with_capacity(512),
            status: 0,
            session: None,
            body: Vec::with_capacity(KEEP),
            body_len: 0,
            sse: false,
            close: false,
        }
    }
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.line.clear();
        self.status = 0;
        self.session = None;
        self.body.clear();
        self.body_len = 0;
        self.sse = false;
        self.close = false;
    }
    fn take(&mut self, data: &[u8]) {
        self.body_len += data.len();
        let room = KEEP.saturating_sub(self.body.len());
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    fn head(&mut self) -> Result<State, &'static str> {
        let text = std::str::from_utf8(&self.line).map_err(|_| "head is not text")?;
        let mut lines = text.split("\r\n");
        self.status = lines.next().and_then(|l| l.split(' ').nth(1)?.parse().ok()).ok_or("bad status line")?;
        let (mut len, mut chunked) = (None, false);
        for l in lines {
            let Some((k, v)) = l.split_once(':') else {
                continue;
            };
            let v = v.trim();
            if k.eq_ignore_ascii_case("content-length") {
                len = Some(v.parse::<usize>().map_err(|_| "bad content-length")?);
            } else if k.eq_ignore_ascii_case("transfer-encoding") {
                chunked = v.eq_ignore_ascii_case("chunked");
            } else if k.eq_ignore_ascii_case("mcp-session-id") {
                self.session = Some(v.to_owned());
            } else if k.eq_ignore_ascii_case("content-type") {
                self.sse = v.starts_with("text/event-stream");
            } else if k.eq_ignore_ascii_case("connection") {
                self.close = v.eq_ignore_ascii_case("close");
            }
        }
        self.line.clear();
        Ok(if chunked {
            State::ChunkSize
        } else if let Some(n) = len {
            if n == 0 { State::Done } else { State::Fixed(n) }
        } else if self.status == 204 || self.status == 304 {
            State::Done
        } else {
            State::UntilClose
        })
    }

    /// Feed bytes; returns true once the response is complete.
    pub fn feed(&mut self, mut d: &[u8]) -> Result<bool, &'static str> {
        while !d.is_empty() && self.state != State::Done {
            match self.state {
                State::Head => {
                    // A head nearly always arrives whole; look for its end from a little before.
                    let before = self.line.len();
                    let from = before.saturating_sub(3);
                    self.line.extend_from_slice(d);
                    match find(&self.line[from..], b"\r\n\r\n") {
                        None => return Ok(false),
                        Some(p) => {
                            let end = from + p;
                            d = &d[end + 4 - before..];
                            self.line.truncate(end);
                            self.state = self.head()?;
                        }
                    }
                }
                State::Fixed(n) => {
                    let k = n.min(d.len());
                    self.take(&d[..k]);
                    d = &d[k..];
                    self.state = if k == n { State::Done } else { State::Fixed(n - k) };
                }
                State::ChunkSize | State::Trailer | State::ChunkEnd => {
                    let Some(p) = d.iter().position(|&b| b == b'\n') else {
                        self.line.extend_from_slice(d);
                        return Ok(false);
                    };
                    self.line.extend_from_slice(&d[..p]);
                    d = &d[p + 1..];
                    let line = std::str::from_utf8(&self.line).map_err(|_| "bad chunk line")?.trim();
                    self.state = match self.state {
                        State::ChunkEnd => State::ChunkSize,
                        State::Trailer if line.is_empty() => State::Done,
                        State::Trailer => State::Trailer,
                        _ => match usize::from_str_radix(line.split(';').next().unwrap_or(""), 16)
                            .map_err(|_| "bad chunk size")?
                        {
                            0 => State::Trailer,
                            n => State::Chunk(n),
                        },
                    };
                    self.line.clear();
                }
                State::Chunk(n) => {
                    let k = n.min(d.len());
                    self.take(&d[..k]);
                    d = &d[k..];
                    self.state = if k == n { State::ChunkEnd } else { State::Chunk(n - k) };
                }
                State::UntilClose => {
                    self.take(d);
                    d = &[];
                }
                State::Done => {}
            }
        }
        if !d.is_empty() {
            return Err("bytes after the end of a response");
        }
        Ok(self.state == State::Done)
    }
    pub fn eof(&mut self) -> bool {
        let ok = self.state == State::UntilClose || self.state == State::Done;
        self.state = State::Done;
        ok
    }
}
