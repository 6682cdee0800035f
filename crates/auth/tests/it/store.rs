//! The stores keep what they are given, and the file store keeps it to itself.

use linchpin_auth::Secret;
use linchpin_auth::store::{FileStore, MemoryStore, Registered, StoreKey, Stored, TokenStore, Tokens};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

fn key(name: &str) -> StoreKey {
    StoreKey::new("https://as.example", format!("https://{name}.example/mcp"))
}

fn value(name: &str) -> Stored {
    let client = Registered::new(name).with(|client| {
        client.client_secret = Some(Secret::new("hunter1"));
        client.token_endpoint_auth_method = Some("client_secret_post".to_owned());
        client.client_secret_expires_at = Some(7);
        client.redirect_uris = vec!["http://127.0.0.1:1/callback".to_owned()];
    });
    let tokens = Tokens::new(format!("hunter2 \"ü\n {name}"), "DPoP").with(|tokens| {
        tokens.refresh_token = Some(Secret::new("hunter3"));
        tokens.expires_at = Some(1 << 40);
        tokens.scope = Some("a b".to_owned());
    });
    Stored::default().with(|stored| {
        stored.client = Some(client);
        stored.tokens = Some(tokens);
        stored.dpop_key = Some(Secret::new("hunter4"));
    })
}

/// A directory of its own, with the file the store is to make in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("state/linchpin/tokens.json");
    (dir, file)
}

async fn keeps_replaces_and_forgets(store: &dyn TokenStore) {
    assert_eq!(store.load(&key("a")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), []);
    store.forget(&key("a")).await.unwrap();
    store.save(&key("b"), &value("b")).await.unwrap();
    store.save(&key("a"), &Stored::default()).await.unwrap();
    store.save(&key("a"), &value("a")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some(value("a")));
    assert_eq!(store.load(&key("b")).await.unwrap(), Some(value("b")));
    let other = StoreKey::new("https://other.example", key("a").resource);
    assert_eq!(store.load(&other).await.unwrap(), None, "another issuer, the same resource");
    assert_eq!(store.list().await.unwrap(), [key("a"), key("b")]);
    store.forget(&key("a")).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), [key("b")]);
    store.forget(&key("b")).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
}

#[tokio::test]
async fn every_store_keeps_replaces_and_forgets() {
    keeps_replaces_and_forgets(&MemoryStore::new()).await;
    let (_dir, file) = place();
    keeps_replaces_and_forgets(&FileStore::new(&file)).await;
}

#[tokio::test]
async fn a_file_outlives_its_store_and_memory_is_shared_by_clones() {
    let (_dir, file) = place();
    FileStore::new(&file).save(&key("a"), &value("a")).await.unwrap();
    assert_eq!(FileStore::new(&file).load(&key("a")).await.unwrap(), Some(value("a")));
    let memory = MemoryStore::new();
    memory.clone().save(&key("a"), &value("a")).await.unwrap();
    assert_eq!(memory.load(&key("a")).await.unwrap(), Some(value("a")));
}

#[test]
fn debug_shows_no_secret() {
    let (store, value) = (MemoryStore::new(), value("a"));
    drop(store.save(&key("a"), &value));
    let said = format!("{value:#?} {store:?}");
    assert!(!said.contains("hunter") && said.contains("client_id"), "{said}");
}

