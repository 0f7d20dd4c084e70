//! Where the lines of tapes go: into files of an hour each, of which the last day's are kept.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use flate2::{Compression, write::GzEncoder};
use jiff::{SignedDuration, Timestamp};
use ledger::flight::{apply_class_line, apply_line, base_line, catalog_line, decision_line, delete_line};
use model::{
    object::{NodeClass, Object},
    snapshot::{Catalog, Inputs, Snapshot},
};
use state::{Change, Transition, Visitor};

use super::given::Taped;

/// A file ends when it is so old,
const OLDEST: SignedDuration = SignedDuration::from_hours(1);
/// or when so many bytes were written to it, before compression.
const LONGEST: u64 = 256 << 20;
/// So long files are kept,
const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// as long as they are not more than so many bytes together.
const LARGEST: u64 = 1 << 30;

/// The flight recorder.
pub struct Flight {
    /// None once it is being dropped.
    lines: Mutex<Option<Sender<Said>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer is told.
enum Said {
    Changed(Change),
    Decided {
        whole: Snapshot,
        inputs: Inputs,
        taped: Taped,
    },
}

impl Flight {
    /// Records into a directory, which is made if need be.
    pub fn start(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let (lines, told) = channel();
        let directory = directory.to_owned();
        let writer = std::thread::Builder::new()
            .name("flight".to_owned())
            .spawn(move || Writer::new(directory).run(&told))?;
        Ok(Self {
            lines: Mutex::new(Some(lines)),
            writer: Mutex::new(Some(writer)),
        })
    }

    pub(crate) fn changed(&self, change: &Change) {
        self.say(|| Said::Changed(change.clone()));
    }

    pub(crate) fn decided(&self, whole: &Snapshot, inputs: &Inputs, taped: Taped) {
        self.say(|| Said::Decided {
            whole: whole.clone(),
            inputs: inputs.clone(),
            taped,
        });
    }

    fn say(&self, said: impl FnOnce() -> Said) {
        if let Some(lines) = &*self.lines.lock().unwrap_or_else(PoisonError::into_inner) {
            // Without a writer there is nobody to tell; it said why when it ended.
            let _ = lines.send(said());
        }
    }
}

impl Flight {
    /// Waits until everything is written; nothing is recorded from then on.
    pub fn finish(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Writes what it is told.
struct Writer {
    directory: PathBuf,
    open: Option<Open>,
}

/// A file that is being written.
struct Open {
    out: GzEncoder<File>,
    began: Timestamp,
    written: u64,
    /// The catalogue as the file has it.
    catalog: Arc<Catalog>,
}

impl Writer {
    fn new(directory: PathBuf) -> Self {
        Self { directory, open: None }
    }

    fn run(mut self, told: &Receiver<Said>) {
        while let Ok(said) = told.recv() {
            if let Err(error) = self.write(said) {
                tracing::error!(directory = %self.directory.display(), error = %error, "the flight recorder cannot write; it ends");
                return;
            }
        }
        if let Some(open) = self.open.take() {
            let _ = open.out.finish();
        }
    }

    fn write(&mut self, said: Said) -> io::Result<()> {
        match said {
            Said::Changed(change) => {
                if let Some(open) = &mut self.open {
                    open.line(&change.show(Line)?)?;
                }
                Ok(())
            }
            Said::Decided { whole, inputs, taped } => {
                let now = whole.taken_at();
                if self.open.as_ref().is_some_and(|open| open.is_over(now))
                    && let Some(open) = self.open.take()
                {
                    open.out.finish()?;
                }
                if self.open.is_none() {
                    self.tidy(now)?;
                    self.open = Some(Open::begin(&self.directory, &whole)?);
                }
                let Some(open) = &mut self.open else { return Ok(()) };
                open.catalog(whole.shared_catalog())?;
                open.line(&decision_line(&taped.frame(now, &inputs))?)?;
                open.out.flush()
            }
        }
    }

    /// Lets go of what is too old, or too much.
    fn tidy(&self, now: Timestamp) -> io::Result<()> {
        let mut files: Vec<(PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if begun(&entry.path()).is_some() {
                files.push((entry.path(), entry.metadata()?.len()));
            }
        }
        files.sort();
        let mut left: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        for (path, bytes) in files {
            let is_old = begun(&path).is_some_and(|began| now.duration_since(began) > KEPT + OLDEST);
            if is_old || left > LARGEST {
                fs::remove_file(&path)?;
                left -= bytes;
            }
        }
        Ok(())
    }
}

/// When a file of ours was begun; none for others.
fn begun(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let seconds = name.strip_prefix("flight-")?.strip_suffix(".jsonl.gz")?;
    let (seconds, _) = seconds.split_once('-')?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

impl Open {
    fn begin(directory: &Path, whole: &Snapshot) -> io::Result<Self> {
        let began = whole.taken_at();
        // Two processes, or two terms, may begin within a second.
        let file = (0..1000).find_map(|number| {
            let name = format!("flight-{:012}-{number:03}.jsonl.gz", began.as_second());
            let made = File::create_new(directory.join(name));
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                made => Some(made),
            }
        });
        let file = file.ok_or_else(|| io::Error::other("every name for a new file is taken"))??;
        let mut open = Self {
            out: GzEncoder::new(file, Compression::fast()),
            began,
            written: 0,
            catalog: Arc::clone(whole.shared_catalog()),
        };
        open.line(&base_line(whole)?)?;
        Ok(open)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.began) >= OLDEST || self.written >= LONGEST
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.written += line.len() as u64;
        self.out.write_all(line)
    }

    fn catalog(&mut self, now: &Arc<Catalog>) -> io::Result<()> {
        if !Arc::ptr_eq(&self.catalog, now) {
            if let Some(line) = catalog_line(&self.catalog, now)? {
                self.line(&line)?;
            }
            self.catalog = Arc::clone(now);
        }
        Ok(())
    }
}

/// Makes the line of a change.
struct Line;

impl Visitor for Line {
    type Answer = io::Result<Vec<u8>>;

    fn object<T: Object>(self, change: &Transition<T>) -> Self::Answer {
        match (&change.after, &change.before) {
            (Some(after), _) => apply_line(after.as_ref()),
            (None, Some(before)) => {
                let metadata = before.metadata();
                delete_line(T::KIND, &metadata.namespace, &metadata.name)
            }
            (None, None) => Ok(Vec::new()),
        }
    }

    fn node_class(self, change: &Transition<NodeClass>) -> Self::Answer {
        match (&change.after, &change.before) {
            (Some(after), _) => apply_class_line(after),
            (None, Some(before)) => delete_line(&before.kind, "", &before.metadata.name),
            (None, None) => Ok(Vec::new()),
        }
    }
}
