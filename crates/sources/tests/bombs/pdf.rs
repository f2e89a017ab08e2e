//! PDF, in the child process.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sources::{Cause, Limit, PdfChild, ReadOptions, read};

const MEMORY_LIMIT: u64 = 512 << 20;

/// The program of this package that reads a PDF, if it was built.
fn program() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join("print_pdf_text");
    program.with_extension(std::env::consts::EXE_EXTENSION).exists().then_some(program)
}

/// A PDF of one page, whose content is `unit` repeated.
fn pdf(unit: &str, times: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let block = unit.repeat(1000);
    (0..times / 1000).for_each(|_| encoder.write_all(block.as_bytes()).unwrap());
    let content = encoder.finish().unwrap();
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    let mut object = |text: &str, stream: Option<&[u8]>| {
        offsets.push(pdf.len());
        write!(pdf, "{} 0 obj\n{text}\n", offsets.len()).unwrap();
        if let Some(stream) = stream {
            pdf.extend([b"stream\n", stream, b"\nendstream\n"].concat());
        }
        pdf.extend(b"endobj\n");
    };
    object("<< /Type /Catalog /Pages 2 0 R >>", None);
    object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", None);
    let resources = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>";
    object(
        &format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources {resources} >>"),
        None,
    );
    object(&format!("<< /Filter /FlateDecode /Length {} >>", content.len()), Some(&content));
    let xref = pdf.len();
    let entries: Vec<String> = offsets.iter().map(|offset| format!("{offset:010} 00000 n \n")).collect();
    write!(
        pdf,
        "xref\n0 5\n0000000000 65535 f \n{}trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n",
        entries.concat()
    )
    .unwrap();
    pdf
}

/// Reads a PDF in a child process; returns its text, or the limit that it exceeds.
fn read_in_child(program: &Path, bytes: &[u8]) -> Result<String, Limit> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pdf");
    fs::write(&path, bytes).unwrap();
    let mut child = PdfChild::new(program, [""; 0]);
    child.memory_limit_bytes = MEMORY_LIMIT;
    let options = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
    read(&path, &options).map(|sources| sources[0].text.clone()).map_err(|error| match error.cause {
        Cause::LimitExceeded(limit) => limit,
        other => panic!("{other}"),
    })
}

pub fn bombs() {
    let Some(program) = program() else {
        return eprintln!("skipped: the example print_pdf_text is missing; build the examples");
    };
    let memory = Err(Limit::PdfMemoryBytes(MEMORY_LIMIT));
    let page = Err(Limit::PdfPageBytes(64 << 20));
    let is_refused = |unit, times| {
        let result = read_in_child(&program, &pdf(unit, times));
        assert!(result == memory || result == page, "{result:?}");
    };
    let show = "/F1 9 Tf (A) Tj\n";
    assert_eq!(read_in_child(&program, &pdf(show, 1000)).map(|text| text.matches('A').count()), Ok(1000));
    // 18 GB and 10 GB without limits.
    is_refused("(A) Tj ", 71_000_000);
    is_refused("q ", 100_000_000);
    assert_eq!(read_in_child(&program, &pdf("q ", 35_000_000)), page);
    // The content allowed for one page exceeds the memory limit.
    assert_eq!(read_in_child(&program, &pdf("(A) Tj ", 9_000_000)), memory);
    assert_eq!(read_in_child(&program, &pdf("q ", 30_000_000)), memory);
    #[cfg(unix)]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        // In KiB, except on macOS.
        let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() * unit;
        assert!(u64::try_from(peak).unwrap() <= MEMORY_LIMIT + (64 << 20), "{peak} bytes");
        println!("peak memory of the children: {} MiB", peak >> 20);
    }
}
