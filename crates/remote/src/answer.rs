//! Parses a streamed answer: server-sent events, each with a piece of text or of a tool call, the end, or the usage.

use calls::{OnText, Piece, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use crate::inline_thought::{InlineThought, Part};

/// Finish reasons of complete answers, those of Text Generation Inference included.
const COMPLETE: [&str; 5] = ["stop", "tool_calls", "function_call", "eos_token", "stop_sequence"];

/// The part of the answer received so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub text: String,
    /// The model's reasoning before the answer, if the endpoint reports it separately.
    pub thought: String,
    /// The calls of tools, the last one perhaps incomplete.
    pub tool_calls: Vec<ToolCall>,
    /// The finish reason, once it is known.
    pub finish_reason: Option<String>,
    pub cost: Cost,
    inline: InlineThought,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

/// Token counts as reported by the endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Cost {
    pub prompt_tokens: usize,
    #[serde(default)]
    pub completion_tokens: usize,
    #[serde(default)]
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<usize>,
}

impl Cost {
    pub fn cached_tokens(&self) -> usize {
        self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0)
    }
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Cost>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    /// The field that completions use.
    text: Option<String>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    /// The reasoning, in the field of vLLM, SGLang and llama-server.
    reasoning_content: Option<String>,
    /// The field of newer versions of vLLM; some send both.
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

/// A piece of a tool call: the first has its name.
#[derive(Deserialize)]
struct CallDelta {
    index: Option<usize>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

impl Answer {
    /// Parses bytes from the socket; passes pieces of text to the stream's receiver, if there is one.
    ///
    /// # Errors
    /// The endpoint's message if it aborts the answer, or the defect of the stream.
    pub fn take(&mut self, bytes: &[u8], on_text: Option<&OnText>) -> Result<(), String> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (end_of_line, after) = rest.split_at(end + 1);
            self.begun.extend_from_slice(end_of_line);
            let line = std::mem::take(&mut self.begun);
            self.line(&line, on_text)?;
            rest = after;
        }
        self.begun.extend_from_slice(rest);
        Ok(())
    }

    fn line(&mut self, line: &[u8], on_text: Option<&OnText>) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "its answer is not UTF-8".to_owned())?.trim();
        let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| *data != "[DONE]") else {
            return Ok(());
        };
        let chunk: Chunk =
            serde_json::from_str(data).map_err(|error| format!("its answer cannot be read: {:?}", error.classify()))?;
        if let Some(error) = chunk.error {
            return Err(message(&error));
        }
        for Choice { delta, text, finish_reason } in chunk.choices {
            let (content, thought, calls) = delta.map_or((None, None, None), |delta| {
                (delta.content, delta.reasoning_content.or(delta.reasoning), delta.tool_calls)
            });
            self.add(Part::Thought(&thought.unwrap_or_default()), on_text);
            if let Some(piece) = text {
                self.add(Part::Text(&piece), on_text);
            } else if let Some(piece) = content {
                let mut inline = std::mem::take(&mut self.inline);
                inline.split(&piece, &mut |part| self.add(part, on_text));
                self.inline = inline;
            }
            for call in calls.unwrap_or_default() {
                self.call(call, on_text)?;
            }
            self.finish_reason = finish_reason.filter(|reason| !reason.is_empty()).or(self.finish_reason.take());
        }
        self.cost = chunk.usage.unwrap_or(self.cost);
        Ok(())
    }
}

impl Answer {
    /// Ends the answer after its last line.
    ///
    /// # Errors
    /// If it is not complete.
    pub fn end(&mut self, on_text: Option<&OnText>) -> Result<(), String> {
        let mut inline = std::mem::take(&mut self.inline);
        let is_thought = inline.end(&mut |part| self.add(part, on_text));
        // At the limit of tokens the last call may lack its arguments.
        if self.finish_reason.as_deref().is_some_and(|reason| reason != "length") {
            self.complete_call(on_text);
        }
        match self.finish_reason.as_deref() {
            None => Err("its answer breaks off".to_owned()),
            Some("length") => Ok(()),
            Some(reason) if !COMPLETE.contains(&reason) => Err(format!("its answer ended by `{reason}`")),
            Some(_) if is_thought => Err("its answer ended within a thought".to_owned()),
            Some(_) => Ok(()),
        }
    }

    fn add(&mut self, part: Part<'_>, on_text: Option<&OnText>) {
        let (Part::Thought(text) | Part::Text(text)) = part;
        let on_text = on_text.filter(|_| !text.is_empty());
        match part {
            Part::Thought(thought) => {
                self.thought.push_str(thought);
                on_text.inspect(|on_text| on_text.send_piece(Piece::Thought(thought)));
            }
            Part::Text(text) => {
                self.text.push_str(text);
                on_text.inspect(|on_text| on_text.send(text));
            }
        }
    }

