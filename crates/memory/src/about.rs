//! What is to be known of each method: the documentation of its own module, so that the program says what the code says.

use crate::settings::Method;

impl Method {
    /// What the method does and where it departs from its paper.
    pub fn documentation(self) -> String {
        let lines = self.module().lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }

    /// The first sentence of that.
    pub fn summary(self) -> String {
        let documentation = self.documentation();
        let paragraph: Vec<&str> = documentation.lines().take_while(|line| !line.is_empty()).collect();
        let paragraph = paragraph.join(" ");
        paragraph.split_once(". ").map_or(paragraph.as_str(), |(sentence, _)| sentence).trim_end_matches('.').to_owned()
    }

    fn module(self) -> &'static str {
        match self {
            Method::Gam => include_str!("gam/mod.rs"),
            Method::Memcot => include_str!("memcot/mod.rs"),
            Method::Comorag => include_str!("comorag/mod.rs"),
            Method::Mindgraph => include_str!("mindgraph/mod.rs"),
            Method::Rag => include_str!("rag.rs"),
            Method::Direct => include_str!("direct.rs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_says_what_it_does() {
        for method in Method::ALL {
            let (summary, documentation) = (method.summary(), method.documentation());
            assert!(
                summary.len() > 40 && documentation.replace('\n', " ").starts_with(&summary),
                "{method}: {summary}"
            );
            let is_code = |line: &str| line.contains("//!") || line.starts_with("use ") || line.starts_with("mod ");
            assert!(!documentation.lines().any(is_code), "{method}: {documentation}");
        }
        for paper in [Method::Gam, Method::Memcot, Method::Comorag, Method::Mindgraph] {
            assert!(paper.documentation().contains("\n# Departures\n"), "{paper}");
        }
    }
}
