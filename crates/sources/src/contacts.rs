//! Contacts (vCard 2.1 to 4.0, RFC 6350): one section a person or organisation. Left out: pictures, keys, and fields
//! that only programs use.

use crate::content_lines::{self, Property};
use crate::encoding::Decoded;
use crate::{Cause, Kind, Source};

/// A `.vcf` file.
pub(crate) fn source(path: &str, file: &Decoded) -> Result<Source, Cause> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if !text.get(.."BEGIN:".len()).is_some_and(|start| start.eq_ignore_ascii_case("BEGIN:")) {
        return Err(Cause::damaged(Kind::Contacts, "it does not start with BEGIN:VCARD"));
    }
    Source::joined(path, Kind::Contacts, None, content_lines::entries(text, &["VCARD"], shown)?)
}

/// A property as a line of text, and its rank among the others.
fn shown(property: &Property<'_>) -> Option<(usize, String)> {
    let (rank, label, separator) = match &*property.name {
        "FN" => (0, "# ", None),
        "N" => (1, "Name", Some(';')),
        "NICKNAME" => (2, "Nickname", None),
        "ORG" => (3, "Organisation", Some(';')),
        "TITLE" => (4, "Title", None),
        "ROLE" => (5, "Role", None),
        "TEL" => (6, "Phone", None),
        "EMAIL" => (7, "E-mail", None),
        "IMPP" => (8, "Messages", None),
        "ADR" => (9, "Address", Some(';')),
        "URL" => (10, "Website", None),
        "BDAY" => (11, "Birthday", None),
        "ANNIVERSARY" => (12, "Anniversary", None),
        "RELATED" => (13, "Related", None),
        "CATEGORIES" => (14, "Categories", None),
        "NOTE" => (15, "Note", None),
        _ => return None,
    };
    let text = property.text(separator);
    if text.is_empty() {
        return None;
    }
    let text = if matches!(label, "Birthday" | "Anniversary") { day(&text).unwrap_or(text) } else { text };
    if rank == 0 {
        return Some((rank, format!("{label}{}", text.split_whitespace().collect::<Vec<_>>().join(" "))));
    }
    // `TYPE=home`, or `HOME` in the oldest contacts.
    let is_type = |name: &str, value: &str| {
        name.eq_ignore_ascii_case("TYPE") || name.is_empty() && !value.eq_ignore_ascii_case("quoted-printable")
    };
    let types = property.parameters().filter(|(name, value)| is_type(name, value));
    let types: Vec<&str> = types.map(|(_, value)| value).collect();
    let types = if types.is_empty() { String::new() } else { format!(" ({})", types.join(", ").to_lowercase()) };
    Some((rank, format!("{label}{types}: {text}")))
}

/// A date that is written without hyphens, as newer contacts have it: `1990-05-01` for `19900501`.
fn day(text: &str) -> Option<String> {
    let (date, time) = text.split_at_checked(8)?;
    let is_date = date.bytes().all(|byte| byte.is_ascii_digit()) && (time.is_empty() || time.starts_with("T000000"));
    is_date.then(|| format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]))
}
