//! Names of files in repositories and folders.

use std::path::{Component, Path, PathBuf};

/// Names every shard of a file called `...-00001-of-00003.EXTENSION`; any other file is its own only shard.
pub(super) fn shards_of(path: &Path) -> Vec<PathBuf> {
    let shards = || {
        let (stem, extension) = (path.file_stem()?.to_str()?, path.extension()?.to_str()?);
        let (stem, total) = stem.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        let total: u32 = Some(total).filter(|total| digits(total) && digits(number))?.parse().ok()?;
        let name = |number| format!("{stem}-{number:05}-of-{total:05}.{extension}");
        Some((1..=total).map(|number| path.with_file_name(name(number))).collect())
    };
    shards().unwrap_or_else(|| vec![path.to_owned()])
}

/// Whether a path names something in the folder to which it is added.
pub(super) fn is_below_a_folder(path: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    !path.is_empty() && !path.contains(['\\', ':']) && Path::new(path).components().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_from_any_one_of_them() {
        let check = |name: &str, expected: &[&str]| {
            let shards = shards_of(&Path::new("/m").join(name));
            let expected: Vec<PathBuf> = expected.iter().map(|name| Path::new("/m").join(name)).collect();
            assert_eq!(shards, expected, "{name}");
        };
        check("a.gguf", &["a.gguf"]);
        check("a-00002-of-00002.gguf", &["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]);
        check("b-of-00002.gguf", &["b-of-00002.gguf"]);
        check("b-1-of-2.gguf", &["b-1-of-2.gguf"]);
        check("b-00001-of-0000x.gguf", &["b-00001-of-0000x.gguf"]);
    }
}
