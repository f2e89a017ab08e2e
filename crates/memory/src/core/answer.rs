//! The last call of a method: the answer to the question.

use calls::{Agent, Call, Reply, Stability};
use store::{Corpus, Document, PassageId};

use crate::core::choices;
use crate::core::cite::{Citation, without_mark};
use crate::core::error::Result;
use crate::core::evidence::{Item, budget, pack};
use crate::core::origin::shows_paths;
use crate::core::outcome::{Answer, Statement, Support};
use crate::core::prompt::{Input, Instructions, build, in_form};
use crate::core::quotable::Quotable;
use crate::core::refusal::is_refusal;
use crate::core::session::{Ask, Session};
use crate::core::settings::AnswerForm;
use crate::core::short::{is_polar, listed, one_line};
use crate::core::span;
use crate::core::support::{check, statements};
use crate::core::trace::Event;
use crate::grounding::{self, AnswerType, Checked, Chosen, Place, ShortAnswer, Verdict};

const ANSWER: Instructions = Instructions {
    task: "You answer questions from a text that is given to you.",
    rules: "\
Read CONTEXT and answer QUESTION in one or two short sentences.
- Use only what CONTEXT says. Prefer its own words.
- If CONTEXT gives a time by a word like \"yesterday\", work out the date from the time at which it was said.
- If CONTEXT does not hold the answer, write \"Not in the documents.\" and no more.
- Give the answer alone: no introduction, no explanation of how you found it.",
    cue: "Answer QUESTION from CONTEXT in one short sentence.",
};

const CHOOSE: Instructions = Instructions {
    task: "You choose the right one of several answers from a text that is given to you.",
    rules: "\
Read CONTEXT and answer QUESTION with one of OPTIONS.
- Use only what CONTEXT says. Choose the option that it supports best.
- Give the letter of that option in square brackets alone.",
    cue: "Answer QUESTION from CONTEXT with the letter of one of OPTIONS.",
};

/// The rules before those of [`crate::Settings::answer_rules`], and the cue after them.
const BEFORE_FORM: &str = "Read CONTEXT and answer QUESTION.\n- Use only what CONTEXT says.";
const CUE_OF_FORM: &str = "Answer QUESTION from CONTEXT, in the form that is asked for.";

/// Tokens of an answer (GAM's released client: 256).
const MAX_OUTPUT_TOKENS: usize = 256;

/// The answer where the evidence probably holds none. [`ANSWER`] has models write it.
pub(crate) const NOT_IN_DOCUMENTS: &str = "Not in the documents.";

