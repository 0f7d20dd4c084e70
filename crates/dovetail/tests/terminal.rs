//! `dovetail top` on a real terminal: tmux plays it, keys are typed, the screen is read.
// Clippy sees tests only in test functions; here everything is one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use simulator::{ApiServer, http};

const FIXTURE: &str = "crates/dovetail/tests/fixtures/prod-us";
const NOW: &str = "2026-11-16T15:42:00Z";
/// Nothing here takes long; a machine that builds meanwhile does.
const DEADLINE: Duration = Duration::from_mins(2);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A terminal of so many columns and lines, in which a shell command runs.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn open(width: u16, height: u16, command: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            socket: format!("dovetail-test-{}-{number}", std::process::id()),
        };
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["-x", &width, "-y", &height];
        let started = terminal.tmux(&[&["-f", "/dev/null", "-u", "new-session", "-d"], &size[..], &[command]].concat());
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket])
            .args(arguments)
            .env_remove("TMUX")
            .current_dir(root());
        tmux.output().unwrap_or_else(|error| {
            panic!("tmux is needed for tests of the terminal view (apt-get install tmux): {error}")
        })
    }

    /// Types keys as tmux names them.
    fn press(&self, keys: &[&str]) {
        assert!(self.tmux(&[&["send-keys"], keys].concat()).status.success(), "{keys:?}");
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// The screen once it is as wanted.
    fn once(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(began.elapsed() < DEADLINE, "no {what} on\n{screen}");
            thread::sleep(Duration::from_millis(30));
        }
    }

    fn shows(&self, text: &str) -> String {
        self.once(text, |screen| screen.contains(text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}

/// A shell that says what was before and after, and whether keys come line by line again. The program's process is
/// written down in a file.
fn around(arguments: &str, pid: &Path) -> String {
    let (program, pid) = (env!("CARGO_BIN_EXE_dovetail"), pid.display());
    let inner = format!("sh -c \"echo \\$\\$ > {pid}; exec {program} top {arguments}\"");
    format!(
        "sh -c 'export LC_ALL=C.UTF-8 HOME=/nonexistent; echo before; {inner}; echo ended with $?; \
         stty -a | grep -q -- \"-icanon\" && echo keys || echo lines; exec cat'"
    )
}

/// A terminal in which the program runs, and its process.
fn top(width: u16, height: u16, arguments: &str) -> (Terminal, tempfile::NamedTempFile) {
    let pid = tempfile::NamedTempFile::new().unwrap();
    let terminal = Terminal::open(width, height, &around(arguments, pid.path()));
    (terminal, pid)
}

/// By this name they are left out where there is no tmux.
mod on_a_terminal {
    use super::*;

    #[test]
    fn a_person_looks_around_in_a_dump_and_leaves_the_terminal_as_it_was() {
        let (terminal, _) = top(120, 40, &format!("--from {FIXTURE} --at {NOW}"));
        let screen = terminal.shows("delete now");
        assert!(
            screen.contains("15 nodes") && screen.contains("dump of 15:42 UTC"),
            "{screen}"
        );
        assert!(!screen.contains("before"), "the shell is out of the way:\n{screen}");
        terminal.press(&["/", "2-84", "Enter", "Enter"]);
        terminal.shows("if removed");
        terminal.press(&["x"]);
        terminal.shows("spend per month");
        terminal.press(&["w"]);
        terminal.shows("stays although");
        terminal.press(&["Escape"]);
        terminal.once("the node again", |screen| !screen.contains("stays although"));
        terminal.press(&["y"]);
        terminal.shows("kind: Node");
        terminal.press(&["d"]);
        terminal.shows("Allocatable:");
        terminal.press(&["e"]);
        terminal.shows("in the dump");
        terminal.press(&["Escape", "p"]);
        terminal.shows("smallest fix");
        terminal.press(&["a"]);
        terminal.shows("pool data");
        terminal.press(&["Escape"]);
        terminal.press(&["t"]);
        terminal.shows("no decisions in");
        terminal.press(&[":", "cost --by namespace", "Enter"]);
        terminal.shows("NAMESPACE  ");
        terminal.press(&["?"]);
        terminal.shows("top never changes the cluster");
        terminal.press(&["Escape", "q"]);
        let after = terminal.shows("ended with 0");
        assert!(after.contains("before"), "what was there is there again:\n{after}");
        terminal.shows("lines");
    }

    #[test]
    fn a_window_that_changes_its_size_is_drawn_anew_and_too_small_is_said() {
        let flags = format!("--from {FIXTURE} --at {NOW} --ascii --color never");
        let (terminal, pid) = top(120, 40, &flags);
        let screen = terminal.shows("delete now");
        assert!(screen.is_ascii(), "{screen}");
        terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
        terminal.once("narrow columns", |screen| screen.contains(" CAP AGE NEXT"));
        terminal.tmux(&["resize-window", "-x", "60", "-y", "20"]);
        terminal.shows("needs 80x24, has 60x20");
        terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
        terminal.shows("NEXT, OR WHY IT STAYS");
        // Somebody ends it from outside.
        let process = fs::read_to_string(pid.path()).unwrap();
        assert!(
            Command::new("kill")
                .args(["-TERM", process.trim()])
                .status()
                .unwrap()
                .success()
        );
        terminal.shows("ended with 0");
        terminal.shows("lines");
    }

    #[test]
    fn keys_are_answered_while_the_cluster_is_not() {
        // Somebody who takes calls and never says anything.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        fs::write(&config, http::kubeconfig(silent.local_addr().unwrap())).unwrap();
        let (terminal, _) = top(80, 24, &format!("--kubeconfig {}", config.display()));
        terminal.shows("reading…");
        terminal.press(&["?"]);
        terminal.shows("top never changes the cluster");
        terminal.press(&["Escape", "q"]);
        terminal.shows("ended with 0");
    }

    #[test]
    fn a_cluster_that_cannot_be_read_at_all_is_an_error_on_a_terminal_as_it_was() {
        let (terminal, _) = top(80, 24, "--kubeconfig /nonexistent/config");
        let screen = terminal.shows("ended with 4");
        assert!(screen.contains("error   ") && screen.contains("next    "), "{screen}");
        terminal.shows("lines");
    }

    #[test]
    fn a_node_that_comes_to_a_live_cluster_comes_to_the_screen() {
        let (server, config, _stop) = live();
        let flags = format!("--kubeconfig {}", config.path().join("config").display());
        let (terminal, _) = top(120, 40, &flags);
        let screen = terminal.shows("delete now");
        assert!(
            screen.contains("live, ") && !screen.contains("ip-10-0-200-1"),
            "{screen}"
        );
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": "ip-10-0-200-1", "labels": { "node.kubernetes.io/instance-type": "m6i.large" } },
            "spec": { "providerID": "aws:///us-east-1a/i-0200" },
            "status": { "allocatable": { "cpu": "2", "memory": "8Gi", "pods": "29" } },
        });
        server.create(node).unwrap();
        terminal.press(&["N"]);
        terminal.shows("ip-10-0-200-1");
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "DisruptionBlocked",
            "metadata": { "name": "ip-10-0-200-1.1", "namespace": "default" },
            "involvedObject": { "apiVersion": "v1", "kind": "Node", "name": "ip-10-0-200-1" },
            "message": "nobody owns it", "source": { "component": "karpenter" }, "lastTimestamp": NOW,
        });
        server.create(event).unwrap();
        terminal.press(&["/", "200-1", "Enter", "e"]);
        terminal.shows("nobody owns it");
        // What no decision reads is in the YAML: it is the server's, not the snapshot's.
        terminal.press(&["y"]);
        terminal.shows("resourceVersion: ");
        terminal.press(&["q"]);
        terminal.shows("ended with 0");
    }
}

/// The fixture on an API server that a thread serves until what comes last is dropped.
fn live() -> (ApiServer, tempfile::TempDir, mpsc::Sender<()>) {
    let server = ApiServer::new(|| NOW.parse().unwrap());
    let read = |file: PathBuf| -> Value { serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap() };
    let definitions = fs::read_dir(root().join("crates/api/crds")).unwrap();
    for file in definitions {
        server.create(read(file.unwrap().path())).unwrap();
    }
    for name in ["nodepools", "nodes", "nodeclaims", "pods", "pdbs", "daemonsets"] {
        let list = read(root().join(FIXTURE).join(format!("{name}.yaml")));
        for object in list["items"].as_array().unwrap() {
            let mut object = object.clone();
            object["metadata"].as_object_mut().unwrap().remove("uid");
            server.create(object).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let config = http::kubeconfig(listener.local_addr().unwrap());
    fs::write(folder.path().join("config"), config).unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let served = server.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let serving = tokio::spawn(http::serve(served, listener));
            tokio::task::spawn_blocking(move || stopped.recv()).await.unwrap().ok();
            serving.abort();
        });
    });
    (server, folder, stop)
}
