//! Splits paged attention into GPU tasks: by tiles of query tokens, by ranges of keys (split-KV) where tasks would be too
//! few, and by prefixes that sequences share.
//!
//! A shared prefix of pages is read once for the query tokens of all its sequences; the rest of each sequence is a task of its
//! own, and partial results are merged by their maxima and sums, as in Hydragen (arXiv 2402.05099). A plan is one array of
//! words, so that one copy transfers it to the device, once per step for all layers.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::attention::{KEYS, PagedSequence};

/// Rows (tokens times heads of a group) that a wide task may have. No group may have more heads: a token's rows go together.
pub(crate) const WIDE_ROWS: usize = 64;
/// Rows that a narrow task may have.
const NARROW_ROWS: usize = 16;
/// A shared prefix of at least this many pages is a task of its own.
const SHARED_PAGES: usize = 4;
/// A task is not cut into runs of fewer pages.
const MIN_PAGES: usize = 8;
/// Blocks that keep a processor of the GPU busy.
const BLOCKS: usize = 4;
/// Marks an entry whose attention one task computes as a whole.
const WHOLE: u32 = u32::MAX;

/// Tasks of one kind in a plan's words: where they begin, in bytes, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tasks {
    pub at: u64,
    pub count: usize,
}

/// The batch metadata that is copied to the device.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Positions and slots of the rows, entries, wide tasks, narrow tasks, lists of pages, merges.
    pub words: Vec<u32>,
    /// Rows of the batch.
    pub rows: usize,
    /// Partial sums that tasks write.
    pub parts: usize,
    /// Where each part of `words` begins.
    starts: [usize; 7],
}

/// Words of a task and of a merge; an entry has four.
const TASK: usize = 5;
const MERGE: usize = 3;

/// A row of the batch and the keys that it sees.
#[derive(Debug, Clone)]
struct Token {
    row: usize,
    visible: Range<usize>,
}

/// Query tokens against a run of pages.
#[derive(Debug, Clone)]
struct Piece<'a> {
    tokens: Vec<Token>,
    pages: &'a [u32],
    first_key: usize,
}

/// How a network and a GPU ask for work to be cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    /// Query heads of a group.
    pub group: usize,
    /// K: every task is launched once for each.
    pub keys: usize,
    /// Latest keys that a row sees, if not all.
    pub window: Option<usize>,
    /// Multiprocessors of the GPU.
    pub processors: usize,
}

