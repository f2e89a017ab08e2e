//! Model cards: `README.md` with a head of YAML between lines of `---`, as the Hugging Face Hub reads them.

use std::path::Path;

/// The licence that the card in a folder states: `license_name`, or else `license`.
pub(super) fn licence(folder: &Path) -> Option<String> {
    stated(&std::fs::read_to_string(folder.join("README.md")).ok()?)
}

fn stated(card: &str) -> Option<String> {
    let mut lines = card.lines().map(str::trim_end);
    if lines.next() != Some("---") {
        return None;
    }
    let head: Vec<&str> = lines.by_ref().take_while(|line| *line != "---").collect();
    let field = |name: &str| {
        let value = head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    };
    field("license_name").or_else(|| field("license"))
}

#[cfg(test)]
mod tests {
    use super::stated;

    #[test]
    fn a_licence_is_read_from_the_head_of_a_card() {
        for (card, licence) in [
            ("---\nbase_model: a/b\nlicense: apache-2.0\n---\n# A", Some("apache-2.0")),
            ("---\r\nlicense: \"mit\" # as the base\r\n---\r\n", Some("mit")),
            ("---\nlicense: other\nlicense_name: qwen-research\n---\n", Some("qwen-research")),
            ("---\nlicense:\n  - mit\n---\n", None),
            ("---\nlibrary_name: peft\n---\nlicense: mit\n", None),
            ("# A\nlicense: mit\n", None),
        ] {
            assert_eq!(stated(card).as_deref(), licence, "{card}");
        }
    }
}
