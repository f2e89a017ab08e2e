//! Builds of a corpus in a child process that is killed at random moments.

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use memory::{Missing, Settings};
use store::{Corpora, Corpus};

use crate::haystack::Random;
use crate::scratch::{Outcome, Scratch};

/// The variable that names the folder to the child process.
const FOLDER: &str = "MEMLOCAL_MEMORY_CRASH";
const LOG: &str = "calls.log";
/// What [`write_down`] records for a text to embed.
pub const EMBED: &str = "embed";

/// What is in a corpus before a run.
#[derive(Default)]
pub struct Stored {
    /// The calls whose replies are stored, as [`write_down`] recorded them.
    pub calls: BTreeSet<String>,
    /// The number of missing vectors, where the texts to embed are checked.
    pub vectors: Option<usize>,
}

/// What is stored, or why it cannot be read.
pub type StoredResult = Result<Stored, Box<dyn Error>>;

/// A build that is killed until it has completed several times.
pub struct Killed<'a> {
    /// The full name of the test, whose child process builds.
    pub test: &'a str,
    pub kills: usize,
    pub seed: u64,
    /// A run is killed after fewer calls than this, and then fewer microseconds than this.
    pub moments: (usize, usize),
    /// The calls of an uninterrupted build, where their number is known.
    pub calls: Option<usize>,
    pub settings: &'a Settings,
    /// Builds in a folder; every call is recorded by [`write_down`] before it is answered.
    pub build: &'a dyn Fn(&Path) -> Outcome,
    pub stored: &'a dyn Fn(&Corpus) -> StoredResult,
}

impl Killed<'_> {
    /// Checks that no run repeats a call whose reply was stored, and that the end equals that of an uninterrupted build.
    pub fn check(&self) -> Outcome {
        if let Some(folder) = env::var_os(FOLDER) {
            return (self.build)(Path::new(&folder));
        }
        let whole = Scratch::new();
        (self.build)(whole.folder())?;
        let calls = log(whole.folder()).iter().filter(|line| *line != EMBED).count();
        assert_eq!(self.calls.unwrap_or(calls), calls);
        let expected = whole.corpus().digest()?;
        let mut random = Random::new(self.seed);
        let (mut kills, mut runs) = (0, 0);
        while kills < self.kills {
            let scratch = Scratch::new();
            while self.is_killed(scratch.folder(), &mut random)? {
                kills += 1;
            }
            runs += 1;
            assert_eq!(scratch.corpus().digest()?, expected);
            assert_eq!(scratch.missing(self.settings), Missing::default());
        }
        println!("killed {kills} times in {runs} runs");
        Ok(())
    }

    /// One run of the child process; false if it completed.
    fn is_killed(&self, folder: &Path, random: &mut Random) -> Result<bool, Box<dyn Error>> {
        let stored = match Corpora::new(folder).open("scratch") {
            Err(store::Error::UnknownCorpus { .. }) => Stored::default(),
            opened => {
                let corpus = opened?;
                corpus.verify()?;
                (self.stored)(&corpus)?
            }
        };
        let before = log(folder).len();
        let (calls, micros) = (random.below(self.moments.0), random.below(self.moments.1));
        let killed = run(self.test, folder, before + calls, Duration::from_micros(micros as u64))?;
        let made = log(folder).split_off(before);
        let repeated: Vec<&String> = made.iter().filter(|call| stored.calls.contains(*call)).collect();
        assert!(repeated.is_empty(), "asked again although the reply was stored: {repeated:?}");
        if let Some(missing) = stored.vectors {
            let embedded = made.iter().filter(|call| *call == EMBED).count();
            assert!(embedded <= missing, "{embedded} texts embedded, {missing} had no vectors");
        }
        Ok(killed)
    }
}

/// Records a request before it is answered.
pub fn write_down(folder: &Path, line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(folder.join(LOG));
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.expect("a folder for temporary files takes a file");
}

/// The requests that were recorded.
pub fn log(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join(LOG)).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Runs the child process of a test until this many requests are recorded in total, and a moment longer; returns whether it
/// had to be killed.
fn run(test: &str, folder: &Path, calls: usize, moment: Duration) -> Result<bool, std::io::Error> {
    let mut command = Command::new(env::current_exe()?);
    let mut child = command.args(["--exact", test]).env(FOLDER, folder).stdout(Stdio::null()).spawn()?;
    while log(folder).len() < calls && child.try_wait()?.is_none() {
        thread::sleep(Duration::from_micros(200));
    }
    thread::sleep(moment);
    if let Some(status) = child.try_wait()? {
        assert!(status.success(), "the build failed by itself");
        return Ok(false);
    }
    child.kill()?;
    Ok(child.wait()?.code().is_none())
}
