//! The suites by name: their files, and the depths that their papers report.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::data::{Dataset, beir, locomo, multihop, musique, xquad};
use crate::retrieval::Tool;
use crate::{Error, Result, names};

/// A data set on which tools are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// Scientific claims and the abstracts that are evidence for them (BEIR, Thakur et al. 2021).
    SciFact,
    /// Questions that need two Wikipedia paragraphs (Yang et al. 2018).
    HotpotQa,
    /// Questions composed from two to four others (Trivedi et al. 2022).
    MuSiQue,
    /// Questions that need two to four Wikipedia paragraphs (Ho et al. 2020).
    #[serde(rename = "2wiki")]
    TwoWiki,
    /// Questions about long conversations and the turns that answer them (Maharana et al. 2024).
    LoCoMo,
    /// Questions about Wikipedia paragraphs, the same in several languages (Artetxe et al. 2020).
    Xquad,
}

impl Suite {
    const NAMES: [(Suite, &'static str); 6] = [
        (Suite::SciFact, "scifact"),
        (Suite::HotpotQa, "hotpotqa"),
        (Suite::MuSiQue, "musique"),
        (Suite::TwoWiki, "2wiki"),
        (Suite::LoCoMo, "locomo"),
        (Suite::Xquad, "xquad"),
    ];

    /// The depths at which recall is reported.
    pub fn recall_depths(self) -> &'static [usize] {
        match self {
            Suite::SciFact => &[10, 100],
            Suite::HotpotQa | Suite::MuSiQue | Suite::TwoWiki => &[2, 5, 10, 20],
            Suite::LoCoMo => &[5, 10, 20, 50],
            Suite::Xquad => &[1, 2, 5, 10],
        }
    }

    /// The windows, in passages on either side of a hit, that count as found too: MemCoT's zoom-out (figure 4).
    pub fn windows(self) -> &'static [usize] {
        if self == Suite::LoCoMo { &[1, 4, 8, 15] } else { &[] }
    }

    /// The tools that are compared by default; they include separate titles and texts where such numbers are published.
    pub fn tools(self) -> &'static [Tool] {
        match self {
            Suite::SciFact => &[Tool::Bm25, Tool::Bm25Fields, Tool::Dense, Tool::Fused],
            _ => &[Tool::Bm25, Tool::Dense, Tool::Fused],
        }
    }

    /// Reads the suite's data from a file or a folder in the published format.
    ///
    /// # Errors
    /// [`Error::Record`] with file, line and field; [`Error::NotTheData`] where the path is something else.
    pub fn load(self, path: &Path) -> Result<Dataset> {
        let data = match self {
            Suite::SciFact => beir::load(path),
            Suite::HotpotQa | Suite::TwoWiki => multihop::load(path),
            Suite::MuSiQue => musique::load(path),
            Suite::LoCoMo => locomo::load(path),
            Suite::Xquad => xquad::load(path),
        }?;
        if data.collections.iter().all(|collection| collection.queries.is_empty()) {
            let problem = "there are no questions in it that can be scored".to_owned();
            return Err(Error::NotTheData { path: path.to_owned(), problem });
        }
        Ok(data)
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(names::name(&Suite::NAMES, self))
    }
}

impl FromStr for Suite {
    type Err = String;

    fn from_str(typed: &str) -> std::result::Result<Self, String> {
        names::value(&Suite::NAMES, typed)
    }
}
