//! The compression of RTF in Outlook's messages (MS-OXRTFCP): a header, then literal bytes and references to what came
//! before, in a ring of 4,096 bytes that starts with words of RTF.

use crate::limit::MAIL_BYTES;
use crate::{Cause, Kind, Limit};

const HEADER_BYTES: usize = 16;
const RING_BYTES: usize = 4096;
const COMPRESSED: u32 = u32::from_le_bytes(*b"LZFu");
const UNCOMPRESSED: u32 = u32::from_le_bytes(*b"MELA");

/// The first bytes of the ring.
const FIRST: &[u8] =
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \
    \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\
    \\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// The RTF in compressed bytes.
///
/// # Errors
/// [`Cause::Damaged`]; [`Limit::UnpackedBytes`] if it is longer than [`MAIL_BYTES`].
pub(crate) fn decompressed(bytes: &[u8]) -> Result<Vec<u8>, Cause> {
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let (Some(length), Some(raw_length), Some(kind), Some(sum)) = (number(0), number(4), number(8), number(12)) else {
        return Err(damaged("the header is missing"));
    };
    // The length counts what follows it.
    let content = bytes.get(HEADER_BYTES..length as usize + 4);
    let content = content.ok_or_else(|| damaged("it is shorter than its header says; it may have been cut short"))?;
    match kind {
        UNCOMPRESSED => {
            let raw = content.get(..raw_length as usize);
            raw.map(<[u8]>::to_vec).ok_or_else(|| damaged("it is shorter than its header says"))
        }
        COMPRESSED if checksum(content) == sum => Ok(expanded(content)?),
        COMPRESSED => Err(damaged("its checksum is wrong")),
        _ => Err(damaged("its kind of compression is unknown")),
    }
}

fn damaged(detail: &str) -> Cause {
    Cause::damaged(Kind::Rtf, detail)
}

/// The text so far, and the ring of its last bytes.
struct Ring {
    bytes: [u8; RING_BYTES],
    next: usize,
    text: Vec<u8>,
}

impl Ring {
    fn push(&mut self, byte: u8) {
        self.bytes[self.next] = byte;
        self.next = (self.next + 1) % RING_BYTES;
        self.text.push(byte);
    }
}

fn expanded(content: &[u8]) -> Result<Vec<u8>, Limit> {
    let mut ring = Ring { bytes: [0; RING_BYTES], next: FIRST.len(), text: Vec::new() };
    ring.bytes[..FIRST.len()].copy_from_slice(FIRST);
    let mut content = content.iter().copied();
    while let Some(flags) = content.next() {
        for bit in 0..8 {
            let Some(first) = content.next() else { return Ok(ring.text) };
            if flags & (1 << bit) == 0 {
                ring.push(first);
                continue;
            }
            // Twelve bits of position, four of length.
            let Some(second) = content.next() else { return Ok(ring.text) };
            let start = (usize::from(first) << 4) | (usize::from(second) >> 4);
            if start == ring.next {
                return Ok(ring.text);
            }
            for i in 0..usize::from(second & 15) + 2 {
                ring.push(ring.bytes[(start + i) % RING_BYTES]);
            }
        }
        if ring.text.len() as u64 > MAIL_BYTES {
            return Err(Limit::UnpackedBytes(MAIL_BYTES));
        }
    }
    Ok(ring.text)
}

/// CRC-32 with the usual polynomial, but without the inversions before and after.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| CHECKSUMS[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

/// The checksums of single bytes.
const CHECKSUMS: [u32; 256] = {
    let mut sums = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 };
            bit += 1;
        }
        sums[byte] = sum;
        byte += 1;
    }
    sums
};

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of the specification, section 4.1.1.
    const WORDS: &[u8] =
        b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0rcpg125B2\x0a\xf3 hel\x09\0 bw\x05\xb0ld}\
        \x0a\x80\x0f\xa0";
    /// An example of the specification, section 4.1.2: a reference to bytes that it writes itself.
    const REPEATED: &[u8] = b"\x1a\0\0\0\x1c\0\0\0LZFu\xe2\xd4\x4bQA\0\x04 WXYZ\x0dn}\x01\x0e\xb0";

    #[test]
    fn the_examples_of_the_specification_are_decompressed() {
        let check = |bytes: &[u8], expect: &str| {
            assert_eq!(decompressed(bytes).expect("it is valid").escape_ascii().to_string(), expect);
        };
        check(WORDS, r"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
        check(REPEATED, r"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}");
        check(b"\x13\0\0\0\x06\0\0\0MELA\0\0\0\0{\\rtf}x", r"{\\rtf}");
    }

    #[test]
    fn damaged_compression_says_why() {
        let check = |bytes: &[u8], expect: &str| {
            let cause = decompressed(bytes).expect_err(expect);
            assert_eq!(cause.to_string(), format!("damaged RTF: {expect}"));
        };
        check(&WORDS[..15], "the header is missing");
        check(&WORDS[..40], "it is shorter than its header says; it may have been cut short");
        check(&[&WORDS[..40], b"x", &WORDS[41..]].concat(), "its checksum is wrong");
        check(&[&WORDS[..8], b"LZFx", &WORDS[12..]].concat(), "its kind of compression is unknown");
        check(b"\x13\0\0\0\x09\0\0\0MELA\0\0\0\0{\\rtf}x", "it is shorter than its header says");
    }

    #[test]
    fn what_expands_beyond_the_limit_is_refused() {
        // Flags, and eight references of 16 bytes to the start of the ring.
        let group = [0xFF, 0, 14, 0, 14, 0, 14, 0, 14, 0, 14, 0, 14, 0, 14, 0, 14];
        let groups = MAIL_BYTES as usize / (8 * 16) + 1;
        assert!(matches!(expanded(&group.repeat(groups)), Err(Limit::UnpackedBytes(MAIL_BYTES))));
        assert!(expanded(&group.repeat(1000)).is_ok_and(|text| text.len() == 1000 * 8 * 16));
    }
}
