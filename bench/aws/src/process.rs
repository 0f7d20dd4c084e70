//! What this process has cost so far: processor time and memory, as the kernel counts them.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks in a second, in which the kernel tells processor time on every Linux there is.
const TICKS: u64 = 100;

/// A process at a moment.
pub(crate) struct Usage {
    /// All threads together.
    pub(crate) processor: Duration,
    pub(crate) resident_mib: u64,
    pub(crate) peak_mib: u64,
}

impl Usage {
    pub(crate) fn now() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
        let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
        Ok(Self {
            processor: processor(&stat).context("/proc/self/stat has no utime and stime")?,
            resident_mib: kibibytes(&status, "VmRSS:").context("/proc/self/status has no VmRSS")? / 1024,
            peak_mib: kibibytes(&status, "VmHWM:").context("/proc/self/status has no VmHWM")? / 1024,
        })
    }
}

fn kibibytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The name of the program, in parentheses, may hold blanks: fields are counted from behind it.
fn processor(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let status = "Name:\taws bench\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n";
        assert_eq!(kibibytes(status, "VmRSS:"), Some(102_400));
        assert_eq!(kibibytes(status, "VmSwap:"), None);
        let stat = "12 (a b) c) S 1 12 12 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 99 1 1";
        assert_eq!(processor(stat), Some(Duration::from_secs(3)));
    }
}
