//! Files of the data folder are private to their owner.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;

use crate::documents::uploads;
use crate::host::{Host, eventually, says};

/// Set in the child process with a permissive umask.
const LOOSE: &str = "MEMLOCAL_TEST_UMASK";

/// Everything below a folder that others than its owner may access, with its permissions.
fn readable(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let mode = entry.metadata().expect("it is there").permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            found.insert(entry.path().display().to_string(), format!("{mode:o}"));
        }
        found.append(&mut readable(&entry.path()));
    }
    found
}

fn loosen(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let mode = if entry.path().is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).expect("it is ours");
        loosen(&entry.path());
    }
}

#[test]
fn files_are_private_whatever_the_umask() {
    if std::env::var_os(LOOSE).is_none() {
        let test = "private::files_are_private_whatever_the_umask";
        let mut again = Command::new("sh");
        again.args(["-c", "umask 000; exec \"$0\" \"$@\""]).arg(std::env::current_exe().expect("it runs"));
        let again = again.args([test, "--exact", "--nocapture"]).env(LOOSE, "1").output().expect("there is a shell");
        let said = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
        assert!(again.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let probe = tempfile::tempdir().expect("the system has a folder for temporary files");
    fs::write(probe.path().join("loose"), "").expect("it can be written");
    assert_eq!(readable(probe.path()).len(), 1, "the umask is loose");

    let host = Host::new(says("Yes."));
    let data = host.folder.path().to_owned();
    host.corpus("a", &[("a.txt", "The horse is grey.")]);
    assert_eq!(host.ended(&host.upload("a", &[("b.txt", b"\x00")], "rag").json())["status"], "failed");
    let mut unfinished = TcpStream::connect(host.address).expect("the server listens");
    let request = format!(
        "POST /v1/corpora/a/documents HTTP/1.1\r\nhost: {}\r\ncontent-length: 1000\r\n\
         content-type: multipart/form-data; boundary=x\r\n\r\n\
         --x\r\ncontent-disposition: form-data; name=\"f\"; filename=\"c.txt\"\r\n\r\nThe horse is",
        host.address
    );
    unfinished.write_all(request.as_bytes()).expect("the server reads");
    eventually("files are there to look at", || uploads(&host) == 2);
    assert_eq!(readable(&data), BTreeMap::new());
    drop(unfinished);

    // Files that an older version left.
    let folder = Arc::clone(&host.folder);
    drop(host);
    loosen(&data);
    assert_ne!(readable(&data), BTreeMap::new());
    let host = Host::on(folder, Arc::new(says("Yes.")), |_| {});
    assert_eq!(host.get("/v1/corpora/a/documents").status, 200);
    assert_eq!(readable(&data), BTreeMap::new());
    let body = json!({ "name": "b.txt", "text": "The lamp is out.", "method": "rag" });
    let job = host.post("/v1/corpora/a/documents", &body);
    assert_eq!(host.ended(&job.json())["status"], "done");
    assert_eq!(readable(&data), BTreeMap::new());
}
