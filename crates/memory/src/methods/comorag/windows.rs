//! The episodic layer: summaries of windows over a document's chunks, in the order of the text (appendix B.2).

use std::collections::HashSet;

use store::{Corpus, DerivedId, Digest, DocId, Layer, Passage, PassageId, Writer};

use super::prompts::NARRATE;
use super::summarise::{Made, Task, room, summarise};
use crate::core::error::Result;
use crate::core::origin::dated;
use crate::core::preparation::Progress;
use crate::core::session::Session;

/// The kind of a window's summary in the store.
pub(super) const WINDOW: &str = "comorag.window/1";

/// Tokens of a window's summary (released code: 500).
const MAX_OUTPUT_TOKENS: usize = 500;

/// Chunks of a window in a document with this many chunks.
pub(super) fn window_chunks(chunks: usize) -> usize {
    match chunks {
        ..=20 => 3,
        21..=50 => 5,
        51..=100 => 8,
        101..=200 => 10,
        // Twice the logarithm, rounded down, is the logarithm of the square.
        _ => ((chunks * chunks).ilog2() as usize).clamp(10, 20),
    }
}

/// The chunks that no window covers yet.
pub(super) fn uncovered(corpus: &Corpus) -> Result<Vec<Passage>> {
    let covered: HashSet<PassageId> = corpus.derived(WINDOW)?.into_iter().flat_map(|window| window.sources).collect();
    let mut chunks = corpus.passages(Layer::Chunk)?;
    chunks.retain(|chunk| !covered.contains(&chunk.id));
    Ok(chunks)
}

/// Writes the missing windows, all documents concurrently.
pub(super) async fn narrate(
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut documents: Vec<DocId> = uncovered(writer)?.into_iter().map(|chunk| chunk.document).collect();
    documents.dedup();
    let mut tasks = Vec::new();
    for document in &documents {
        tasks.extend(windows_of(*document, writer, session)?);
    }
    let made = summarise(&tasks, ["telling", "window"], writer, session, progress).await?;
    forget_others(&documents, &made, writer)
}

fn windows_of(document: DocId, corpus: &Corpus, session: &Session<'_>) -> Result<Vec<Task>> {
    let path = corpus.document(document)?.path;
    let chunks = corpus.passages_of(document, Layer::Chunk)?;
    let room_tokens = room(NARRATE, MAX_OUTPUT_TOKENS, session);
    let mut windows: Vec<Task> = Vec::new();
    let mut used_tokens = 0;
    for chunk in &chunks {
        let text = dated(chunk.id, corpus)?.trim().to_owned();
        let tokens = super::summarise::tokens(&text, session);
        match windows.last_mut() {
            Some(window) if window.texts.len() < window_chunks(chunks.len()) && used_tokens + tokens <= room_tokens => {
                window.texts.push(text);
                window.sources.push(chunk.id);
                used_tokens += tokens;
            }
            _ => {
                windows.push(Task {
                    kind: WINDOW,
                    single_as_is: true,
                    step: "comorag.narrate",
                    instructions: NARRATE,
                    max_output_tokens: MAX_OUTPUT_TOKENS,
                    place: format!("{path} from chunk {}", chunk.ordinal),
                    texts: vec![text],
                    sources: vec![chunk.id],
                });
                used_tokens = tokens;
            }
        }
    }
    Ok(windows)
}

/// Windows that were started under another model's context and overlap the current ones.
fn forget_others(documents: &[DocId], made: &[Made], writer: &mut Writer) -> Result<()> {
    let kept: HashSet<Digest> = made.iter().map(|made| made.key).collect();
    let mut of_documents = HashSet::new();
    for document in documents {
        of_documents.extend(writer.passages_of(*document, Layer::Chunk)?.into_iter().map(|chunk| chunk.id));
    }
    let others = writer.derived(WINDOW)?.into_iter();
    let others: Vec<DerivedId> = others
        .filter(|window| of_documents.contains(&window.sources[0]) && !kept.contains(&window.key))
        .map(|window| window.id)
        .collect();
    Ok(writer.remove_derived(&others)?)
}

#[cfg(test)]
mod tests {
    use super::window_chunks;

    #[test]
    fn windows_grow_with_the_text() {
        let check = |chunks: usize, want: usize| assert_eq!(window_chunks(chunks), want, "of {chunks} chunks");
        let counts = [1, 5, 6, 20, 21, 50, 51, 100, 101, 200, 201, 256, 363, 512, 1000, 1024, 2000];
        let want = [3, 3, 3, 3, 5, 5, 8, 8, 10, 10, 15, 16, 17, 18, 19, 20, 20];
        counts.into_iter().zip(want).for_each(|(chunks, want)| check(chunks, want));
    }
}
