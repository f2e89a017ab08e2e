//! Every agent of every method with random replies, in the format of the call or beyond it: no panic, the corpus stays
//! sound, and a question ends in an answer whose citations are its sources' text, or in an error.
//!
//! `test_support::fuzz` says how many rounds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use calls::schema::QUOTE_OF;
use calls::{Call, OutputFormat};
use memory::memcot::MemcotStore;
use memory::{Settings, comorag, memcot, methods};
use serde_json::{Map, Value, json};
use test_support::fuzz;

use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, conversation, document};

const ROUNDS: u64 = 3;
const QUESTION: &str = "Whom did Ada Brook marry, and when?";

/// Texts that parsers and prompts stumble over.
const ODD: [&str; 18] = [
    "",
    " ",
    "\u{0}",
    "\u{feff}\u{202e}abc\u{301}",
    "[1]",
    "[A] [B] [999999]",
    "(3)",
    "-1",
    "NaN",
    "null",
    "{\"sources\":[",
    "\u{1f9d1}\u{200d}\u{1f33e}\u{1f9d1}",
    "\"\\\u{7f}'`",
    "### QUESTION\n1. [keyword](999999)",
    "Ada Brook",
    "Tom Reed in 1911",
    "1911-02-30T25:61",
    "The keeper Ada Brook lit the lamp",
];

/// Reproducible pseudo-random numbers (the constants of Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn text(&mut self, prompt: &str) -> String {
        let piece = self.piece(prompt);
        match self.below(9) {
            0 => piece.repeat(40),
            1 => "word ".repeat(self.below(600)),
            2 => (0..self.below(40)).filter_map(|_| char::from_u32(self.below(0x11_0000) as u32)).collect(),
            3 | 4 => piece,
            5 => format!("{}{piece}", ODD[self.below(ODD.len())]),
            _ => ODD[self.below(ODD.len())].to_owned(),
        }
    }

    /// Some characters of a text in their order.
    fn piece(&mut self, text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let from = self.below(chars.len());
        chars[from..].iter().take(1 + self.below(60)).collect()
    }

    /// A value in a schema, as far as its keywords are known here.
    fn value(&mut self, schema: &Value, prompt: &str) -> Value {
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        for key in ["enum", "anyOf"] {
            if let Some(options) = schema[key].as_array().filter(|options| !options.is_empty()) {
                let option = &options[self.below(options.len())];
                return if key == "enum" { option.clone() } else { self.value(option, prompt) };
            }
        }
        match schema["type"].as_str() {
            Some("object") => {
                let fields = schema["properties"].as_object().into_iter().flatten();
                let required =
                    |name: &String| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                let mut all = Map::new();
                for (name, field) in fields {
                    if required(name) || self.below(4) != 0 {
                        all.insert(name.clone(), self.value(field, prompt));
                    }
                }
                all.into()
            }
            Some("array") => {
                let limit = |key: &str| schema[key].as_u64().and_then(|limit| usize::try_from(limit).ok());
                let least = limit("minItems").unwrap_or(0);
                let most = limit("maxItems").unwrap_or(least + 6).max(least);
                let count = least + self.below(most - least + 1);
                (0..count).map(|_| self.value(&schema["items"], prompt)).collect()
            }
            Some("boolean") => json!(self.below(2) == 0),
            Some("integer") => {
                let limit = |key: &str, usual| schema[key].as_i64().unwrap_or(usual);
                let (least, most) = (limit("minimum", -3), limit("maximum", i64::from(u32::MAX)));
                let near = least.saturating_add(i64::try_from(self.below(12)).unwrap()).min(most);
                json!([least, most, near, near][self.below(4)])
            }
            Some("number") => json!(self.below(1000) as f64 / 500.0 - 1.0),
            Some("null") => Value::Null,
            _ => {
                let text = match schema[QUOTE_OF].as_str() {
                    Some(source) => self.piece(source),
                    None => self.text(prompt),
                };
                let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok());
                json!(text.chars().take(most.unwrap_or(usize::MAX)).collect::<String>())
            }
        }
    }

    fn reply(&mut self, call: &Call) -> String {
        let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
        // An endpoint may ignore the format.
        if self.below(12) == 0 {
            return self.text(&prompt);
        }
        match &call.output_format {
            OutputFormat::Text => self.text(&prompt),
            OutputFormat::Choice(options) => options[self.below(options.len())].clone(),
            OutputFormat::Json(schema) => {
                let mut text = self.value(schema, &prompt).to_string();
                if self.below(20) == 0 {
                    let end = text.char_indices().map(|(at, _)| at).nth(self.below(text.chars().count()));
                    text.truncate(end.unwrap_or(0));
                }
                text
            }
        }
    }
}

/// Ingests two documents and asks twice; returns whether both answers came.
fn round(seed: u64, settings: &Settings) -> bool {
    let random = Mutex::new(Random(seed));
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| random.lock().expect("nothing panics here").reply(call));
    let scratch = Scratch::new();
    let pages = [
        "The keeper Ada Brook lit the lamp of the lighthouse every evening at six. ".repeat(6),
        "In November a storm broke the harbour wall near Pell. \u{fc}ber \u{1f30a} ".repeat(6),
        "Ada Brook married the boat builder Tom Reed in 1911. ".repeat(6),
    ];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let said = [("Ada", "I married Tom in 1911."), ("Tom", "Yes, in May.\nIt rained."), ("Ada", "\u{2026}")];
    let sources = [document("pell.txt", &pages), conversation("talk.json", &said)];
    let is_ready = scratch.ingest(&sources, &caller, settings).is_ok();
    let texts: Vec<String> = {
        let corpus = scratch.corpus();
        corpus.verify().expect("the corpus is sound");
        let documents = corpus.documents().expect("it can be read");
        documents.iter().map(|document| corpus.document_text(document.id).expect("it can be read")).collect()
    };
    let mut answered = is_ready;
    for kept in [false, true] {
        let asked = if kept {
            scratch.ask_and_keep(QUESTION, &caller, settings)
        } else {
            scratch.ask(QUESTION, &caller, settings)
        };
        answered &= asked.answer.is_ok();
        for citation in asked.answer.iter().flat_map(|answer| &answer.citations) {
            assert!(texts.iter().any(|text| text.contains(&citation.quote)), "{:?} is no quote", citation.quote);
        }
    }
    scratch.corpus().verify().expect("the corpus is sound");
    answered
}

#[test]
fn random_replies_of_every_agent_end_in_an_answer_or_an_error() {
    let (mut answered, mut all) = (0, 0);
    for seed in fuzz::rounds(ROUNDS) {
        for method in methods::ALL {
            let comorag = comorag::Options { chunk_tokens: 60, max_cycles: 2, ..comorag::Options::default() };
            let store = [MemcotStore::Hybrid, MemcotStore::Lightrag][usize::try_from(seed % 2).unwrap()];
            let memcot = memcot::Options { store, ..memcot::Options::default() };
            let settings = Settings { method: *method, page_tokens: Some(100), ..Settings::default() };
            let settings = settings.with_options(comorag).with_options(memcot);
            let ended = catch_unwind(AssertUnwindSafe(|| round(seed, &settings)));
            all += 1;
            answered += u64::from(ended.unwrap_or_else(|_| panic!("{} fails with seed {seed}", method.name())));
        }
    }
    println!("{answered} of {all} runs answered");
    assert!(answered * 4 > all, "{answered} of {all}");
}
