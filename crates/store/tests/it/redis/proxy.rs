//! A way to a server that cuts, delays, and loses what it is told to.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// What happens to the answers of the server.
#[derive(Default)]
pub(crate) struct Plan {
    /// Each connection is cut in the middle of an answer after about so many bytes; 0: never.
    pub(crate) cut_after: AtomicU64,
    /// Each answer is this late.
    pub(crate) delay_ms: AtomicU64,
    /// No answer arrives any more, and nothing else happens.
    pub(crate) is_deaf: AtomicBool,
    /// How many connections there were.
    pub(crate) connections: AtomicU64,
}

pub(crate) struct Proxy {
    pub(crate) url: String,
    pub(crate) plan: Arc<Plan>,
}

impl Proxy {
    pub(crate) async fn before(socket: PathBuf) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let plan = Arc::new(Plan::default());
        let own = plan.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, socket.clone(), own.clone()));
            }
        });
        Proxy { url, plan }
    }
}

async fn carry(client: TcpStream, socket: impl AsRef<Path>, plan: Arc<Plan>) -> std::io::Result<()> {
    let number = plan.connections.fetch_add(1, Ordering::SeqCst);
    let server = UnixStream::connect(socket).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async { tokio::io::copy(&mut from_client, &mut to_server).await.map(drop) };
    let answering = async {
        let mut buffer = vec![0; 64 << 10];
        let mut sent = 0;
        loop {
            let read = from_server.read(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            if plan.is_deaf.load(Ordering::SeqCst) {
                continue;
            }
            tokio::time::sleep(Duration::from_millis(plan.delay_ms.load(Ordering::SeqCst))).await;
            let cut = match plan.cut_after.load(Ordering::SeqCst) {
                0 => u64::MAX,
                // Elsewhere in each connection.
                after => after + number * 37 % 211,
            };
            let fits = usize::try_from(cut.saturating_sub(sent)).unwrap_or(usize::MAX).min(read);
            to_client.write_all(&buffer[..fits]).await?;
            sent += fits as u64;
            if sent >= cut {
                return Ok(());
            }
        }
    };
    tokio::select! {
        done = asking => done,
        done = answering => done,
    }
}
