//! What does a process use? Its greatest memory and its processor time, from `/proc`.

use std::fs;

use rustix::param::clock_ticks_per_second;

/// A process being measured.
pub(crate) struct Usage {
    pid: u32,
    cpu_before: f64,
}

impl Usage {
    /// From now on.
    pub(crate) fn of(pid: u32) -> Self {
        Self {
            pid,
            cpu_before: cpu_seconds(pid).unwrap_or_default(),
        }
    }

    /// Megabytes at its largest, and processor seconds, both since its start.
    pub(crate) fn whole(pid: u32) -> (f64, f64) {
        (
            peak_megabytes(pid).unwrap_or_default(),
            cpu_seconds(pid).unwrap_or_default(),
        )
    }

    /// Megabytes at its largest so far, and processor seconds since the beginning of the measurement.
    pub(crate) fn finish(&self) -> (f64, f64) {
        let cpu = cpu_seconds(self.pid).unwrap_or_default() - self.cpu_before;
        (peak_megabytes(self.pid).unwrap_or_default(), cpu)
    }
}

fn peak_megabytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024.0)
}

fn cpu_seconds(pid: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may hold anything, so the fields are counted from its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    #[allow(clippy::cast_precision_loss, reason = "a hundred or a thousand")]
    let per_second = clock_ticks_per_second() as f64;
    Some((ticks(11)? + ticks(12)?) / per_second)
}