/// The responder's prompt for a question, with `context` in it.
pub(crate) fn question(question: &str, context: &str, stability: Stability, session: &Session<'_>) -> Ask {
    let settings = &session.settings;
    let mut inputs =
        vec![Input::new("CONTEXT", stability, context), Input::new("QUESTION", Stability::Volatile, question)];
    inputs.extend(choices::input(settings));
    let max_output_tokens = session.output_tokens(Agent::Responder, MAX_OUTPUT_TOKENS);
    let prompt = match settings.answer_rules {
        _ if !settings.choices.is_empty() => {
            let rules = in_form(CHOOSE.rules, "the answer", settings);
            build(settings.layout, Instructions { rules: &rules, ..CHOOSE }, inputs)
        }
        Some(form) => {
            let rules = format!("{BEFORE_FORM}\n{form}");
            build(settings.layout, Instructions { rules: &rules, cue: CUE_OF_FORM, ..ANSWER }, inputs)
        }
        None => build(settings.layout, ANSWER, inputs),
    };
    Ask { agent: Agent::Responder, step: "answer", prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

/// The responder's prompt for a question with pages, the best first, as far as they fit; and those that do.
pub(crate) fn question_on_pages(
    asked: &str,
    pages: &[PassageId],
    tool: &str,
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<(Ask, Vec<PassageId>)> {
    let items = Item::pages(Agent::Responder, pages.iter().map(|page| (*page, tool)), corpus, session)?;
    let bare = question(asked, "", Stability::Volatile, session);
    let budget = budget(Agent::Responder, session.prompt_tokens(&bare), bare.max_output_tokens, session);
    let evidence = pack("answer", Agent::Responder, &items, budget, session)?;
    Ok((question(asked, &evidence.text, Stability::Volatile, session), evidence.pages))
}

/// The responder's prompt for a question with all documents.
pub(crate) fn question_on_all(asked: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Ask> {
    Ok(question(asked, &whole_text(corpus, session)?, Stability::Corpus, session))
}

/// All documents as the responder reads them.
pub(crate) fn whole_text(corpus: &Corpus, session: &Session<'_>) -> Result<String> {
    let shows_paths = shows_paths(Agent::Responder, corpus, session)?;
    let shown = |document: Document| {
        let text = corpus.document_text(document.id)?;
        Ok(if shows_paths { format!("DOCUMENT {}\n\n{text}", document.short_path()) } else { text })
    };
    Ok(corpus.documents()?.into_iter().map(shown).collect::<Result<Vec<_>>>()?.join("\n\n"))
}

/// The answer to a question from `pages`: a span of them in the small profile ([`span`]), else the responder's reply to
/// `ask`. Every statement is checked against the pages.
pub(crate) async fn respond(
    asked: &str,
    ask: Ask,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    let settings = &session.settings;
    let quotable = Quotable::of_pages(pages, corpus)?;
    if span::applies(session) {
        let answer = chosen(asked, ask, &quotable, session).await?;
        session.stream(&answer.answer);
        return Ok(answer);
    }
    // The letter of an option is streamed with the option's text, once the reply is complete.
    let on_text = session.on_text.clone().filter(|_| settings.choices.is_empty());
    let reply = session.send(Call { on_text, ..session.call(ask, choices::output_format(settings)) }).await?;
    let answer = checked(asked, reply, &quotable, session).await?;
    if !settings.choices.is_empty() {
        session.stream(&answer.answer);
    }
    Ok(answer)
}

/// The responder's reply, checked against `pages`.
pub(crate) async fn cited(
    asked: &str,
    reply: Reply,
    pages: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Answer> {
    checked(asked, reply, &Quotable::of_pages(pages, corpus)?, session).await
}

async fn checked(asked: &str, reply: Reply, quotable: &Quotable, session: &Session<'_>) -> Result<Answer> {
    let text = choices::with_text(&reply.text, &session.settings);
    let answer = grounded(asked, text, None, quotable, session).await?;
    Ok(Answer { model: reply.model, ..answer })
}

/// An answer whose statements are checked against the texts, by the responder's model. A refusal in words is withheld.
pub(crate) async fn grounded(
    asked: &str,
    text: String,
    short: Option<&ShortAnswer>,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<Answer> {
    if session.settings.choices.is_empty() && !text.trim().is_empty() && is_refusal(&text) {
        return Ok(withheld(&text, session));
    }
    // An option is stated without its letter.
    let stated = choices::without_label(&text, &session.settings);
    let (mut statements, citations) = statements(asked, stated, short, quotable, session).await?;
    let label = u32::try_from(text.chars().count() - stated.chars().count()).unwrap_or(0);
    for statement in &mut statements {
        (statement.start, statement.end) = (statement.start + label, statement.end + label);
    }
    Ok(Answer { statements, citations, ..bare(text, session) })
}

/// An answer that states nothing about the sources.
pub(crate) fn bare(text: String, session: &Session<'_>) -> Answer {
    Answer {
        answer: text,
        short: None,
        probability: None,
        statements: Vec::new(),
        answerable: None,
        abstained: None,
        method: session.settings.method.name(),
        model: session.caller.models().model(Agent::Responder).to_owned(),
        embedder: session.embedder.name().to_owned(),
        citations: Vec::new(),
        confidence: None,
        cited_nodes: Vec::new(),
        usage: session.trace.usage(),
        chosen: None,
        prepared: None,
        note: None,
        searched_with: None,
    }
}

/// The answer where a method found nothing that answers the question.
pub(crate) fn withheld(text: &str, session: &Session<'_>) -> Answer {
    Answer { abstained: Some(true), ..bare(text.to_owned(), session) }
}

/// An answer that is chosen from the evidence, or withheld; not streamed. `ask` requests a written answer, which some models
/// need to choose by. Only where [`span::applies`].
pub(crate) async fn chosen(asked: &str, ask: Ask, quotable: &Quotable, session: &Session<'_>) -> Result<Answer> {
    let Chosen { mut answers, answerable, readings, .. } = span::choose(asked, ask, quotable, session).await?;
    if AnswerType::of(asked) == Some(AnswerType::Time) {
        answers.iter_mut().for_each(|answer| resolve(answer, quotable));
    }
    let mut is_reversed = false;
    if let [only] = &mut answers[..] {
        complete(asked, only, quotable);
        is_reversed = reverse(asked, only, quotable, session).await?;
    }
    let short = listed(&answers);
    let is_short_span = session.settings.answer_form == AnswerForm::Short && readings.is_empty();
    let is_plain = match &answers[..] {
        [only] => only.places.first().is_some_and(|at| grounding::states_plainly(asked, &quotable.stating(*at))),
        _ => false,
    };
    // A span that was chosen because the reader found no answer.
    let is_unread = readings.is_empty() && answerable.is_some() && span::reads_blocks(session);
    // The model and the surface features agree, or the source can mean nothing else.
    let is_likely = answers.first().is_some_and(|best| best.probability >= SURE)
        && readings.first().is_none_or(|best| best.signals.surface >= LEAST_SHARE.ln());
    let is_sure = !is_unread && (is_plain || is_likely);
    let is_of_another = readings.first().is_some_and(|best| best.signals.is_of_another);
    let answer = match answers.first() {
        None => Answer {
            note: is_of_another.then(|| OTHER_SPEAKER.to_owned()),
            ..bare(NOT_IN_DOCUMENTS.to_owned(), session)
        },
        Some(best) if is_polar(best) && best.places.len() > 1 => together(best, quotable, session)?,
        Some(best) if is_polar(best) => polar(asked, best, is_reversed, quotable, session).await?,
        // Written in the model's own words, or as short as was asked for.
        Some(best) if best.places.is_empty() || is_short_span => {
            let answer = grounded(asked, short.clone(), Some(best), quotable, session).await?;
            if is_sure { answer } else { doubted(answer) }
        }
        Some(_) => quoted(asked, &answers, is_sure, quotable, session)?,
    };
    let is_withheld = answers.is_empty() || answer.is_withheld();
    // The probability is not fitted for "yes" and "no", and too high where no sentence supports them.
    let is_open = answers.first().is_some_and(is_polar) && !answer.is_supported();
    let probability = readings.first().and(answers.first()).filter(|_| !is_open).map(|best| best.probability);
    let short = (!is_withheld).then_some(short);
    Ok(Answer { short, probability, answerable, abstained: Some(is_withheld), ..answer })
}

/// Replaces "yesterday" and the like by the date that it means where the answer is.
fn resolve(answer: &mut ShortAnswer, quotable: &Quotable) {
    let day = answer.places.first().and_then(|place| quotable.day(*place));
    if let Some(time) = day.and_then(|day| grounding::resolved(&answer.text, day)) {
        answer.text = time;
    }
}

/// Replaces one item of an enumeration by all of it where the question asks for as many, or for all.
fn complete(asked: &str, answer: &mut ShortAnswer, quotable: &Quotable) {
    let texts = quotable.texts();
    let Some(Place { text, start, end }) = answer.places.first().copied().filter(|_| !is_polar(answer)) else { return };
    // A time that was replaced by its date is not in the text.
    if texts[text][start..end] != answer.text {
        return;
    }
    if let Some(range) = grounding::enumeration(asked, texts[text], &(start..end)) {
        texts[text][range.clone()].clone_into(&mut answer.text);
        answer.places = vec![Place { text, start: range.start, end: range.end }];
    }
}

/// Replaces "yes" or "no" by the other one if the documents contradict it, with the sentence that does; whether it was replaced.
async fn reverse(asked: &str, answer: &mut ShortAnswer, quotable: &Quotable, session: &Session<'_>) -> Result<bool> {
    if !is_polar(answer) || answer.places.len() > 1 {
        return Ok(false);
    }
    let checked = check(asked, &answer.text, quotable, session).await?;
    let [Checked { verdict: Verdict::Contradicted(place), .. }] = &checked[..] else { return Ok(false) };
    let other = if answer.text == "yes" { "no" } else { "yes" };
    other.clone_into(&mut answer.text);
    answer.places = vec![*place];
    Ok(true)
}

/// "Yes" where a sentence supports it. Any other "yes" or "no", or one that replaces what the model read, is shown as the sentence that
/// comes closest, which may not answer the question: one sentence rarely shows that something is not so.
async fn polar(
    asked: &str,
    best: &ShortAnswer,
    is_reversed: bool,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<Answer> {
    let answer = grounded(asked, best.text.clone(), Some(best), quotable, session).await?;
    if answer.is_supported() && best.text == "yes" && !is_reversed {
        return Ok(answer);
    }
    let (known, texts) = (grounding::content_words(asked), quotable.texts());
    let is_close = |place: &Place| {
        let sentence = &texts[place.text][quotable.unit(*place)];
        grounding::content_words(sentence).iter().any(|word| known.contains(word))
    };
    match best.places.first().is_some_and(is_close) && session.settings.answer_form != AnswerForm::Short {
        true => quoted(asked, std::slice::from_ref(best), false, quotable, session),
        false => Ok(doubted(answer)),
    }
}

/// "Yes" or "no" that several sentences decide together: each of them is a citation.
fn together(best: &ShortAnswer, quotable: &Quotable, session: &Session<'_>) -> Result<Answer> {
    let mut citations: Vec<Citation> = Vec::new();
    for citation in best.places.iter().map(|place| quotable.citation(*place)) {
        if !citations.contains(&citation) {
            citations.push(citation);
        }
    }
    let statement =
        Statement { verdict: Support::Supported, citation: citations.first().cloned(), ..unsupported(&best.text) };
    session.trace.record(Event::Statements { step: "answer.quote".to_owned(), verdicts: vec![Support::Supported] })?;
    Ok(Answer { statements: vec![statement], citations, ..bare(best.text.clone(), session) })
}

/// The probability from which words of the documents count as the answer to the question: below it the right sentence
/// often holds another phrase that would match the question as well.
const SURE: f64 = 0.85;

/// The note of an answer that is withheld because of who says it.
const OTHER_SPEAKER: &str = "the closest text is by a speaker whom the question does not name";

/// The least share that surface features give an answer that a model read and that counts as supported. Of 910 answers to
/// questions that the suite `answers` does not ask, 211 count with both constants, and five of these are wrong; with 0.8 and
/// a half 190 did, and eight of these were wrong, and with 0.85 alone 287 and fifteen.
const LEAST_SHARE: f64 = 1.0 / 3.0;

/// The same answer as words of the documents that may not answer the question.
fn doubted(mut answer: Answer) -> Answer {
    for statement in answer.statements.iter_mut().filter(|statement| statement.verdict == Support::Supported) {
        statement.verdict = Support::Quoted;
    }
    answer.citations.clear();
    answer
}

/// The answers themselves, or the sentences of the evidence that state them, each once. They are supported if that is sure
/// and one sentence can state them.
fn quoted(
    asked: &str,
    answers: &[ShortAnswer],
    is_sure: bool,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<Answer> {
    let (mut text, mut statements, mut citations) = (String::new(), Vec::new(), Vec::new());
    let states = |place: &Place| grounding::can_state(asked, &quotable.stating(*place));
    let is_supported = is_sure && answers.first().is_some_and(|best| best.places.first().is_none_or(states));
    let verdict = if is_supported { Support::Supported } else { Support::Quoted };
    let is_short = session.settings.answer_form == AnswerForm::Short;
    let texts = quotable.texts();
    // An option of the question may be in no sentence.
    for (answer, place) in answers.iter().filter_map(|answer| Some((answer, *answer.places.first()?))) {
        let citation = quotable.citation(place);
        if !is_short && citations.contains(&citation) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(if is_short { ", " } else { " " });
        }
        let unit = quotable.unit(place);
        let row = grounding::shown(texts[place.text], &Place { text: place.text, start: unit.start, end: unit.end });
        let stated = one_line(if is_short { &answer.text } else { without_mark(&row) });
        let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let start = chars(&text);
        text.push_str(&stated);
        let end = chars(&text);
        statements.push(Statement { text: stated, start, end, verdict, citation: Some(citation.clone()) });
        if !citations.contains(&citation) {
            citations.push(citation);
        }
    }
    if !is_supported {
        citations.clear();
    }
    if statements.is_empty() {
        text = listed(answers);
        statements.push(unsupported(&text));
    }
    let verdicts = statements.iter().map(|statement| statement.verdict).collect();
    session.trace.record(Event::Statements { step: "answer.quote".to_owned(), verdicts })?;
    Ok(Answer { statements, citations, ..bare(text, session) })
}

fn unsupported(text: &str) -> Statement {
    let end = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    Statement { text: text.to_owned(), start: 0, end, verdict: Support::Unsupported, citation: None }
}
