//! A logged-in connection.

use super::{Described, Field, Row, ServerError, Step, Value, WireError, login};
use crate::config::{Host, Target};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use linchpin_kit::{ErrorKind, ToolError};
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum bytes of a message that is not a row: descriptions and errors.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Maximum bytes of all rows of one of our own queries.
const OWN_BYTES_MAX: usize = 16 << 20;

/// How long a cancel request may take.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// How long each cancel request may take effect before the next one is sent.
const CANCEL_WAITS_MS: [u64; 6] = [100, 250, 500, 1_000, 2_000, 4_000];

/// The rows of our own queries, or the error of the one that failed.
pub(crate) type Group = Result<Vec<Vec<Row>>, ServerError>;

/// What is sent together for a caller's statement, in the order of the fields. After the first failure the server skips
/// the rest, up to `after`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fetch<'a> {
    /// The statement to parse and describe.
    pub(crate) prepare: Option<&'a str>,
    /// Parameters for the prepared statement.
    pub(crate) bind: Option<&'a [Value]>,
    /// Maximum rows to fetch; 0 fetches all.
    pub(crate) rows: Option<i32>,
    /// Groups of our own statements that run in any case.
    pub(crate) after: &'a [&'a [Step<'a>]],
}

/// What the server returned.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) described: Described,
    /// The command tag, for example `SELECT 3`; `None` while there may be more rows.
    pub(crate) done: Option<String>,
    /// The error after which the rest did not run.
    pub(crate) failure: Option<ServerError>,
}

