//! A connection: encryption, login, and statements in the extended protocol, which carries exactly one statement a
//! message.
//!
//! All values travel as text, as psql shows them, so that every type comes out right, also those that only the server
//! knows. The simple protocol, which runs several statements, is never used; there is no code for it here.

use crate::cell::Row;
use crate::config::{Host, SslMode, Target};
use crate::lex::shadowed;
use crate::tools::{ServerError, server_error};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use linchpin_kit::ToolError;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::{self, Header, Message};
use postgres_protocol::message::frontend;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::collections::{BTreeMap, BTreeSet};
use std::{io, path::Path, sync::Arc, task::Poll, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a message that is no row: descriptions and errors.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes of all rows of a statement of our own.
const OWN_BYTES_MAX: usize = 16 << 20;

/// What takes away all that a session can keep, also the statements that the server kept for us.
pub(crate) const DISCARD: &str = "DISCARD ALL";

/// How long a cancel request may take.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// How long each cancel request is given to work before the next one.
const CANCEL_WAITS_MS: [u64; 6] = [100, 250, 500, 1_000, 2_000, 4_000];

/// Why a statement has no answer.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The server refused it; the connection is good.
    Server(ServerError),
    /// The connection is not usable any more.
    Broken(String),
    /// A message was larger than we read; the connection is not usable any more.
    TooLarge,
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        // The operating system's number says nothing to a model.
        Self::Broken(error.to_string().split(" (os error").next().unwrap_or_default().to_owned())
    }
}

/// What a parameter or a cell holds: text, or NULL.
pub(crate) type Value = Option<String>;

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) type_oid: u32,
    pub(crate) type_modifier: i32,
}

/// What the server says about a statement before it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<u32>,
    pub(crate) fields: Vec<Field>,
}

/// A statement of our own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// Under which name the server keeps it and its plan, until `DISCARD ALL`; empty where it does not.
    pub(crate) name: &'static str,
    pub(crate) sql: &'a str,
    pub(crate) parameters: &'a [Value],
}

impl<'a> Step<'a> {
    /// A statement that the server does not keep.
    pub(crate) fn once(sql: &'a str, parameters: &'a [Value]) -> Self {
        Self { name: "", sql, parameters }
    }
}

/// What goes out together, in the order of its members. After the first failure the server skips the rest, up to
/// `after`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exchange<'a> {
    /// Statements of our own.
    pub(crate) first: &'a [Step<'a>],
    /// A statement that the server is to parse, and to say what it takes and gives.
    pub(crate) prepare: Option<&'a str>,
    /// Parameters of the statement that was prepared.
    pub(crate) bind: Option<&'a [Value]>,
    /// How many of its rows to fetch at most; 0 is all.
    pub(crate) rows: Option<i32>,
    /// Statements of our own that run whatever became of the others; those of an inner list run together. Nobody waits
    /// for them: the next exchange reads how they went, and fails where they did.
    pub(crate) after: &'a [&'a [Step<'a>]],
}

/// What came back.
#[derive(Debug, Default)]
pub(crate) struct Exchanged {
    /// The rows of each of the first statements, up to the one that failed.
    pub(crate) answers: Vec<Vec<Row>>,
    pub(crate) described: Described,
    pub(crate) fetched: Option<Fetched>,
    /// Why the rest did not run.
    pub(crate) failure: Option<ServerError>,
}

/// How fetching rows ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// There may be more.
    Suspended,
    /// That was all; the command's tag, for example `SELECT 3`.
    Done(String),
}

