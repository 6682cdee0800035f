//! The keyring of the operating system keeps tokens, for real.
//!
//! This writes to a keyring, so it runs only where that is wanted:
//!
//! ```sh
//! dbus-run-session -- sh -c 'printf x | gnome-keyring-daemon --unlock --components=secrets &&
//!     LINCHPIN_TEST_KEYRING=1 cargo test -p linchpin-auth --features keyring --test keyring'
//! ```
#![cfg(feature = "keyring")]

use linchpin_auth::secret::Secret;
use linchpin_auth::store::{KeyringStore, StoreKey, Stored, TokenStore, Tokens};

fn key(name: &str) -> StoreKey {
    StoreKey::new("https://as.example", format!("https://{name}.example/mcp"))
}

fn value(token: &str) -> Stored {
    let tokens = Tokens { access_token: Secret::new(token), token_type: "Bearer".to_owned(), ..Tokens::default() };
    Stored { tokens: Some(tokens), ..Stored::default() }
}

#[tokio::test]
async fn the_real_keyring_keeps_replaces_lists_and_forgets() {
    if std::env::var_os("LINCHPIN_TEST_KEYRING").is_none() {
        eprintln!("skipped: LINCHPIN_TEST_KEYRING is not set, and this would write to the person's keyring");
        return;
    }
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
