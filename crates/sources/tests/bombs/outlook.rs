//! Outlook's messages.

use sources::Limit;

use crate::outlook_file::OutlookFile;
use crate::{GIB, check, check_largest};

pub fn bombs() {
    check("entries.msg", &directory(3200), Limit::ArchiveEntries(100_000), GIB / 4);
}

/// A compound file with a directory of this many sectors, each of 32 entries, and nothing else.
fn directory(sectors: u32) -> Vec<u8> {
    const TABLES: u32 = 4;
    const SECTOR_BYTES: usize = 4096;
    const END: u32 = 0xFFFF_FFFE;
    let mut bytes = vec![0; (1 + TABLES + sectors) as usize * SECTOR_BYTES];
    bytes[..8].copy_from_slice(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1");
    bytes[26] = 4;
    bytes[76..512].fill(0xFF);
    let mut put = |at: usize, number: u32| bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    put(48, TABLES);
    put(68, END);
    for table in 0..TABLES {
        put(76 + 4 * table as usize, table);
    }
    for sector in TABLES..TABLES + sectors {
        let next = if sector + 1 < TABLES + sectors { sector + 1 } else { END };
        put(SECTOR_BYTES + 4 * sector as usize, next);
    }
    bytes
}

pub fn largest() {
    let mut file = OutlookFile::new(&[]);
    file.text("", 0x1000, &"灯".repeat(30 << 20));
    check_largest("text.msg", &file.finish());
    let mut file = OutlookFile::new(&[(0x3FFD_0003, 1252)]);
    file.bytes("", 0x1000_001E, &b"caf\xe9 and ".repeat(6 << 20));
    check_largest("bytes.msg", &file.finish());
}
