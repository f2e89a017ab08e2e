//! XQuAD's form, which is SQuAD's: articles of paragraphs with their questions, a file a language (Artetxe et al. 2020,
//! <https://github.com/google-deepmind/xquad>). Relevant to a question is the paragraph that it was asked about.

use std::path::Path;

use super::pool::Pool;
use super::squad::{self, Qa};
use super::{Collection, Dataset, Query, Wanted, files};
use crate::{Error, Result};

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
    for paragraph in squad::read(file)?.into_iter().flat_map(|article| article.paragraphs) {
        let place = pool.put("", &paragraph.context);
        queries.extend(paragraph.qas.into_iter().map(|Qa { id, question, .. }| Query {
            id,
            text: question,
            groups: vec![language.clone()],
            wanted: Wanted::all([place]),
        }));
    }
    Ok(Collection { name: language, passages: pool.passages, queries, ..Collection::default() })
}
