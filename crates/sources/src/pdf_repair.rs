//! PDFs whose cross-reference table (xref) is missing or wrong: the table is rebuilt by scanning the file for objects.
//!
//! ISO 32000-1, section 7.5.4. lopdf reads only through the table, so the file is given a new one at its end. A repaired
//! file is used only if it is complete: as many pages as its page tree declares, with all their contents.

use std::collections::BTreeMap;
use std::fmt::Write;

use memchr::memmem;
use pdf_extract::{Document, Object, ObjectId};

/// The document in `file`, read through a rebuilt table.
///
/// # Errors
/// Why the file cannot be repaired.
pub(crate) fn repaired(file: &[u8]) -> Result<Document, &'static str> {
    if find(file, b"/Encrypt", 0).is_some() {
        return Err("its table of objects is damaged and it is encrypted; save a copy without a password");
    }
    let start = find(file, b"%PDF-", 0).ok_or("it has no PDF header (%PDF-); the file is not a PDF")?;
    let objects = objects(&file[start..]);
    let body = [&file[start..], table(&objects, file.len() - start).as_bytes()].concat();
    let unusable =
        "its table of objects is damaged and cannot be rebuilt; open it in a PDF viewer and print it to a new PDF";
    let mut document = Document::load_mem(&body).map_err(|_| unusable)?;
    let root = catalog(&document).ok_or(unusable)?;
    document.trailer.set("Root", Object::Reference(root));
    if is_complete(&document) {
        Ok(document)
    } else {
        Err("it is incomplete: some of its pages are missing; get another copy of it")
    }
}

/// The offset of every `N G obj`, by N and with G; a later definition replaces an earlier one, as in incremental updates.
fn objects(file: &[u8]) -> BTreeMap<u32, (u16, usize)> {
    let mut objects = BTreeMap::new();
    let mut from = 0;
    let last_end = memmem::rfind(file, b"endobj").unwrap_or_default();
    while let Some(at) = find(file, b"obj", from) {
        from = at + 3;
        if let Some((offset, number, generation)) = header(file, at) {
            objects.insert(number, (generation, offset));
            // Objects are not nested: what looks like one within a stream is data.
            if from <= last_end {
                from = find(file, b"endobj", from).map_or(from, |end| end + 6);
            }
        }
    }
    objects
}

/// The offset, number and generation of the object whose keyword `obj` is at `at`.
fn header(file: &[u8], at: usize) -> Option<(usize, u32, u16)> {
    let (generation, start) = integer_before(file, at)?;
    let (number, start) = integer_before(file, start)?;
    Some((start, u32::try_from(number).ok()?, u16::try_from(generation).ok()?))
}

/// The integer that ends before `end`, white space between, and where it starts.
fn integer_before(file: &[u8], end: usize) -> Option<(u64, usize)> {
    let end = end - file[..end].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    let digits = file[..end].iter().rev().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    let text = str::from_utf8(&file[end - digits..end]).ok()?;
    Some((text.parse().ok()?, end - digits))
}

/// A cross-reference table and trailer to be put at offset `at`.
fn table(objects: &BTreeMap<u32, (u16, usize)>, at: usize) -> String {
    let mut table = String::from("\nxref\n0 1\n0000000000 65535 f \n");
    for (number, (generation, offset)) in objects {
        let _ = write!(table, "{number} 1\n{offset:010} {generation:05} n \n");
    }
    let size = objects.last_key_value().map_or(1, |(number, _)| u64::from(*number) + 1);
    let _ = write!(table, "trailer\n<< /Size {size} >>\nstartxref\n{}\n%%EOF\n", at + 1);
    table
}

/// The last catalog that has a page tree.
fn catalog(document: &Document) -> Option<ObjectId> {
    let is_catalog =
        |object: &Object| object.as_dict().is_ok_and(|dict| dict.has_type(b"Catalog") && dict.get(b"Pages").is_ok());
    document.objects.iter().rev().find(|(_, object)| is_catalog(object)).map(|(id, _)| *id)
}

/// Whether a document has as many pages as its page tree declares, at least one, with all their contents.
pub(crate) fn is_complete(document: &Document) -> bool {
    let declared = document.catalog().and_then(|catalog| {
        let pages = catalog.get(b"Pages")?.as_reference()?;
        document.get_dictionary(pages)?.get(b"Count")?.as_i64()
    });
    let pages = document.get_pages();
    let mut contents = pages.values().flat_map(|page| document.get_page_contents(*page));
    declared.ok() == i64::try_from(pages.len()).ok()
        && !pages.is_empty()
        && contents.all(|id| document.objects.contains_key(&id))
}

/// Where `pattern` first occurs at or after `from`.
fn find(file: &[u8], pattern: &[u8], from: usize) -> Option<usize> {
    memmem::find(file.get(from..)?, pattern).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_wherever_they_are() {
        let file =
            b"%PDF-1.4\n1 0 obj<</A 1>>endobj 12  3\nobj\nstream 7 0 obj endstream endobj\r1 0 obj <<>> endobj obj";
        let found: Vec<(u32, u16, usize)> =
            objects(file).into_iter().map(|(number, (generation, offset))| (number, generation, offset)).collect();
        assert_eq!(found, [(1, 0, 73), (12, 3, 31)]);
        assert!(file[73..].starts_with(b"1 0 obj <<") && file[31..].starts_with(b"12  3"));
    }
}
