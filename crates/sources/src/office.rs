//! What the files of Microsoft Office (Office Open XML) share: parts, the relations between them, and a title.

use crate::archive::{Archive, resolve};
use crate::limit::check_entries;
use crate::xml::{self, Tag};
use crate::{Cause, Kind, compound};

/// Opens the archive of a document.
///
/// # Errors
/// [`Cause::Encrypted`]: Office keeps a document with a password in the container of its old formats.
pub(crate) fn open(bytes: &[u8], kind: Kind) -> Result<Archive<'_>, Cause> {
    if !bytes.starts_with(&compound::SIGNATURE) {
        return Archive::open(bytes, kind);
    }
    let encrypted: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    if memchr::memmem::find(bytes, &encrypted).is_some() {
        return Err(Cause::Encrypted);
    }
    let new = kind.to_string().to_lowercase();
    let old = new.trim_end_matches('x');
    Err(Cause::damaged(kind, format!("the file is in the older .{old} format; save it as .{new}")))
}

/// The name of the part with the document itself.
pub(crate) fn main_part(archive: &mut Archive<'_>) -> Result<String, Cause> {
    let relations = Relations::of(archive, "")?;
    let part = relations.by_kind("/officeDocument").map(str::to_owned);
    let advice = "it may be of another format; open it in the program that made it and save it anew";
    part.ok_or_else(|| Cause::damaged(archive.kind(), format!("it does not say which part is the document; {advice}")))
}

/// The title in the document's properties.
pub(crate) fn title(archive: &mut Archive<'_>) -> Result<Option<String>, Cause> {
    const CORE: &str = "docProps/core.xml";
    match archive.text_if_any(CORE)? {
        Some(core) => xml::text_of(&core, "title", archive.kind()).map_err(|cause| cause.in_part(CORE)),
        None => Ok(None),
    }
}

/// Whether a property of Word's is set, as it is without a value.
pub(crate) fn is_on(tag: &Tag<'_>) -> bool {
    !tag.attribute("val").is_some_and(|value| matches!(&*value, "0" | "false" | "off"))
}

/// The parts to which a part refers.
pub(crate) struct Relations(Vec<Relation>);

struct Relation {
    id: Option<String>,
    kind: String,
    part: String,
}

impl Relations {
    /// The relations of a part; those of the whole document for an empty name.
    pub fn of(archive: &mut Archive<'_>, part: &str) -> Result<Self, Cause> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let kind = archive.kind();
        let name = resolve("", &format!("{folder}/_rels/{file}.rels"));
        let Some(relations) = archive.text_if_any(&name)? else {
            return Ok(Relations(Vec::new()));
        };
        let mut found = Vec::new();
        let read = xml::each_tag(&relations, kind, |tag| {
            let is_external = tag.attribute("TargetMode").is_some_and(|mode| mode == "External");
            if let (Some(kind), Some(target), false) = (tag.attribute("Type"), tag.attribute("Target"), is_external) {
                let base = if target.starts_with('/') { "" } else { part };
                found.push(Relation { id: tag.attribute("Id"), kind, part: resolve(base, &target) });
            }
            check_entries(found.len())?;
            Ok(true)
        });
        read.map_err(|cause| cause.in_part(&name))?;
        Ok(Relations(found))
    }

    /// The name of the first part of a type, by the end of the type's name.
    pub fn by_kind(&self, kind: &str) -> Option<&str> {
        self.0.iter().find(|relation| relation.kind.ends_with(kind)).map(|relation| &*relation.part)
    }

    /// The names of all parts of a type.
    pub fn all_by_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |relation| relation.kind.ends_with(kind)).map(|relation| &*relation.part)
    }

    /// The name of the part behind an id.
    pub fn by_id(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|relation| relation.id.as_deref() == Some(id)).map(|relation| &*relation.part)
    }
}
