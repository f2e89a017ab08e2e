//! The positions of message contents in a rendered prompt, so that special tokens in them are read as plain text.

use std::ops::Range;

use calls::Message as Turn;
use models::ChatTemplate;

/// The byte range of each message's content in the rendered prompt; `None` for one that the template has changed.
pub(crate) fn find(template: &ChatTemplate, rendered: &str, turns: &[Turn], thinks: bool) -> Vec<Option<Range<usize>>> {
    by_frame(template, rendered, turns, thinks).unwrap_or_else(|| one_by_one(rendered, turns))
}

/// Renders the messages with markers around their contents: the text between markers is the template's own.
fn by_frame(
    template: &ChatTemplate,
    rendered: &str,
    turns: &[Turn],
    thinks: bool,
) -> Option<Vec<Option<Range<usize>>>> {
    let marks: Vec<String> = (0..turns.len()).map(|turn| format!("\u{f8ff}{turn}\u{f8ff}")).collect();
    let marked = turns.iter().zip(&marks).map(|(turn, mark)| Turn { content: mark.clone(), ..*turn });
    let frame = template.render_thinking(&marked.collect::<Vec<_>>(), thinks).ok()?;
    let (mut frame, mut at, mut found) = (frame.as_str(), 0, Vec::new());
    for (turn, mark) in turns.iter().zip(&marks) {
        let (before, after) = frame.split_once(mark.as_str())?;
        rendered[at..].starts_with(before).then_some(())?;
        at += before.len();
        // Some templates trim white space.
        let content = [turn.content.as_str(), turn.content.trim()];
        let content = content.into_iter().find(|content| rendered[at..].starts_with(content))?;
        found.push(Some(at..at + content.len()));
        at += content.len();
        frame = after;
    }
    (rendered[at..] == *frame).then_some(found)
}

/// Each content at its next occurrence.
fn one_by_one(rendered: &str, turns: &[Turn]) -> Vec<Option<Range<usize>>> {
    let mut from = 0;
    let find = |turn: &Turn| {
        let content = turn.content.trim();
        let start = from + rendered[from..].find(content)?;
        from = start + content.len();
        Some(start..from)
    };
    turns.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use calls::Speaker;

    use super::*;

    const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                            <|im_start|>assistant\n";

    fn contents(template: &str, contents: &[&str]) -> Vec<Option<String>> {
        let turn = |content: &&str| Turn { speaker: Speaker::User, content: (*content).to_owned() };
        let turns: Vec<Turn> = contents.iter().map(turn).collect();
        let template = ChatTemplate::new(template).unwrap();
        let rendered = template.render(&turns).unwrap();
        let found = find(&template, &rendered, &turns, false);
        let end = found.iter().flatten().map(|range| range.start).collect::<Vec<_>>();
        assert!(end.is_sorted());
        found
            .into_iter()
            .map(|range| range.map(|range| format!("{}|{}", range.start, &rendered[range.clone()])))
            .collect()
    }

    #[test]
    fn words_of_the_template_are_not_taken_for_what_was_said() {
        let check = |said: &[&str], expect: &[&str]| {
            let found = contents(TEMPLATE, said);
            assert_eq!(found, expect.iter().map(|range| Some((*range).to_owned())).collect::<Vec<_>>());
        };
        check(&["user"], &["17|user"]);
        check(&["<|im_end|>", "user"], &["17|<|im_end|>", "55|user"]);
        check(&["", " a "], &["17|", "45| a "]);
    }

    #[test]
    fn trimmed_contents_are_found_and_changed_ones_are_not() {
        let trims = TEMPLATE.replace("m.content", "m.content | trim");
        assert_eq!(contents(&trims, &[" user "]), [Some("17|user".into())]);
        let shouts = TEMPLATE.replace("m.content", "m.content | upper");
        assert_eq!(contents(&shouts, &["so"]), [None]);
    }
}
