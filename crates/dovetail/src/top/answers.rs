//! What takes a while, on threads of its own: looking ahead, explaining nodes, asking commands.

use std::{
    fs::File,
    io::{BufWriter, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};

use tui::{Ahead, Answer, Event, Picture, Question};

use super::{
    News, instant,
    latest::Latest,
    object,
    place::{self, Flags},
};
use crate::{place::Place, plan::threads, source::SourceArgs};

/// Of its time a thread that looks ahead computes one part in so many.
const REST: u32 = 19;
/// What it looks at changes with the time, too.
const OLDEST: Duration = Duration::from_mins(1);
/// A command has so long to answer.
const PATIENCE: Duration = Duration::from_mins(2);

/// Looks ahead from the newest picture, for ever, and rests in between: snapshots of a busy cluster come every second.
pub(super) fn look_ahead(newest: Arc<Latest<Arc<Picture>>>, tell: Sender<News>) {
    thread::spawn(move || {
        let mut last = None;
        loop {
            let picture = newest.take();
            let inputs = picture.snapshot.inputs();
            let began = instant();
            if let Some((known, at)) = &last
                && *known == inputs
                && began.duration_since(*at) < OLDEST
            {
                continue;
            }
            // What the engine cannot look at must not end the view; the list goes on without a future.
            let found = catch_unwind(AssertUnwindSafe(|| Ahead::of(&picture, threads())));
            if let Ok(ahead) = found
                && tell.send(Event::Ahead(Arc::new(ahead)).into()).is_err()
            {
                return;
            }
            last = Some((inputs, began));
            thread::sleep((began.elapsed() * REST).min(OLDEST));
        }
    });
}

/// Who answers questions.
pub(super) struct Answers {
    questions: Sender<(Arc<Picture>, Question)>,
    newest: Option<Arc<Picture>>,
    asking: Arc<Asking>,
    tell: Sender<News>,
}

/// How commands are asked.
struct Asking {
    place: Place,
    flags: Flags,
    is_ascii: bool,
    /// The snapshot on the screen as a file, and which one it is.
    file: Mutex<Option<(u64, tempfile::NamedTempFile)>>,
}

impl Answers {
    pub(super) fn new(source: &SourceArgs, is_ascii: bool, tell: &Sender<News>) -> Self {
        let (questions, asked) = mpsc::channel::<(Arc<Picture>, Question)>();
        let answers = tell.clone();
        thread::spawn(move || {
            for (picture, question) in asked {
                let found = catch_unwind(AssertUnwindSafe(|| tui::answered(&picture, &question, threads())));
                let answer = match found {
                    Ok(answer) => answer.unwrap_or_else(|| Answer::Failed("nobody can tell".to_owned())),
                    Err(_) => Answer::Failed("the engine failed on this question; please report it".to_owned()),
                };
                let event = Event::Answer(picture.serial, question, answer);
                if answers.send(event.into()).is_err() {
                    return;
                }
            }
        });
        Self {
            questions,
            newest: None,
            asking: Arc::new(Asking {
                place: source.place.clone(),
                flags: place::flags(source),
                is_ascii,
                file: Mutex::new(None),
            }),
            tell: tell.clone(),
        }
    }

    /// What questions are about from now on.
    pub(super) fn about(&mut self, picture: &Arc<Picture>) {
        self.newest = Some(Arc::clone(picture));
    }

    /// Asks; the answer comes with the news.
    pub(super) fn ask(&mut self, question: Question) {
        let Some(picture) = self.newest.clone() else {
            return;
        };
        let words = match &question {
            Question::Node(_) | Question::Remove(_) => {
                // A thread that is gone leaves the question open, and the screen says that it is computed.
                let _ = self.questions.send((picture, question));
                return;
            }
            Question::Why { object, width } => {
                let mut words = vec!["why".to_owned()];
                words.extend(object.iter().cloned());
                (words, *width)
            }
            Question::Command { words, width } => (words.clone(), *width),
            Question::Object { .. } | Question::Events { .. } => (Vec::new(), 0),
        };
        let (asking, tell) = (Arc::clone(&self.asking), self.tell.clone());
        thread::spawn(move || {
            let found = match &question {
                Question::Object {
                    kind,
                    name,
                    is_described,
                } => object::text(&asking.place, &picture.snapshot, kind, name, *is_described),
                Question::Events { kind, name, width } => {
                    object::events(&asking.place, &picture.snapshot, kind, name, usize::from(*width))
                }
                _ => asking.command(&picture, &words.0, words.1),
            };
            let answer = match found {
                Ok(text) => Answer::Text(text),
                Err(error) => Answer::Failed(format!("{error:#}")),
            };
            let _ = tell.send(Event::Answer(picture.serial, question, answer).into());
        });
    }
}

/// Commands that answer from a snapshot alone, so that they can be asked about the one on the screen.
const FROM_A_SNAPSHOT: [&str; 6] = ["status", "why", "explain", "plan", "whatif", "cost"];
/// Commands that know nothing of prices.
const WITHOUT_PRICES: [&str; 4] = ["decisions", "history", "lint", "doctor"];

impl Asking {
    /// What this program answers to a command.
    fn command(&self, picture: &Picture, words: &[String], width: u16) -> anyhow::Result<String> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words);
        command.args(self.source(picture, words)?);
        command.args(["--width", &width.to_string(), "--color", "never"]);
        if self.is_ascii {
            command.arg("--ascii");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (done, is_done) = mpsc::channel::<()>();
        let watcher = thread::spawn(move || {
            let is_late = is_done
                .recv_timeout(PATIENCE)
                .is_err_and(|why| why == mpsc::RecvTimeoutError::Timeout);
            if is_late {
                let _ = child.kill();
            }
            (is_late, child.wait())
        });
        let errors = thread::spawn(move || read(err));
        let text = read(out);
        drop(done);
        let errors = errors.join().unwrap_or_default();
        let Ok((is_late, ended)) = watcher.join() else {
            anyhow::bail!("nobody saw it end");
        };
        if is_late {
            anyhow::bail!("no answer within {} s", PATIENCE.as_secs());
        }
        let is_empty = text.trim().is_empty();
        if is_empty && !ended?.success() {
            anyhow::bail!("{}", errors.trim());
        }
        Ok(if is_empty { errors } else { text })
    }

    /// Where a command is to look: at the snapshot on the screen if that will do.
    fn source(&self, picture: &Picture, words: &[String]) -> anyhow::Result<Vec<String>> {
        let verb = words.first().map(String::as_str).unwrap_or_default();
        let is_decision = words.len() == 2 && ["why", "explain"].contains(&verb) && is_id(&words[1]);
        let has_own = words
            .iter()
            .any(|word| ["--from", "--kubeconfig", "--context"].contains(&word.as_str()));
        if verb == "version" || has_own {
            return Ok(Vec::new());
        }
        if WITHOUT_PRICES.contains(&verb) || is_decision {
            return Ok(self.flags.cluster.clone());
        }
        if !self.flags.is_live || !FROM_A_SNAPSHOT.contains(&verb) {
            return Ok(self.flags.all.clone());
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.as_ref().is_none_or(|(serial, _)| *serial != picture.serial) {
            let written = tempfile::Builder::new()
                .prefix("dovetail-top-")
                .suffix(".json")
                .tempfile()?;
            model::dump::write(&picture.snapshot, BufWriter::new(File::create(written.path())?))?;
            *file = Some((picture.serial, written));
        }
        let path = file.as_ref().map(|(_, file)| file.path().display().to_string());
        Ok(vec!["--from".to_owned(), path.unwrap_or_default()])
    }
}

/// Whether a word is the id of a decision.
fn is_id(word: &str) -> bool {
    (4..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
