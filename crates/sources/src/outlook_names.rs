//! The numbers of the named properties of Outlook's messages (MS-OXMSG, 2.2.3). A name is a set of properties, given by its
//! GUID, and a number within the set; one storage maps the names of all messages in a file to numbers of properties.

use crate::Cause;
use crate::compound::Compound;

/// The GUID of a set of properties, as files store it.
pub(crate) type Set = [u8; 16];

/// Four bytes of name, two of the set and the kind of name, two of number above [`FIRST`].
const ENTRY_BYTES: usize = 8;
/// The first number of a named property.
const FIRST: u16 = 0x8000;
/// The numbers of sets that are not listed: none, PS_MAPI and PS_PUBLIC_STRINGS.
const UNLISTED_SETS: usize = 3;

/// The names of a file.
pub(crate) struct Names {
    sets: Vec<u8>,
    entries: Vec<u8>,
}

impl Names {
    /// Reads the names; a file without the storage has none.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`crate::Limit::Time`].
    pub fn read(file: &mut Compound<'_>) -> Result<Self, Cause> {
        let mut stream = |number: &str| -> Result<Vec<u8>, Cause> {
            Ok(file.stream(&format!("/__nameid_version1.0/__substg1.0_{number}0102"))?.unwrap_or_default())
        };
        Ok(Names { sets: stream("0002")?, entries: stream("0003")? })
    }

    /// The number of the property with a numeric name; `None` if no message in the file has it. The time is linear in the
    /// number of names.
    pub fn number(&self, set: Set, name: u32) -> Option<u16> {
        let set = UNLISTED_SETS + self.sets.chunks_exact(set.len()).position(|listed| listed == set)?;
        // The lowest bit is set for names that are strings.
        let (name, set) = (name.to_le_bytes(), u16::try_from(set << 1).ok()?.to_le_bytes());
        let mut entries = self.entries.chunks_exact(ENTRY_BYTES);
        let entry = entries.find(|entry| entry.starts_with(&name) && entry[4..6] == set)?;
        FIRST.checked_add(u16::from_le_bytes([entry[6], entry[7]]))
    }
}
