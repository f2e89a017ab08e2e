//! DOCX and EPUB.

use std::io::{Cursor, Write};

use sources::Limit;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{GIB, check, check_largest};

fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const RELATIONS: (&str, &str) =
    ("_rels/.rels", r#"<Relationships><Relationship Type="x/officeDocument" Target="/d.xml"/></Relationships>"#);
const CONTAINER: (&str, &str) = ("META-INF/container.xml", r#"<container><rootfile full-path="p.opf"/></container>"#);

pub fn bombs() {
    let unpacked = Limit::UnpackedBytes(128 << 20);
    let nesting = Limit::Nesting(512);
    let docx = |body: &str| archive(&[RELATIONS, ("d.xml", body)]);
    check("spaces.docx", &docx(&" ".repeat(200 << 20)), unpacked, GIB);
    check("cells.docx", &docx(&"<tc>".repeat(10_000_000)), nesting, GIB);
    check("rows.docx", &docx(&"<tr>".repeat(10_000_000)), nesting, GIB);
    let relations = "<a/>".repeat(50_000_000);
    check("relations.docx", &archive(&[("_rels/.rels", &relations)]), unpacked, GIB);
    let package = format!("<package>{}</package>", "<itemref idref='a'/>".repeat(10_000_000));
    check("spine.epub", &archive(&[CONTAINER, ("p.opf", &package)]), unpacked, GIB);

    let entry = [b"PK\x01\x02".as_slice(), &[0; 42]].concat();
    check("entries.epub", &entry.repeat(1_000_000), Limit::ArchiveEntries(20_000), GIB / 4);
}

pub fn largest() {
    let document = format!("<document><body><p><r><t>{}</t></r></p></body></document>", "word ".repeat(26_000_000));
    check_largest("text.docx", &archive(&[RELATIONS, ("d.xml", &document)]));
    drop(document);
    let items: Vec<String> =
        (0..3).map(|at| format!("<item id='c{at}' href='c{at}.html' media-type='application/xhtml+xml'/>")).collect();
    let refs: Vec<String> = (0..3).map(|at| format!("<itemref idref='c{at}'/>")).collect();
    let package = format!("<package><manifest>{}</manifest><spine>{}</spine></package>", items.concat(), refs.concat());
    let chapter = ["<p>", &"word ".repeat(6_600_000)].concat();
    let chapters = ["c0.html", "c1.html", "c2.html"].map(|name| (name, chapter.as_str()));
    check_largest("text.epub", &archive(&[&[CONTAINER, ("p.opf", &package)][..], &chapters].concat()));
}
