//! `cargo xtask cluster`: a cluster that stays until it is taken down.
//!
//! `up` starts a copy of this program in the background which holds the cluster; `down` ends that copy, and the rig's
//! guard ends everything else. Nothing here needs kubectl.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use rig::build::KubernetesVersion;
use rustix::process::{Pid, Signal, kill_process};

const STOPPING_LIMIT: Duration = Duration::from_secs(30);

/// What to do with clusters.
#[derive(Subcommand)]
pub(crate) enum Cluster {
    /// Starts a cluster and leaves it running; prints the KUBECONFIG to use
    Up(Up),
    /// Ends a cluster and removes its files
    Down {
        /// Which one
        #[arg(long, default_value = "default")]
        name: String,
    },
    /// Shows the running clusters
    List,
    /// Holds a cluster in the foreground (what `up` runs in the background)
    #[command(hide = true)]
    Hold(Up),
}

/// The cluster wanted.
#[derive(Args, Clone)]
pub(crate) struct Up {
    /// A name, when there are to be several
    #[arg(long, default_value = "default")]
    name: String,
    /// The release of Kubernetes, such as 1.34.4
    #[arg(long, default_value_t = KubernetesVersion::default())]
    kubernetes: KubernetesVersion,
    /// Folders with CustomResourceDefinitions to install
    #[arg(long = "crds")]
    crds: Vec<PathBuf>,
}

/// Runs the task.
pub(crate) fn run(task: Cluster) -> Result<ExitCode> {
    match task {
        Cluster::Up(up) => self::up(&up)?,
        Cluster::Down { name } => down(&name)?,
        Cluster::List => list()?,
        Cluster::Hold(up) => hold(&up)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The files of a cluster: `kubeconfig` and logs (the rig's), and `pid` once it is ready. Beside the folder lie the holder's
/// log and a lock that it has as long as it lives: a number in a file alone may be anybody's after a crash.
fn state(name: &str) -> Result<PathBuf> {
    if name.is_empty() || name.contains(['/', '.']) {
        bail!("{name:?} cannot name a cluster: use letters, digits and dashes");
    }
    Ok(rig::cache::root()?.join("clusters").join(name))
}

fn up(up: &Up) -> Result<()> {
    let state = state(&up.name)?;
    if held(&state) {
        bail!(
            "cluster {0:?} is already up; `cargo xtask cluster down --name {0}` ends it",
            up.name
        );
    }
    // In the foreground, where its progress is seen.
    rig::build::control_plane(&up.kubernetes)?;
    fs::create_dir_all(state.parent().unwrap_or(&state))?;
    let _ = fs::remove_dir_all(&state);
    let log = state.with_extension("log");
    let output = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "cluster",
        "hold",
        "--name",
        &up.name,
        "--kubernetes",
        &up.kubernetes.to_string(),
    ]);
    for dir in &up.crds {
        command.arg("--crds").arg(dir);
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .process_group(0)
        .spawn()
        .context("starting the process that holds the cluster")?;
    while holder(&state).is_none() {
        if let Some(status) = child.try_wait()? {
            bail!("the cluster did not start ({status}):\n{}", fs::read_to_string(&log)?);
        }
        thread::sleep(Duration::from_millis(50));
    }
    show(&format!("export KUBECONFIG={}", state.join("kubeconfig").display()));
    Ok(())
}

fn hold(up: &Up) -> Result<()> {
    let state = state(&up.name)?;
    let lock = File::create(state.with_extension("lock"))?;
    lock.try_lock()
        .with_context(|| format!("cluster {:?} is held by another process", up.name))?;
    let cluster = rig::Cluster::builder()
        .kubernetes(up.kubernetes.clone())
        .kwok(Vec::new())
        .state_dir(state.clone())
        .start()?;
    for dir in &up.crds {
        install(&cluster, dir)?;
    }
    fs::write(state.join("pid"), std::process::id().to_string())?;
    // Until a signal ends this process; the guard does the rest.
    loop {
        thread::park();
    }
}

/// Installs every YAML file of a folder.
pub(crate) fn install(cluster: &rig::Cluster, dir: &Path) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .with_context(|| format!("reading {}", dir.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
    });
    files.sort();
    for file in files {
        let yaml = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        cluster
            .client()
            .install_crd(&yaml)
            .with_context(|| format!("installing {}", file.display()))?;
    }
    Ok(())
}

fn down(name: &str) -> Result<()> {
    let state = state(name)?;
    let Some(pid) = holder(&state) else {
        bail!("there is no cluster {name:?}; `cargo xtask cluster list` shows those there are")
    };
    kill_process(pid, Signal::TERM)?;
    let deadline = rig::Deadline::within(STOPPING_LIMIT);
    while state.exists() {
        deadline.pause(
            "the cluster's end",
            format!("{} is still there", state.display()),
            Duration::from_millis(50),
        )?;
    }
    for file in ["log", "lock"] {
        let _ = fs::remove_file(state.with_extension(file));
    }
    Ok(())
}

fn list() -> Result<()> {
    let clusters = rig::cache::root()?.join("clusters");
    let mut states: Vec<_> = fs::read_dir(&clusters)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| holder(path).is_some())
        .collect();
    states.sort();
    for state in states {
        let name = state.file_name().unwrap_or_default().to_string_lossy().into_owned();
        show(&format!("{name}\tKUBECONFIG={}", state.join("kubeconfig").display()));
    }
    Ok(())
}

/// The process that holds the cluster, if it lives and the cluster is ready.
fn holder(state: &Path) -> Option<Pid> {
    if !held(state) {
        return None;
    }
    fs::read_to_string(state.join("pid"))
        .ok()?
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
}

fn held(state: &Path) -> bool {
    File::open(state.with_extension("lock")).is_ok_and(|lock| lock.try_lock().is_err())
}

#[allow(clippy::print_stdout, reason = "this is what the command was asked for")]
fn show(line: &str) {
    println!("{line}");
}
