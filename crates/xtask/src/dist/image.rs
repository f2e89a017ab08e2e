//! An OCI image as a tarball, written directly: one layer with the binary, the shared libraries that it needs, and the
//! certificate authorities of the build machine. It runs as an unprivileged user.

use std::path::Path;

use serde_json::{Value, json};

use super::about::VERSION;
use super::archive::{Entry, gzip, tar};
use super::files::{read, sha256};
use super::release::{NOTICES, Release};

/// Where Debian, Fedora and others keep certificate authorities.
const CERTIFICATES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

pub(crate) fn build(release: &Release) -> Result<Vec<u8>, String> {
    let mut files = vec![Entry::program("usr/bin/memlocal", release.binary.bytes.clone())];
    for library in release.binary.libraries()? {
        let path = library.to_string_lossy().trim_start_matches('/').to_owned();
        files.push(Entry::program(&path, read(&library)?));
    }
    for name in NOTICES {
        files.push(release.file(name)?.below("usr/share/doc/memlocal"));
    }
    if let Some(path) = CERTIFICATES.into_iter().find(|path| Path::new(path).is_file()) {
        files.push(Entry::file(&CERTIFICATES[0][1..], read(Path::new(path))?));
    }
    files.push(Entry::file("etc/passwd", "memlocal:x:1000:1000::/data:/usr/bin/memlocal\n"));
    files.push(Entry { owner: 1000, ..Entry::file("data/.keep", "") });
    let layer = tar(&files)?;
    let zipped = gzip(&layer)?;
    let config = json!({
        "architecture": release.binary.short_architecture(),
        "os": "linux",
        "config": {
            "User": "1000:1000",
            "Entrypoint": ["/usr/bin/memlocal"],
            "Env": ["PATH=/usr/bin", "HOME=/data", "MEMLOCAL_HOME=/data"],
            "Volumes": { "/data": {} },
            "WorkingDir": "/data",
        },
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        "history": [{ "created_by": "cargo xtask dist" }],
    });
    let config = text(&config);
    let manifest = text(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &zipped)],
    }));
    let mut main = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    main["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = text(&json!({ "schemaVersion": 2, "manifests": [main] }));
    let blob = |bytes: Vec<u8>| Entry::file(&format!("blobs/sha256/{}", sha256(&bytes)), bytes);
    tar(&[
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", index),
        blob(config),
        blob(manifest),
        blob(zipped),
    ])
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}
