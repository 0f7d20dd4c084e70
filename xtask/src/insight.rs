//! `cargo xtask bench insight`: how long does an answer about a large cluster take, reading its dump included?
//!
//! The dump is made up, but as long as what kubectl prints of such a cluster; the program is built as for every benchmark.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use workloads::printed::{self, Size, TAKEN_AT};

use crate::{race::usage::Usage, run};

/// What to ask about.
#[derive(Args)]
pub(crate) struct Insight {
    /// Nodes of the cluster
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    /// Its pods
    #[arg(long, default_value_t = 100_000)]
    pods: usize,
    /// Which of such clusters
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What the dump is written as
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// Our binary; one is built when none is given
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Ask each question this often and report the fastest
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Rows as JSON lines
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// As `kubectl get -o json` prints it
    Json,
    /// The same without a blank, as `jq -c` leaves it
    Compact,
    /// As `kubectl get -o yaml` prints it
    Yaml,
}

impl Format {
    fn file(self) -> &'static str {
        match self {
            Self::Json => "dump.json",
            Self::Compact => "compact.json",
            Self::Yaml => "dump.yaml",
        }
    }
}

/// One question.
#[derive(Debug, Serialize)]
struct Row {
    question: String,
    /// From start to end.
    seconds: f64,
    /// Of all threads.
    cpu_seconds: f64,
    megabytes: f64,
    nodes: usize,
    pods: usize,
    dump_megabytes: f64,
    /// Of the machine, when it was asked: other work makes answers slower.
    load: f64,
}

