//! A unix socket: one message a line, like stdio, for any number of clients.

use crate::pipe;
use crate::stdio::terminated;
use linchpin_proto::service::{Bind, BoxFuture, Service};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};

/// A socket at this path. Only the user who runs the server may connect (mode 0600). A socket nobody listens at any more
/// is replaced; anything else at the path is an error. It is removed at the end.
pub fn unix(path: impl Into<PathBuf>) -> Unix {
    Unix { path: path.into() }
}

/// See [`unix`].
#[derive(Debug)]
pub struct Unix {
    path: PathBuf,
}

impl Bind for Unix {
    fn serve(self, service: Arc<dyn Service>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let listener = bind(&self.path).await?;
            let result = accept(&listener, service).await;
            let _ = std::fs::remove_file(&self.path);
            result
        })
    }
}

async fn bind(path: &Path) -> io::Result<UnixListener> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    if let Ok(found) = std::fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(named(io::Error::new(io::ErrorKind::AlreadyExists, "there is something that is not a socket")));
        }
        if UnixStream::connect(path).await.is_ok() {
            return Err(named(io::Error::new(io::ErrorKind::AddrInUse, "another server listens here")));
        }
        std::fs::remove_file(path).map_err(named)?;
    }
    // Bound in a private folder first, so that there is no moment in which others could connect.
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let private = parent.join(format!(".linchpin-{}", std::process::id()));
    std::fs::create_dir(&private).map_err(named)?;
    let bound = (|| {
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o700))?;
        let listener = UnixListener::bind(private.join("s"))?;
        std::fs::set_permissions(private.join("s"), std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(private.join("s"), path)?;
        Ok(listener)
    })();
    let _ = std::fs::remove_dir_all(&private);
    bound.map_err(named)
}

async fn accept(listener: &UnixListener, service: Arc<dyn Service>) -> io::Result<()> {
    let limits = service.limits().clone();
    let free = Arc::new(Semaphore::new(limits.connections_max));
    let (stop, stopped) = watch::channel(false);
    let mut end = std::pin::pin!(terminated());
    loop {
        let permit = free.clone().acquire_owned().await.map_err(io::Error::other)?;
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(e) => {
                    tracing::warn!(error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut end => break,
        };
        let (service, mut stopped) = (Connection(service.clone()), stopped.clone());
        tokio::spawn(async move {
            let (input, output) = stream.into_split();
            let stop = async move { drop(stopped.wait_for(|s| *s).await) };
            if let Err(e) = pipe::serve(Arc::new(service), input, output, stop).await {
                tracing::debug!(error = %e, "a connection ended");
            }
            drop(permit);
        });
    }
    service.close();
    let _ = stop.send(true);
    let all = limits.connections_max.try_into().unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(Duration::from_millis(2 * limits.drain_ms_max), free.acquire_many(all)).await;
    Ok(())
}

/// One connection's view of the service: its end does not end the others.
struct Connection(Arc<dyn Service>);

impl Service for Connection {
    fn limits(&self) -> &Arc<linchpin_proto::Limits> {
        self.0.limits()
    }
    fn start(
        &self,
        request: linchpin_proto::Request,
        door: linchpin_proto::Door,
        cx: &mut std::task::Context<'_>,
    ) -> linchpin_proto::Started {
        self.0.start(request, door, cx)
    }
    fn notified(&self, caller: &linchpin_proto::Caller, name: &linchpin_proto::frame::Name, params: &str) {
        self.0.notified(caller, name, params);
    }
    fn header_params(&self, tool: &str) -> Option<Arc<[linchpin_proto::service::HeaderParam]>> {
        self.0.header_params(tool)
    }
    fn hub(&self) -> &Arc<linchpin_proto::Hub> {
        self.0.hub()
    }
    fn open_feed(&self) -> Option<linchpin_proto::FeedHandle> {
        self.0.open_feed()
    }
    fn close(&self) {}
}
