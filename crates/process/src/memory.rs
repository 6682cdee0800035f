//! The memory of a process group.

/// Resident bytes of all processes of a group together; memory that they share counts for each. `None` without a `/proc`, or when
/// there is no such process.
#[cfg(target_os = "linux")]
pub(crate) fn resident(group: i32) -> Option<u64> {
    let mut sum = None;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) else { continue };
        // Processes end at any time.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
        // The name may hold anything: fields are counted from its end.
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        if fields.nth(2).and_then(|field| field.parse().ok()) != Some(group) {
            continue;
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/status")) else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: u64 = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        sum = Some(sum.unwrap_or_default() + kib * 1024);
    }
    sum
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn resident(_: i32) -> Option<u64> {
    None
}
