//! Every zone against Python's `zoneinfo`: at each clock change and a second beside it, at the solstices, in gaps and folds.
//!
//! One Python process writes the table. Python reads the system's database and so do we, so nothing may differ there. The
//! built-in database is often of another version: then only zones may differ that a list names, those whose rules changed
//! between the versions of the last years. It is compared from 1970 on, which is what the database vouches for: of what was
//! before, systems install more or less.

use crate::table;

use linchpin_time::Tzdb;
use table::{World, check, python};

#[tokio::test]
async fn every_zone_is_told_as_python_tells_it() {
    let table = python("python3", false);
    let system = World::of(Tzdb::default());
    let ours = system.time.tzdb();
    let compared = system.compare(&table, i64::MIN).await;
    eprintln!(
        "system: {} rows {:?}, {} zones; python's database is {}, ours {ours}",
        compared.rows,
        compared.kinds,
        compared.zones.len(),
        table.version
    );
    assert!(
        compared.zones.len() > 400 && compared.rows > 50_000,
        "{} zones, {} rows",
        compared.zones.len(),
        compared.rows
    );
    assert!(["G", "N", "W"].iter().all(|kind| compared.kinds.contains_key(*kind)));
    // Where no version is known, both have read the same files.
    check(&compared, table.version == "unknown" || table.same(&ours), "the system's database");

    let embedded = World::of(Tzdb::Embedded);
    let compared = embedded.compare(&table, 0).await;
    eprintln!("embedded: {} rows, {} zones, ours {}", compared.rows, compared.zones.len(), embedded.time.tzdb());
    check(&compared, table.same(&embedded.time.tzdb()), "the built-in database");
}
