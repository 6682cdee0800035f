//! The table that Python writes about every zone, and our answers held against it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use linchpin_time::{Clock, Config, ConvertArgs, CurrentArgs, Time, Tzdb};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

const SCRIPT: &str = r#"
import struct, sys, zoneinfo
from datetime import datetime, timedelta, timezone

OLDEST, NEWEST = -2208988800, 2240524800  # 1900 to 2041

def changes(key):
    """The moments the zone's file names, and those that its rule for the future yields."""
    for root in zoneinfo.TZPATH:
        try:
            with open(root + "/" + key, "rb") as file:
                data = file.read()
            break
        except OSError:
            continue
    else:
        import importlib.resources
        data = importlib.resources.files("tzdata").joinpath("zoneinfo", key).read_bytes()
    found = set()
    def header(at):
        return struct.unpack(">6l", data[at + 20:at + 44])
    isutc, isstd, leap, time, kind, chars = header(0)
    second = 44 + time * 5 + kind * 6 + chars + leap * 8 + isstd + isutc
    isutc, isstd, leap, time, kind, chars = header(second)
    found.update(struct.unpack(">%dq" % time, data[second + 44:second + 44 + 8 * time]))
    zone = zoneinfo.ZoneInfo(key)
    def look(at):
        local = datetime.fromtimestamp(at, zone)
        return local.utcoffset(), local.dst()
    step = 7 * 86400
    for start in range(1767225600, NEWEST, step):
        end = start + step
        if look(start) != look(end):
            low, high = start, end
            while high - low > 1:
                middle = (low + high) // 2
                if look(middle) == look(low): low = middle
                else: high = middle
            found.add(high)
    return sorted(at for at in found if OLDEST <= at <= NEWEST)

def row(*fields):
    out.append("\t".join(fields))

out = []
utc = timezone.utc
epoch = datetime(1970, 1, 1, tzinfo=utc)
for key in sorted(zoneinfo.available_timezones()):
    zone = zoneinfo.ZoneInfo(key)
    moments = set()
    for year in range(1900, 2041, 10):
        for month, day in ((6, 21), (12, 21)):
            moments.add(int((datetime(year, month, day, 12, tzinfo=utc) - epoch).total_seconds()))
    for year in range(2015, 2041):
        for month, day in ((6, 21), (12, 21)):
            moments.add(int((datetime(year, month, day, 12, tzinfo=utc) - epoch).total_seconds()))
    walls = set()
    for at in changes(key):
        moments.update((at - 1, at, at + 1))
        before = datetime.fromtimestamp(at - 1, zone).utcoffset()
        after = datetime.fromtimestamp(at, zone).utcoffset()
        if before != after:
            edge = datetime(1970, 1, 1) + timedelta(seconds=at)
            low, high = sorted((edge + before, edge + after))
            middle = (low + (high - low) / 2).replace(second=0, microsecond=0)
            walls.update((low.replace(second=0), middle, high.replace(second=0), high.replace(second=0) - timedelta(minutes=1)))
    for at in sorted(moments):
        local = datetime.fromtimestamp(at, zone)
        row("N", key, str(at), local.isoformat(timespec="seconds"), local.strftime("%A"), str(int(bool(local.dst()))))
    for wall in sorted(walls):
        for fold in (0, 1):
            local = wall.replace(tzinfo=zone, fold=fold)
            there = local.astimezone(utc)
            back = there.astimezone(zone)
            if back.replace(tzinfo=None) != wall:
                if fold == 0: row("G", key, wall.strftime("%Y-%m-%d"), wall.strftime("%H:%M"))
            else:
                row("W", key, wall.strftime("%Y-%m-%d"), wall.strftime("%H:%M"), str(fold),
                    local.isoformat(timespec="seconds"), there.isoformat(timespec="seconds"), str(int(bool(local.dst()))))
version = "unknown"
for root in zoneinfo.TZPATH:
    try:
        with open(root + "/tzdata.zi") as file: version = file.readline().split()[-1]
        break
    except OSError: pass
if not zoneinfo.TZPATH:
    import tzdata
    version = tzdata.IANA_VERSION
print("V\t" + version + "\t" + ":".join(zoneinfo.TZPATH))
print("\n".join(out))
"#;

pub struct Table {
    pub version: String,
    rows: Vec<Vec<String>>,
}

