//! The gate on early closings: a strong model writes plans, judgements, operations and answers at the length at which such
//! models write them, and at most one reply in a hundred may be cut by a limit of a format or a call, or by the loop detector.

use std::sync::atomic::{AtomicUsize, Ordering};

use calls::loops::LoopDetector;
use calls::schema::QUOTE_OF;
use calls::{
    BoxFuture, Call, CallError, Caller, Finish, ModelInfo, OutputFormat, Reply, Scripted, ScriptedEmbedder, Tokens,
};
use eval::forms::{Forms, inspect};
use eval::qa::Backend;
use serde_json::{Map, Value, json};
use sources::{Kind, Section, Source};

use crate::questions::block_on;

/// The context of the models that the papers use.
const CONTEXT_TOKENS: usize = 32_768;

/// The share of replies, from 0 to 1, that may be cut in any step.
const MAX_CUT: f64 = 0.01;

/// What is written and thought, in sentences of 15 words on average.
const SENTENCES: [&str; 12] = [
    "Ada Brook kept the lighthouse at Pell for forty years and wrote every ship into her log.",
    "The log of November 1911 says that the harbour wall was broken by the storm in the night.",
    "Tom Reed mended the wall with oak from his own yard, and he asked for no money for it.",
    "It is not clear from these pages who had ordered the new lamp, or why it came from Paris.",
    "The letter of 3 March gives its price as nine hundred crowns, the account book as eight hundred and fifty.",
    "Both may be right, since the dealer in Rotterdam had taken the old telescope in part payment.",
    "What is missing is the year of the wedding, which the register of the chapel at Pell should hold.",
    "Jane Reed, their daughter, learned to sail before she could read and never lost a boat in any weather.",
    "When the war came the light was put out, and the keeper sat in the dark and listened to the sea.",
    "The inspector's report of 1916 mentions two assistants, a Swede named Lindqvist and the keeper's own nephew.",
    "Neither of them is named again after the summer of 1917, when the assistants' house burned to the ground.",
    "A later hand has added in pencil that the lens was saved, together with most of the books and charts.",
];

/// Words that a strong model writes into a field.
fn words_of(field: &str) -> usize {
    match field {
        "thinking" | "thinking_choice" | "content_understanding" | "content" => 110,
        "summary" | "key_findings" | "question_analysis" | "options_analysis" => 40,
        "info_needs"
        | "vector_queries"
        | "new_requests"
        | "new_queries"
        | "missing_information"
        | "probe_1"
        | "probe_2"
        | "probe_3"
        | "description"
        | "explanation"
        | "final_answer"
        | "answer" => 35,
        "title" | "rating_explanation" => 12,
        // Names, keywords, relations, parts of facts.
        _ => 5,
    }
}

/// A model whose replies say something, and which does not decide at once.
struct Strong {
    /// Its tokens and its name.
    script: Scripted,
    calls: AtomicUsize,
    /// The number of every how many-th plan, which is cut; 0 for none.
    cut_plans: usize,
}

impl Strong {
    fn cutting(cut_plans: usize) -> Strong {
        Strong { script: Scripted::new(CONTEXT_TOKENS).named("strong"), calls: AtomicUsize::new(0), cut_plans }
    }

    fn reply(&self, call: &Call) -> (String, Finish) {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed);
        let text = match &call.output_format {
            OutputFormat::Text => prose(nth, 60),
            OutputFormat::Choice(options) => options[nth % options.len()].clone(),
            OutputFormat::Json(schema) => filled(schema, "", nth).to_string(),
        };
        let cut = call.step == "gam.plan" && self.cut_plans > 0 && nth.is_multiple_of(self.cut_plans);
        let finish = if cut { Finish::ClosedEarly } else { finish(call, &text) };
        (text, finish)
    }
}

/// Whole sentences with about `words` words.
fn prose(nth: usize, words: usize) -> String {
    let mut text = String::new();
    for sentence in SENTENCES.iter().cycle().skip(nth % SENTENCES.len()) {
        let length = text.split_whitespace().count();
        if length > 0 && length + sentence.split_whitespace().count() > words {
            break;
        }
        text.extend([if text.is_empty() { "" } else { " " }, *sentence]);
    }
    // Names and titles are no sentences.
    if words < 15 { text.split_whitespace().take(words).collect::<Vec<_>>().join(" ") } else { text }
}