pub(crate) fn run(task: &Insight) -> Result<ExitCode> {
    let binary = match &task.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let (dump, pod, node) = dump(task)?;
    let bytes = fs::metadata(&dump)?.len();
    #[allow(clippy::cast_precision_loss, reason = "printed to a whole number")]
    let dump_megabytes = bytes as f64 / 1e6;
    let mut out = std::io::stdout();
    if !task.json {
        writeln!(
            out,
            "{} nodes, {} pods, {dump_megabytes:.0} MB of {}; the fastest of {}\n{:<40} {:>8} {:>8} {:>8} {:>6}",
            task.nodes,
            task.pods,
            task.format.file(),
            task.repeat,
            "question",
            "seconds",
            "cpu s",
            "MB",
            "load"
        )?;
    }
    let questions = [
        "status".to_owned(),
        format!("why pod {pod}"),
        format!("why node {node}"),
        "why nodepool general".to_owned(),
        "cost".to_owned(),
        "cost --by namespace".to_owned(),
        "plan".to_owned(),
        "budgets".to_owned(),
    ];
    for question in questions {
        let rows: Result<Vec<Row>> = (0..task.repeat.max(1))
            .map(|_| ask(task, &binary, &dump, &question, dump_megabytes))
            .collect();
        let fastest = rows?.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let row = fastest.context("asked at least once")?;
        if task.json {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        } else {
            let Row {
                question,
                seconds,
                cpu_seconds,
                megabytes,
                load,
                ..
            } = row;
            writeln!(
                out,
                "{question:<40} {seconds:>8.2} {cpu_seconds:>8.2} {megabytes:>8.0} {load:>6.1}"
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn built() -> Result<PathBuf> {
    run::run(run::cargo().args(["build", "--profile", "measure", "--quiet", "--package", "dovetail"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| run::root().join("target"), PathBuf::from);
    Ok(target.join("measure/dovetail"))
}

/// The dump, written unless it is there from the last time; and what to ask about in it.
fn dump(task: &Insight) -> Result<(PathBuf, String, String)> {
    let size = Size {
        nodes: task.nodes,
        pods: task.pods,
        seed: task.seed,
    };
    let directory = run::root().join(format!("target/insight/{}-{}-{}", task.nodes, task.pods, task.seed));
    fs::create_dir_all(&directory)?;
    let printed = directory.join("dump.json");
    let named = directory.join("named");
    if !named.exists() {
        let mut file = BufWriter::new(File::create(&printed)?);
        let (pod, node) = printed::write(&mut file, size)?;
        file.flush()?;
        fs::write(&named, format!("{pod} {node}"))?;
    }
    let (pod, node) = fs::read_to_string(&named)?
        .split_once(' ')
        .map(|(pod, node)| (pod.to_owned(), node.to_owned()))
        .context("two names")?;
    let wanted = directory.join(task.format.file());
    if !wanted.exists() {
        converted(task.format, &printed, &wanted)?;
    }
    Ok((wanted, pod, node))
}

fn converted(format: Format, from: &Path, to: &Path) -> Result<()> {
    let mut list: serde_json::Value = serde_json::from_slice(&fs::read(from)?)?;
    let mut out = BufWriter::new(File::create(to)?);
    match format {
        Format::Json => bail!("{} is missing", to.display()),
        Format::Compact => serde_json::to_writer(&mut out, &list)?,
        Format::Yaml => {
            out.write_all(b"apiVersion: v1\nitems:\n")?;
            for item in list["items"].as_array_mut().into_iter().flatten() {
                yaml::item(&mut out, item)?;
            }
            out.write_all(b"kind: List\nmetadata:\n  resourceVersion: \"\"\n")?;
        }
    }
    Ok(out.flush()?)
}

fn ask(task: &Insight, binary: &Path, dump: &Path, question: &str, dump_megabytes: f64) -> Result<Row> {
    let mut command = Command::new(binary);
    command
        .args(question.split(' '))
        .arg("--from")
        .arg(dump)
        .args(["--at", TAKEN_AT]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let load = load();
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures")]
    let began = Instant::now();
    let mut child = command.spawn().context("starting the program")?;
    let (mut megabytes, mut cpu_seconds) = (0.0, 0.0);
    let status = loop {
        // What a process used is gone with it, so it is looked at while it runs.
        let (peak, cpu) = Usage::whole(child.id());
        (megabytes, cpu_seconds) = (f64::max(megabytes, peak), f64::max(cpu_seconds, cpu));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        let mut told = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut told)?;
        }
        bail!("dovetail {question} ended with {status}: {told}");
    }
    Ok(Row {
        question: question.to_owned(),
        seconds,
        cpu_seconds,
        megabytes,
        nodes: task.nodes,
        pods: task.pods,
        dump_megabytes,
        load,
    })
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or_default()
}

/// YAML as kubectl prints it: block style, keys in order, texts quoted only where they would be something else.
mod yaml {
    use std::io::{self, Write};

    use serde_json::Value;

    /// An item of the list.
    pub(super) fn item(out: &mut impl Write, value: &Value) -> io::Result<()> {
        out.write_all(b"-")?;
        nested(out, value, 2, true)
    }

    fn pad(out: &mut impl Write, columns: usize) -> io::Result<()> {
        write!(out, "{:columns$}", "")
    }

    /// What follows a dash or a key; `is_item` goes on in the line of the dash.
    fn nested(out: &mut impl Write, value: &Value, columns: usize, is_item: bool) -> io::Result<()> {
        match value {
            Value::Object(fields) if fields.is_empty() => out.write_all(b" {}\n"),
            Value::Array(items) if items.is_empty() => out.write_all(b" []\n"),
            Value::Object(fields) => {
                if !is_item {
                    out.write_all(b"\n")?;
                }
                for (at, (key, value)) in fields.iter().enumerate() {
                    match (at, is_item) {
                        (0, true) => out.write_all(b" ")?,
                        _ => pad(out, columns)?,
                    }
                    write!(out, "{}:", text(key))?;
                    // Lists of kubectl stand under their key, not indented.
                    let deeper = if value.is_array() { columns } else { columns + 2 };
                    nested(out, value, deeper, false)?;
                }
                Ok(())
            }
            Value::Array(items) => {
                if !is_item {
                    out.write_all(b"\n")?;
                }
                for item in items {
                    pad(out, columns)?;
                    out.write_all(b"-")?;
                    nested(out, item, columns + 2, true)?;
                }
                Ok(())
            }
            Value::String(value) => writeln!(out, " {}", text(value)),
            other => writeln!(out, " {other}"),
        }
    }

    fn text(value: &str) -> String {
        let is_plain = !value.is_empty()
            && value
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_./@".contains(&byte))
            && value.starts_with(|sign: char| sign.is_ascii_alphabetic() || sign == '/')
            && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
                .contains(&value.to_ascii_lowercase().as_str());
        if is_plain {
            value.to_owned()
        } else {
            Value::from(value).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_is_written_as_kubectl_does() {
        let mut out = Vec::new();
        yaml::item(&mut out, &json!({"kind": "Pod", "spec": {"args": ["a b", "true", "1"], "none": {}, "tolerations": [{"key": "k", "operator": "Exists"}]}})).unwrap();
        let expected = "- kind: Pod\n  spec:\n    args:\n    - \"a b\"\n    - \"true\"\n    - \"1\"\n    none: {}\n    tolerations:\n    - key: k\n      operator: Exists\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