impl Plan {
    /// Cuts a batch.
    pub fn new(positions: &[u32], slots: &[u32], sequences: &[PagedSequence<'_>], cut: Cut) -> Plan {
        let mut pieces = split(pieces(sequences, cut), cut);
        // Blocks begin in order: what takes longest must not be what begins last.
        pieces.sort_by_key(|piece| Reverse(piece.pages.len()));
        let mut plan = Plan { words: Vec::new(), rows: positions.len(), parts: 0, starts: [0; 7] };
        let parts = plan.count_parts(&pieces);
        plan.words.extend(positions);
        plan.begin(1);
        plan.words.extend(slots);
        plan.begin(2);
        let mut next = parts.clone();
        for token in pieces.iter().flat_map(|piece| &piece.tokens) {
            let part = match &mut next[token.row] {
                parts if parts.start >= parts.end => WHOLE,
                parts => {
                    parts.start += 1;
                    parts.start - 1
                }
            };
            plan.words.extend([token.row as u32, token.visible.start as u32, token.visible.end as u32, part]);
        }
        plan.begin(3);
        plan.write_tasks(&pieces, |piece| !is_narrow(piece, cut));
        plan.begin(4);
        plan.write_tasks(&pieces, |piece| is_narrow(piece, cut));
        plan.begin(5);
        pieces.iter().for_each(|piece| plan.words.extend(piece.pages));
        plan.begin(6);
        for (row, parts) in parts.iter().enumerate().filter(|(_, parts)| parts.start < parts.end) {
            plan.words.extend([row as u32, parts.start, parts.end - parts.start]);
        }
        plan
    }

    pub fn positions(&self) -> u64 {
        self.byte(0)
    }

    pub fn slots(&self) -> u64 {
        self.byte(1)
    }

    pub fn entries(&self) -> u64 {
        self.byte(2)
    }

    pub fn wide(&self) -> Tasks {
        Tasks { at: self.byte(3), count: (self.starts[4] - self.starts[3]) / TASK }
    }

    pub fn narrow(&self) -> Tasks {
        Tasks { at: self.byte(4), count: (self.starts[5] - self.starts[4]) / TASK }
    }

    pub fn lists(&self) -> u64 {
        self.byte(5)
    }

    pub fn merges(&self) -> Tasks {
        Tasks { at: self.byte(6), count: (self.words.len() - self.starts[6]) / MERGE }
    }

    fn byte(&self, part: usize) -> u64 {
        4 * self.starts[part] as u64
    }

    fn begin(&mut self, part: usize) {
        self.starts[part] = self.words.len();
    }

    /// The partial sums of each row; none for rows that one task computes.
    fn count_parts(&mut self, pieces: &[Piece<'_>]) -> Vec<Range<u32>> {
        let mut counts = vec![0u32; self.rows];
        pieces.iter().flat_map(|piece| &piece.tokens).for_each(|token| counts[token.row] += 1);
        let mut end = 0;
        let ranges = counts.into_iter().map(|count| {
            let start = end;
            end += if count > 1 { count } else { 0 };
            start..end
        });
        let ranges = ranges.collect();
        self.parts = end as usize;
        ranges
    }

    fn write_tasks(&mut self, pieces: &[Piece<'_>], kind: impl Fn(&Piece<'_>) -> bool) {
        let (mut entry, mut page) = (0, 0);
        for piece in pieces {
            if kind(piece) {
                let task = [entry, piece.tokens.len(), page, piece.pages.len(), piece.first_key];
                self.words.extend(task.map(|n| n as u32));
            }
            entry += piece.tokens.len();
            page += piece.pages.len();
        }
    }
}

fn is_narrow(piece: &Piece<'_>, cut: Cut) -> bool {
    piece.tokens.len() * cut.group <= NARROW_ROWS
}

/// The work of a batch, before it is cut by keys.
fn pieces<'a>(sequences: &[PagedSequence<'a>], cut: Cut) -> Vec<Piece<'a>> {
    let shared = shared_pages(sequences, cut);
    let most = (WIDE_ROWS / cut.group).max(1);
    let mut pieces = Vec::new();
    for members in families(sequences).into_iter().filter(|members| shared[members[0]] > 0) {
        let prefix = shared[members[0]];
        let tokens: Vec<Token> = members
            .iter()
            .flat_map(|member| sequences[*member].rows.clone())
            .map(|row| Token { row, visible: 0..prefix * KEYS })
            .collect();
        let pages = &sequences[members[0]].pages[..prefix];
        pieces.extend(tokens.chunks(most).map(|tokens| Piece { tokens: tokens.to_vec(), pages, first_key: 0 }));
    }
    for (sequence, shared) in sequences.iter().zip(&shared) {
        let token = |row: usize| {
            let end = sequence.past + row - sequence.rows.start + 1;
            let start = cut.window.map_or(0, |window| end.saturating_sub(window));
            Token { row, visible: start.max(shared * KEYS)..end }
        };
        let tokens: Vec<Token> = sequence.rows.clone().map(token).collect();
        for tokens in tokens.chunks(most) {
            let first = tokens[0].visible.start / KEYS;
            let last = tokens[tokens.len() - 1].visible.end.div_ceil(KEYS);
            pieces.push(Piece {
                tokens: tokens.to_vec(),
                pages: &sequence.pages[first..last],
                first_key: first * KEYS,
            });
        }
    }
    pieces
}