/// A value of a schema, written as the field asks for.
fn filled(schema: &Value, field: &str, nth: usize) -> Value {
    let list = |key: &str| schema[key].as_array();
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(values) = list("enum") {
        return values[nth % values.len()].clone();
    }
    if let Some(forms) = list("anyOf") {
        return filled(&forms[nth % forms.len()], field, nth);
    }
    if let Some(text) = schema[QUOTE_OF].as_str() {
        return json!(quote(text, nth));
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten().enumerate();
            let fields = fields.map(|(at, (key, form))| (key.clone(), filled(form, key, nth + at)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Some("array") => {
            let bound = |key: &str, or: u64| schema[key].as_u64().unwrap_or(or);
            let items = bound("maxItems", 5).min(5).max(bound("minItems", 0));
            (0..items as usize).map(|at| filled(&schema["items"], field, nth + at)).collect()
        }
        Some("boolean") => json!(nth.is_multiple_of(3)),
        Some("integer") => schema["minimum"].clone(),
        _ if schema.get("pattern").is_some() => json!(format!("the_lamp_of_the_lighthouse_at_pell_{nth}")),
        _ => json!(prose(nth, words_of(field))),
    }
}

/// Some twenty words of a text.
fn quote(text: &str, nth: usize) -> &str {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(at, c)| c.is_alphanumeric() && !text[..*at].ends_with(|before: char| !before.is_whitespace()))
        .map(|(at, _)| at)
        .collect();
    let from = nth % starts.len().saturating_sub(20).max(1);
    let end = starts.get(from + 20).copied().unwrap_or(text.len());
    text[starts[from]..end].trim_end()
}

/// How an engine would end this reply.
fn finish(call: &Call, text: &str) -> Finish {
    // More than any tokenizer needs for English.
    let tokens = text.len() / 4;
    match &call.output_format {
        OutputFormat::Text if tokens > call.limits.max_output_tokens => Finish::Length,
        OutputFormat::Text if loops(text) => Finish::Repetition,
        OutputFormat::Json(schema) => {
            let value: Value = serde_json::from_str(text).expect("it was written as JSON");
            let fits = fits(&value, schema) && tokens <= call.limits.max_output_tokens;
            match (fits, strings(&value).iter().any(|text| loops(text))) {
                (false, _) => Finish::ClosedEarly,
                (true, true) => Finish::LoopClosed,
                (true, false) => Finish::Stop,
            }
        }
        _ => Finish::Stop,
    }
}

fn loops(text: &str) -> bool {
    let mut detector = LoopDetector::default();
    let id = |word: &str| word.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    text.split_whitespace().any(|word| detector.push(id(word)).is_some())
}

/// Whether no string of a reply is cut by its greatest length.
fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().any(|form| fits(value, form));
    }
    match value {
        Value::String(text) => schema["maxLength"].as_u64().is_none_or(|most| text.chars().count() as u64 <= most),
        Value::Array(items) => items.iter().all(|item| fits(item, &schema["items"])),
        Value::Object(map) => {
            let form = |key: &String| schema["properties"].get(key);
            map.iter().all(|(key, value)| form(key).is_some_and(|form| fits(value, form)))
        }
        _ => true,
    }
}

fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(map) => map.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

impl Caller for Strong {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            // Yields first, as an engine would.
            tokio::task::yield_now().await;
            let (text, finish) = self.reply(&call);
            Scripted::new(CONTEXT_TOKENS).ended(call.step, text, finish).call(call).await
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

fn run(model: &Strong) -> Forms {
    let text = SENTENCES.join(" ");
    let section = Section { span: 0..text.len(), title: None, time: None, turns: Vec::new() };
    let source = Source {
        path: "pell.txt".into(),
        kind: Kind::Text,
        title: None,
        text,
        encoding: None,
        sections: vec![section],
    };
    let machine = Backend { model: "strong", caller: model, embedder: &ScriptedEmbedder };
    block_on(inspect(&[source], 400, machine, None, &mut |_| {})).expect("every call has a reply")
}

#[test]
fn at_most_one_reply_of_a_strong_model_in_a_hundred_is_closed_early() {
    let forms = run(&Strong::cutting(0));
    let total = forms.total();
    assert!(total.endings.calls >= 400, "{} replies", total.endings.calls);
    assert!(total.wrong.is_empty(), "{:#?}", total.wrong);
    assert!(forms.cut_above(MAX_CUT).is_empty(), "{:?}", forms.cut_above(MAX_CUT));
    for step in [
        "gam.plan",
        "gam.integrate",
        "gam.follow_up",
        "memcot.judge",
        "comorag.probe",
        "comorag.answer",
        "mindgraph.build",
        "mindgraph.report",
    ] {
        assert!(forms.steps.contains_key(step), "{step} is not among {:?}", forms.steps.keys());
    }
}

#[test]
fn the_gate_finds_a_step_whose_replies_are_cut() {
    let forms = run(&Strong::cutting(7));
    let steps: Vec<&str> = forms.cut_above(MAX_CUT).into_iter().map(|(step, _)| step).collect();
    assert_eq!(steps, ["gam.plan"]);
}