/// What this Python says. With `packaged`, it reads the database of its package `tzdata` and not the system's.
pub fn python(program: &str, packaged: bool) -> Table {
    let mut command = std::process::Command::new(program);
    if packaged {
        command.env("PYTHONTZPATH", "");
    }
    let output = command.arg("-c").arg(SCRIPT).output().expect("python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut rows: Vec<Vec<String>> = text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    let first = rows.remove(0);
    assert_eq!(first[0], "V");
    Table { version: first[1].clone(), rows }
}

impl Table {
    /// Whether one of ours, as the server names it, is of the same version.
    pub fn same(&self, ours: &str) -> bool {
        self.version != "unknown" && ours.starts_with(&format!("{} ", self.version))
    }
}

pub struct World {
    pub time: Time,
    now: Arc<AtomicI64>,
}

impl World {
    pub fn of(tzdb: Tzdb) -> Self {
        let now = Arc::new(AtomicI64::new(0));
        let shown = now.clone();
        let clock = Clock::new(move || {
            let second = shown.load(Ordering::SeqCst);
            let apart = Duration::from_secs(second.unsigned_abs());
            if second < 0 { SystemTime::UNIX_EPOCH - apart } else { SystemTime::UNIX_EPOCH + apart }
        });
        let config = Config::default().with(|config| {
            config.local_timezone = Some("UTC".into());
            config.clock = clock;
            config.tzdb = tzdb;
        });
        Self { time: Time::open(config).expect("it opens").0, now }
    }

    /// What we say where Python's row says something, in the same words; `None` when we do not know the zone.
    async fn told(&self, row: &[String]) -> Option<(String, String)> {
        let known = |text: &str| !text.starts_with("Invalid timezone");
        if row[0] == "N" {
            self.now.store(row[2].parse().expect("a number"), Ordering::SeqCst);
            let value = match self.time.get_current_time(CurrentArgs { timezone: row[1].clone() }).await {
                Ok(shown) => shown.value,
                Err(fault) => return known(fault.message()).then(|| (fault.to_string(), String::new())),
            };
            let ours = format!("{} {} {}", value.datetime, value.day_of_week, u8::from(value.is_dst));
            return Some((ours, row[3..].join(" ")));
        }
        let fold = (row[0] == "W").then(|| row[4].parse().expect("a number"));
        let args = ConvertArgs {
            source_timezone: row[1].clone(),
            time: row[3].clone(),
            target_timezone: "UTC".into(),
            date: Some(row[2].clone()),
            fold,
        };
        let ours = match self.time.convert_time(args).await {
            Ok(shown) => {
                let (source, target) = (shown.value.source, shown.value.target);
                format!("{} {} {}", source.datetime, target.datetime, u8::from(source.is_dst))
            }
            Err(fault) if !known(fault.message()) => return None,
            Err(fault) if fault.message().contains("does not exist") => "gap".to_owned(),
            Err(fault) => fault.to_string(),
        };
        Some((ours, if row[0] == "G" { "gap".to_owned() } else { row[5..].join(" ") }))
    }

    pub async fn compare(&self, table: &Table, from: i64) -> Compared {
        let mut compared = Compared::default();
        let since = |row: &[String]| match row[0].as_str() {
            "N" => row[2].parse::<i64>().expect("a number") >= from,
            // The day after, whatever the offset.
            _ => from < 0 || row[2].as_str() > "1970-01-02",
        };
        for row in table.rows.iter().filter(|row| since(row)) {
            match self.told(row).await {
                None => {
                    compared.unknown.insert(row[1].clone());
                }
                Some((ours, theirs)) => {
                    compared.rows += 1;
                    compared.kinds.entry(row[0].clone()).and_modify(|n| *n += 1).or_insert(1);
                    compared.zones.insert(row[1].clone());
                    if ours != theirs {
                        compared.differ.entry(row[1].clone()).or_default().push(format!("{row:?}: {ours}"));
                    }
                }
            }
        }
        compared
    }
}

#[derive(Default, Debug)]
pub struct Compared {
    pub rows: usize,
    pub kinds: BTreeMap<String, usize>,
    pub zones: BTreeSet<String>,
    pub unknown: BTreeSet<String>,
    pub differ: BTreeMap<String, Vec<String>>,
}

/// Zones whose clocks since 1970 changed from one version of the database to another, from 2024a to 2026f: those may differ,
/// and no other, where ours and Python's are of different versions. New versions change more; their NEWS says which.
const CHANGED: &[&str] = &[
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Asuncion",
    "America/Bahia_Banderas",
    "America/Bogota",
    "America/Cancun",
    "America/Edmonton",
    "America/Ensenada",
    "America/Havana",
    "America/Hermosillo",
    "America/Inuvik",
    "America/Mazatlan",
    "America/Merida",
    "America/Rainy_River",
    "America/Santa_Isabel",
    "America/Tijuana",
    "America/Vancouver",
    "America/Winnipeg",
    "America/Yellowknife",
    "Asia/Choibalsan",
    "Asia/Manila",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Atlantic/Madeira",
    "Canada/Central",
    "Canada/Mountain",
    "Canada/Pacific",
    "Cuba",
    "EET",
    "Europe/Chisinau",
    "Europe/Lisbon",
    "Europe/Tiraspol",
    "Iran",
    "Mexico/BajaNorte",
    "Mexico/BajaSur",
    "Portugal",
    "WET",
];

/// Zones that came in these versions, so that one of the two may lack them.
const ADDED: &[&str] = &["America/Coyhaique"];

pub fn check(compared: &Compared, same_version: bool, what: &str) {
    // This machine's own zone is a file in Python's directory, and no name of the database.
    let lacks = compared.unknown.iter().filter(|name| *name != "localtime");
    let lacks: Vec<_> = lacks.filter(|name| same_version || !ADDED.contains(&name.as_str())).collect();
    let differ = compared.differ.iter().filter(|(zone, _)| same_version || !CHANGED.contains(&zone.as_str()));
    let differ: Vec<_> = differ.map(|(zone, rows)| format!("{zone} ({} rows): {}", rows.len(), rows[0])).collect();
    if !same_version {
        eprintln!(
            "{what} is of another version than Python's; differing: {:?}",
            compared.differ.keys().collect::<Vec<_>>()
        );
    }
    let versions = if same_version { "" } else { " (if NEWS of tzdata says so, it belongs in the list of the test)" };
    assert!(lacks.is_empty(), "{what} lacks {lacks:?}{versions}");
    assert!(differ.is_empty(), "{what} differs{versions}:\n{}", differ.join("\n"));
}
