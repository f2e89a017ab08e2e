//! BEIR's form: a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv` (Thakur et al. 2021,
//! <https://github.com/beir-cellar/beir>).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::records::{Records, fault};
use super::{Collection, Dataset, Passage, Query, Wanted};
use crate::{Error, Result};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// The documents, and the queries of the test split.
pub(crate) fn load(folder: &Path) -> Result<Dataset> {
    let files = ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"].map(|name| folder.join(name));
    let [corpus, queries, qrels] = &files;
    let mut passages = Vec::new();
    let mut places = HashMap::new();
    let documents = Records::<Document>::read(corpus)?;
    for record in documents.iter() {
        let Document { id, title, text } = &record.value;
        if places.insert(id.clone(), passages.len()).is_some() {
            return Err(documents.fault(record, "_id", format!("`{id}` is already the id of an earlier one")));
        }
        passages.push(Passage { id: id.clone(), title: title.clone(), text: text.clone() });
    }
    let mut judged = judgements(qrels, &places)?;
    let mut asked = Vec::new();
    for Question { id, text } in Records::<Question>::read(queries)?.into_values() {
        if let Some(wanted) = judged.remove(&id) {
            asked.push(Query { id, text, groups: Vec::new(), wanted });
        }
    }
    if let Some(id) = judged.keys().next() {
        let problem = format!("query `{id}`, which {} judges, is missing", qrels.display());
        return Err(Error::NotTheData { path: queries.clone(), problem });
    }
    let name = super::files::name(folder);
    let collections = vec![Collection { name, passages, queries: asked, ..Collection::default() }];
    Ok(Dataset { collections, files: files.to_vec(), notes: Vec::new() })
}

/// The relevant passages of each query. The first line of the file names its columns; a score of 0 means not relevant.
fn judgements(path: &Path, places: &HashMap<String, usize>) -> Result<BTreeMap<String, Vec<Wanted>>> {
    let file = fs::read_to_string(path).map_err(Error::reading(path))?;
    if !file.starts_with("query-id\t") {
        return Err(fault(path, 1, "query-id", "the first line does not name the columns"));
    }
    let mut judged = BTreeMap::<String, Vec<Wanted>>::new();
    for (line, row) in (1..).zip(file.lines()).skip(1).filter(|(_, row)| !row.is_empty()) {
        let [query, document, score] = row.split('\t').collect::<Vec<_>>()[..] else {
            return Err(fault(path, line, "", "it has not the three columns query-id, corpus-id and score"));
        };
        let place = places.get(document);
        let place =
            *place.ok_or_else(|| fault(path, line, "corpus-id", format!("`{document}` is not in the corpus")))?;
        let grade = score.trim().parse::<i64>();
        let grade = grade.map_err(|_| fault(path, line, "score", format!("`{score}` is no whole number")))?;
        if let Some(grade) = u32::try_from(grade).ok().filter(|grade| *grade > 0) {
            let wanted = judged.entry(query.to_owned()).or_default();
            if wanted.iter().any(|wanted| wanted.place == place) {
                return Err(fault(path, line, "corpus-id", format!("`{document}` is judged before for `{query}`")));
            }
            wanted.push(Wanted { place, grade });
        }
    }
    Ok(judged)
}
