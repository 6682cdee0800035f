//! A path that looks like a URI is a path. Alone in its file: it changes the working directory of the process.

use linchpin_sqlite::{Config, Sqlite};

#[test]
fn file_uris_are_taken_literally() {
    let dir = tempfile::tempdir().unwrap();
    std::env::set_current_dir(dir.path()).unwrap();
    for name in ["file:x?mode=memory", "file:y.db", "file::memory:", "z.db?mode=ro"] {
        let (db, _) = Sqlite::open(Config::default().with(|config| config.db_path = name.into())).unwrap();
        assert!(dir.path().join(name).is_file(), "{name}");
        drop(db);
    }
    let (_db, _) = Sqlite::open(Config::default().with(|config| config.db_path = "./:memory:".into())).unwrap();
    assert!(dir.path().join(":memory:").is_file());
}
