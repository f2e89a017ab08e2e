//! A caller that passes calls on and holds the replies against their forms.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use calls::{BoxFuture, Call, CallError, Caller, Finish, Reply, Role, Shape, WorkflowId};
use serde_json::Value;

use super::Forms;

/// A run of so many blanks is no writing.
const MOST_BLANKS: usize = 16;

/// Characters of a wrong reply that are shown.
const SHOWN: usize = 200;

pub(super) struct Inspector<'a> {
    caller: &'a dyn Caller,
    forms: Mutex<Forms>,
}

impl<'a> Inspector<'a> {
    pub fn new(caller: &'a dyn Caller) -> Inspector<'a> {
        Inspector { caller, forms: Mutex::default() }
    }

    /// What has been seen so far.
    pub fn forms(&self) -> Forms {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Forms> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, step: &str, shape: &Shape, reply: &Reply) {
        let verdict = match shape {
            Shape::Text => return,
            Shape::Choice(options) => {
                options.contains(&reply.text).then_some(()).ok_or("none of the options".to_owned())
            }
            Shape::Json(schema) => validates(schema, &reply.text),
        };
        let mut forms = self.lock();
        let tally = forms.steps.entry(step.to_owned()).or_default();
        tally.calls += 1;
        match verdict {
            Ok(()) => {
                tally.good += 1;
                tally.closed_early += usize::from(reply.finish == Finish::ClosedEarly);
            }
            Err(problem) => {
                let shown: String = reply.text.chars().take(SHOWN).collect();
                tally.wrong.push(format!("{step}: {problem}: {shown:?}"));
            }
        }
    }
}

/// Whether a text is JSON of this form, written as such.
fn validates(schema: &Value, text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let validator = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
    validator.validate(&value).map_err(|error| error.to_string())?;
    let blanks = text.split(|c: char| !c.is_whitespace()).map(|run| run.chars().count()).max().unwrap_or(0);
    if blanks > MOST_BLANKS || text.trim() != text {
        return Err("it is blank in part".to_owned());
    }
    Ok(())
}

impl Caller for Inspector<'_> {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let (step, shape) = (call.step, call.shape.clone());
            let reply = self.caller.call(call).await?;
            self.look_at(step, &shape, &reply);
            Ok(reply)
        })
    }

    fn close_workflow(&self, workflow: WorkflowId) {
        self.caller.close_workflow(workflow);
    }

    fn context_tokens(&self, role: Role) -> usize {
        self.caller.context_tokens(role)
    }

    fn token_spans(&self, role: Role, text: &str) -> Vec<Range<usize>> {
        self.caller.token_spans(role, text)
    }

    fn prompt_tokens(&self, call: &Call) -> usize {
        self.caller.prompt_tokens(call)
    }

    fn model(&self, role: Role) -> &str {
        self.caller.model(role)
    }
}

#[cfg(test)]
mod tests {
    use calls::schema;

    use super::*;

    #[test]
    fn what_has_not_its_form_is_found_out() {
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
}
