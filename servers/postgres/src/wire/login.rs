//! Connecting to a host and logging in.

use super::connection::{Connection, MESSAGE_BYTES_MAX, Stream};
use super::{ServerError, WireError, tls};
use crate::config::{Host, SslMode, Target};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use linchpin_kit::{ErrorKind, ToolError, io_text};
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) async fn open_at(target: &Target, host: &Host) -> Result<Connection, ToolError> {
    if target.ssl == SslMode::Allow && matches!(host, Host::Tcp(..)) {
        match login(target, host, false).await {
            // The server does not accept unencrypted connections from here.
            Err(Failure::Server(error)) if error.code == "28000" => {}
            other => return other.map_err(|failure| failure.into_error(host)),
        }
    }
    login(target, host, target.ssl >= SslMode::Allow).await.map_err(|failure| failure.into_error(host))
}

/// Why connecting failed.
enum Failure {
    /// The server reported an error.
    Server(ServerError),
    Other(ToolError),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    /// The error after the connection to this host was opened.
    fn of(host: &Host, error: WireError) -> Self {
        match error {
            WireError::Server(error) => Self::Server(error),
            WireError::Broken(why) => Self::Other(
                ToolError::new(format!("Cannot log in to {host}: {why}"))
                    .kind(ErrorKind::Upstream { status: None })
                    .hint("Check that a PostgreSQL server listens there; a later call tries again."),
            ),
            WireError::TooLarge => Self::Other(ToolError::new(format!("{host} does not speak PostgreSQL's protocol"))),
        }
    }

    fn into_error(self, host: &Host) -> ToolError {
        let error = match self {
            Self::Server(error) => error,
            Self::Other(error) => return error,
        };
        let (kind, hint) = match error.code.as_str() {
            "28P01" | "28000" => (ErrorKind::Denied, "Check user and password, and the server's pg_hba.conf."),
            "3D000" => (ErrorKind::NotFound, "Check the name of the database in the URL."),
            "53300" => {
                (ErrorKind::Limited { retry_after: None }, "The server has no connection left; try again later.")
            }
            "57P03" => {
                (ErrorKind::Upstream { status: None }, "The server is starting or stopping; try again in a moment.")
            }
            _ => (ErrorKind::Upstream { status: None }, "The operator of this server has to look at this."),
        };
        ToolError::new(format!("Cannot log in to {host} (SQLSTATE {})", error.code))
            .kind(kind)
            .hint(hint)
            .detail(error.quoted())
    }
}

/// A byte stream to a host, and whether it is encrypted.
pub(super) async fn raw(target: &Target, host: &Host, encrypt: bool) -> Result<(Box<dyn Stream>, bool), ToolError> {
    let unreachable = |e: io::Error| {
        ToolError::new(format!("Cannot connect to {host}: {}", io_text(&e)))
            .kind(ErrorKind::Upstream { status: None })
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
        Host::Unix(..) => {
            return Err(ToolError::new("Unix sockets are not supported on this system").hint("Specify a host."));
        }
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
    // Reads exactly one byte: unencrypted bytes that somebody injected after it must not be taken for a response over
    // TLS.
    match stream.read_u8().await.map_err(unreachable)? {
        b'S' => {}
        b'N' if target.ssl <= SslMode::Prefer => return Ok((Box::new(stream), false)),
        b'N' => {
            return Err(ToolError::new(format!("{host} does not support TLS, but sslmode requires it"))
                .hint("Enable ssl in the server. sslmode=prefer or disable would send everything unencrypted."));
        }
        // Anybody could have sent this text, because it comes before TLS.
        _ => {
            return Err(ToolError::new(format!("{host} responded to the TLS request with an error"))
                .hint("It has no free connection slots, or is not a PostgreSQL server. Check its log."));
        }
    }
    // Blocking: reads files.
    let wanted = target.clone();
    let config = tokio::task::spawn_blocking(move || tls::config(&wanted)).await;
    let config = config.map_err(|_| ToolError::new("TLS cannot be set up"))??;
    let name = ServerName::try_from(name.clone())
        .map_err(|_| ToolError::new(format!("{name} is not a valid certificate name")))?;
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|e| {
        ToolError::new(format!("TLS with {host} failed: {e}"))
            .hint("Check sslrootcert, and that the certificate contains this host in its subject alternative names.")
    })?;
    Ok((Box::new(stream), true))
}

async fn login(target: &Target, host: &Host, encrypt: bool) -> Result<Connection, Failure> {
    let (stream, encrypted) = raw(target, host, encrypt).await?;
    let mut connection = Connection::new(stream, host.clone(), encrypted);
    let parameters = [
        ("user", target.user.as_str()),
        ("database", target.database.as_str()),
        ("application_name", target.application_name.as_str()),
        ("client_encoding", "UTF8"),
    ];
    let failed = |error: WireError| Failure::of(host, error);
    let startup = frontend::startup_message(parameters, &mut connection.output).map_err(WireError::from);
    startup.map_err(failed)?;
    connection.flush().await.map_err(failed)?;
    authenticate(&mut connection, target, failed).await?;
    loop {
        match connection.next(MESSAGE_BYTES_MAX).await.map_err(failed)? {
            Message::BackendKeyData(body) => connection.key = (body.process_id(), body.secret_key()),
            Message::ReadyForQuery(_) => return Ok(connection),
            Message::ErrorResponse(body) => return Err(failed(WireError::Server(ServerError::new(body.fields())))),
            _ => {}
        }
    }
}

async fn authenticate(
    connection: &mut Connection,
    target: &Target,
    failed: impl Fn(WireError) -> Failure + Copy,
) -> Result<(), Failure> {
    let host = connection.host.clone();
    let password = || {
        target.password(&host).ok_or_else(|| {
            ToolError::new(format!("The server requires a password for {}, and none is configured", target.user))
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
                    .hint("Somebody may be intercepting the connection. Use sslmode=verify-full.")
                    .into());
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
                    .hint("Use sslmode=verify-full, or scram-sha-256 in the server's pg_hba.conf.")
                    .into());
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
                    return Err(ToolError::new("The server offers no login method that is supported here")
                        .hint("Use scram-sha-256.")
                        .into());
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
            Message::ErrorResponse(body) => return Err(failed(WireError::Server(ServerError::new(body.fields())))),
            _ => {
                return Err(ToolError::new(
                    "The server requires a login method that is not supported here (GSSAPI or SSPI)",
                )
                .hint("Use scram-sha-256 or certificates in the server's pg_hba.conf.")
                .into());
            }
        }
        .map_err(|e| failed(e.into()))?;
        connection.output.extend_from_slice(&out);
        connection.flush().await.map_err(failed)?;
    }
}
