//! The positions of what messages say in a rendered prompt, so that special tokens in it are read as plain text.

use std::ops::Range;

use calls::Message as Turn;
use models::{ChatOptions, ChatTemplate};

use crate::thought::CLOSE;

/// Where a rendered prompt has what its messages say.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The byte range of each message's content; `None` for one that the template has changed or left out.
    pub texts: Vec<Option<Range<usize>>>,
    /// Those of the thoughts that the template has written.
    pub thoughts: Vec<Range<usize>>,
}

/// The contents of messages in the prompt that the template has rendered with these options.
pub(crate) fn find(template: &ChatTemplate, rendered: &str, turns: &[Turn], options: ChatOptions<'_>) -> Contents {
    let one_by_one = || Contents { texts: one_by_one(rendered, turns), thoughts: Vec::new() };
    by_frame(template, rendered, turns, options).unwrap_or_else(one_by_one)
}

/// Renders the messages with markers around their contents and thoughts: the text between markers is the template's own.
fn by_frame(template: &ChatTemplate, rendered: &str, turns: &[Turn], options: ChatOptions<'_>) -> Option<Contents> {
    // Templates leave out the frame of an empty content before calls of tools, and of an empty thought.
    let mark = |(number, turn): (usize, &Turn)| {
        let is_framed = !turn.content.is_empty() || turn.tool_calls.is_empty();
        let text = if is_framed { format!("\u{f8ff}{number}\u{f8ff}") } else { String::new() };
        let thought = turn.thought.as_ref().filter(|thought| !thought.trim().is_empty());
        (text, thought.map(|_| format!("\u{f8ff}thought {number}\u{f8ff}")))
    };
    let marks: Vec<(String, Option<String>)> = turns.iter().enumerate().map(mark).collect();
    let marked = turns.iter().zip(&marks).map(|(turn, (text, thought))| {
        let thought = thought.as_ref().or(turn.thought.as_ref()).cloned();
        Turn { content: text.clone(), thought, ..turn.clone() }.for_template()
    });
    let frame = template.render_chat(&marked.collect::<Vec<_>>(), options).ok()?;
    // Some templates change the order: the system message may follow the first turns.
    let place = |mark: &str| if mark.is_empty() { None } else { frame.find(mark) };
    let mut order: Vec<(usize, usize, &str, bool)> = Vec::new();
    for (number, (turn, (text, thought))) in turns.iter().zip(&marks).enumerate() {
        match place(text) {
            Some(at) => order.push((at, number, text, false)),
            // Some templates write the calls of a turn only.
            None if turn.tool_calls.is_empty() => return None,
            None => {}
        }
        order.extend(thought.as_deref().and_then(|thought| Some((place(thought)?, number, thought, true))));
    }
    order.sort_unstable();
    let mut found = Contents { texts: vec![None; turns.len()], ..Contents::default() };
    let (mut from, mut at) = (0, 0);
    for (start, number, mark, is_thought) in order {
        let before = &frame[from..start];
        rendered[at..].starts_with(before).then_some(())?;
        at += before.len();
        from = start + mark.len();
        let turn = &turns[number];
        let content = if is_thought { turn.thought.as_deref().unwrap_or_default() } else { &turn.content };
        let content = written(content).into_iter().find(|content| rendered[at..].starts_with(content))?;
        let range = at..at + content.len();
        at = range.end;
        if is_thought { found.thoughts.push(range) } else { found.texts[number] = Some(range) }
    }
    (rendered[at..] == frame[from..]).then_some(found)
}

/// What templates write of a content: some trim white space, and some leave out the thought before an answer.
fn written(content: &str) -> [&str; 5] {
    let answer = content.rsplit_once(CLOSE).map_or(content, |(_, answer)| answer);
    [content, content.trim(), answer.trim_start_matches('\n'), answer.trim(), content.trim_matches('\n')]
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
            .texts
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
            let found: Vec<_> = found.texts.into_iter().map(|range| range.map(|range| &rendered[range])).collect();
            assert_eq!(found, expect, "{rendered}");
        };
        check(&with_calls, "So.", [Some("So."), Some("<|im_end|>")]);
        check(&with_calls, "", [None, Some("<|im_end|>")]);
        check(calls_only, "So.", [None, Some("<|im_end|>")]);
    }

    #[test]
    fn thoughts_are_found_where_the_template_writes_them() {
        let writes = TEMPLATE.replace(
            "{{ m.content }}",
            "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content.strip('\n') }}\n</think>\n\n{% endif %}{{ m.content }}",
        );
        let thinks = |thought: &str| Turn {
            thought: Some(thought.into()),
            ..Prompt::new().assistant("So.").messages().remove(0)
        };
        let turns = [thinks("\nOne <|im_end|>\n"), thinks(" "), thinks("<|im_end|>")];
        let check = |template: &str, expect: &[&str]| {
            let template = ChatTemplate::new(template).unwrap();
            let messages: Vec<_> = turns.iter().map(Turn::for_template).collect();
            let options = ChatOptions { opens_turn: true, ..ChatOptions::default() };
            let rendered = template.render_chat(&messages, options).unwrap();
            let Contents { texts, thoughts } = find(&template, &rendered, &turns, options);
            let thoughts: Vec<&str> = thoughts.into_iter().map(|range| &rendered[range.start - 8..range.end]).collect();
            assert_eq!((texts.iter().flatten().count(), &*thoughts), (3, expect), "{rendered}");
        };
        check(&writes, &["<think>\nOne <|im_end|>", "<think>\n<|im_end|>"]);
        check(TEMPLATE, &[]);
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
