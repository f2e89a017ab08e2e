//! A caller that forwards calls and validates the replies. The verdict is written to `verdicts.jsonl` before the reply is
//! returned.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::schema::QUOTE_OF;
use calls::{BoxFuture, Call, CallError, Caller, Finish, ModelInfo, OutputFormat, Reply, Scorer, Tokens, WorkflowId};
use jsonschema::{Keyword, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tally::Forms;
use crate::Result;
use crate::qa::lines::{self, Appender};
use crate::qa::tape_key;

/// The longest run of white space in a valid reply, in characters.
const MAX_BLANKS: usize = 16;

/// Characters of an invalid reply in the report.
const SHOWN: usize = 200;

/// Receives the number of checked replies.
pub(super) type Progress<'a> = &'a mut (dyn FnMut(usize) + Send);

pub(super) struct Inspector<'a> {
    caller: &'a dyn Caller,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    /// The calls whose replies are checked.
    seen: HashSet<String>,
    /// The current round, and the replies of each.
    round: u64,
    rounds: BTreeMap<u64, usize>,
    forms: Forms,
    file: Option<Appender>,
    progress: Progress<'a>,
}

/// A line of `verdicts.jsonl`.
#[derive(Debug, Serialize, Deserialize)]
struct Verdict {
    /// The key of the call, as in the transcript.
    key: String,
    round: u64,
    step: String,
    /// The error of the reply, and its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wrong: Option<String>,
    finish: Finish,
}

impl<'a> Inspector<'a> {
    /// Reads the verdicts in a folder, and appends to them.
    pub fn new(caller: &'a dyn Caller, folder: Option<&Path>, progress: Progress<'a>) -> Result<Inspector<'a>> {
        let mut state = State {
            seen: HashSet::new(),
            round: 0,
            rounds: BTreeMap::new(),
            forms: Forms::default(),
            file: None,
            progress,
        };
        if let Some(folder) = folder {
            let path = folder.join("verdicts.jsonl");
            lines::read::<Verdict>(&path)?.into_iter().for_each(|verdict| state.learn(verdict));
            state.file = Some(Appender::open(path)?);
        }
        Ok(Inspector { caller, state: Mutex::new(state) })
    }

    /// The replies so far, independent of their order of arrival.
    pub fn forms(&self) -> Forms {
        let mut forms = self.lock().forms.clone();
        forms.steps.values_mut().for_each(|tally| tally.wrong.sort());
        forms
    }

    /// Starts a round.
    pub fn begin(&self, round: u64) {
        self.lock().round = round;
    }

    /// The replies of the rounds up to this one.
    pub fn calls_up_to(&self, round: u64) -> usize {
        self.lock().rounds.range(..=round).map(|(_, calls)| calls).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, key: String, step: &str, output_format: &OutputFormat, reply: &Reply) -> Result<()> {
        let found = match output_format {
            OutputFormat::Text => Ok(()),
            OutputFormat::Choice(options) => {
                options.contains(&reply.text).then_some(()).ok_or("none of the options".to_owned())
            }
            OutputFormat::Json(schema) => validates(schema, &reply.text),
        };
        let shown = || reply.text.chars().take(SHOWN).collect::<String>();
        let wrong = found.err().map(|problem| format!("{step}: {problem}: {:?}", shown()));
        let mut state = self.lock();
        if state.seen.contains(&key) {
            return Ok(());
        }
        let verdict = Verdict { key, round: state.round, step: step.to_owned(), wrong, finish: reply.finish };
        if let Some(file) = &mut state.file {
            file.append(&verdict)?;
        }
        state.learn(verdict);
        let done = state.seen.len();
        (state.progress)(done);
        Ok(())
    }
}

impl State<'_> {
    /// Counts a verdict. A reply may arrive twice: for equal concurrent calls, or if a process was killed
    /// between the verdict and the reply.
    fn learn(&mut self, verdict: Verdict) {
        if !self.seen.insert(verdict.key) {
            return;
        }
        *self.rounds.entry(verdict.round).or_default() += 1;
        let tally = self.forms.steps.entry(verdict.step).or_default();
        tally.endings.count(verdict.finish);
        tally.good += usize::from(verdict.wrong.is_none());
        tally.wrong.extend(verdict.wrong);
    }
}

