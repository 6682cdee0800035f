//! What others cannot read, and where its secret comes from.

use crate::world::HOUR;
use linchpin_store::{ErrorKind, Expect, Kv as _, Put, Seal, Sealed, Secrets, Store};

#[test]
fn a_sealed_value_opens_where_it_was_sealed_and_nowhere_else() {
    let seal = Seal::new(&Secrets::new([1; 32]));
    let sealed = seal.seal("a", b"bound", b"secret");
    assert_eq!(seal.open("a", b"bound", &sealed).unwrap(), "secret");
    for (space, bound) in [("b", &b"bound"[..]), ("a", b"other"), ("a", b"")] {
        assert_eq!(seal.open(space, bound, &sealed).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    for at in 0..sealed.len() {
        let mut changed = sealed.to_vec();
        changed[at] ^= 1;
        assert!(seal.open("a", b"bound", &changed).is_err(), "byte {at}");
        assert!(seal.open("a", b"bound", &sealed[..at]).is_err(), "cut at {at}");
    }
    let empty = seal.seal("a", b"", b"");
    assert_eq!(seal.open("a", b"", &empty).unwrap(), "");
}

#[test]
fn the_same_value_is_never_sealed_the_same() {
    let seal = Seal::new(&Secrets::new([1; 32]));
    assert_ne!(seal.seal("a", b"", b"secret"), seal.seal("a", b"", b"secret"));
}

#[test]
fn a_previous_secret_opens_and_a_removed_one_does_not() {
    let (old, new) = ([1; 32], [2; 32]);
    let sealed = Seal::new(&Secrets::new(old)).seal("a", b"", b"secret");
    let both = Seal::new(&Secrets::new(new).and_previous(old));
    assert_eq!(both.open("a", b"", &sealed).unwrap(), "secret");
    let sealed = both.seal("a", b"", b"secret");
    assert_eq!(Seal::new(&Secrets::new(new)).open("a", b"", &sealed).unwrap(), "secret", "the first one seals");
    assert!(Seal::new(&Secrets::new(old)).open("a", b"", &sealed).is_err());
}

#[test]
fn secrets_are_read_as_text_and_never_shown() {
    let (a, b) = ("00".repeat(31) + "fF", "ab".repeat(32));
    let sealed = Seal::new(&Secrets::parse(&a).unwrap()).seal("a", b"", b"secret");
    let mut bytes = [0; 32];
    bytes[31] = 255;
    assert_eq!(Seal::new(&Secrets::new(bytes)).open("a", b"", &sealed).unwrap(), "secret");
    assert!(Seal::new(&Secrets::parse(&format!("{b}\n {a}\n")).unwrap()).open("a", b"", &sealed).is_ok());
    let many = format!("{a} ").repeat(9);
    for bad in ["", " ", &a[1..], &format!("{a}0"), &format!("{a} x"), &"zz".repeat(32), &"é".repeat(32), &many] {
        let error = Secrets::parse(bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(bad.len() < 9 || !error.to_string().contains(bad.trim()), "{error}");
    }
    let shown = format!("{:?} {:?}", Secrets::parse(&a).unwrap(), Seal::new(&Secrets::parse(&a).unwrap()));
    assert_eq!(shown, "Secrets(1) Seal(1 secrets)");
}

#[test]
fn a_key_file_is_made_once_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    assert_eq!(Secrets::from_file(&path).unwrap_err().kind(), ErrorKind::Config);
    // Several processes that start at once have the same secret in the end.
    let made: Vec<Secrets> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Secrets::from_file_or_new(&path).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let sealed = Seal::new(&made[0]).seal("a", b"", b"secret");
    for secrets in &made {
        assert!(Seal::new(secrets).open("a", b"", &sealed).is_ok());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for readable in [0o640, 0o604] {
            mode(readable);
            let error = Secrets::from_file(&path).unwrap_err();
            assert!(error.to_string().contains("can be read by others; `chmod 600` it"), "{error}");
        }
        mode(0o400);
        assert!(Secrets::from_file_or_new(&path).is_ok());
    }
}

#[tokio::test]
async fn sealed_records_are_bound_to_their_keys() {
    let store = Store::memory();
    let (kv, sealed) = (store.kv(), store.sealed());
    let Put::Stored(rev) = sealed.put("token/a", "secret".into(), Expect::Absent, HOUR).await.unwrap() else {
        panic!()
    };
    assert_eq!(sealed.get("token/a").await.unwrap().unwrap().value, "secret");
    let raw = kv.get("token/a").await.unwrap().unwrap();
    assert_eq!(raw.rev, rev);
    assert!(!raw.value.windows(6).any(|window| window == b"secret"));
    // Whoever can write to the store cannot give one record another's value.
    assert!(kv.put("token/b", raw.value, Expect::Any, HOUR).await.unwrap().is_stored());
    assert_eq!(sealed.get("token/b").await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(sealed.scan("token/", None, 9).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(sealed.put("token/b", "2".into(), Expect::Any, HOUR).await.unwrap().is_stored());
    let found = sealed.scan("token/", None, 9).await.unwrap();
    assert_eq!(found.iter().map(|(_, record)| &record.value).collect::<Vec<_>>(), ["secret", "2"]);
    // A conflict shows the winner opened.
    let Put::Conflict(Some(winner)) = sealed.put("token/a", "3".into(), Expect::Absent, HOUR).await.unwrap() else {
        panic!()
    };
    assert_eq!(winner.value, "secret");
    let other = Sealed::new(kv.clone(), Seal::new(&Secrets::random()));
    assert_eq!(other.get("token/a").await.unwrap_err().kind(), ErrorKind::Corrupt, "another secret");
}
