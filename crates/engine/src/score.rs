//! Scores of continuations: which sequences they need, and how parts add up.
//!
//! The prompt is computed once, by a sequence of its own. It gives the probabilities of the first tokens, and is padded
//! to the end of its last page, so that the page is full and in the prefix cache. Each continuation is a sequence that
//! copies that page and computes one row for each of its tokens but the last, and one more if its end is scored; a
//! continuation without rows costs nothing.

use std::time::Instant;

use calls::{BoxFuture, Call, CallError, Score, ScoreRequest, Scored, Scorer, Usage};
use models::{ModelError, PAGE_TOKENS};
use scheduler::SequenceId;
use tokio::sync::oneshot;

use crate::engine::{CancelOnDrop, Engine};
use crate::frontend::ModelFrontend;
use crate::message::Message;
use crate::namespace::namespace;
use crate::scoring::{Rows, ScoreJob};

/// Maximum continuations in progress.
const AT_ONCE: usize = 32;

/// A prompt and its continuations as tokens.
struct Continued {
    prompt: Vec<u32>,
    stable_tokens: usize,
    continuations: Vec<Vec<u32>>,
}

impl Scorer for Engine {
    fn score(&self, request: ScoreRequest) -> BoxFuture<'_, Result<Scored, CallError>> {
        Box::pin(self.scores(request))
    }
}

impl Engine {
    async fn scores(&self, request: ScoreRequest) -> Result<Scored, CallError> {
        if request.continuations.is_empty() {
            return Ok(Scored::default());
        }
        let began = Instant::now();
        let (model, frontend) = self.frontend(request.agent)?;
        let adapter = self.adapter_of_agent(request.agent);
        let Continued { prompt, stable_tokens, continuations } = continued(frontend, &request)?;
        let longest = continuations.iter().map(Vec::len).max().unwrap_or(0);
        frontend.fits(request.step, prompt.len(), longest + usize::from(request.end))?;
        let job = |prompt: Vec<u32>, forced: Vec<u32>, asked: Vec<Vec<u32>>| {
            let (reply, receiver) = oneshot::channel();
            let ScoreRequest { step, tenant, workflow, priority, .. } = request;
            let namespace = namespace(tenant, frontend.digest_of(adapter));
            let job = ScoreJob {
                step,
                prompt,
                stable_tokens,
                workflow,
                tenant,
                namespace,
                priority,
                adapter,
                forced,
                asked,
                reply,
            };
            (job, receiver)
        };
        // Tokens scored by the prompt's last row: the first tokens of all, and the end for an empty continuation.
        let ends = if request.end { frontend.eos.as_slice() } else { &[] };
        let first_tokens: Vec<u32> = continuations.iter().map(|tokens| tokens.first().copied().unwrap_or(0)).collect();
        let asked_first = [first_tokens.as_slice(), ends].concat();
        let filler = filler(frontend, &prompt, &continuations, request.end);
        let rows = std::iter::once(asked_first).chain(vec![Vec::new(); filler.len()]).collect();
        let place = frontend.admission.acquire(request.tenant)?;
        let (leader, receiver) = job(prompt.clone(), filler, rows);
        let first = self.wait(self.read(model, leader)?, receiver).await?;
        drop(place);
        let cached_tokens = first.cached_tokens;
        let (first, ends_first) = first.found[0].split_at(first_tokens.len());

        let mut scores: Vec<Score> = Vec::new();
        while scores.len() < continuations.len() {
            let mut under_way = Vec::new();
            for tokens in continuations[scores.len()..].iter().take(AT_ONCE) {
                let Some((first, rest)) = tokens.split_first() else {
                    under_way.push(None);
                    continue;
                };
                let asked: Vec<Vec<u32>> =
                    rest.iter().map(|token| vec![*token]).chain((!ends.is_empty()).then(|| ends.to_vec())).collect();
                if asked.is_empty() {
                    under_way.push(None);
                    continue;
                }
                let place = match frontend.admission.acquire(request.tenant) {
                    Ok(place) => place,
                    Err(error) if under_way.is_empty() => return Err(error),
                    Err(_) => break,
                };
                let forced = rest[..asked.len() - 1].to_vec();
                let (follower, receiver) = job([&prompt[..], &[*first]].concat(), forced, asked);
                under_way.push(Some((self.read(model, follower)?, receiver, place)));
            }
            for sequence in under_way {
                let index = scores.len();
                let tokens = continuations[index].len();
                let rows = match sequence {
                    Some((cancel, receiver, _place)) => self.wait(cancel, receiver).await?.found,
                    None if tokens == 0 => vec![ends_first.to_vec()],
                    None => Vec::new(),
                };
                scores.push(total(tokens, first[index], &rows, request.end));
            }
        }
        let prompt_tokens = prompt.len() + continuations.iter().map(Vec::len).sum::<usize>();
        let seconds = began.elapsed().as_secs_f64();
        Ok(Scored { scores, usage: Usage { calls: 1, prompt_tokens, cached_tokens, output_tokens: 0, seconds } })
    }

    /// Submits a job; dropping the result cancels it.
    fn read(&self, model: usize, job: ScoreJob) -> Result<CancelOnDrop<'_>, CallError> {
        let id = SequenceId(self.next_id());
        let mailbox = self.mailbox();
        mailbox.send(Message::Score { model, id, job: Box::new(job) }).map_err(|_| CallError::Closed)?;
        Ok(CancelOnDrop { mailbox, message: Some(Message::Cancel { model, id }) })
    }

    async fn wait(
        &self,
        mut cancel: CancelOnDrop<'_>,
        receiver: oneshot::Receiver<Result<Rows, CallError>>,
    ) -> Result<Rows, CallError> {
        let found = receiver.await.map_err(|_| CallError::Closed);
        cancel.message = None;
        found?
    }
}

