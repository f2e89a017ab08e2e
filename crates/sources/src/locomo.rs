//! `LoCoMo`'s form: an array of samples, each with a `conversation` whose `session_1`, `session_2`, ... are lists of
//! turns (Maharana et al. 2024, <https://github.com/snap-research/locomo>).
//!
//! Its questions, summaries and observations are about the conversation, not part of it, and are not read.

use crate::conversation::layout::{Said, Session, laid_out};
use crate::records::{Ids, Record};
use crate::{Cause, Kind, Source};

/// Whether the caption of a picture in a `LoCoMo` conversation is part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Captions {
    /// Left out, as GAM does.
    #[default]
    Dropped,
    /// Appended to the turn: ` [shares a photo of a dog]`.
    Kept,
}

/// One source for each sample, its path ending in `#` and the sample's id.
pub(crate) fn sources(path: &str, samples: &[Record<'_>], captions: Captions) -> Result<Vec<Source>, Cause> {
    let mut ids = Ids::default();
    let mut sources = Vec::new();
    for (i, sample) in samples.iter().enumerate() {
        let id = sample.label("sample_id")?.unwrap_or_else(|| (i + 1).to_string());
        ids.take(&id, sample, "sample_id")?;
        let conversation = sample.object("conversation")?;
        let title = match (conversation.label("speaker_a")?, conversation.label("speaker_b")?) {
            (Some(a), Some(b)) => Some(format!("{a} and {b}")),
            _ => None,
        };
        sources.push(laid_out(&format!("{path}#{id}"), Kind::Conversation, title, sessions(&conversation, captions)?)?);
    }
    Ok(sources)
}

/// The sessions in the order of their numbers. Some samples have a date without a session; it is ignored.
fn sessions(conversation: &Record<'_>, captions: Captions) -> Result<Vec<Session>, Cause> {
    let mut numbers: Vec<usize> = Vec::new();
    conversation.each_field(|field, _| {
        numbers.extend(field.strip_prefix("session_").and_then(|number| number.parse::<usize>().ok()));
    });
    numbers.sort_unstable();
    numbers.dedup();
    let mut ids = Ids::default();
    let mut sessions = Vec::new();
    for number in numbers {
        let field = format!("session_{number}");
        let turns = conversation.objects(&field)?;
        let said: Vec<Said> = turns.iter().map(|turn| said(turn, captions, &mut ids)).collect::<Result<_, _>>()?;
        let time = conversation.label(&format!("{field}_date_time"))?;
        if !said.is_empty() {
            sessions.push(Session { number: number.saturating_sub(1), title: Some(field), time, said });
        }
    }
    Ok(sessions)
}

fn said(turn: &Record<'_>, captions: Captions, ids: &mut Ids) -> Result<Said, Cause> {
    let id = turn.text("dia_id")?;
    ids.take(&id, turn, "dia_id")?;
    let mut text = turn.text("text")?;
    if captions == Captions::Kept
        && let Some(caption) = turn.label("blip_caption")?
    {
        text = format!("{} [shares {caption}]", text.trim_end());
    }
    Ok(Said { id, speaker: turn.text("speaker")?, text, time: None })
}
