//! A store to be tested, the same one as another process sees it, and its time.

use linchpin_store::{ManualClock, Store};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) struct World {
    pub(crate) store: Store,
    /// As another process has it.
    pub(crate) other: Store,
    time: Time,
}

enum Time {
    Manual(Arc<ManualClock>),
    #[cfg(all(feature = "redis", unix))]
    Server(crate::redis::Server),
}

impl World {
    pub(crate) fn memory() -> World {
        let clock = Arc::new(ManualClock::default());
        let store = Store::builder().clock(clock.clone()).memory();
        World { other: store.clone(), store, time: Time::Manual(clock) }
    }

    /// In a file of this folder.
    #[cfg(feature = "sqlite")]
    pub(crate) fn sqlite(folder: &tempfile::TempDir) -> World {
        let clock = Arc::new(ManualClock::default());
        let open = || Store::builder().clock(clock.clone()).sqlite(folder.path().join("store.db")).unwrap();
        World { store: open(), other: open(), time: Time::Manual(clock) }
    }

    /// In a Redis server that is started for it.
    #[cfg(all(feature = "redis", unix))]
    pub(crate) fn redis() -> World {
        let server = crate::redis::Server::start();
        World { store: server.store(), other: server.store(), time: Time::Server(server) }
    }

    /// Lets time pass.
    pub(crate) async fn advance(&self, by: Duration) {
        match &self.time {
            Time::Manual(clock) => clock.advance(by),
            #[cfg(all(feature = "redis", unix))]
            // Redis counts in milliseconds, and expires what is older than its time.
            Time::Server(server) => server.advance(by + Duration::from_millis(2)),
        }
    }
}