/// Tokens that pad the last page of the prompt if continuations are computed after it. Their values do not matter: only
/// the part up to the prompt's end is shared.
fn filler(frontend: &ModelFrontend, prompt: &[u32], continuations: &[Vec<u32>], end: bool) -> Vec<u32> {
    let missing = prompt.len().next_multiple_of(PAGE_TOKENS) - prompt.len();
    let computes = |tokens: &&Vec<u32>| tokens.len() > usize::from(!end);
    let several = continuations.iter().filter(computes).count() > 1;
    let fits = prompt.len() + missing <= frontend.context_tokens;
    vec![prompt[prompt.len() - 1]; if several && fits { missing } else { 0 }]
}

/// The score of a continuation with this many tokens; `rows` are the log-probabilities of its rows, the last row for
/// its end if that is scored.
fn total(tokens: usize, first: f64, rows: &[Vec<f64>], end: bool) -> Score {
    let (end_row, token_rows) = if end { (rows.last(), &rows[..rows.len() - 1]) } else { (None, rows) };
    // Any end token ends the reply.
    let end_logprob = end_row.map(|ends| ends.iter().map(|logprob| logprob.exp()).sum::<f64>().ln());
    let first = if tokens > 0 { first } else { 0.0 };
    let logprob = token_rows.iter().flatten().fold(first, |sum, logprob| sum + logprob);
    Score { logprob: logprob + end_logprob.unwrap_or(0.0), tokens, end_logprob }
}

/// The tokens of a prompt followed by each continuation. If the tokenizer merges characters of both into one token, the
/// prompt ends before the first token that differs for any of them.
fn continued(frontend: &ModelFrontend, request: &ScoreRequest) -> Result<Continued, CallError> {
    let failed = |error: ModelError| CallError::Failed { step: request.step, reason: error.to_string() };
    let call = Call { tenant: request.tenant, ..Call::new(request.agent, request.step, request.prompt.clone(), 0) };
    let rendered = frontend.prompt(&call)?;
    let tokens = &rendered.tokens;
    // Text after the last special token is tokenised separately.
    let is_special = |token: &u32| frontend.tokenizer.specials().any(|special| special == *token);
    let tail = tokens.iter().rposition(is_special).map_or(0, |at| at + 1);
    let bytes: Vec<u8> = tokens[tail..].iter().flat_map(|token| frontend.tokenizer.bytes(*token)).copied().collect();
    let text = String::from_utf8(bytes).map_err(|_| CallError::Failed {
        step: request.step,
        reason: "the prompt does not end with a whole character".into(),
    })?;
    let joined = |continuation: &String| frontend.tokenizer.encode(&(text.clone() + continuation)).map_err(failed);
    let joined = request.continuations.iter().map(joined).collect::<Result<Vec<_>, _>>()?;
    let common = |other: &Vec<u32>| tokens[tail..].iter().zip(other).take_while(|(a, b)| a == b).count();
    let common = joined.iter().map(common).min().unwrap_or(0);
    let prompt = tokens[..tail + common].to_vec();
    if prompt.is_empty() {
        return Err(CallError::Failed { step: request.step, reason: "the prompt is empty".into() });
    }
    let stable_tokens = rendered.segments.stable_tokens().min(prompt.len());
    let continuations = joined.into_iter().map(|tokens| tokens[common..].to_vec()).collect();
    Ok(Continued { prompt, stable_tokens, continuations })
}

#[cfg(test)]
mod tests {
    use calls::{Agent, Priority, Prompt, ScoreRequest, Stability, TenantId, WorkflowId};

    use super::{continued, total};
    use crate::format_threads::tests::model;

    #[test]
    fn scores_are_sums_over_tokens_and_end() {
        let end = vec![0.25f64.ln(), 0.5f64.ln()];
        let score = total(3, -1.0, &[vec![-2.0], vec![-3.0], end.clone()], true);
        assert_eq!((score.tokens, score.end_logprob), (3, Some(0.75f64.ln())));
        assert_eq!(score.logprob, -6.0 + 0.75f64.ln());
        assert_eq!(total(2, -1.0, &[vec![-2.0]], false).logprob, -3.0);
        assert_eq!(total(1, -1.0, &[], false).logprob, -1.0);
        let empty = total(0, -9.0, &[end], true);
        assert_eq!(empty.logprob, 0.75f64.ln(), "only the end");
        assert_eq!(total(0, -9.0, &[], false).logprob, 0.0);
    }

    #[test]
    fn a_prompt_to_be_scored_is_remembered_for_its_tenant() {
        let ((frontend, _), tenant) = (model(), TenantId::new(7));
        let request = ScoreRequest {
            agent: Agent::Responder,
            step: "test",
            workflow: WorkflowId::default(),
            tenant,
            priority: Priority::default(),
            prompt: Prompt::new().user(Stability::Volatile, "When?"),
            continuations: vec!["Now.".into()],
            end: true,
        };
        assert!(continued(&frontend, &request).is_ok());
        let is_known = |tenant| frontend.rendered.find(tenant, &request.prompt, false).is_some();
        assert_eq!([tenant, TenantId::LOCAL].map(is_known), [true, false]);
    }
}
