//! A simulated disk below one folder, for the thread that attaches it: it makes operations fail, and it knows what would
//! be left after a power cut.
//!
//! The functions of libc that change files are defined here, so that SQLite and the standard library call them in this
//! program. What a power cut leaves is what POSIX promises and no more: the content of a file when it was last
//! synchronised, and the names in a folder when that folder was; of all later changes any subset, in which a write may be
//! torn at the borders of sectors. Synchronising is simulated too. All tests of this program
//! synchronise nothing really, which makes them fast: only a real power cut would show it.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use libc::{c_char, c_int, c_long, c_void, off_t, size_t, ssize_t};

const SECTOR_BYTES: usize = 512;

thread_local! {
    static DISK: RefCell<Option<Disk>> = const { RefCell::new(None) };
}

/// Which operations fail.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The first one, counted from 0.
    pub operation: usize,
    /// `EIO`, which any operation can return, or `ENOSPC`, which writes return.
    pub error: c_int,
    /// Whether all later ones fail too.
    pub is_lasting: bool,
}

/// What a power cut may leave: the content of each file, and nothing for each folder.
pub type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

pub struct Disk {
    root: PathBuf,
    device: u64,
    /// How many operations there were.
    operations: usize,
    fault: Option<Fault>,
    /// How many images are made before each operation, and those that were made.
    cuts: usize,
    images: Vec<Image>,
    random: Random,
    files: HashMap<u64, Content>,
    /// The names in each folder when it was last synchronised, and after each change since then.
    folders: HashMap<u64, Vec<Names>>,
    /// Keeps numbers of deleted files from being given to others. They are not open for reading: closing such a file
    /// would release SQLite's locks.
    held: Vec<File>,
}

type Names = BTreeMap<OsString, u64>;

#[derive(Default)]
struct Content {
    synced: Vec<u8>,
    changes: Vec<Change>,
}

enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Disk {
    /// Simulates a disk below `root` for this thread; what is there now is on the disk. Without `cuts` it only makes
    /// operations fail, and does not keep what a power cut would leave.
    pub fn attach(root: &Path, seed: u64, cuts: usize, fault: Option<Fault>) {
        let mut disk = Disk {
            root: root.to_path_buf(),
            device: fs::metadata(root).expect("the folder is there").dev(),
            operations: 0,
            fault,
            cuts,
            images: Vec::new(),
            random: Random(seed),
            files: HashMap::new(),
            folders: HashMap::new(),
            held: Vec::new(),
        };
        if disk.cuts > 0 {
            disk.look(root, true);
        }
        DISK.set(Some(disk));
    }

    /// Ends the simulation; returns the number of operations.
    pub fn detach() -> usize {
        DISK.take().map_or(0, |disk| disk.operations)
    }

    /// The images since the last call.
    pub fn images() -> Vec<Image> {
        with(|disk| std::mem::take(&mut disk.images)).unwrap_or_default()
    }

    /// Runs something beside the simulation.
    pub fn aside<T>(work: impl FnOnce() -> T) -> T {
        let disk = DISK.take();
        let value = work();
        DISK.set(disk);
        value
    }

    /// Notes all names below a folder, and files that were not known.
    fn look(&mut self, folder: &Path, is_synced: bool) {
        let mut names = Names::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            names.insert(entry.file_name(), metadata.ino());
            if metadata.is_dir() {
                self.look(&path, is_synced);
            } else if let Entry::Vacant(unknown) = self.files.entry(metadata.ino()) {
                let synced = if is_synced { fs::read(&path).expect("it is ours") } else { Vec::new() };
                unknown.insert(Content { synced, changes: Vec::new() });
                self.hold(&path);
            }
        }
        let Ok(metadata) = fs::metadata(folder) else { return };
        if !self.folders.contains_key(&metadata.ino()) {
            self.hold(folder);
        }
        let known = self.folders.entry(metadata.ino()).or_insert_with(|| vec![Names::new()]);
        if is_synced {
            *known = vec![names];
        } else if known.last() != Some(&names) {
            known.push(names);
        }
    }

    fn hold(&mut self, path: &Path) {
        self.held.extend(OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path));
    }

    /// Notes that an operation begins: what a power cut now would leave, and whether it fails.
    fn begin(&mut self, is_write: bool) -> Option<c_int> {
        if self.cuts > 0 {
            self.look(&self.root.clone(), false);
        }
        for _ in 0..self.cuts {
            let image = self.cut();
            self.images.push(image);
        }
        let number = self.operations;
        self.operations += 1;
        let Fault { operation, error, is_lasting } = self.fault?;
        let is_due = number == operation || (is_lasting && number > operation);
        (is_due && (is_write || error != libc::ENOSPC)).then_some(error)
    }

    /// Notes a change of a file, which a power cut may lose.
    fn note(&mut self, number: u64, change: impl FnOnce() -> Change) {
        if self.cuts > 0 {
            self.files.entry(number).or_default().changes.push(change());
        }
    }

    fn cut(&mut self) -> Image {
        let mut image = Image::new();
        let root = fs::metadata(&self.root).expect("the folder is there").ino();
        let (mut ways, mut pending) = (HashMap::new(), vec![(PathBuf::new(), root)]);
        while let Some((path, number)) = pending.pop() {
            if let Some(content) = self.files.get(&number) {
                let content = ways.entry(number).or_insert_with(|| content.left(&mut self.random));
                image.insert(path, Some(content.clone()));
                continue;
            }
            let states = &self.folders[&number];
            let state = match self.random.below(3) {
                0 => 0,
                1 => states.len() - 1,
                _ => self.random.below(states.len()),
            };
            pending.extend(states[state].iter().map(|(name, number)| (path.join(name), *number)));
            image.insert(path, None);
        }
        image
    }
}

