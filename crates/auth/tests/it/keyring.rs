//! The keyring of the operating system keeps tokens, for real.
//!
//! This writes to a keyring, so it runs only where that is wanted: `cargo xtask test --only keyring`.
#![cfg(feature = "keyring")]

use linchpin_auth::store::{KeyringStore, StoreKey, Stored, TokenStore, Tokens};

fn key(name: &str) -> StoreKey {
    StoreKey::new("https://as.example", format!("https://{name}.example/mcp"))
}

fn value(token: &str) -> Stored {
    Stored::default().with(|stored| stored.tokens = Some(Tokens::new(token, "Bearer")))
}

#[tokio::test]
#[ignore = "writes to the user's keyring: cargo xtask test --only keyring"]
async fn the_real_keyring_keeps_replaces_lists_and_forgets() {
    let service = format!("linchpin-test-{}", std::process::id());
    let store = KeyringStore::new(&service);
    assert_eq!(store.list().await.unwrap(), []);
    store.forget(&key("a")).await.unwrap();
    let large = "ü\"\n".repeat(10_000);
    store.save(&key("b"), &value("hunter2")).await.unwrap();
    store.save(&key("a"), &value("old")).await.unwrap();
    store.save(&key("a"), &value(&large)).await.unwrap();

    // Another store, as another process would have it.
    let again = KeyringStore::new(&service);
    assert_eq!(again.load(&key("a")).await.unwrap(), Some(value(&large)));
    assert_eq!(again.load(&key("b")).await.unwrap(), Some(value("hunter2")));
    assert_eq!(again.load(&key("c")).await.unwrap(), None);
    assert_eq!(again.list().await.unwrap(), [key("a"), key("b")]);

    // Many at a time, through both.
    let writes = (0..20).map(|n| {
        let store = if n % 2 == 0 { store.clone() } else { again.clone() };
        tokio::spawn(async move { store.save(&key(&format!("n{n}")), &value(&n.to_string())).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap().unwrap();
    }
    let listed = store.list().await.unwrap();
    assert_eq!(listed.len(), 22);
    for key in &listed {
        again.forget(key).await.unwrap();
        assert_eq!(store.load(key).await.unwrap(), None);
    }
    assert_eq!(store.list().await.unwrap(), []);
}

#[cfg(target_os = "linux")]
mod other_programs {
    use linchpin_auth::store::keyring_password;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// The tool of the Secret Service, as the documentation has it.
    fn secret_tool(words: &[&str], password: &str) {
        let mut tool = Command::new("secret-tool").args(words).stdin(Stdio::piped()).spawn().expect("secret-tool");
        tool.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        assert!(tool.wait().unwrap().success(), "{words:?}");
    }

    #[test]
    #[ignore = "writes to the user's keyring: cargo xtask test --only keyring"]
    fn a_password_that_the_systems_own_tool_keeps_is_found() {
        let service = format!("linchpin-test-words-{}", std::process::id());
        let entry = ["service", &service, "username", "reader"];
        let find =
            |account: &str| keyring_password(&service, account).map(|found| found.map(|one| one.expose().to_owned()));
        assert_eq!(find("reader").unwrap(), None);
        secret_tool(&[&["store", "--label=A test"][..], &entry].concat(), "geheim ü");
        assert_eq!(find("reader").unwrap().as_deref(), Some("geheim ü"));
        assert_eq!(find("writer").unwrap(), None);
        // With more attributes it is another entry, and fits as well.
        secret_tool(&[&["store", "--label=A test"][..], &entry, &["more", "1"]].concat(), "hunter2");
        let error = find("reader").unwrap_err().to_string();
        assert_eq!(error, "the keyring has several such entries");
        secret_tool(&[&["clear"][..], &entry].concat(), "");
        assert_eq!(find("reader").unwrap(), None);
    }
}
