//! XQuAD's form, which is SQuAD's: articles of paragraphs with their questions, a file a language (Artetxe et al. 2020,
//! <https://github.com/google-deepmind/xquad>). Relevant to a question is the paragraph that it was asked about.

use std::path::Path;

use serde::Deserialize;

use super::pool::Pool;
use super::records::Records;
use super::{Collection, Dataset, Query, Wanted, files};
use crate::{Error, Result};

#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    question: String,
}

/// One collection for each `xquad.LANGUAGE.json`, named by its language.
pub(crate) fn load(path: &Path) -> Result<Dataset> {
    let mut data = Dataset::default();
    for file in files::json_files(path)? {
        let language = files::name(&file).trim_end_matches(".json").trim_start_matches("xquad.").to_owned();
        data.collections.push(collection(language, &file)?);
        data.files.push(file);
    }
    if data.files.is_empty() {
        return Err(Error::NotTheData { path: path.to_owned(), problem: "no xquad.LANGUAGE.json in it".into() });
    }
    Ok(data)
}

fn collection(language: String, file: &Path) -> Result<Collection> {
    let mut pool = Pool::default();
    let mut queries = Vec::new();
    let articles = Records::<File>::read(file)?.into_values().flat_map(|file| file.data);
    for paragraph in articles.flat_map(|article| article.paragraphs) {
        let place = pool.put("", &paragraph.context);
        queries.extend(paragraph.qas.into_iter().map(|Question { id, question }| Query {
            id,
            text: question,
            groups: vec![language.clone()],
            wanted: Wanted::all([place]),
        }));
    }
    Ok(Collection { name: language, passages: pool.passages, queries, ..Collection::default() })
}