#[tokio::test]
async fn a_damaged_file_is_reported_and_left_alone() {
    let (_dir, file) = place();
    let store = FileStore::new(&file);
    store.save(&key("a"), &value("a")).await.unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let rows = [
        ("empty", String::new()),
        ("cut", whole[..whole.len() / 2].to_owned()),
        ("not JSON", "hunter5".to_owned()),
        ("a secret of another type", whole.replacen("\"hunter1\"", "[\"hunter5\"]", 1)),
        ("a later version", whole.replacen("\"version\": 1", "\"version\": 2", 1)),
        ("too large", whole.clone() + &" ".repeat(4 << 20)),
    ];
    for (name, text) in rows {
        assert_ne!(text, whole, "{name}");
        std::fs::write(&file, &text).unwrap();
        let errors = [
            store.load(&key("a")).await.expect_err(name),
            store.save(&key("b"), &value("b")).await.expect_err(name),
            store.forget(&key("a")).await.expect_err(name),
            store.list().await.expect_err(name),
        ];
        for error in errors {
            let said = error.to_string();
            assert!(said.starts_with(&file.display().to_string()) && said.contains("log in again"), "{name}: {said}");
            assert!(!said.contains("hunter"), "{name}: {said}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{name}");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_leaves_the_file_as_it_was() {
    let (_dir, file) = place();
    let store = FileStore::new(&file);
    store.save(&key("a"), &value("a")).await.unwrap();
    let large = Stored::default().with(|stored| stored.dpop_key = Some(Secret::new("k".repeat(4 << 20))));
    assert_eq!(store.save(&key("b"), &large).await.unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(store.list().await.unwrap(), [key("a")]);
}

#[tokio::test]
async fn what_a_killed_process_left_behind_is_in_nobodys_way() {
    let (_dir, file) = place();
    let store = FileStore::new(&file);
    store.save(&key("a"), &value("a")).await.unwrap();
    let fresh = file.with_file_name("tokens.json.new");
    std::fs::write(&fresh, "half").unwrap();
    store.save(&key("b"), &value("b")).await.unwrap();
    assert!(!fresh.exists());
    assert_eq!(store.list().await.unwrap(), [key("a"), key("b")]);
}

const WRITERS: usize = 4;
const WRITES: usize = 10;

/// What each writer of the two tests below does.
async fn write_many(file: &Path, writer: usize) {
    let store = FileStore::new(file);
    for write in 0..WRITES {
        let name = format!("{writer}-{write}");
        store.save(&key(&name), &value(&name)).await.unwrap();
        if write % 5 == 4 {
            store.forget(&key(&name)).await.unwrap();
        }
        // A reader never sees half a file.
        store.list().await.unwrap();
    }
}

async fn nothing_is_lost(file: &Path) {
    let kept = FileStore::new(file).list().await.unwrap();
    assert_eq!(kept.len(), WRITERS * WRITES * 4 / 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_save_at_the_same_time_lose_nothing() {
    let (_dir, file) = place();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let file = file.clone();
            tokio::spawn(async move { write_many(&file, writer).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    nothing_is_lost(&file).await;
}

/// Set for the processes that the test below starts: which writer it is, and the file.
const WRITER: &str = "LINCHPIN_TEST_WRITER";

#[tokio::test]
async fn processes_that_save_at_the_same_time_lose_nothing() {
    if let Ok(task) = std::env::var(WRITER) {
        let (writer, file) = task.split_once(' ').unwrap();
        return write_many(Path::new(file), writer.parse().unwrap()).await;
    }
    let (_dir, file) = place();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "store::processes_that_save_at_the_same_time_lose_nothing"])
                .env(WRITER, format!("{writer} {}", file.display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    nothing_is_lost(&file).await;
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// All four operations are refused, with these words, and nothing was changed.
    async fn refused(store: &FileStore, words: &str) {
        let errors = [
            store.load(&key("a")).await.expect_err(words),
            store.save(&key("b"), &value("b")).await.expect_err(words),
            store.forget(&key("a")).await.expect_err(words),
            store.list().await.expect_err(words),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[tokio::test]
    async fn nobody_else_may_read_what_is_made() {
        let (_dir, file) = place();
        let store = FileStore::new(&file);
        for _ in 0..2 {
            store.save(&key("a"), &value("a")).await.unwrap();
            store.forget(&key("a")).await.unwrap();
            assert_eq!(mode(&file), 0o600);
            assert_eq!(mode(&file.with_file_name("tokens.json.lock")), 0o600);
            assert_eq!(mode(file.parent().unwrap()), 0o700);
            assert_eq!(mode(file.parent().unwrap().parent().unwrap()), 0o700);
        }
    }

    #[tokio::test]
    async fn a_file_that_others_may_read_or_write_is_refused() {
        let (_dir, file) = place();
        let store = FileStore::new(&file);
        store.save(&key("a"), &value("a")).await.unwrap();
        for wide in [0o640, 0o604, 0o620, 0o602, 0o644, 0o601, 0o666] {
            set_mode(&file, wide);
            refused(&store, &format!("has the mode 0{wide:o}")).await;
            assert_eq!(mode(&file), wide, "it is the user who decides");
        }
        set_mode(&file, 0o400);
        assert_eq!(store.load(&key("a")).await.unwrap(), Some(value("a")));
    }

    #[tokio::test]
    async fn a_symbolic_link_is_refused_even_to_a_good_file() {
        let (dir, file) = place();
        FileStore::new(&file).save(&key("a"), &value("a")).await.unwrap();
        let link = dir.path().join("link.json");
        symlink(&file, &link).unwrap();
        refused(&FileStore::new(&link), "is a symlink").await;
        let dangling = dir.path().join("dangling.json");
        symlink(dir.path().join("nowhere"), &dangling).unwrap();
        refused(&FileStore::new(&dangling), "is a symlink").await;
        assert!(!dir.path().join("nowhere").exists());
    }

    #[tokio::test]
    async fn a_link_in_the_place_of_the_lock_or_the_new_file_leads_nowhere() {
        let (dir, file) = place();
        let store = FileStore::new(&file);
        store.save(&key("a"), &value("a")).await.unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let fresh = file.with_file_name("tokens.json.new");
        symlink(&victim, &fresh).unwrap();
        store.save(&key("b"), &value("b")).await.unwrap();
        let lock = file.with_file_name("tokens.json.lock");
        std::fs::remove_file(&lock).unwrap();
        symlink(&victim, &lock).unwrap();
        let error = store.save(&key("c"), &value("c")).await.unwrap_err();
        assert!(error.to_string().contains("is a symlink"), "{error}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_directory_others_may_write_to_is_refused() {
        let (_dir, file) = place();
        let store = FileStore::new(&file);
        store.save(&key("a"), &value("a")).await.unwrap();
        for (wide, good) in [(0o770, false), (0o707, false), (0o777, false), (0o1777, true), (0o755, true)] {
            set_mode(file.parent().unwrap(), wide);
            assert_eq!(store.save(&key("b"), &value(&wide.to_string())).await.is_ok(), good, "{wide:o}");
        }
    }

    #[tokio::test]
    async fn a_pipe_or_a_directory_in_the_place_of_the_file_is_refused_without_waiting() {
        let (dir, _) = place();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&pipe).status();
        assert!(made.unwrap().success());
        refused(&FileStore::new(&pipe), "is not a regular file").await;
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        assert!(FileStore::new(&folder).load(&key("a")).await.is_err());
        assert!(FileStore::new(&folder).save(&key("a"), &value("a")).await.is_err());
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_is_refused() {
        let (_dir, file) = place();
        let store = FileStore::new(&file);
        store.save(&key("a"), &value("a")).await.unwrap();
        if let Err(error) = std::os::unix::fs::chown(&file, Some(12345), None) {
            eprintln!("skipped: only root can give a file away ({error})");
            return;
        }
        refused(&store, "belongs to another user").await;
    }
}