/// Sequences with the same first page, by their numbers.
fn families(sequences: &[PagedSequence<'_>]) -> Vec<Vec<usize>> {
    let mut of_page: HashMap<u32, usize> = HashMap::new();
    let mut families: Vec<Vec<usize>> = Vec::new();
    for (index, sequence) in sequences.iter().enumerate().filter(|(_, sequence)| !sequence.rows.is_empty()) {
        let Some(first) = sequence.pages.first() else { continue };
        let family = *of_page.entry(*first).or_insert_with(|| {
            families.push(Vec::new());
            families.len() - 1
        });
        families[family].push(index);
    }
    families
}

/// The pages that each sequence reads together with others, if any.
fn shared_pages(sequences: &[PagedSequence<'_>], cut: Cut) -> Vec<usize> {
    let mut shared = vec![0; sequences.len()];
    if cut.window.is_some() {
        return shared;
    }
    for members in families(sequences).into_iter().filter(|members| members.len() > 1) {
        let first = &sequences[members[0]];
        let in_common = |other: &PagedSequence<'_>| {
            let same = first.pages.iter().zip(other.pages).take_while(|(a, b)| a == b).count();
            same.min(other.past / KEYS)
        };
        let pages = members.iter().map(|member| in_common(&sequences[*member])).min().unwrap_or(0);
        if pages >= SHARED_PAGES {
            members.into_iter().for_each(|member| shared[member] = pages);
        }
    }
    shared
}

/// Cuts pieces by their keys until the GPU has enough to do.
fn split<'a>(pieces: Vec<Piece<'a>>, cut: Cut) -> Vec<Piece<'a>> {
    let wanted = (BLOCKS * cut.processors).div_ceil(cut.keys.max(1));
    let pages: usize = pieces.iter().map(|piece| piece.pages.len()).sum();
    if pieces.len() >= wanted {
        return pieces;
    }
    let most = pages.div_ceil(wanted).max(MIN_PAGES);
    let cut_piece = |piece: Piece<'a>| -> Vec<Piece<'a>> {
        let runs = piece.pages.chunks(most).enumerate();
        let run = |(index, pages)| Piece { pages, first_key: piece.first_key + index * most * KEYS, ..piece.clone() };
        runs.map(run).collect()
    };
    pieces.into_iter().flat_map(cut_piece).collect()
}

/// Query rows of an encoder that a block takes together.
const STRIP: usize = 64;

/// The strips of each of `sequences`, as words `[strips, 4]`: first row, rows, first key's row, keys.
pub(crate) fn strips(sequences: &[Range<usize>]) -> Vec<u32> {
    let of = |sequence: &Range<usize>| {
        let Range { start, end } = *sequence;
        let strip = move |first: usize| [first, STRIP.min(end - first), start, end - start].map(|n| n as u32);
        (start..end).step_by(STRIP).flat_map(strip)
    };
    sequences.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_tasks_begin_first() {
        let lists: Vec<Vec<u32>> = [3, 40, 1, 17].iter().map(|pages| (0..*pages).collect()).collect();
        let sequence = |(row, pages): (usize, &'static [u32])| PagedSequence {
            rows: row..row + 1,
            past: pages.len() * KEYS - 1,
            pages,
        };
        let lists = lists.into_iter().map(|list| &*list.leak());
        let sequences: Vec<_> = lists.enumerate().map(sequence).collect();
        for processors in [1, 100] {
            let plan = Plan::new(&[0; 4], &[0; 4], &sequences, Cut { group: 1, keys: 1, window: None, processors });
            let Tasks { at, count } = plan.narrow();
            let words = &plan.words[at as usize / 4..][..count * TASK];
            let pages: Vec<u32> = words.chunks_exact(TASK).map(|task| task[3]).collect();
            assert!(pages.is_sorted_by(|a, b| a >= b), "{pages:?}");
            assert_eq!(pages.iter().sum::<u32>(), 3 + 40 + 1 + 17, "all pages are read");
        }
    }
}
