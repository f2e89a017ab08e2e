//! The positions of message contents in a rendered prompt, so that special tokens in them are read as plain text.

use std::ops::Range;

use calls::Message as Turn;
use models::{ChatOptions, ChatTemplate};

use crate::thought::CLOSE;

/// The byte range of each message's content in the prompt that the template has rendered with these options; `None` for
/// one that the template has changed or left out.
pub(crate) fn find(
    template: &ChatTemplate,
    rendered: &str,
    turns: &[Turn],
    options: ChatOptions<'_>,
) -> Vec<Option<Range<usize>>> {
    by_frame(template, rendered, turns, options).unwrap_or_else(|| one_by_one(rendered, turns))
}

/// Renders the messages with markers around their contents: the text between markers is the template's own.
fn by_frame(
    template: &ChatTemplate,
    rendered: &str,
    turns: &[Turn],
    options: ChatOptions<'_>,
) -> Option<Vec<Option<Range<usize>>>> {
    // Templates leave out the frame of an empty content before calls of tools.
    let mark = |(number, turn): (usize, &Turn)| {
        let is_framed = !turn.content.is_empty() || turn.tool_calls.is_empty();
        if is_framed { format!("\u{f8ff}{number}\u{f8ff}") } else { String::new() }
    };
    let marks: Vec<String> = turns.iter().enumerate().map(mark).collect();
    let marked = turns.iter().zip(&marks).map(|(turn, mark)| Turn { content: mark.clone(), ..turn.clone() });
    let marked: Vec<_> = marked.map(|turn| turn.for_template()).collect();
    let frame = template.render_chat(&marked, options).ok()?;
    // Some templates change the order: the system message may follow the first turns.
    let place = |mark: &String| if mark.is_empty() { None } else { frame.find(mark.as_str()) };
    let places: Vec<Option<usize>> = marks.iter().map(place).collect();
    let mut order: Vec<(usize, usize)> =
        places.iter().enumerate().filter_map(|(turn, at)| Some(((*at)?, turn))).collect();
    order.sort_unstable();
    // Some templates write the calls of a turn only.
    let is_found = |(turn, place): (&Turn, &Option<usize>)| place.is_some() || !turn.tool_calls.is_empty();
    turns.iter().zip(&places).all(is_found).then_some(())?;
    let (mut from, mut at, mut found) = (0, 0, vec![None; turns.len()]);
    for (start, turn) in order {
        let before = &frame[from..start];
        rendered[at..].starts_with(before).then_some(())?;
        at += before.len();
        from = start + marks[turn].len();
        let content = written(&turns[turn].content).into_iter().find(|content| rendered[at..].starts_with(content))?;
        found[turn] = Some(at..at + content.len());
        at += content.len();
    }
    (rendered[at..] == frame[from..]).then_some(found)
}

/// What templates write of a content: some trim white space, and some leave out the thought before an answer.
fn written(content: &str) -> [&str; 4] {
    let answer = content.rsplit_once(CLOSE).map_or(content, |(_, answer)| answer);
    [content, content.trim(), answer.trim_start_matches('\n'), answer.trim()]
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
    use calls::{Prompt, Role, ToolCall};

    use super::*;

    const TEMPLATE: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                            <|im_start|>assistant\n";

    fn contents(template: &str, contents: &[&str]) -> Vec<Option<String>> {
        let prompt = contents
            .iter()
            .fold(Prompt::new(), |prompt, content| prompt.turn(Role::User, *content, calls::Turn::default()));
        let turns = prompt.messages();
        let template = ChatTemplate::new(template).unwrap();
        let rendered = template.render(&turns).unwrap();
        let options = ChatOptions { opens_turn: true, ..ChatOptions::default() };
        let found = find(&template, &rendered, &turns, options);
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
    fn a_text_before_calls_is_found_where_the_template_writes_it() {
        let with_calls = TEMPLATE.replace("{{ m.content }}", "{{ m.content }}{% for c in m.tool_calls %}!{% endfor %}");
        let calls_only = "{% for m in messages %}{{ m.role }} {{ '!' if m.tool_calls else m.content }}{% endfor %}";
        let check = |template: &str, text: &str, expect: [Option<&str>; 2]| {
            let call = ToolCall { id: "a".into(), name: "look".into(), arguments: "{}".into() };
            let asks = calls::Turn { tool_calls: vec![call], ..calls::Turn::default() };
            let prompt = Prompt::new().turn(Role::Assistant, text, asks);
            let turns = prompt.turn(Role::Tool, "<|im_end|>", calls::Turn::default()).messages();
            let template = ChatTemplate::new(template).unwrap();
            let rendered = template.render(&turns.iter().map(Turn::for_template).collect::<Vec<_>>()).unwrap();
            let options = ChatOptions { opens_turn: true, ..ChatOptions::default() };
            let found = find(&template, &rendered, &turns, options);
            let found: Vec<_> = found.into_iter().map(|range| range.map(|range| &rendered[range])).collect();
            assert_eq!(found, expect, "{rendered}");
        };
        check(&with_calls, "So.", [Some("So."), Some("<|im_end|>")]);
        check(&with_calls, "", [None, Some("<|im_end|>")]);
        check(calls_only, "So.", [None, Some("<|im_end|>")]);
    }

    #[test]
    fn contents_in_another_order_and_without_thoughts_are_found() {
        let last_first = "{% for m in messages[1:] %}[INST]{{ m.content }}[/INST]{% endfor %}{{ messages[0].content }}";
        let found = contents(last_first, &["[/INST]", "[INST]"]);
        assert_eq!(found, [Some("19|[/INST]".into()), Some("6|[INST]".into())]);
        let answers = TEMPLATE.replace("m.content", "m.content.split('</think>')[-1].lstrip('\\n')");
        let found = contents(&answers, &["<think>\nHm.\n</think>\n\n<|im_end|>", "user"]);
        assert_eq!(found, [Some("17|<|im_end|>".into()), Some("55|user".into())]);
    }

    #[test]
    fn trimmed_contents_are_found_and_changed_ones_are_not() {
        let trims = TEMPLATE.replace("m.content", "m.content | trim");
        assert_eq!(contents(&trims, &[" user "]), [Some("17|user".into())]);
        let shouts = TEMPLATE.replace("m.content", "m.content | upper");
        assert_eq!(contents(&shouts, &["so"]), [None]);
    }
}