/// Whether a text is JSON that validates, without runs of white space, and with exact quotes.
fn validates(schema: &Value, text: &str) -> std::result::Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let quotes = jsonschema::options().with_keyword(QUOTE_OF, |_, text, _| Ok(Box::new(Quote(text.clone()))));
    let validator = quotes.build(schema).map_err(|error| error.to_string())?;
    validator.validate(&value).map_err(|error| error.to_string())?;
    let blanks = text.split(|c: char| !c.is_whitespace()).map(|run| run.chars().count()).max().unwrap_or(0);
    if blanks > MAX_BLANKS || text.trim() != text {
        return Err("it is blank in part".to_owned());
    }
    Ok(())
}

/// Our own schema keyword: the string must occur in this text.
struct Quote(Value);

impl<'i> Keyword<'i> for Quote {
    fn validate(&self, instance: &'i Value) -> std::result::Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("{instance} is not in the text that it quotes")))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let occurs_in = |quote: &str| self.0.as_str().is_some_and(|text| text.contains(quote));
        instance.as_str().is_none_or(occurs_in)
    }
}

impl Caller for Inspector<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, std::result::Result<Reply, CallError>> {
        Box::pin(async move {
            let (step, output_format) = (call.step, call.output_format.clone());
            let key = tape_key::key(&call, self.caller.models().model(call.agent));
            let reply = self.caller.call(call).await?;
            // A reply must not be used before its verdict is written.
            self.check(key, step, &output_format, &reply).map_err(|_| CallError::Closed)?;
            Ok(reply)
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.caller.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.caller.models()
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        self.caller.close_workflow(workflow);
    }

    fn scorer(&self) -> Option<&dyn Scorer> {
        self.caller.scorer()
    }
}

#[cfg(test)]
mod tests {
    use calls::schema;

    use super::*;

    #[test]
    fn replies_that_do_not_validate_are_found() {
        let form = schema::object([("ids", schema::array_of([1, 2], 2)), ("why", schema::string(10))]);
        let check = |text: &str, good: bool| assert_eq!(validates(&form, text).is_ok(), good, "{text}");
        check(r#"{"ids":[2],"why":"so"}"#, true);
        check(r#"{"ids":[3],"why":"so"}"#, false);
        check(r#"{"ids":[1,2,1],"why":"so"}"#, false);
        check(r#"{"ids":[]}"#, false);
        check(r#"{"ids":[],"why":"longer than ten"}"#, false);
        check(r#"{"ids":[],"why":"so"#, false);
        check("{\"ids\":[],\"why\":\"so\"}\n", false);
        check(&format!("{{\"ids\":[],{}\"why\":\"\"}}", " ".repeat(20)), false);
    }

    #[test]
    fn a_quote_is_a_literal_part_of_its_text() {
        let add = schema::object([
            ("op", schema::constant("add")),
            ("src", schema::quote_of("Ada \"Pell\" Brook\nkept the lamp.", 3..=20)),
        ]);
        let drop = schema::object([("op", schema::constant("drop")), ("src", schema::string(9))]);
        let form = schema::object([("operations", schema::array(schema::any_of(vec![add, drop]), 3))]);
        let check = |operations: &str, good: bool| {
            let text = format!(r#"{{"operations":[{operations}]}}"#);
            assert_eq!(validates(&form, &text).is_ok(), good, "{operations}");
        };
        check(r#"{"op":"add","src":"Pell\" Brook\nkept"}"#, true);
        check(r#"{"op":"add","src":"ada"}"#, false);
        check(r#"{"op":"add","src":"Pell Brook"}"#, false);
        check(r#"{"op":"add","src":"Brook kept"}"#, false);
        check(r#"{"op":"drop","src":"nowhere"}"#, true);
        check(r#"{"op":"add","src":"lamp."},{"op":"add","src":"lamps"}"#, false);
        check("", true);
    }
}
