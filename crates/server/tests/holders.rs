//! Three holders of keys who create, upload, ask, list, continue and delete at random, and reach for the ids and names of
//! one another: no response to one of them contains a sentence, name or id of another.
//!
//! The model repeats its whole prompt, so that text that reaches a wrong prompt is seen too. `test_support::fuzz`
//! says how many sequences.

use std::collections::HashSet;
use std::sync::Arc;

use calls::{Caller, Scripted};
use random::Random;
use serde_json::{Value, json};

use crate::host::CONTEXT_TOKENS;
use crate::tenants::{HOLDERS, Shared};
use test_support::double::Double;
use test_support::fuzz;

const ROUNDS: u64 = 4;
const DEEDS: usize = 150;
/// Shorter ids are numbers within a corpus, which every holder has.
const ID_LENGTH: usize = 12;

/// A model that answers with its prompt.
fn echo(script: Scripted) -> Double {
    Double::new(script).answering(|script, call| {
        Box::pin(async move {
            let mut reply = script.call(call).await?;
            reply.text.clone_from(&reply.rendered);
            Ok(reply)
        })
    })
}

/// All that one holder has.
#[derive(Default)]
struct Belongings {
    /// Words and ids that no other holder may read.
    secrets: HashSet<String>,
    corpora: Vec<String>,
    /// Corpus and id.
    threads: Vec<(String, String)>,
    responses: Vec<String>,
    /// Paths that can be read and, mostly, deleted.
    paths: Vec<String>,
}

struct World {
    shared: Shared,
    random: Random,
    all: [Belongings; 3],
    planted: usize,
    requests: usize,
    /// Requests for what belongs to another.
    pried: usize,
}

impl World {
    fn new(seed: u64) -> World {
        let script = ["chat", "messages", "completion", "response", "ollama", "answer"]
            .into_iter()
            .fold(Scripted::new(CONTEXT_TOKENS), |script, step| script.answer(step, "Yes."));
        let shared = Shared::new(Arc::new(echo(script)), None);
        World { shared, random: Random::new(seed), all: Default::default(), planted: 0, requests: 0, pried: 0 }
    }

    /// Sends a request and checks that the response has nothing of others; `None` for responses without JSON.
    fn send(&mut self, who: usize, method: &str, path: &str, body: &Value) -> (u16, Option<Value>) {
        let answer = self.shared.send(HOLDERS[who], method, path, body);
        self.requests += 1;
        let asked = format!("{path} {body}");
        for other in (0..3).filter(|other| *other != who) {
            // An error may repeat what the request had.
            let leaked =
                self.all[other].secrets.iter().find(|word| answer.text.contains(*word) && !asked.contains(*word));
            assert_eq!(
                leaked, None,
                "{} reads of {} at {method} {asked}: {}",
                HOLDERS[who], HOLDERS[other], answer.text
            );
        }
        assert!(answer.status < 500, "{method} {asked}: {}", answer.text);
        let value: Option<Value> = serde_json::from_str(&answer.text).ok();
        if let Some(value) = value.as_ref().filter(|_| answer.status < 300) {
            ids(value, &mut self.all[who].secrets);
        }
        (answer.status, value)
    }

    /// A word of this holder that is nowhere else.
    fn plant(&mut self, who: usize) -> String {
        self.planted += 1;
        let word = format!("{}{:05}", ["quince", "walnut", "saffron"][who], self.planted);
        self.all[who].secrets.insert(word.clone());
        word
    }

    /// One of these; none if there are none.
    fn one_of<T: Clone>(&mut self, things: &[T]) -> Option<T> {
        if things.is_empty() { None } else { Some(things[self.random.below(things.len())].clone()) }
    }

    fn corpus(&mut self, who: usize) -> Option<String> {
        let corpora = self.all[who].corpora.clone();
        self.one_of(&corpora)
    }

    fn deed(&mut self, who: usize) -> Option<()> {
        match self.random.below(16) {
            0 | 1 => self.create(who),
            2 | 3 => self.upload(who)?,
            4 => self.ask(who)?,
            5 => self.begin_thread(who)?,
            6 => self.write_note(who)?,
            7 => self.respond(who),
            8 => self.chat(who)?,
            9 => self.call_tool(who)?,
            10 => self.list(who)?,
            11 => {
                let paths = self.all[who].paths.clone();
                let path = self.one_of(&paths)?;
                self.send(who, "GET", &path, &Value::Null);
            }
            12 => {
                let paths = self.all[who].paths.clone();
                let path = self.one_of(&paths)?;
                self.all[who].paths.retain(|known| *known != path);
                self.send(who, "DELETE", &path, &Value::Null);
                let gone = path.strip_prefix("/v1/corpora/").filter(|name| !name.contains('/'));
                self.all[who].corpora.retain(|name| Some(name.as_str()) != gone);
            }
            _ => self.pry(who)?,
        }
        Some(())
    }

