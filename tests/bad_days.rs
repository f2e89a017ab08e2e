//! A server whose disk is full or which is killed while it receives files and names: nothing is lost, and the errors say
//! what to do.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::home::Home;
use test_support::serving::Serving;

/// The largest file that the server under test can write, in blocks of 512 bytes: SQLite's and its own small ones fit.
const MAX_BLOCKS: usize = 512;

/// A form with one file of this many bytes.
fn form(bytes: usize) -> (String, Vec<u8>) {
    let part = "--edge\r\ncontent-disposition: form-data; name=\"";
    let file = "file\"; filename=\"a.txt\"\r\n\r\n";
    let mut body = format!("{part}purpose\"\r\n\r\nassistants\r\n{part}{file}").into_bytes();
    body.resize(body.len() + bytes, b'a');
    body.extend_from_slice(b"\r\n--edge--\r\n");
    ("multipart/form-data; boundary=edge".to_owned(), body)
}

/// Status and JSON body of a POST request; what the server sends before it has read everything counts.
fn post(serving: &Serving, path: &str, (kind, body): &(String, Vec<u8>)) -> (u16, Value) {
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\n", serving.address);
    write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n", body.len()).unwrap();
    let _ = stream.write_all(body);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, content) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {text}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(content).unwrap_or_default())
}

fn json_body(body: &Value) -> (String, Vec<u8>) {
    ("application/json".to_owned(), body.to_string().into_bytes())
}

/// All files below a folder, without locks.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.filter(|path| !path.ends_with("lock")).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_without_room_on_the_disk_says_so_and_keeps_what_it_has() {
    let Some(home) = Home::new("full") else { return };
    let limit = format!("trap '' XFSZ; ulimit -f {MAX_BLOCKS}; exec \"$@\"");
    let serving = Serving::start_by(&home, &["sh", "-c", &limit, "sh"], &[]);
    let create = |name: &str, system: &str| {
        let body = json!({ "model": name, "from": "smollm2-135m-instruct", "system": system, "stream": false });
        post(&serving, "/api/create", &json_body(&body))
    };
    let (status, kept) = post(&serving, "/v1/files", &form(1000));
    assert_eq!((status, &kept["bytes"]), (200, &json!(1000)), "{kept}");
    assert_eq!(create("brief", "Be brief."), (200, json!({ "status": "success" })));
    let all = files(&home.data().join("files"));

    let (status, full) = post(&serving, "/v1/files", &form(MAX_BLOCKS * 512 + 1));
    assert_eq!((status, &full["error"]["code"]), (507, &json!("disk_full")), "{full}");
    assert_eq!(full["error"]["hint"], "free some space; nothing was lost");
    assert_eq!(files(&home.data().join("files")), all);
    assert_eq!(files(&home.data().join("uploads")), Vec::<PathBuf>::new());
    let (status, full) = create("long", &"a".repeat(MAX_BLOCKS * 512));
    assert!(
        status == 400 && full["error"].as_str().unwrap().contains("model-names.json cannot be changed: "),
        "{full}"
    );
    assert!(full["error"].as_str().unwrap().ends_with("\nhint: free some space; the names are as they were"), "{full}");
    let shown = |name: &str| post(&serving, "/api/show", &json_body(&json!({ "model": name })));
    assert_eq!((shown("brief").1["system"].clone(), shown("long").0), (json!("Be brief."), 404));
    let digest = format!("/api/blobs/sha256:{}", "0".repeat(64));
    let bytes = ("application/octet-stream".to_owned(), vec![0; MAX_BLOCKS * 512 + 1]);
    let (status, full) = post(&serving, &digest, &bytes);
    assert!(status == 507 && full["error"].as_str().unwrap().contains("hint: free some space"), "{full}");
    assert_eq!(files(&home.data().join("blobs")), Vec::<PathBuf>::new());
    // A smaller file fits.
    assert_eq!(post(&serving, "/v1/files", &form(1000)).0, 200);
    assert_eq!(create("plain", "Be plain.").0, 200);
}

#[test]
fn a_server_that_is_killed_while_it_receives_files_leaves_none_of_them() {
    let Some(home) = Home::new("killed") else { return };
    let serving = Serving::start(&home, &[]);
    assert_eq!(post(&serving, "/v1/files", &form(1000)).0, 200);
    let kept = files(&home.data().join("files"));
    // Two uploads of which half arrives.
    let half = |path: &str, (kind, body): (String, Vec<u8>)| {
        let mut stream = TcpStream::connect(&serving.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\n", serving.address);
        write!(stream, "{head}content-length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body[..body.len() / 2]).unwrap();
        stream
    };
    let digest = format!("/api/blobs/sha256:{}", "0".repeat(64));
    let streams =
        [half("/v1/files", form(1 << 20)), half(&digest, ("application/octet-stream".to_owned(), vec![0; 1 << 20]))];
    let received = |name: &str| files(&home.data().join(name)).iter().map(|path| path.metadata().unwrap().len()).sum();
    while [received("uploads"), received("blobs")].contains(&0u64) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(serving);
    drop(streams);
    assert!(received("uploads") > 0 && received("blobs") > 0, "it was killed");
    let serving = Serving::start(&home, &[]);
    assert_eq!(files(&home.data().join("files")), kept);
    assert_eq!((received("uploads"), received("blobs")), (0, 0));
    assert!(serving.get("/v1/files", "").contains("a.txt"));
}