    /// Adds a piece of a tool call. Endpoints send calls one after the other.
    fn call(&mut self, CallDelta { index, id, function }: CallDelta, on_text: Option<&OnText>) -> Result<(), String> {
        let FunctionDelta { name, arguments } = function.unwrap_or(FunctionDelta { name: None, arguments: None });
        let begins = match index {
            Some(index) if index > self.tool_calls.len() => return Err("its tool calls are out of order".to_owned()),
            Some(index) => index == self.tool_calls.len(),
            None => name.is_some(),
        };
        if begins {
            self.complete_call(on_text);
            let name = name.ok_or("it calls a tool without a name")?;
            if let Some(on_text) = on_text {
                on_text.send_piece(Piece::ToolCall(&name));
            }
            let id = id.unwrap_or_else(|| format!("call-{}", self.tool_calls.len()));
            self.tool_calls.push(ToolCall { id, name, arguments: String::new() });
        }
        let arguments = arguments.unwrap_or_default();
        let is_last = index.is_none_or(|index| index + 1 == self.tool_calls.len());
        let last = self.tool_calls.last_mut().filter(|_| is_last);
        last.ok_or("its tool calls are out of order")?.arguments.push_str(&arguments);
        if let Some(on_text) = on_text.filter(|_| !arguments.is_empty()) {
            on_text.send_piece(Piece::Arguments(&arguments));
        }
        Ok(())
    }

    /// Ends the last tool call: arguments that the endpoint left out, as some do for a tool without parameters, are an empty
    /// object.
    fn complete_call(&mut self, on_text: Option<&OnText>) {
        const NO_ARGUMENTS: &str = "{}";
        let Some(last) = self.tool_calls.last_mut().filter(|call| call.arguments.trim().is_empty()) else { return };
        last.arguments.push_str(NO_ARGUMENTS);
        if let Some(on_text) = on_text {
            on_text.send_piece(Piece::Arguments(NO_ARGUMENTS));
        }
    }
}