    fn create(&mut self, who: usize) {
        // Names that all holders use, and names that only one does.
        let name = if self.random.below(2) == 0 { "common".to_owned() } else { self.plant(who) };
        let (status, _) = self.send(who, "POST", "/v1/corpora", &json!({ "name": name }));
        if status == 201 {
            self.all[who].paths.push(format!("/v1/corpora/{name}"));
            self.all[who].corpora.push(name);
        }
    }

    fn upload(&mut self, who: usize) -> Option<()> {
        let (corpus, word, name) = (self.corpus(who)?, self.plant(who), self.plant(who));
        let body =
            json!({ "name": format!("{name}.txt"), "text": format!("The horse of {word} is grey."), "method": "rag" });
        let (status, job) = self.send(who, "POST", &format!("/v1/corpora/{corpus}/documents"), &body);
        if status == 202 {
            let id = job?["id"].as_str()?.to_owned();
            self.send(who, "GET", &format!("/v1/jobs/{id}/events"), &Value::Null);
            self.all[who].paths.push(format!("/v1/jobs/{id}"));
        }
        let (_, listed) = self.send(who, "GET", &format!("/v1/corpora/{corpus}/documents"), &Value::Null);
        let listed = listed?;
        let id = listed["documents"].as_array()?.last()?["id"].as_i64()?;
        self.all[who].paths.push(format!("/v1/corpora/{corpus}/documents/{id}"));
        Some(())
    }

    fn ask(&mut self, who: usize) -> Option<()> {
        let (corpus, method) = (self.corpus(who)?, ["rag", "direct"][self.random.below(2)]);
        let mut body = json!({ "question": format!("Is the horse of {} grey?", self.plant(who)), "method": method });
        let threads: Vec<_> = self.all[who].threads.iter().filter(|(of, _)| *of == corpus).cloned().collect();
        if let Some((_, thread)) = self.one_of(&threads) {
            body["thread"] = thread.into();
        }
        let (_, answer) = self.send(who, "POST", &format!("/v1/corpora/{corpus}/ask"), &body);
        let trace = answer?["trace"].as_str()?.to_owned();
        self.all[who].paths.push(format!("/v1/traces/{trace}"));
        Some(())
    }

    fn begin_thread(&mut self, who: usize) -> Option<()> {
        let (corpus, title) = (self.corpus(who)?, self.plant(who));
        let (_, thread) = self.send(who, "POST", &format!("/v1/corpora/{corpus}/threads"), &json!({ "title": title }));
        let id = thread?["id"].as_str()?.to_owned();
        self.all[who].paths.push(format!("/v1/corpora/{corpus}/threads/{id}"));
        self.all[who].threads.push((corpus, id));
        Some(())
    }

    fn write_note(&mut self, who: usize) -> Option<()> {
        let (corpus, word) = (self.corpus(who)?, self.plant(who));
        let note = json!({ "text": format!("# {word}\n\nThe goat is white.") });
        let (_, note) = self.send(who, "POST", &format!("/v1/corpora/{corpus}/notes"), &note);
        let id = note?["id"].as_str()?.to_owned();
        self.all[who].paths.push(format!("/v1/corpora/{corpus}/notes/{id}"));
        Some(())
    }

    fn respond(&mut self, who: usize) {
        let mut body = json!({ "model": "scripted", "input": format!("Remember {}.", self.plant(who)) });
        let known = self.all[who].responses.clone();
        if let Some(before) = self.one_of(&known) {
            body["previous_response_id"] = before.into();
        }
        let (_, response) = self.send(who, "POST", "/v1/responses", &body);
        if let Some(id) = response.as_ref().and_then(|response| response["id"].as_str()) {
            self.all[who].paths.extend([format!("/v1/responses/{id}"), format!("/v1/responses/{id}/input_items")]);
            self.all[who].responses.push(id.to_owned());
        }
    }

    fn chat(&mut self, who: usize) -> Option<()> {
        let (corpus, word) = (self.corpus(who)?, self.plant(who));
        let model = ["scripted".to_owned(), format!("{corpus}:quick")][self.random.below(2)].clone();
        let content = format!("Is the horse of {word} grey?");
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": model, "messages": messages, "max_tokens": 64, "stream": false });
        let path = ["/v1/chat/completions", "/api/chat", "/v1/messages"][self.random.below(3)];
        self.send(who, "POST", path, &body);
        Some(())
    }

