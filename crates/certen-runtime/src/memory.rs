//! How much memory there is for the arrays of a run.
//!
//! Large allocations succeed even where there is no memory for them, and the process is killed when it fills them. So
//! what a run needs is compared with what is free before it starts.

use std::fs;
use std::path::Path;

/// How many bytes can be filled without swapping: what the system has free, or what the limit of the process's control
/// group (version 2) leaves if that is less. None where the system does not say.
pub fn available_bytes() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    match (system, control_group()) {
        (Some(system), Some(group)) => Some(system.min(group)),
        (system, group) => system.or(group),
    }
}

/// From this size on, huge pages are asked for.
pub(crate) const HUGE_FROM: usize = 4 << 20;

/// Asks the system for huge pages for memory that was just allocated, if it is large. To touch it for the first time takes
/// a tenth of the time then.
///
/// # Safety
/// So many bytes from there are allocated.
pub(crate) unsafe fn ask_for_huge_pages(start: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    if bytes >= HUGE_FROM {
        const PAGE: usize = 4096;
        let before = start.addr().wrapping_neg() % PAGE;
        // SAFETY: whole pages of what is allocated. Where the system has no huge pages nothing happens.
        unsafe { libc::madvise(start.add(before).cast(), (bytes - before) / PAGE * PAGE, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, bytes);
}

/// The line `MemAvailable:    1234 kB`.
fn mem_available(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemAvailable:")?.checked_mul(1024)
}

/// The number after a name that begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// What the tightest limit among the process's group and the groups around it leaves.
fn control_group() -> Option<u64> {
    let root = Path::new("/sys/fs/cgroup");
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = root.join(own);
    own.ancestors().take_while(|group| group.starts_with(root)).filter_map(left_in_group).min()
}

/// What a group's limit leaves; none if it has no limit. Cached file contents that no process uses are given up for others,
/// so they do not count as used.
fn left_in_group(group: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let current: u64 = read("memory.current")?.trim().parse().ok()?;
    let reclaimable = read("memory.stat").and_then(|text| field(&text, "inactive_file ")).unwrap_or(0);
    Some(limit.saturating_sub(current.saturating_sub(reclaimable)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "MemTotal:  100 kB\nMemAvailable:     42 kB\nSwapTotal: 7 kB\n";
        assert_eq!(mem_available(text), Some(42 * 1024));
        assert_eq!(mem_available("MemTotal: 100 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many\n"), None);
        assert_eq!(field("active_file 1\ninactive_file 2\n", "inactive_file "), Some(2));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_tells_what_is_free() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 0));
    }
}