/// The message of an error object.
pub(crate) fn message(error: &Value) -> String {
    error["message"].as_str().or(error.as_str()).map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const STREAM: &str = ": still here\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"content\":\"Zo\u{eb}\"},\"finish_reason\":null}]}\r\n\r\n\
        data:{\"choices\":[{\"text\":\" ran\",\"finish_reason\":\"length\"}],\"usage\":null}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n\
        data: [DONE]\n\n";

    #[test]
    fn streams_are_read_however_they_are_cut() {
        for size in [1, 2, 7, 64, STREAM.len()] {
            let pieces = Arc::new(Mutex::new(String::new()));
            let heard = Arc::clone(&pieces);
            let on_text = OnText::new(move |piece| heard.lock().expect("a lock").push_str(piece));
            let mut answer = Answer::default();
            for bytes in STREAM.as_bytes().chunks(size) {
                answer.take(bytes, Some(&on_text)).expect("the stream is good");
            }
            assert_eq!(answer.text, "Zo\u{eb} ran");
            assert_eq!(*pieces.lock().expect("a lock"), answer.text);
            assert_eq!(answer.finish_reason.as_deref(), Some("length"));
            assert_eq!(
                (answer.cost.prompt_tokens, answer.cost.completion_tokens, answer.cost.cached_tokens()),
                (9, 3, 4)
            );
        }
    }

    /// Each byte is read once: reading from the start of the line at every piece would take hours here.
    #[test]
    fn a_long_line_in_small_pieces_is_read_once() {
        let text = "la ".repeat(8 << 20);
        let line = format!("data: {{\"choices\":[{{\"text\":\"{text}\"}}]}}\n");
        let mut answer = Answer::default();
        for bytes in line.as_bytes().chunks(8) {
            answer.take(bytes, None).expect("the stream is good");
        }
        assert!(answer.text == text);
    }

    #[test]
    fn a_thought_is_kept_apart_from_the_text() {
        let heard = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&heard);
        let on_text = OnText::new(move |piece| sink.lock().expect("a lock").push_str(piece));
        for field in ["reasoning_content", "reasoning"] {
            heard.lock().expect("a lock").clear();
            let mut answer = Answer::default();
            let delta = |text: &str| format!("{{\"{field}\":\"{text}\"}}");
            for delta in [delta("Two"), delta(" ships."), "{\"content\":\"2\"}".into()] {
                let line = format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
                answer.take(line.as_bytes(), Some(&on_text)).expect("the stream is good");
            }
            assert_eq!((answer.thought.as_str(), answer.text.as_str()), ("Two ships.", "2"));
            assert_eq!(*heard.lock().expect("a lock"), "2");
        }
    }

    #[test]
    fn a_thought_within_the_text_is_kept_apart_too() {
        let check = |content: &[&str], reason: &str, want: Result<(&str, &str), &str>| {
            let heard = Arc::new(Mutex::new(String::new()));
            let sink = Arc::clone(&heard);
            let on_text = OnText::new(move |piece| sink.lock().expect("a lock").push_str(piece));
            let mut answer = Answer::default();
            for content in content {
                let line = serde_json::json!({ "choices": [{ "delta": { "content": content } }] });
                answer.take(format!("data: {line}\n\n").as_bytes(), Some(&on_text)).expect("the stream is good");
            }
            let end = format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n");
            answer.take(end.as_bytes(), Some(&on_text)).expect("the stream is good");
            let ended = answer.end(Some(&on_text));
            let found = ended.map(|()| (answer.thought.as_str(), answer.text.as_str()));
            assert_eq!(found, want.map_err(str::to_owned), "{content:?}");
            assert_eq!(*heard.lock().expect("a lock"), answer.text);
        };
        check(&["<think>Two ships.</think>\n\n2"], "stop", Ok(("Two ships.", "2")));
        check(
            &["\n<th", "ink>\nTwo ", "ships.\n</thi", "nk>\n", "\n2", " <think>"],
            "stop",
            Ok(("Two ships.", "2 <think>")),
        );
        check(&["<thin", " ice"], "stop", Ok(("", "<thin ice")));
        check(&["  <thi"], "stop", Ok(("", "  <thi")));
        check(&["<think>Two </th"], "length", Ok(("Two </th", "")));
        check(&["<think>Two"], "stop", Err("its answer ended within a thought"));
        check(&["Half of a"], "abort", Err("its answer ended by `abort`"));
        check(&["Half of a"], "", Err("its answer breaks off"));
    }

    #[test]
    fn calls_of_tools_are_put_together() {
        let line = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{delta}]}}}}]}}\n\n");
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&pieces);
        let on_text = OnText::pieces(move |piece| sink.lock().expect("a lock").push(format!("{piece:?}")));
        let mut answer = Answer::default();
        for delta in [
            r#"{"index":0,"id":"a","function":{"name":"look","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"at\""}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"paint","arguments":"{}"}}"#,
        ] {
            answer.take(line(delta).as_bytes(), Some(&on_text)).expect("the stream is good");
        }
        let calls: Vec<_> = answer.tool_calls.iter().map(|call| [&*call.id, &call.name, &call.arguments]).collect();
        assert_eq!(calls, [["a", "look", r#"{"at":1}"#], ["b", "paint", "{}"]]);
        assert_eq!(pieces.lock().expect("a lock").len(), 5);
        let late = line(r#"{"index":0,"function":{"arguments":"x"}}"#);
        assert_eq!(answer.take(late.as_bytes(), None), Err("its tool calls are out of order".into()));
        let nameless = line(r#"{"index":0,"function":{"arguments":"x"}}"#);
        assert_eq!(Answer::default().take(nameless.as_bytes(), None), Err("it calls a tool without a name".into()));
    }

    #[test]
    fn calls_without_arguments_have_an_empty_object() {
        let line = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{delta}]}}}}]}}\n\n");
        let end = |reason: &str| format!("data: {{\"choices\":[{{\"finish_reason\":\"{reason}\"}}]}}\n\n");
        for (reason, last) in [("tool_calls", "{}"), ("length", "")] {
            let arguments = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&arguments);
            let on_text = OnText::pieces(move |piece| {
                if let Piece::Arguments(piece) = piece {
                    sink.lock().expect("a lock").push(piece.to_owned());
                }
            });
            let mut answer = Answer::default();
            for stream in [
                line(r#"{"index":0,"id":"a","function":{"name":"look","arguments":""}}"#),
                line(r#"{"index":1,"id":"b","function":{"name":"wait"}}"#),
                end(reason),
            ] {
                answer.take(stream.as_bytes(), Some(&on_text)).expect("the stream is good");
            }
            answer.end(Some(&on_text)).expect("the answer has an end");
            let calls: Vec<&str> = answer.tool_calls.iter().map(|call| &*call.arguments).collect();
            assert_eq!(calls, ["{}", last], "{reason}");
            assert_eq!(arguments.lock().expect("a lock").concat(), calls.concat(), "what is streamed is the reply");
        }
    }

    #[test]
    fn an_answer_that_is_no_stream_is_an_error() {
        let check = |bytes: &[u8], want: &str| {
            assert_eq!(Answer::default().take(bytes, None).expect_err("it fails"), want);
        };
        check(b"event: error\ndata: {\"error\":{\"message\":\"out of pages\"}}\n", "out of pages");
        check(b"data: {\"error\":\"no\"}\n", "no");
        check(b"data: {\"choices\":\n", "its answer cannot be read: Eof");
        check(b"data: \xff\n", "its answer is not UTF-8");
    }
}
