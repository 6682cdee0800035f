//! One contract for every store. The cases of a primitive run one after the other, each with keys of its own.

mod bucket;
mod kv;
mod lease;
mod log;
mod topic;

use crate::world::World;

/// All cases of a file: each is announced, so that a failure names its case.
macro_rules! cases {
    ($($name:ident)*) => {
        pub(super) async fn all(world: &crate::world::World) {
            $(
                eprintln!("case {}", stringify!($name));
                $name(world).await;
            )*
        }
    };
}
use cases;

async fn all_of(primitive: &str, world: &World) {
    match primitive {
        "kv" => kv::all(world).await,
        "log" => log::all(world).await,
        "lease" => lease::all(world).await,
        "bucket" => bucket::all(world).await,
        _ => topic::all(world).await,
    }
}

macro_rules! promises {
    ($($test:ident of $primitive:ident;)*) => {
        mod memory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::all_of(stringify!($primitive), &crate::world::World::memory()).await;
                }
            )*
        }

        #[cfg(feature = "sqlite")]
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    let folder = tempfile::tempdir().unwrap();
                    super::all_of(stringify!($primitive), &crate::world::World::sqlite(&folder)).await;
                }
            )*
        }

        #[cfg(all(feature = "redis", unix))]
        mod redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                #[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
                async fn $test() {
                    super::all_of(stringify!($primitive), &crate::world::World::redis()).await;
                }
            )*
        }
    };
}

promises! {
    records_are_linearizable_and_expire of kv;
    logs_have_no_gaps_and_refuse_stale_writers of log;
    leases_have_one_holder of lease;
    buckets_never_give_more_than_their_rate of bucket;
    topics_lose_no_change of topic;
}
