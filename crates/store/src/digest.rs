//! BLAKE3 digests over length-prefixed fields, so that different sequences of fields never give the same input bytes.

use std::fmt;

use blake3::Hasher;

/// A BLAKE3 digest, shown as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of a sequence of texts; order and boundaries count.
    pub fn of(texts: &[&str]) -> Self {
        let mut framed = Framed::default();
        for text in texts {
            framed.field(text.as_bytes());
        }
        framed.finish()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes a sequence of fields, each prefixed with its length.
#[derive(Default)]
pub(crate) struct Framed(Hasher);

impl Framed {
    pub(crate) fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    /// Begins a field of `bytes` bytes, which are added in parts.
    pub(crate) fn begin_field(&mut self, bytes: usize) -> &mut Self {
        self.0.update(&(bytes as u64).to_le_bytes());
        self
    }

    pub(crate) fn add_to_field(&mut self, part: &[u8]) -> &mut Self {
        self.0.update(part);
        self
    }

    pub(crate) fn number(&mut self, number: u32) -> &mut Self {
        self.field(&number.to_le_bytes())
    }

    /// A missing value differs from every present one, including the empty text.
    pub(crate) fn optional(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.field(b"some").field(text.as_bytes()),
            None => self.field(b"none"),
        }
    }

    pub(crate) fn finish(&self) -> Digest {
        Digest(self.0.finalize().into())
    }

    /// The first 64 bits of the digest.
    pub(crate) fn finish_short(&self) -> u64 {
        let mut short = [0; 8];
        self.0.finalize_xof().fill(&mut short);
        u64::from_le_bytes(short)
    }
}