impl Content {
    /// What may be left of the content.
    fn left(&self, random: &mut Random) -> Vec<u8> {
        let mut left = self.synced.clone();
        // None, all, the first ones, any, or parts of any.
        let way = random.below(5);
        let first = random.below(self.changes.len() + 1);
        for (number, change) in self.changes.iter().enumerate() {
            let is_left = match way {
                0 => false,
                1 => true,
                2 => number < first,
                _ => random.below(2) == 0,
            };
            if is_left {
                change.apply(&mut left, |_| way < 4 || random.below(2) == 0);
            }
        }
        left
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>, mut has: impl FnMut(usize) -> bool) {
        match self {
            Change::Length(length) => content.resize(*length, 0),
            Change::Write(start, data) => {
                let mut at = 0;
                while at < data.len() {
                    let sector = (start + at) / SECTOR_BYTES;
                    let end = data.len().min((sector + 1) * SECTOR_BYTES - start);
                    if has(sector) {
                        content.resize(content.len().max(start + end), 0);
                        content[start + at..start + end].copy_from_slice(&data[at..end]);
                    }
                    at = end;
                }
            }
        }
    }
}

/// Reproducible pseudo-random numbers (the constants of Knuth's MMIX).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Runs something with the disk of this thread, if it has one; operations within are not simulated.
fn with<T>(work: impl FnOnce(&mut Disk) -> T) -> Option<T> {
    let mut disk = DISK.try_with(|disk| disk.try_borrow_mut().ok()?.take()).ok()??;
    let value = work(&mut disk);
    DISK.set(Some(disk));
    Some(value)
}

/// What an interposed function does.
enum Outcome {
    Real,
    Fails(c_int),
    Done,
}

/// An operation on an open file of the simulated disk. SQLite's index of the log is not on the disk: it is memory.
fn on_file(file: c_int, is_write: bool, note: impl FnOnce(&mut Disk, u64) -> Outcome) -> Outcome {
    let simulated = with(|disk| {
        let link = PathBuf::from(format!("/proc/self/fd/{file}"));
        let (Ok(metadata), Ok(path)) = (fs::metadata(&link), fs::read_link(&link)) else { return Outcome::Real };
        let is_ours = metadata.dev() == disk.device && path.starts_with(&disk.root);
        if !is_ours || path.as_os_str().as_bytes().ends_with(b"-shm") {
            return Outcome::Real;
        }
        match disk.begin(is_write) {
            Some(error) => Outcome::Fails(error),
            None => note(disk, metadata.ino()),
        }
    });
    simulated.unwrap_or(Outcome::Real)
}

