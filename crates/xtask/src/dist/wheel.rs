//! A Python wheel that carries the binary as a script: `pip install` puts it on the path as `memlocal`.

use std::io::{Cursor, Write};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::about::{LICENCE, SUMMARY, VERSION};
use super::archive::Entry;
use super::binary::Binary;
use super::release::{NOTICES, Release};

pub(crate) fn file_name(binary: &Binary) -> String {
    format!("memlocal-{VERSION}-py3-none-{}.whl", platform(binary))
}

/// `manylinux_2_28_x86_64`: which glibc a machine needs. A static binary runs everywhere.
fn platform(binary: &Binary) -> String {
    let (major, minor) = binary.glibc.unwrap_or((2, 17));
    format!("manylinux_{major}_{minor}_{}", binary.architecture)
}

pub(crate) fn build(release: &Release) -> Result<Vec<u8>, String> {
    let info = format!("memlocal-{VERSION}.dist-info");
    let metadata = format!(
        "Metadata-Version: 2.4\nName: memlocal\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense-Expression: {LICENCE}\n\
         {}Requires-Python: >=3.8\n",
        NOTICES.map(|name| format!("License-File: {name}\n")).concat()
    );
    let tag = format!("py3-none-{}", platform(&release.binary));
    let wheel = format!("Wheel-Version: 1.0\nGenerator: memlocal-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let mut entries = vec![
        Entry::program(&format!("memlocal-{VERSION}.data/scripts/memlocal"), release.binary.bytes.clone()),
        Entry::file(&format!("{info}/METADATA"), metadata),
        Entry::file(&format!("{info}/WHEEL"), wheel),
    ];
    for name in NOTICES {
        entries.push(release.file(name)?.below(&format!("{info}/licenses")));
    }
    let record = entries.iter().map(|entry| {
        let digest = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&entry.bytes));
        format!("{},sha256={digest},{}\n", entry.path, entry.bytes.len())
    });
    let record = format!("{}{info}/RECORD,,\n", record.collect::<Vec<_>>().concat());
    entries.push(Entry::file(&format!("{info}/RECORD"), record));
    pack(&entries).map_err(|error| format!("the wheel cannot be written: {error}"))
}

fn pack(entries: &[Entry]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode);
        archive.start_file(entry.path.as_str(), options)?;
        archive.write_all(&entry.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
