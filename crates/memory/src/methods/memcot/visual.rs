//! Panoramic visual grounding (section 4.2, psi_vis): where zoom-out shows that a picture was shared, a vision model
//! would read the session as a picture. There is none yet, so this records where it was needed and returns nothing.

use super::long_term::LongTerm;
use crate::core::error::Result;
use crate::core::session::Session;
use crate::core::trace::Event;

/// Markers of a picture, in lower case: captions as conversations are read with them, Markdown, and plain words.
const SIGNS: [&str; 2] = ["[shares ", "!["];
const WORDS: [&str; 9] = ["photo", "photos", "picture", "pictures", "pic", "pics", "image", "images", "screenshot"];

/// The turns of these sessions that their pictures show to be useful: none without a vision model.
pub(super) fn ground(wide: &[usize], memory: &LongTerm<'_>, session: &Session<'_>) -> Result<Vec<usize>> {
    let mut cues = Vec::new();
    for place in wide {
        let id = memory.timeline.id(*place);
        if shows_picture(&memory.corpus().passage_text(id)?) {
            cues.push(id);
        }
    }
    if !cues.is_empty() {
        cues.sort_unstable();
        let turns = cues.into_iter().map(|id| id.0).collect();
        session.trace.record(Event::Unseen { step: "memcot.visual".to_owned(), turns })?;
    }
    Ok(Vec::new())
}

/// An explicit image cue.
fn shows_picture(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|sign: char| !sign.is_alphanumeric());
    SIGNS.iter().any(|sign| text.contains(sign)) || words.any(|word| WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::shows_picture;

    #[test]
    fn pictures_are_named_explicitly() {
        let check = |text: &str, want: bool| assert_eq!(shows_picture(text), want, "{text:?}");
        check("Ann (D1:3): Look! [shares a dog on a beach]", true);
        check("Here: ![chart](chart.png)", true);
        check("I took this Photo yesterday.", true);
        check("She shares a flat and imagines photography.", false);
        check("", false);
    }
}
