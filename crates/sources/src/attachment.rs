//! The attachments of messages that are not read as messages: the entries of calendars, and the names of others.

use crate::limit::check_text;
use crate::{Cause, Kind, Limit};

/// An attachment that is not read as a message.
pub(crate) struct Attachment {
    pub name: Option<String>,
    /// Its MIME type.
    pub kind: Option<String>,
    /// The entries of a calendar; empty for other attachments.
    pub entries: String,
    /// What it is if [`Self::is_secured`].
    pub secured: Option<Secured>,
}

/// What an attachment of S/MIME is that is not read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Secured {
    Encrypted,
    Damaged,
    /// A signed file, certificates, a compressed message.
    Other,
}

impl Secured {
    /// The same, unless the text of a message is in it.
    ///
    /// # Errors
    /// [`Cause::EncryptedMessage`], [`Cause::Damaged`].
    pub fn or_refused(self) -> Result<Self, Cause> {
        match self {
            Secured::Encrypted => Err(Cause::EncryptedMessage),
            Secured::Damaged => {
                let detail = "its signed or encrypted content (S/MIME) is missing or damaged; get another copy";
                Err(Cause::damaged(Kind::Email, detail))
            }
            Secured::Other => Ok(self),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Secured::Encrypted => ", an encrypted message (S/MIME), which is not read",
            Secured::Damaged => ", a damaged message (S/MIME), which is not read",
            Secured::Other => ", a signed file or certificates (S/MIME), which is not read",
        }
    }
}

impl Attachment {
    /// Writes the entries of a calendar, else the name. `invitation` is the last calendar that was written.
    ///
    /// # Errors
    /// [`Limit::TextBytes`].
    pub fn write(self, text: &mut String, invitation: &mut String) -> Result<(), Limit> {
        let format = self.unread_format();
        let name = self.name.or(self.kind).unwrap_or_else(|| "without a name".to_owned());
        // Invitations come twice, once as an attachment.
        if self.entries.is_empty() || self.entries == *invitation {
            text.extend(["\n[attachment: ", &name, format, "]\n"]);
        } else {
            text.extend(["\n[calendar: ", &name, "]\n", &self.entries, "\n"]);
            *invitation = self.entries;
        }
        check_text(text.len())
    }

    /// Whether it is of S/MIME: a signed or encrypted message, or a signed file.
    pub fn is_secured(&self) -> bool {
        let is_named = self.name.as_deref().is_some_and(|name| name.to_ascii_lowercase().ends_with(".p7m"));
        is_named || is(self.kind.as_deref(), &["application/pkcs7-mime", "application/x-pkcs7-mime"])
    }

    /// What is written of an attachment that holds a message in a form that is not read: Outlook's `winmail.dat`, or one of
    /// S/MIME.
    fn unread_format(&self) -> &'static str {
        let (kind, name) = (self.kind.as_deref(), self.name.as_deref());
        if is(kind, &["application/ms-tnef", "application/vnd.ms-tnef"]) || is(name, &["winmail.dat"]) {
            ", in Outlook's format TNEF, which is not read"
        } else {
            self.secured.map_or("", Secured::label)
        }
    }
}

/// Whether a value is one of those that are known, in small or capital letters.
fn is(value: Option<&str>, known: &[&str]) -> bool {
    value.is_some_and(|value| known.iter().any(|known| value.eq_ignore_ascii_case(known)))
}