/// An operation on a path of the simulated disk.
fn on_path(path: *const c_char) -> Outcome {
    let simulated = with(|disk| {
        // SAFETY: the caller passes a path as libc wants it.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        if !path.starts_with(&disk.root) || path.as_os_str().as_bytes().ends_with(b"-shm") {
            return Outcome::Real;
        }
        disk.begin(false).map_or(Outcome::Real, Outcome::Fails)
    });
    simulated.unwrap_or(Outcome::Real)
}

impl Outcome {
    fn or(self, real: impl FnOnce() -> c_long) -> c_long {
        match self {
            Outcome::Real => real(),
            Outcome::Done => 0,
            Outcome::Fails(error) => {
                // SAFETY: the address of this thread's errno is valid.
                unsafe { *libc::__errno_location() = error };
                -1
            }
        }
    }
}

fn written(file: c_int, data: *const c_void, count: size_t, at: impl FnOnce() -> off_t) -> Outcome {
    on_file(file, true, |disk, number| {
        // SAFETY: the caller passes `count` readable bytes.
        let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), count) };
        let at = usize::try_from(at()).expect("a position");
        disk.note(number, || Change::Write(at, data.to_vec()));
        Outcome::Real
    })
}

/// The result of synchronising, which does nothing but on the simulated disk.
fn synced(file: c_int) -> c_int {
    let outcome = on_file(file, false, |disk, number| {
        if disk.cuts == 0 {
            // What is synchronised matters to power cuts only.
        } else if let Some(states) = disk.folders.get_mut(&number) {
            states.drain(..states.len() - 1);
        } else {
            let synced = fs::read(format!("/proc/self/fd/{file}")).expect("an open file can be read");
            disk.files.insert(number, Content { synced, changes: Vec::new() });
        }
        Outcome::Done
    });
    outcome.or(|| 0) as c_int
}

fn cut_to(file: c_int, length: off_t) -> Outcome {
    on_file(file, true, |disk, number| {
        let length = usize::try_from(length).expect("a length");
        disk.note(number, || Change::Length(length));
        Outcome::Real
    })
}

// SAFETY of all functions below: they have the contracts of libc's functions of the same names, and pass their arguments
// on to the system as they are.

#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, data: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: see above.
    let at = || unsafe { libc::syscall(libc::SYS_lseek, file, 0, libc::SEEK_CUR) };
    // SAFETY: see above.
    written(file, data, count, at).or(|| unsafe { libc::syscall(libc::SYS_write, file, data, count) }) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(file: c_int, data: *const c_void, count: size_t, at: off_t) -> ssize_t {
    let real = || {
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_pwrite64, file, data, count, at) }
    };
    written(file, data, count, || at).or(real) as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(file: c_int, data: *const c_void, count: size_t, at: off_t) -> ssize_t {
    // SAFETY: see above.
    unsafe { pwrite64(file, data, count, at) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    synced(file)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    synced(file)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate64(file: c_int, length: off_t) -> c_int {
    // SAFETY: see above.
    cut_to(file, length).or(|| unsafe { libc::syscall(libc::SYS_ftruncate, file, length) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate(file: c_int, length: off_t) -> c_int {
    // SAFETY: see above.
    unsafe { ftruncate64(file, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let real = || {
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, from, libc::AT_FDCWD, to, 0) }
    };
    on_path(from).or(real) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: see above.
    on_path(path).or(|| unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let real = || {
        // SAFETY: see above.
        unsafe { libc::syscall(libc::SYS_unlinkat, folder, path, flags) }
    };
    // `remove_dir_all` passes a folder and a name in it.
    on_file(folder, false, |_, _| Outcome::Real).or(real) as c_int
}
