//! Documents as resources, listed in parts.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::Resource;
use store::DocId;

use super::failed;
use crate::corpora::{document_paths, list_corpora};
use crate::tenant::Tenant;

/// Maximum resources of a part.
pub(super) const PART: usize = 1000;

/// At most `most` documents of a tenant behind a cursor, and the cursor of the rest if there are more. A cursor is the place
/// of the last document of a part, `CORPUS/DOCUMENT`; it may be deleted.
///
/// # Errors
/// If the cursor is not one of this list, or the corpora cannot be listed.
pub(super) async fn part(
    tenant: &Arc<Tenant>,
    cursor: Option<&str>,
    most: usize,
) -> Result<(Vec<Resource>, Option<String>), ErrorData> {
    let unknown = || ErrorData::invalid_params("the cursor is not one of this list", None);
    let after = cursor.map(|cursor| place(cursor).ok_or_else(unknown)).transpose()?;
    let corpora = list_corpora(tenant).await.map_err(|error| failed(&error))?;
    let mut names: Vec<&str> = corpora.iter().filter_map(|corpus| corpus["name"].as_str()).collect();
    names.sort_unstable();
    let (mut resources, mut last) = (Vec::new(), None);
    for corpus in names {
        // A corpus that is being written is listed without its documents.
        let documents = document_paths(tenant, corpus.to_owned()).await.unwrap_or_default();
        for (id, name) in documents {
            if after.is_some_and(|after| (corpus, id) <= after) {
                continue;
            }
            if resources.len() == most {
                return Ok((resources, last));
            }
            resources.push(Resource::new(format!("memlocal://{corpus}/{id}"), name).with_mime_type("text/plain"));
            last = Some(format!("{corpus}/{id}"));
        }
    }
    Ok((resources, None))
}

/// The corpus and the document that a cursor names.
fn place(cursor: &str) -> Option<(&str, DocId)> {
    let (corpus, id) = cursor.split_once('/')?;
    Some((corpus, DocId(id.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use store::NewDocument;

    use super::*;
    use crate::app::Shared;

    #[tokio::test]
    async fn all_documents_are_listed_once_in_parts() {
        let (app, _data) = Shared::scripted();
        let tenant = app.tenants.anonymous();
        for (corpus, paths) in [("tern", &["a", "b", "c"][..]), ("pell", &["d", "e"][..])] {
            let mut writer = tenant.corpora.create(corpus).expect("a corpus");
            for path in paths {
                let new = NewDocument { path, kind: "text", title: "", text: "One.", passages: &[] };
                writer.put_document(&new).expect("it can be stored");
            }
        }
        let mut parts = Vec::new();
        let mut cursor = None;
        loop {
            let (resources, next) = part(&tenant, cursor.as_deref(), 2).await.expect("a part");
            parts.push(resources.into_iter().map(|resource| resource.name.clone()).collect::<Vec<_>>());
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(parts, [vec!["d", "e"], vec!["a", "b"], vec!["c"]]);
        for unknown in ["", "pell", "pell/x"] {
            assert!(part(&tenant, Some(unknown), 2).await.is_err(), "{unknown:?}");
        }
    }
}