/// What carries the bytes.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// An open connection.
pub(crate) struct Connection {
    stream: Box<dyn Stream>,
    input: BytesMut,
    output: BytesMut,
    /// Number and secret with which the running statement can be cancelled, and where.
    key: (i32, i32),
    host: Host,
    /// Exchanges whose end has not been read.
    awaited: usize,
    /// Exchanges that were sent off without waiting for their end; the next exchange reads it first.
    late: usize,
    /// Statements that the server will have kept once it has done all that it was sent.
    kept: BTreeSet<&'static str>,
    /// Whether the server has said that it did the first statement of the last exchange.
    pub(crate) heard: bool,
    /// Whether it is encrypted.
    pub(crate) encrypted: bool,
    /// What the server reported about itself.
    pub(crate) reported: BTreeMap<String, String>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("encrypted", &self.encrypted).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to the first of the target's hosts that answers, and logs in.
    pub(crate) async fn open(target: &Target) -> Result<Self, ToolError> {
        let mut failure = None;
        for host in &target.hosts {
            let attempt = tokio::time::timeout(target.connect_timeout, open_at(target, host));
            match attempt.await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(fault)) => failure = Some(fault),
                Err(_) => {
                    failure = Some(
                        ToolError::new(format!("{host} did not answer within {} s", target.connect_timeout.as_secs()))
                            .hint("Check host, port and firewall; connect_timeout in the URL sets the timeout."),
                    );
                }
            }
        }
        Err(failure.unwrap_or_else(|| ToolError::new("No host to connect to")))
    }

    /// Has the server stop what runs here, and closes. A request to cancel that comes before the statement begins is
    /// lost, so it is repeated until the server has answered everything. Best effort.
    pub(crate) async fn abandon(mut self, target: Arc<Target>) {
        for wait in CANCEL_WAITS_MS.map(Duration::from_millis) {
            let _ = tokio::time::timeout(CANCEL_TIME, self.cancel(&target)).await;
            if tokio::time::timeout(wait, self.quiet()).await.is_ok() {
                break;
            }
        }
    }

    /// Asks the server, over a connection of its own, to stop what this one is running.
    async fn cancel(&self, target: &Target) -> Option<()> {
        let (mut stream, _) = raw(target, &self.host, self.encrypted).await.ok()?;
        let mut message = BytesMut::new();
        frontend::cancel_request(self.key.0, self.key.1, &mut message);
        stream.write_all(&message).await.ok()?;
        stream.flush().await.ok()?;
        // The server closes once it has passed the signal on.
        let _ = stream.read(&mut [0]).await;
        Some(())
    }

    /// Reads until nothing more is to come, or the connection fails.
    async fn quiet(&mut self) {
        while self.awaited > 0 {
            match self.next(MESSAGE_BYTES_MAX).await {
                Ok(Message::ReadyForQuery(_)) => self.awaited -= 1,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn write_sync(&mut self) {
        frontend::sync(&mut self.output);
        self.awaited += 1;
    }

    async fn flush(&mut self) -> Result<(), WireError> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        self.stream.flush().await?;
        Ok(())
    }

    /// The next message that is an answer, of at most `most` bytes.
    async fn next(&mut self, most: usize) -> Result<Message, WireError> {
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

    /// Reads to the end of a round whose rows nobody wants.
    async fn rest_of_round(&mut self) -> Result<(), WireError> {
        let mut failed = false;
        loop {
            match self.next(OWN_BYTES_MAX).await? {
                Message::ReadyForQuery(_) => break,
                Message::ErrorResponse(_) => failed = true,
                _ => {}
            }
        }
        self.awaited = self.awaited.saturating_sub(1);
        // Nobody knows what the session is now.
        if failed { Err(WireError::Broken("the session was not reset".to_owned())) } else { Ok(()) }
    }

    /// Writes statements of our own; the names, or nothing, of those that are to be parsed.
    fn write_steps(&mut self, steps: &[Step<'_>], parsed: &mut Vec<&'static str>) -> Result<(), WireError> {
        for step in steps {
            debug_assert_eq!(shadowed(step.sql), None, "is not that of pg_catalog in {}", step.sql);
            if step.name.is_empty() || self.kept.insert(step.name) {
                frontend::parse(step.name, step.sql, None, &mut self.output)?;
                parsed.push(step.name);
            }
            self.write_bind(step.name, step.parameters)?;
            frontend::execute("", 0, &mut self.output)?;
        }
        Ok(())
    }

    /// Has the server do all of this in one exchange of messages. Rows of the prepared statement, of at most `most`
    /// bytes each, are given to `on` as they come.
    pub(crate) async fn exchange(
        &mut self,
        out: Exchange<'_>,
        found: &mut Exchanged,
        most: usize,
        mut on: impl FnMut(&Described, Row) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.heard = false;
        let mut parsed = Vec::new();
        if let Err(error) = self.write_statements(out, &mut parsed) {
            // Nothing of it was sent.
            self.output.clear();
            self.kept.retain(|name| !parsed.contains(name));
            return Err(error);
        }
        self.write_sync();
        let late = std::mem::take(&mut self.late);
        self.write_after(out.after)?;
        self.flush().await?;
        for _ in 0..late {
            self.rest_of_round().await?;
        }
        self.answer(out, found, most, &mut parsed, &mut on).await?;
        if found.failure.is_some() {
            // The server has skipped these.
            self.kept.retain(|name| !parsed.contains(name));
        }
        Ok(())
    }

    fn write_statements(&mut self, out: Exchange<'_>, parsed: &mut Vec<&'static str>) -> Result<(), WireError> {
        self.write_steps(out.first, parsed)?;
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

    /// Reads what an exchange brings; of the statements that were to be parsed, those that were are taken out.
    async fn answer(
        &mut self,
        out: Exchange<'_>,
        found: &mut Exchanged,
        most: usize,
        parsed: &mut Vec<&'static str>,
        on: &mut impl FnMut(&Described, Row) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        loop {
            let own = found.answers.len() < out.first.len();
            let message = self.next(if own { OWN_BYTES_MAX } else { most.max(MESSAGE_BYTES_MAX) }).await?;
            match message {
                Message::ReadyForQuery(_) => break,
                Message::ErrorResponse(body) => drop(found.failure.get_or_insert(server_error(body.fields()))),
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(WireError::Broken("COPY is not supported".to_owned()));
                }
                Message::ParseComplete if own && !parsed.is_empty() => drop(parsed.remove(0)),
                Message::DataRow(body) if own => {
                    let row = Row::new(&body)?;
                    bytes += row.bytes();
                    if bytes > OWN_BYTES_MAX {
                        return Err(WireError::TooLarge);
                    }
                    rows.push(row);
                }
                Message::CommandComplete(_) | Message::EmptyQueryResponse if own => {
                    self.heard = true;
                    found.answers.push(std::mem::take(&mut rows));
                }
                Message::DataRow(body) => on(&found.described, Row::new(&body)?)?,
                Message::ParameterDescription(body) => found.described.parameters = body.parameters().collect()?,
                Message::RowDescription(body) => found.described.fields = body.fields().map(field).collect()?,
                Message::PortalSuspended => found.fetched = Some(Fetched::Suspended),
                Message::CommandComplete(body) => found.fetched = Some(Fetched::Done(body.tag()?.to_owned())),
                Message::EmptyQueryResponse => found.fetched = Some(Fetched::Done(String::new())),
                _ => {}
            }
        }
        self.awaited = self.awaited.saturating_sub(1);
        if found.failure.is_none() && found.answers.len() != out.first.len() {
            return Err(WireError::Broken("the server omitted responses".to_owned()));
        }
        Ok(())
    }

    /// Runs statements of our own, up to the first that fails; the rows of each.
    pub(crate) async fn run(&mut self, steps: &[Step<'_>]) -> Result<Vec<Vec<Row>>, WireError> {
        let out = Exchange { first: steps, ..Exchange::default() };
        let mut found = Exchanged::default();
        self.exchange(out, &mut found, MESSAGE_BYTES_MAX, |_, _| Ok(())).await?;
        found.failure.map_or(Ok(found.answers), |error| Err(WireError::Server(error)))
    }

    /// Sends statements of our own off, as [`Exchange::after`].
    pub(crate) async fn send_off(&mut self, groups: &[&[Step<'_>]]) -> Result<(), WireError> {
        self.write_after(groups)?;
        self.flush().await
    }

    fn write_after(&mut self, groups: &[&[Step<'_>]]) -> Result<(), WireError> {
        for group in groups {
            // Where one of these fails, the connection is given up: what is parsed does not matter then.
            self.write_steps(group, &mut Vec::new())?;
            self.write_sync();
            self.late += 1;
            if group.iter().any(|step| step.sql == DISCARD) {
                self.kept.clear();
            }
        }
        Ok(())
    }

    /// Whether it is known that the server has closed it. Waits for nothing.
    pub(crate) async fn is_closed(&mut self) -> bool {
        std::future::poll_fn(|task| {
            loop {
                let mut read = std::pin::pin!(self.stream.read_buf(&mut self.input));
                match read.as_mut().poll(task) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(true),
                    // What came is kept: the next exchange reads it.
                    Poll::Ready(Ok(_)) if self.input.len() < MESSAGE_BYTES_MAX => {}
                    _ => return Poll::Ready(false),
                }
            }
        })
        .await
    }

    /// The number of the server's process, as the login said it.
    pub(crate) fn process(&self) -> i32 {
        self.key.0
    }

    fn write_bind(&mut self, name: &str, parameters: &[Value]) -> Result<(), WireError> {
        let write = |value: &Value, out: &mut BytesMut| match value {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        };
        // No formats at all: everything is text.
        frontend::bind("", name, None, parameters, write, None, &mut self.output).map_err(|_| {
            WireError::Server(ServerError {
                code: "08P01".to_owned(),
                message: "Too many parameters, or too large ones".to_owned(),
                hint: Some("Pass fewer of them.".to_owned()),
                ..ServerError::default()
            })
        })
    }

    /// Says good-bye.
    pub(crate) async fn close(mut self) {
        frontend::terminate(&mut self.output);
        let _ = tokio::time::timeout(Duration::from_secs(1), self.flush()).await;
    }
}

fn field(field: backend::Field<'_>) -> io::Result<Field> {
    Ok(Field { name: field.name().to_owned(), type_oid: field.type_oid(), type_modifier: field.type_modifier() })
}

async fn open_at(target: &Target, host: &Host) -> Result<Connection, ToolError> {
    if target.ssl == SslMode::Allow && matches!(host, Host::Tcp(..)) {
        match login(target, host, false).await {
            // The server does not take unencrypted connections from here.
            Err(fault) if fault.message().contains("28000") => {}
            other => return other,
        }
    }
    login(target, host, target.ssl >= SslMode::Allow).await
}

/// The bytes to a host, and whether they are encrypted.
async fn raw(target: &Target, host: &Host, encrypt: bool) -> Result<(Box<dyn Stream>, bool), ToolError> {
    let unreachable = |e: io::Error| {
        let why = e.to_string();
        let why = why.split(" (os error").next().unwrap_or_default();
        ToolError::new(format!("Cannot connect to {host}: {why}"))
            .hint("Check that the server is running; a later call tries again.")
    };
    let (name, port) = match host {
        #[cfg(unix)]
        Host::Unix(directory, port) => {
            let path = directory.join(format!(".s.PGSQL.{port}"));
            let stream = tokio::net::UnixStream::connect(path).await.map_err(unreachable)?;
            return Ok((Box::new(stream), false));
        }
        #[cfg(not(unix))]
        Host::Unix(..) => return Err(ToolError::new("This system has no Unix sockets").hint("Specify a host.")),
        Host::Tcp(name, port) => (name, *port),
    };
    let mut stream = TcpStream::connect((name.as_str(), port)).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    if !encrypt {
        return Ok((Box::new(stream), false));
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).await.map_err(unreachable)?;
    // Exactly one byte is read: what somebody put behind it unencrypted must not become part of the answer.
    match stream.read_u8().await.map_err(unreachable)? {
        b'S' => {}
        b'N' if target.ssl <= SslMode::Prefer => return Ok((Box::new(stream), false)),
        b'N' => {
            return Err(ToolError::new(format!("{host} does not support TLS, but sslmode requires it"))
                .hint("Enable ssl in the server. sslmode=prefer or disable would send everything unencrypted."));
        }
        // Words that come before TLS could be anybody's.
        _ => {
            return Err(ToolError::new(format!("{host} responded to the TLS request with an error"))
                .hint("It has no free connection slots, or is not a PostgreSQL server. Check its log."));
        }
    }
    // Reads files.
    let wanted = target.clone();
    let config = tokio::task::spawn_blocking(move || tls_config(&wanted)).await;
    let config = config.map_err(|_| ToolError::new("TLS cannot be set up"))??;
    let name = ServerName::try_from(name.clone())
        .map_err(|_| ToolError::new(format!("{name} is not a valid certificate name")))?;
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| {
        ToolError::new(format!("TLS with {host} failed: {e}"))
            .hint("Check sslrootcert, and that the certificate contains this host in its subject alternative names.")
    })?;
    Ok((Box::new(stream), true))
}

async fn login(target: &Target, host: &Host, encrypt: bool) -> Result<Connection, ToolError> {
    let (stream, encrypted) = raw(target, host, encrypt).await?;
    let mut connection = Connection {
        stream,
        input: BytesMut::new(),
        output: BytesMut::new(),
        key: (0, 0),
        host: host.clone(),
        awaited: 0,
        late: 0,
        kept: BTreeSet::new(),
        heard: false,
        encrypted,
        reported: BTreeMap::new(),
    };
    let parameters = [
        ("user", target.user.as_str()),
        ("database", target.database.as_str()),
        ("application_name", target.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    let failed = |error: WireError| match error {
        WireError::Server(error) => {
            let hint = match error.code.as_str() {
                "28P01" | "28000" => "Check user and password, and the server's pg_hba.conf.",
                "3D000" => "Check the name of the database in the URL.",
                "53300" => "The server has no connection left; try again later.",
                "57P03" => "The server is starting or stopping; try again in a moment.",
                _ => "The operator of this server has to look at this.",
            };
            ToolError::new(format!("Cannot log in to {host}: {} (SQLSTATE {})", error.message, error.code)).hint(hint)
        }
        WireError::Broken(why) => ToolError::new(format!("Cannot log in to {host}: {why}"))
            .hint("Check that a PostgreSQL server listens there; a later call tries again."),
        WireError::TooLarge => ToolError::new(format!("{host} does not speak PostgreSQL's protocol")),
    };
    let startup = frontend::startup_message(parameters, &mut connection.output).map_err(WireError::from);
    startup.map_err(failed)?;
    connection.flush().await.map_err(failed)?;
    authenticate(&mut connection, target, failed).await?;
    loop {
        match connection.next(MESSAGE_BYTES_MAX).await.map_err(failed)? {
            Message::BackendKeyData(body) => connection.key = (body.process_id(), body.secret_key()),
            Message::ReadyForQuery(_) => return Ok(connection),
            Message::ErrorResponse(body) => return Err(failed(WireError::Server(server_error(body.fields())))),
            _ => {}
        }
    }
}

async fn authenticate(
    connection: &mut Connection,
    target: &Target,
    failed: impl Fn(WireError) -> ToolError + Copy,
) -> Result<(), ToolError> {
    let host = connection.host.clone();
    let password = || {
        target.password(&host).ok_or_else(|| {
            ToolError::new(format!("The server wants a password for {} and none is configured", target.user))
                .hint("Set PGPASSWORD, PGPASSWORD_FILE or ~/.pgpass, or put it into the URL.")
        })
    };
    let mut scram: Option<sasl::ScramSha256> = None;
    loop {
        let mut out = BytesMut::new();
        match connection.next(MESSAGE_BYTES_MAX).await.map_err(failed)? {
            Message::AuthenticationOk if scram.is_none() => return Ok(()),
            Message::AuthenticationOk => {
                return Err(ToolError::new("The server ended the login without proving that it knows the password")
                    .hint("Somebody may be in between. Use sslmode=verify-full."));
            }
            Message::AuthenticationCleartextPassword => {
                let local = match &connection.host {
                    Host::Unix(..) => true,
                    Host::Tcp(name, _) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
                };
                if !connection.encrypted && !local {
                    return Err(ToolError::new(
                        "The server wants the password in clear over a connection that is not encrypted",
                    )
                    .hint("Use sslmode=verify-full, or scram-sha-256 in the server's pg_hba.conf."));
                }
                frontend::password_message(password()?.reveal().as_bytes(), &mut out)
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(target.user.as_bytes(), password()?.reveal().as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut out)
            }
            Message::AuthenticationSasl(body) => {
                let offered = body.mechanisms().any(|mechanism| Ok(mechanism == sasl::SCRAM_SHA_256));
                if !offered.map_err(|e| failed(e.into()))? {
                    return Err(
                        ToolError::new("The server offers no login that is spoken here").hint("Use scram-sha-256.")
                    );
                }
                let session =
                    sasl::ScramSha256::new(password()?.reveal().as_bytes(), sasl::ChannelBinding::unsupported());
                let sent = frontend::sasl_initial_response(sasl::SCRAM_SHA_256, session.message(), &mut out);
                scram = Some(session);
                sent
            }
            Message::AuthenticationSaslContinue(body) => {
                let session = scram.as_mut().ok_or_else(|| failed(WireError::TooLarge))?;
                session.update(body.data()).map_err(|e| failed(e.into()))?;
                frontend::sasl_response(session.message(), &mut out)
            }
            Message::AuthenticationSaslFinal(body) => {
                let session = scram.as_mut().ok_or_else(|| failed(WireError::TooLarge))?;
                // Proves that the server knows the password too.
                session.finish(body.data()).map_err(|e| failed(e.into()))?;
                scram = None;
                Ok(())
            }
            Message::ErrorResponse(body) => return Err(failed(WireError::Server(server_error(body.fields())))),
            _ => {
                return Err(ToolError::new("The server wants a login that is not spoken here (GSSAPI or SSPI)")
                    .hint("Use scram-sha-256 or certificates in the server's pg_hba.conf."));
            }
        }
        .map_err(|e| failed(e.into()))?;
        connection.output.extend_from_slice(&out);
        connection.flush().await.map_err(failed)?;
    }
}

/// Encryption as `sslmode` asks for it; reads the files it names.
fn tls_config(target: &Target) -> Result<ClientConfig, ToolError> {
    let provider = Arc::new(ring::default_provider());
    let trust = match (target.ssl, target.root_certificate.as_deref()) {
        (SslMode::VerifyFull, None | Some("system")) => {
            Trust::Platform(Verifier::new(provider.clone()).map_err(|e| unusable("The system's certificates", &e))?)
        }
        (SslMode::VerifyCa | SslMode::VerifyFull, Some(path)) => roots(Path::new(path), &provider)?,
        _ => Trust::Anybody,
    };
    let checks = Checks { provider: provider.clone(), trust, name: target.ssl == SslMode::VerifyFull };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| unusable("TLS", &e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(checks));
    let Some((certificate, key)) = &target.client_certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(&key.display().to_string(), &e))?;
    builder
        .with_client_auth_cert(certificates(certificate)?, key)
        .map_err(|e| unusable(&certificate.display().to_string(), &e))
}

fn unusable(what: &str, why: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(format!("{what} cannot be used: {why}"))
        .hint("The operator of this server has to correct its configuration.")
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ToolError> {
    let shown = path.display().to_string();
    let certificates: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|e| unusable(&shown, &e))?.take(1_000).collect();
    let certificates = certificates.map_err(|e| unusable(&shown, &e))?;
    if certificates.is_empty() {
        return Err(unusable(&shown, &"it has no certificate in it"));
    }
    Ok(certificates)
}

fn roots(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Trust, ToolError> {
    let pinned = certificates(path)?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(pinned.iter().cloned());
    let authority = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build().ok();
    Ok(Trust::Certificates { authority, pinned })
}

/// Whose certificates are good.
#[derive(Debug)]
enum Trust {
    /// Anybody's: `require` and below, which only keep out those who listen.
    Anybody,
    /// Those signed by a certificate of the file, and those in the file themselves: many servers have a self-signed one.
    Certificates { authority: Option<Arc<WebPkiServerVerifier>>, pinned: Vec<CertificateDer<'static>> },
    /// Those that the system trusts.
    Platform(Verifier),
}

#[derive(Debug)]
struct Checks {
    provider: Arc<CryptoProvider>,
    trust: Trust,
    /// Whether it must also be for the host.
    name: bool,
}

impl ServerCertVerifier for Checks {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Anybody => Ok(ServerCertVerified::assertion()),
            Trust::Platform(verifier) => verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now),
            Trust::Certificates { pinned, .. } if pinned.iter().any(|known| known == end_entity) => {
                if self.name {
                    rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            Trust::Certificates { authority: None, .. } => Err(CertificateError::UnknownIssuer.into()),
            Trust::Certificates { authority: Some(authority), .. } => {
                match authority.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
                    // The name is checked last: everything else is in order.
                    Err(Error::InvalidCertificate(
                        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                    )) if !self.name => Ok(ServerCertVerified::assertion()),
                    other => other,
                }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
