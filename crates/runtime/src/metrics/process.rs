//! What the process itself costs, read from the kernel when it is asked for: the names of Prometheus' process collector.
//!
//! `go_gc_heap_live_bytes` is among them because upstream's performance suite insists on it. There is no Go heap here;
//! it shows the anonymous resident memory, which is the heap and the stacks.

use std::{collections::BTreeMap, fs, path::Path};

use super::{
    family::{About, Kind},
    page::Sheet,
};
use crate::settings::MetricsProfile;

/// The unit of times in `/proc/<pid>/stat`; the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

const FAMILIES: &[(&str, Kind, &str)] = &[
    (
        "process_cpu_seconds_total",
        Kind::Counter,
        "Total user and system CPU time spent in seconds.",
    ),
    (
        "process_max_fds",
        Kind::Gauge,
        "Maximum number of open file descriptors.",
    ),
    ("process_open_fds", Kind::Gauge, "Number of open file descriptors."),
    (
        "process_resident_memory_bytes",
        Kind::Gauge,
        "Resident memory size in bytes.",
    ),
    (
        "process_start_time_seconds",
        Kind::Gauge,
        "Start time of the process since unix epoch in seconds.",
    ),
    (
        "process_virtual_memory_bytes",
        Kind::Gauge,
        "Virtual memory size in bytes.",
    ),
    (
        "process_virtual_memory_max_bytes",
        Kind::Gauge,
        "Maximum amount of virtual memory available in bytes.",
    ),
    (
        "process_network_receive_bytes_total",
        Kind::Counter,
        "Number of bytes received by the process over the network.",
    ),
    (
        "process_network_transmit_bytes_total",
        Kind::Counter,
        "Number of bytes sent by the process over the network.",
    ),
    (
        "go_gc_heap_live_bytes",
        Kind::Gauge,
        "Anonymous resident memory in bytes, under the name of Go's live heap.",
    ),
];

pub(super) fn families() -> impl Iterator<Item = About> {
    FAMILIES
        .iter()
        .map(|(name, kind, help)| About::new(*name, help, *kind, Vec::new(), MetricsProfile::Minimal))
}

/// What the kernel tells. Where there is no `/proc` there is nothing.
pub(super) fn sheets() -> Vec<Sheet> {
    let told = read(Path::new("/proc"));
    families()
        .filter_map(|about| {
            let value = told.get(about.name.as_ref())?;
            let mut text = String::new();
            about.sample::<&str>(&mut text, &[], *value);
            Some(Sheet::of(about, text))
        })
        .collect()
}

fn read(proc: &Path) -> BTreeMap<&'static str, f64> {
    let text = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
    let mut told = of_stat(&text("self/stat"), &text("stat"));
    told.extend(of_status(&text("self/status")));
    told.extend(of_limits(&text("self/limits")));
    told.extend(of_network(&text("self/net/netstat")));
    if let Ok(open) = fs::read_dir(proc.join("self/fd")) {
        // Reading the directory holds one open itself.
        let open = u32::try_from(open.count().saturating_sub(1)).unwrap_or_default();
        told.insert("process_open_fds", f64::from(open));
    }
    told
}

/// CPU time and start; `/proc/<pid>/stat` after the command, which may hold anything but ends at the last bracket.
fn of_stat(stat: &str, system: &str) -> BTreeMap<&'static str, f64> {
    let mut told = BTreeMap::new();
    let fields: Vec<f64> = match stat.rsplit_once(')') {
        Some((_, rest)) => rest
            .split_whitespace()
            .map(|field| field.parse().unwrap_or_default())
            .collect(),
        None => Vec::new(),
    };
    if let (Some(user), Some(kernel)) = (fields.get(11), fields.get(12)) {
        told.insert("process_cpu_seconds_total", (user + kernel) / TICKS_PER_SECOND);
    }
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "));
    let boot: Option<f64> = boot.and_then(|boot| boot.trim().parse().ok());
    if let (Some(boot), Some(start)) = (boot, fields.get(19)) {
        told.insert("process_start_time_seconds", boot + start / TICKS_PER_SECOND);
    }
    told
}

/// Memory, told in kibibytes.
fn of_status(status: &str) -> BTreeMap<&'static str, f64> {
    let names = [
        ("VmRSS:", "process_resident_memory_bytes"),
        ("VmSize:", "process_virtual_memory_bytes"),
        ("RssAnon:", "go_gc_heap_live_bytes"),
    ];
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes * 1024.0)
    };
    names
        .into_iter()
        .filter_map(|(key, name)| Some((name, value(key)?)))
        .collect()
}

/// Soft limits; unlimited is the largest number, as client_golang has it.
fn of_limits(limits: &str) -> BTreeMap<&'static str, f64> {
    let names = [
        ("Max open files", "process_max_fds"),
        ("Max address space", "process_virtual_memory_max_bytes"),
    ];
    let value = |key: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(key))?;
        match line.split_whitespace().next()? {
            "unlimited" => Some(18_446_744_073_709_552_000.0),
            number => number.parse().ok(),
        }
    };
    names
        .into_iter()
        .filter_map(|(key, name)| Some((name, value(key)?)))
        .collect()
}

/// Bytes in and out: a line of names and a line of numbers.
fn of_network(netstat: &str) -> BTreeMap<&'static str, f64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("IpExt:"));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else {
        return BTreeMap::new();
    };
    let pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs
        .filter_map(|(name, number)| {
            let name = match name {
                "InOctets" => "process_network_receive_bytes_total",
                "OutOctets" => "process_network_transmit_bytes_total",
                _ => return None,
            };
            Some((name, number.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_proc_5_describes_them() {
        let stat = "42 (a) b) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 4 0 5000 1000 200 18446744073709551615";
        let expected = BTreeMap::from([
            ("process_cpu_seconds_total", 3.0),
            ("process_start_time_seconds", 1_000_050.0),
        ]);
        assert_eq!(of_stat(stat, "cpu 1 2\nbtime 1000000\n"), expected);
        let status = "Name:\tx\nVmSize:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\n";
        let expected = BTreeMap::from([
            ("process_resident_memory_bytes", 1_048_576.0),
            ("process_virtual_memory_bytes", 2_097_152.0),
            ("go_gc_heap_live_bytes", 524_288.0),
        ]);
        assert_eq!(of_status(status), expected);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        let expected = BTreeMap::from([
            ("process_max_fds", 1024.0),
            ("process_virtual_memory_max_bytes", 18_446_744_073_709_552_000.0),
        ]);
        assert_eq!(of_limits(limits), expected);
        let netstat = "TcpExt: A\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 700 800\n";
        let expected = BTreeMap::from([
            ("process_network_receive_bytes_total", 700.0),
            ("process_network_transmit_bytes_total", 800.0),
        ]);
        assert_eq!(of_network(netstat), expected);
    }

    #[test]
    fn where_nothing_can_be_read_nothing_is_told() {
        assert_eq!(read(Path::new("/nowhere")), BTreeMap::new());
    }
}
