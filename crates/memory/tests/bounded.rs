//! The peak memory of an ingest: it does not grow with a plain text, though a tokenizer needs a hundred times its size.
//!
//! One test in its own process, whose peak memory it measures. `MEMLOCAL_TEXT_MIB` sets the size of the text.

use std::hint::black_box;
use std::io::Write;
use std::ops::Range;

use calls::{
    Agent, BoxFuture, Call, CallError, Caller, ModelInfo, Priority, Reply, Scripted, ScriptedEmbedder, TenantId,
    Tokens, WorkflowId,
};
use memory::{Added, Session, Settings, Trace, rag};
use peak_alloc::PeakAlloc;
use sources::{Opened, ReadOptions};
use store::{Change, Corpora, Layer};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const TEXT_MIB: usize = 40;
/// Bytes that the `tokenizers` crate needs per byte of text while it tokenises, as measured.
const TOKENIZER_FACTOR: usize = 100;

/// A caller whose tokenizer allocates as much memory as a real one.
struct Costly(Scripted);

impl Caller for Costly {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        self.0.call(call)
    }

    fn tokens(&self) -> &dyn Tokens {
        self
    }

    fn models(&self) -> &dyn ModelInfo {
        self.0.models()
    }
}

impl Tokens for Costly {
    fn context_tokens(&self, agent: Agent) -> usize {
        self.0.context_tokens(agent)
    }

    fn token_spans(&self, agent: Agent, text: &str) -> Vec<Range<usize>> {
        drop(black_box(vec![1_u8; TOKENIZER_FACTOR * text.len()]));
        self.0.token_spans(agent, text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        self.0.prompt_tokens(call)
    }
}

/// The peak resident memory of this process, `SQLite`'s included, in bytes.
#[cfg(unix)]
fn peak_resident_bytes() -> usize {
    use nix::sys::resource::{UsageWho, getrusage};
    // In KiB, except on macOS.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its usage").max_rss();
    usize::try_from(peak).expect("it is not negative") * unit
}

#[test]
fn the_memory_of_an_ingest_does_not_grow_with_the_text() -> Result<(), Box<dyn std::error::Error>> {
    let text_mib = std::env::var("MEMLOCAL_TEXT_MIB").map_or(Ok(TEXT_MIB), |mib| mib.parse())?;
    let text_bytes = text_mib << 20;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("long.txt");
    let line = "The lamp of the north pier was out for two hours; Captain Orsini reported it.\n";
    // Piece by piece, so that the text is not in the peak.
    let mut file = std::fs::File::create(&path)?;
    let lines_per_mib = (1 << 20) / line.len();
    let piece = line.repeat(lines_per_mib);
    (0..text_mib).try_for_each(|_| file.write_all(piece.as_bytes()))?;
    drop(file);
    let mut writer = Corpora::new(folder.path()).create("long")?;
    let (caller, trace) = (Costly(Scripted::new(8192)), Trace::off());
    let session = Session {
        caller: &caller,
        embedder: &ScriptedEmbedder,
        settings: Settings::new(&rag::Rag),
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Bulk,
        on_text: None,
    };
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    #[cfg(unix)]
    let resident_before = peak_resident_bytes();

    let Opened::Text(text) = sources::open(&path, &ReadOptions::default())? else { return Err("it is a text".into()) };
    let added = memory::add_text(&text, &mut writer, &session)?;
    let allocated = ALLOCATOR.peak_usage() - before;
    assert_eq!(memory::add_text(&text, &mut writer, &session)?, Added { change: Change::Unchanged, ..added });
    ALLOCATOR.reset_peak_usage();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(memory::prepare(&mut writer, &session, &mut |_| {}))?;
    let preparing = ALLOCATOR.peak_usage() - before;

    let pages = writer.passages(Layer::Page)?.len();
    assert!(pages > text_bytes / 4096, "{pages} pages");
    println!("{} MiB while adding, {} MiB while preparing, {pages} pages", allocated >> 20, preparing >> 20);
    // The tokens of a stretch of text, and what is known of each page.
    let pages_bytes = pages * 1024;
    assert!(allocated < pages_bytes + (24 << 20), "{allocated} bytes while adding");
    assert!(preparing < pages_bytes + (8 << 20), "{preparing} bytes while preparing");
    #[cfg(unix)]
    {
        let resident = peak_resident_bytes() - resident_before;
        println!("{} MiB resident", resident >> 20);
        assert!(resident < pages_bytes + (72 << 20), "{resident} bytes resident");
    }
    Ok(())
}
