//! POST /v1/embeddings: dense vectors, and as extensions the sparse and ColBERT representations of models that have them.

use std::mem::take;
use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calls::{Embedding, Heads, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

/// A request for embeddings. `sparse` and `colbert` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "`user` is accepted, as at OpenAI")]
pub(super) struct EmbeddingRequest {
    model: String,
    input: Input,
    #[serde(default)]
    encoding_format: Encoding,
    /// Shorten the vectors to this length; they are normalised again.
    dimensions: Option<usize>,
    /// Cut texts that are longer than the model reads, instead of refusing them. A `Warning` header tells how many were cut.
    #[serde(default)]
    truncate: bool,
    /// As `truncate`, to this number of tokens; -1 is as many as the model reads.
    truncate_prompt_tokens: Option<i64>,
    user: Option<String>,
    /// Also return lexical weights.
    #[serde(default)]
    sparse: bool,
    /// Also return a vector per token.
    #[serde(default)]
    colbert: bool,
}

/// Texts. Token ids are refused: clients such as LangChain send ids of OpenAI's tokenizer. vLLM takes these as ids of its model's
/// tokenizer and so returns vectors of another text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Input {
    Text(String),
    Texts(Vec<String>),
    Tokens(#[allow(dead_code, reason = "only its form counts")] Vec<u32>),
    ManyTokens(#[allow(dead_code, reason = "only its form counts")] Vec<Vec<u32>>),
}

impl Input {
    /// The texts.
    fn texts(&mut self) -> Result<Vec<String>> {
        match self {
            Input::Text(text) => Ok(vec![take(text)]),
            Input::Texts(texts) => Ok(take(texts)),
            Input::Tokens(_) | Input::ManyTokens(_) => Err(ServerError::Invalid {
                message: "`input` takes texts, not token ids: the tokenizer that made them is unknown".to_owned(),
                param: Some("input".to_owned()),
                hint: Some(
                    "send texts; LangChain's OpenAIEmbeddings does so with `check_embedding_ctx_length=False`"
                        .to_owned(),
                ),
            }),
        }
    }
}

/// The encoding of dense vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// Little-endian 32-bit floats.
    Base64,
}

/// OpenAI's limit on the texts of a request.
pub(crate) const MAX_TEXTS: usize = 2048;

/// Maximum token vectors held at once; a single text may exceed it.
pub(super) const MAX_VECTORS: usize = 16_384;

/// Computes only what was requested; token vectors that only sparse weights need are dropped group by group.
async fn embeddings(
    app: &App,
    tenant: TenantId,
    texts: Vec<(String, usize)>,
    request: &EmbeddingRequest,
) -> Result<Vec<Embedding>> {
    if !request.sparse && !request.colbert {
        return app.encode(tenant, texts.into_iter().map(|(text, _)| text).collect(), Heads::Dense).await;
    }
    let mut all = Vec::new();
    for batch in batches(texts) {
        let mut embeddings = app.encode(tenant, batch, Heads::All).await?;
        if !request.colbert {
            embeddings.iter_mut().for_each(|embedding| embedding.colbert = None);
        }
        all.append(&mut embeddings);
    }
    Ok(all)
}

/// Groups of texts with at most [`MAX_VECTORS`] tokens, or of one text.
pub(super) fn batches(texts: Vec<(String, usize)>) -> Vec<Vec<String>> {
    let (mut batches, mut tokens_held): (Vec<Vec<String>>, usize) = (Vec::new(), 0);
    for (text, tokens) in texts {
        tokens_held += tokens;
        match batches.last_mut() {
            Some(batch) if tokens_held <= MAX_VECTORS => batch.push(text),
            _ => {
                tokens_held = tokens;
                batches.push(vec![text]);
            }
        }
    }
    batches
}

/// The number of tokens that each text is cut to, if the request asks for that.
fn token_limit(request: &EmbeddingRequest, window_tokens: usize) -> Result<Option<usize>> {
    match request.truncate_prompt_tokens {
        None => Ok(request.truncate.then_some(window_tokens)),
        Some(-1) => Ok(Some(window_tokens)),
        Some(tokens) => match usize::try_from(tokens) {
            Ok(tokens @ 1..) => Ok(Some(tokens.min(window_tokens))),
            _ => {
                Err(ServerError::invalid("`truncate_prompt_tokens` must be -1 or at least 1", "truncate_prompt_tokens"))
            }
        },
    }
}

/// Cuts texts with more tokens than this at the boundary of a token, with a warning that tells how many were cut.
pub(crate) async fn at_most(app: &App, texts: Vec<String>, limit: usize, warnings: &Warnings) -> Result<Vec<String>> {
    let (embedder, count) = (Arc::clone(&app.embedder), texts.len());
    let cut = move |mut text: String| {
        let mut is_cut = false;
        // What is left may be tokenised differently, into more tokens.
        while let Some(first_beyond) = embedder.token_spans(&text).get(limit) {
            text.truncate(first_beyond.start);
            is_cut = true;
        }
        (text, is_cut)
    };
    let texts: Vec<(String, bool)> = run_blocking(move || Ok(texts.into_iter().map(cut).collect())).await?;
    let cut = texts.iter().filter(|(_, is_cut)| *is_cut).count();
    if cut > 0 {
        warnings.add(format!("{cut} of {count} texts were truncated to {limit} tokens"));
    }
    Ok(texts.into_iter().map(|(text, _)| text).collect())
}

/// Shortens a vector to its first components and normalises it again.
///
/// # Errors
/// If it does not have as many.
pub(crate) fn shorten(vector: &mut Vec<f32>, dimensions: Option<usize>) -> Result<()> {
    let Some(wanted) = dimensions.filter(|wanted| *wanted != vector.len()) else { return Ok(()) };
    let dims = vector.len();
    if wanted == 0 || wanted > dims {
        return Err(ServerError::invalid(format!("vectors of this model have {dims} dimensions"), "dimensions"));
    }
    vector.truncate(wanted);
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|x| *x /= norm);
    }
    Ok(())
}

