//! A mark inside the executable by which it knows that it is part of a bundle: otherwise a bundle that is cut off would
//! run as memlocal without a bundle.

use std::hint::black_box;

const LEN: usize = 32;

/// The last byte is `1` in the executable of a bundle.
static MARK: [u8; LEN] = *b"memlocal executable, in bundle 0";

/// Whether this program is the executable of a bundle.
pub(crate) fn is_set() -> bool {
    // The compiler must not know the byte: the writer of a bundle changes it in the executable.
    black_box(&MARK)[LEN - 1] == b'1'
}

/// Sets the mark of an executable; false if it has none, or several.
pub(crate) fn set(executable: &mut [u8]) -> bool {
    let wanted = &black_box(&MARK)[..LEN - 1];
    let mut found = executable.windows(LEN).enumerate().filter(|(_, bytes)| bytes.starts_with(wanted));
    let (Some((at, _)), None) = (found.next(), found.next()) else { return false };
    executable[at + LEN - 1] = b'1';
    true
}
