//! Password files, as libpq has them.

use super::service::read_file;
use super::target::{Host, SOCKETS, Target};
use linchpin_kit::Secret;
use std::path::Path;

impl Target {
    /// What a password file has for each of the hosts.
    pub(super) fn passwords_from_file(&self, path: Option<&Path>, warnings: &mut Vec<String>) -> Vec<Option<Secret>> {
        let Some(path) = path.filter(|path| path.exists()) else { return Vec::new() };
        if let Some(why) = too_open(path) {
            warnings.push(format!("Warning: {} is ignored: {why}", path.display()));
            return Vec::new();
        }
        let text = match read_file(path) {
            Ok(text) => text,
            Err(fault) => {
                warnings.push(format!("Warning: {}", fault.message()));
                return Vec::new();
            }
        };
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(colon_fields).collect();
        self.hosts.iter().map(|host| self.password_for(host, &lines)).collect()
    }

    /// What a password file has for this host.
    fn password_for(&self, host: &Host, lines: &[Vec<(String, bool)>]) -> Option<Secret> {
        let (host, port) = match host {
            Host::Tcp(host, port) => (host.clone(), *port),
            // As libpq has it: a directory where sockets are by default is this machine, another one is itself.
            Host::Unix(directory, port) if SOCKETS.iter().any(|usual| directory == Path::new(usual)) => {
                ("localhost".to_owned(), *port)
            }
            Host::Unix(directory, port) => (directory.to_string_lossy().into_owned(), *port),
        };
        let wanted = [host, port.to_string(), self.database.clone(), self.user.clone()];
        lines.iter().find_map(|fields| {
            let matches = fields.len() == 5
                && fields.iter().zip(&wanted).all(|((field, plain), wanted)| field == wanted || *plain && field == "*");
            matches.then(|| Secret::new(fields[4].0.clone()))
        })
    }
}

/// The fields of a line of a password file, and whether each was written without escapes.
fn colon_fields(line: &str) -> Vec<(String, bool)> {
    let mut fields = vec![(String::new(), true)];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            ':' => fields.push((String::new(), true)),
            '\\' => {
                fields[last].0.extend(letters.next());
                fields[last].1 = false;
            }
            letter => fields[last].0.push(letter),
        }
    }
    fields
}

#[cfg(unix)]
fn too_open(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| "it is readable by others; run chmod 600 on it".to_owned())
}

#[cfg(not(unix))]
fn too_open(_: &Path) -> Option<String> {
    None
}