/// Embed texts.
#[utoipa::path(post, path = "/v1/embeddings", tag = "OpenAI", request_body = EmbeddingRequest,
    responses((status = 200, body = Value), (status = 400, description = "Refused; a text is truncated only on request")))]
pub(super) async fn embed(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    AdmittedJson(mut request, _permit): AdmittedJson<EmbeddingRequest>,
) -> Result<Json<Value>> {
    app.check_embedder(&request.model)?;
    shorten(&mut vec![0.0; app.embedder.dims()], request.dimensions)?;
    let mut texts = request.input.texts()?;
    if !(1..=MAX_TEXTS).contains(&texts.len()) || texts.iter().any(String::is_empty) {
        return Err(ServerError::invalid(format!("`input` takes 1 to {MAX_TEXTS} strings, none empty"), "input"));
    }
    if let Some(limit) = token_limit(&request, app.embedder.window_tokens())? {
        texts = at_most(&app, texts, limit, &warnings).await?;
    }
    let texts = app.with_token_counts(texts).await?;
    let tokens: usize = texts.iter().map(|(_, tokens)| tokens).sum();
    if request.colbert && tokens > MAX_VECTORS {
        let message = format!(
            "the texts have {tokens} tokens, but a response holds at most {MAX_VECTORS} token vectors; send fewer texts"
        );
        return Err(ServerError::invalid(message, "colbert"));
    }
    let mut embeddings = app.with_deadline(embeddings(&app, tenant.id, texts, &request)).await?;
    for embedding in &mut embeddings {
        shorten(&mut embedding.dense, request.dimensions)?;
    }
    let data = embeddings.iter().enumerate().map(|(index, embedding)| {
        let mut object = json!({ "object": "embedding", "index": index, "embedding": dense(&embedding.dense, request.encoding_format) });
        if request.sparse {
            object["sparse"] = sparse(embedding)?;
        }
        if request.colbert {
            object["colbert"] = json!(embedding.colbert.as_ref().ok_or_else(|| no_head("colbert"))?);
        }
        Ok(object)
    });
    let data = data.collect::<Result<Vec<Value>>>()?;
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(Json(json!({ "object": "list", "data": data, "model": app.embedder.name(), "usage": usage })))
}

fn dense(vector: &[f32], encoding: Encoding) -> Value {
    match encoding {
        Encoding::Float => json!(vector),
        Encoding::Base64 => STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).into(),
    }
}

fn sparse(embedding: &Embedding) -> Result<Value> {
    let weights = embedding.sparse.as_ref().ok_or_else(|| no_head("sparse"))?;
    let (indices, values): (Vec<u32>, Vec<f32>) = weights.iter().copied().unzip();
    Ok(json!({ "indices": indices, "values": values }))
}

fn no_head(name: &str) -> ServerError {
    ServerError::invalid(format!("this model has no {name} representation"), name)
}
