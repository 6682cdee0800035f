//! A Redis server of its own, on a socket in a directory of its own, whose time the test moves.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Waits for the end of its input, so that the server ends with this process, however that ends.
const KEEPER: &str = r#""$@" >server.log 2>&1 & echo $!; cat >/dev/null; kill -9 $!"#;

/// A running server. It ends when this is dropped.
pub(crate) struct Server {
    dir: tempfile::TempDir,
    arguments: Vec<String>,
    watchdog: Mutex<Option<(Child, String)>>,
    shift_us: AtomicU64,
}

fn program() -> PathBuf {
    std::env::var_os("LINCHPIN_REDIS_SERVER").map_or_else(|| "redis-server".into(), PathBuf::from)
}

/// The library by which a program sees another time, compiled once.
fn shifter() -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shift.so");
    if !library.is_file() {
        // Other tests may do the same at this moment: whole or not at all.
        let own = library.with_extension(format!("{:?}", std::thread::current().id()).replace(['(', ')'], "-"));
        let own = own.with_extension(std::process::id().to_string());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCE);
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&own).arg(source);
        assert!(compiler.status().expect("cc runs").success());
        std::fs::rename(own, &library).expect("it is moved");
    }
    library
}

/// From the folder of the crate that has the test.
const SOURCE: &str = "../store/tests/it/redis/shift.c";

impl Server {
    pub(crate) fn start() -> Server {
        Server::with(&[])
    }

    /// With these arguments too.
    pub(crate) fn with(arguments: &[&str]) -> Server {
        let dir = tempfile::Builder::new().prefix("lpr").tempdir().expect("a directory");
        let server = Server {
            dir,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            watchdog: Mutex::default(),
            shift_us: AtomicU64::new(0),
        };
        server.advance(Duration::ZERO);
        server.run();
        server
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// What is in its directory: what it saved.
    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// Starts it, where it does not run.
    pub(crate) fn run(&self) {
        let words = ["--port", "0", "--unixsocket", "s", "--save", "", "--appendonly", "no", "--loglevel", "warning"];
        let _ = std::fs::remove_file(self.socket());
        let mut watchdog = Command::new("sh")
            .args(["-c", KEEPER, "sh"])
            .arg(program())
            .args(words)
            .args(&self.arguments)
            .current_dir(self.dir.path())
            .env("LD_PRELOAD", shifter())
            .env("TIME_SHIFT", self.dir.path().join("shift"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut pid = String::new();
        BufReader::new(watchdog.stdout.take().expect("it is piped")).read_line(&mut pid).expect("its number");
        *self.watchdog.lock().unwrap() = Some((watchdog, pid.trim().to_owned()));
        for _ in 0..500 {
            if std::os::unix::net::UnixStream::connect(self.socket()).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let log = std::fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default();
        panic!("{} does not start (Debian: apt-get install redis-server):\n{log}", program().display());
    }

    /// Ends it at once, as `kill -9` does.
    pub(crate) fn kill(&self) {
        if let Some((mut watchdog, pid)) = self.watchdog.lock().unwrap().take() {
            let _ = Command::new("kill").args(["-9", &pid]).status();
            drop(watchdog.stdin.take());
            let _ = watchdog.wait();
        }
    }

    /// Moves its time.
    pub(crate) fn advance(&self, by: Duration) {
        use std::os::unix::fs::FileExt as _;
        let by = u64::try_from(by.as_micros()).expect("less than millions of years");
        let shift = self.shift_us.fetch_add(by, Ordering::SeqCst) + by;
        // The server has it in its memory, so it must stay the same file.
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).open(self.dir.path().join("shift"));
        file.and_then(|file| file.write_all_at(&shift.to_ne_bytes(), 0)).expect("it is written");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