/// The underlying byte stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// An open connection.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    input: BytesMut,
    pub(super) output: BytesMut,
    /// Process ID and secret key for cancel requests, and where to send them.
    pub(super) key: (i32, i32),
    pub(super) host: Host,
    /// Requests whose ReadyForQuery has not been read.
    awaited: usize,
    /// The names of the statements that are prepared.
    prepared: Vec<&'static str>,
    /// Whether the connection is encrypted.
    pub(crate) encrypted: bool,
    /// Parameters that the server reported.
    pub(crate) reported: BTreeMap<String, String>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("encrypted", &self.encrypted).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(stream: Box<dyn Stream>, host: Host, encrypted: bool) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            key: (0, 0),
            host,
            awaited: 0,
            prepared: Vec::new(),
            encrypted,
            reported: BTreeMap::new(),
        }
    }

    /// Connects to the first host of the target that responds, and logs in.
    pub(crate) async fn open(target: &Target) -> Result<Self, ToolError> {
        let mut failure = None;
        for host in &target.hosts {
            let attempt = tokio::time::timeout(target.connect_timeout, login::open_at(target, host));
            match attempt.await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(fault)) => failure = Some(fault),
                Err(_) => {
                    failure = Some(
                        ToolError::new(format!("{host} did not answer within {} s", target.connect_timeout.as_secs()))
                            .kind(ErrorKind::Timeout)
                            .hint("Check host, port and firewall; connect_timeout in the URL sets the timeout."),
                    );
                }
            }
        }
        Err(failure.unwrap_or_else(|| ToolError::new("No host to connect to")))
    }

    /// Cancels whatever runs on this connection and closes it. A cancel request that arrives before the statement
    /// begins is lost, so it is repeated until the server has finished. Best effort.
    pub(crate) async fn abandon(mut self, target: Arc<Target>) {
        for wait in CANCEL_WAITS_MS.map(Duration::from_millis) {
            let _ = tokio::time::timeout(CANCEL_TIME, self.cancel(&target)).await;
            if tokio::time::timeout(wait, self.quiet()).await.is_ok() {
                break;
            }
        }
    }

    /// Sends a cancel request over a connection of its own.
    async fn cancel(&self, target: &Target) -> Option<()> {
        let (mut stream, _) = login::raw(target, &self.host, self.encrypted).await.ok()?;
        let mut message = BytesMut::new();
        frontend::cancel_request(self.key.0, self.key.1, &mut message);
        stream.write_all(&message).await.ok()?;
        stream.flush().await.ok()?;
        // The server closes the connection after it has forwarded the signal.
        let _ = stream.read(&mut [0]).await;
        Some(())
    }

    /// Reads until no more responses are due, or the connection fails.
    async fn quiet(&mut self) {
        while self.awaited > 0 {
            match self.next(MESSAGE_BYTES_MAX).await {
                Ok(Message::ReadyForQuery(_)) => self.awaited -= 1,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), WireError> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        self.stream.flush().await?;
        Ok(())
    }

    /// The next response message, of at most `most` bytes.
    pub(super) async fn next(&mut self, most: usize) -> Result<Message, WireError> {
        loop {
            while let Some(header) = Header::parse(&self.input)? {
                let length = usize::try_from(header.len()).unwrap_or(usize::MAX).saturating_add(1);
                if length > most {
                    return Err(WireError::TooLarge);
                }
                if self.input.len() < length {
                    self.input.reserve(length - self.input.len());
                    break;
                }
                match Message::parse(&mut self.input)? {
                    Some(Message::ParameterStatus(status)) => {
                        self.reported.insert(status.name()?.to_owned(), status.value()?.to_owned());
                    }
                    Some(Message::NoticeResponse(_) | Message::NotificationResponse(_)) => {}
                    Some(message) => return Ok(message),
                    None => break,
                }
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(WireError::Broken("the server closed the connection".to_owned()));
            }
        }
    }

    /// Runs groups of our own statements in one round trip: each group stops at its first failure; the next one runs
    /// regardless.
    pub(crate) async fn run_groups(&mut self, groups: &[&[Step<'_>]]) -> Result<Vec<Group>, WireError> {
        for group in groups {
            self.write_group(group)?;
        }
        self.flush().await?;
        let mut answers = Vec::with_capacity(groups.len());
        for group in groups {
            answers.push(self.read_group(group).await?);
        }
        Ok(answers)
    }

    /// Runs our own statements up to the first failure; returns the rows of each.
    pub(crate) async fn run(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        let answers = self.run_groups(&[steps]).await?.pop();
        answers.unwrap_or_else(|| Ok(Vec::new())).map_err(WireError::Server)
    }

    fn write_group(&mut self, steps: &[Step<'_>]) -> Result<(), WireError> {
        for step in steps {
            if !self.is_prepared(step) {
                frontend::parse(step.name, step.sql, None, &mut self.output)?;
            }
            self.write_bind(step.name, step.parameters)?;
            frontend::execute("", 0, &mut self.output)?;
        }
        self.write_sync();
        Ok(())
    }

    fn is_prepared(&self, step: &Step<'_>) -> bool {
        self.prepared.contains(&step.name)
    }

    /// Forgets what is prepared, after `DISCARD ALL`.
    pub(crate) fn forget_prepared(&mut self) {
        self.prepared.clear();
    }

    async fn read_group(&mut self, steps: &[Step<'_>]) -> Result<Group, WireError> {
        let count = steps.len();
        let (mut answers, mut rows, mut bytes, mut failure) = (Vec::with_capacity(count), Vec::new(), 0, None);
        let parsed: Vec<&'static str> =
            steps.iter().filter(|step| !self.is_prepared(step)).map(|step| step.name).collect();
        let mut parsed = parsed.into_iter();
        loop {
            match self.next(OWN_BYTES_MAX).await? {
                Message::ReadyForQuery(_) => break,
                Message::ErrorResponse(body) => drop(failure.get_or_insert(ServerError::new(body.fields()))),
                Message::ParseComplete => self.prepared.extend(parsed.next().filter(|name| !name.is_empty())),
                Message::DataRow(body) => {
                    let row = Row::new(&body)?;
                    bytes += row.bytes();
                    if bytes > OWN_BYTES_MAX {
                        return Err(WireError::TooLarge);
                    }
                    rows.push(row);
                }
                Message::CommandComplete(_) | Message::EmptyQueryResponse => answers.push(std::mem::take(&mut rows)),
                _ => {}
            }
        }
        self.awaited = self.awaited.saturating_sub(1);
        match failure {
            Some(error) => Ok(Err(error)),
            None if answers.len() == count => Ok(Ok(answers)),
            None => Err(WireError::Broken("the server omitted responses".to_owned())),
        }
    }

    /// Sends all of it in one round trip. Rows of at most `most` bytes each are passed to `on` as they arrive. On an
    /// error, the statements of `after` may not have run.
    pub(crate) async fn fetch(
        &mut self,
        out: Fetch<'_>,
        found: &mut Fetched,
        most: usize,
        mut on: impl FnMut(&Described, Row) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        if let Err(error) = self.write_fetch(out) {
            // None of it was sent.
            self.output.clear();
            return Err(error);
        }
        self.write_sync();
        for group in out.after {
            self.write_group(group)?;
        }
        self.flush().await?;
        loop {
            match self.next(most.max(MESSAGE_BYTES_MAX)).await? {
                Message::ReadyForQuery(_) => break,
                Message::ErrorResponse(body) => drop(found.failure.get_or_insert(ServerError::new(body.fields()))),
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(WireError::Broken("COPY is not supported".to_owned()));
                }
                Message::DataRow(body) => on(&found.described, Row::new(&body)?)?,
                Message::ParameterDescription(body) => found.described.parameters = body.parameters().collect()?,
                Message::RowDescription(body) => found.described.fields = body.fields().map(Field::new).collect()?,
                Message::CommandComplete(body) => found.done = Some(body.tag()?.to_owned()),
                Message::EmptyQueryResponse => found.done = Some(String::new()),
                _ => {}
            }
        }
        self.awaited = self.awaited.saturating_sub(1);
        for group in out.after {
            self.read_group(group).await?.map_err(|_| WireError::Broken("the session was not reset".to_owned()))?;
        }
        Ok(())
    }

    fn write_fetch(&mut self, out: Fetch<'_>) -> Result<(), WireError> {
        if let Some(sql) = out.prepare {
            frontend::parse("", sql, None, &mut self.output)?;
            frontend::describe(b'S', "", &mut self.output)?;
        }
        if let Some(parameters) = out.bind {
            self.write_bind("", parameters)?;
        }
        if let Some(count) = out.rows {
            frontend::execute("", count, &mut self.output)?;
        }
        Ok(())
    }

    fn write_bind(&mut self, name: &str, parameters: &[Value]) -> Result<(), WireError> {
        let write = |value: &Value, out: &mut BytesMut| match value {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        };
        // No format codes: everything is text.
        frontend::bind("", name, None, parameters, write, None, &mut self.output)
            .map_err(|_| WireError::Server(ServerError::ours("08P01", "Too many parameters, or too large ones")))
    }

    fn write_sync(&mut self) {
        frontend::sync(&mut self.output);
        self.awaited += 1;
    }

    /// Sends Terminate.
    pub(crate) async fn close(mut self) {
        frontend::terminate(&mut self.output);
        let _ = tokio::time::timeout(Duration::from_secs(1), self.flush()).await;
    }
}
