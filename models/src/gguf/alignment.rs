//! The alignment that a GGUF file states.

/// True if a file states that its tensors begin at multiples of 0. A damaged head is left to the reader of the whole.
pub(super) fn is_zero(file: &[u8]) -> bool {
    Head::new(file).and_then(Head::has_zero_alignment).unwrap_or(false)
}

const KEY: &[u8] = b"general.alignment";

/// Maximum nesting of lists, as candle has it.
const MAX_DEPTH: usize = 64;

// Types of values.
const TEXT: u32 = 8;
const LIST: u32 = 9;

/// The head of a file, from here on.
struct Head<'a> {
    rest: &'a [u8],
    /// Since version 2 lengths have 64 bits.
    is_wide: bool,
}

impl<'a> Head<'a> {
    fn new(file: &'a [u8]) -> Option<Head<'a>> {
        let mut head = Head { rest: file.strip_prefix(b"GGUF")?, is_wide: true };
        head.is_wide = head.number(4)? > 1;
        Some(head)
    }

    fn has_zero_alignment(mut self) -> Option<bool> {
        self.length()?; // tensors
        for _ in 0..self.length()? {
            let length = self.length()?;
            let mut key = self.take(length)?;
            while let Some(shorter) = key.strip_suffix(b"\0") {
                key = shorter;
            }
            let kind = u32::try_from(self.number(4)?).ok()?;
            match size(kind) {
                Some(bytes) if key == KEY && self.number(bytes)? == 0 => return Some(true),
                Some(_) if key == KEY => {}
                _ => self.skip(kind, 0)?,
            }
        }
        Some(false)
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<usize> {
        let number =
            self.take(bytes)?.iter().rev().try_fold(0_u64, |sum, byte| Some(sum.checked_mul(256)? + u64::from(*byte)));
        usize::try_from(number?).ok()
    }

    fn length(&mut self) -> Option<usize> {
        self.number(if self.is_wide { 8 } else { 4 })
    }

    fn skip(&mut self, kind: u32, depth: usize) -> Option<()> {
        if let Some(bytes) = size(kind) {
            return self.take(bytes).map(|_| ());
        }
        match kind {
            TEXT => {
                let length = self.length()?;
                self.take(length).map(|_| ())
            }
            LIST if depth < MAX_DEPTH => {
                let kind = u32::try_from(self.number(4)?).ok()?;
                let length = self.length()?;
                match size(kind) {
                    Some(bytes) => self.take(length.checked_mul(bytes)?).map(|_| ()),
                    None => (0..length).try_for_each(|_| self.skip(kind, depth + 1)),
                }
            }
            _ => None,
        }
    }
}

/// Bytes of a value that is neither text nor a list.
fn size(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}