    fn call_tool(&mut self, who: usize) -> Option<()> {
        let corpus = self.corpus(who)?;
        let (tool, arguments) = match self.random.below(4) {
            0 => ("list_corpora", json!({})),
            1 => ("list_documents", json!({ "corpus": corpus })),
            2 => ("search", json!({ "corpus": corpus, "query": "grey horse", "k": 9 })),
            _ => ("ask", json!({ "corpus": corpus, "question": "Is the horse grey?", "method": "rag" })),
        };
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(who, "POST", "/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        Some(())
    }

    fn list(&mut self, who: usize) -> Option<()> {
        let corpus = self.corpus(who)?;
        let lists = ["documents", "threads", "notes", "questions", "graph?graph=mindgraph"];
        let list = format!("/v1/corpora/{corpus}/{}", lists[self.random.below(lists.len())]);
        let whole =
            ["/v1/corpora", "/v1/jobs", "/v1/models", "/api/tags", "/api/ps", "/metrics", "/v1/engine", &list, &list];
        let path = whole[self.random.below(whole.len())];
        self.send(who, "GET", path, &Value::Null);
        let tool = ["bm25", "dense"][self.random.below(2)];
        let query = json!({ "query": "grey horse", "tool": tool, "k": 9 });
        self.send(who, "POST", &format!("/v1/corpora/{corpus}/search"), &query);
        Some(())
    }

    /// Uses something of another holder.
    fn pry(&mut self, who: usize) -> Option<()> {
        let other = (who + 1 + self.random.below(2)) % 3;
        let names: Vec<String> = self.all[other].corpora.iter().filter(|name| *name != "common").cloned().collect();
        let theirs = &self.all[other];
        let (paths, threads, responses) = (theirs.paths.clone(), theirs.threads.clone(), theirs.responses.clone());
        let status = match self.random.below(6) {
            0 | 1 => {
                let path = self.one_of(&paths).filter(|path| !path.starts_with("/v1/corpora/common"))?;
                let method = ["GET", "DELETE"][self.random.below(2)];
                // Responses to both are alike whether or not it exists.
                self.send(who, method, &path, &Value::Null).0
            }
            2 => {
                let corpus = self.one_of(&names)?;
                let question = json!({ "question": "Is the horse grey?", "method": "rag" });
                self.send(who, "POST", &format!("/v1/corpora/{corpus}/ask"), &question).0
            }
            3 => {
                let (corpus, (_, thread)) = (self.corpus(who)?, self.one_of(&threads)?);
                let question = json!({ "question": "Is it grey?", "method": "direct", "thread": thread });
                self.send(who, "POST", &format!("/v1/corpora/{corpus}/ask"), &question).0
            }
            4 => {
                let before = self.one_of(&responses)?;
                let body = json!({ "model": "scripted", "input": "Go on.", "previous_response_id": before });
                self.send(who, "POST", "/v1/responses", &body).0
            }
            _ => {
                let model = self.one_of(&names)?;
                let messages = json!([{ "role": "user", "content": "Is the horse grey?" }]);
                let body = json!({ "model": model, "messages": messages });
                self.send(who, "POST", "/v1/chat/completions", &body).0
            }
        };
        assert!((400..500).contains(&status), "{} uses what {} has: {status}", HOLDERS[who], HOLDERS[other]);
        self.pried += 1;
        Some(())
    }
}

/// The ids in a response.
fn ids(value: &Value, found: &mut HashSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let id = value.as_str().filter(|id| id.len() >= ID_LENGTH);
                if matches!(name.as_str(), "id" | "trace" | "thread" | "job") {
                    found.extend(id.filter(|id| id.chars().any(|c| c.is_ascii_digit())).map(str::to_owned));
                }
                ids(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| ids(value, found)),
        _ => {}
    }
}

#[test]
fn no_holder_reads_a_sentence_name_or_id_of_another() {
    let mut rounds = fuzz::rounds(ROUNDS);
    let (mut requests, mut pried, mut secrets) = (0, 0, 0);
    for seed in (&mut rounds).map(|round| round + 1) {
        let mut world = World::new(seed);
        for _ in 0..DEEDS {
            let who = world.random.below(3);
            world.deed(who);
        }
        // Whatever each has is still there for them, and the sentences can be found.
        for who in 0..3 {
            let Some(corpus) = world.corpus(who) else { continue };
            world.upload(who);
            let (status, _) = world.send(who, "GET", &format!("/v1/corpora/{corpus}/documents"), &Value::Null);
            assert_eq!(status, 200, "seed {seed}");
        }
        secrets += world.all.iter().map(|belongings| belongings.secrets.len()).sum::<usize>();
        (requests, pried) = (requests + world.requests, pried + world.pried);
    }
    println!("{requests} requests, {pried} of them for what another has; {secrets} sentences, names and ids");
    assert!(pried as u64 > rounds.done() && requests > pried * 2, "{pried} of {requests}");
}
