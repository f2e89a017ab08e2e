//! A call to a scripted language model, which replays replies and records its calls: how methods are tested without a model.
//!
//!     cargo run -p calls --example scripted

use std::task::{Context, Poll, Waker};

use calls::{Agent, Call, Caller, OutputFormat, Prompt, Scripted, Stability};

fn main() {
    let model = Scripted::new(4096).answer("demo.choose", "yes");
    let prompt = Prompt::new().system("Answer from the text.").user(Stability::Volatile, "Is the lamp lit?");
    let options = vec!["yes".to_owned(), "no".to_owned()];
    let call =
        Call { output_format: OutputFormat::Choice(options), ..Call::new(Agent::Responder, "demo.choose", prompt, 8) };
    // A scripted reply is ready at once; with an engine, await it.
    let mut reply = model.call(call);
    let Poll::Ready(reply) = reply.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        unreachable!("a scripted reply never waits")
    };
    let reply = reply.expect("the script has a reply to this step");
    println!("{} ({} prompt tokens)", reply.text, reply.usage.prompt_tokens);
    assert_eq!((reply.text.as_str(), model.steps()), ("yes", vec!["demo.choose"]));
}
