//! Files of the configuration; service files as libpq has them.

use linchpin_kit::ToolError;
use std::path::Path;

/// Maximum bytes of a password, service or configuration file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The text of a file.
pub(super) fn read_file(path: &Path) -> Result<String, ToolError> {
    use std::io::Read;
    let failed = |e: std::io::Error| ToolError::new(format!("{} cannot be read: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(ToolError::new(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display())));
    }
    Ok(text)
}

/// The password in a file.
pub(super) fn first_line(path: &Path) -> Result<String, ToolError> {
    match read_file(path)?.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(ToolError::new(format!("{}: the first line is empty", path.display()))
            .hint("The first line is the password.")),
    }
}

/// The parameters of a service.
pub(super) fn service_parameters(service: &str, file: Option<&Path>) -> Result<Vec<(String, String)>, ToolError> {
    let file = file.ok_or_else(|| ToolError::new("No service file found").hint("Set PGSERVICEFILE."))?;
    let text = read_file(file)?;
    let mut found = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            if found.is_some() {
                break;
            }
            found = (section == service).then(Vec::new);
        } else if let (Some(found), Some((key, value))) = (&mut found, line.split_once('=')) {
            found.push((key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    found.ok_or_else(|| ToolError::new(format!("{} has no service {service}", file.display())))
}
