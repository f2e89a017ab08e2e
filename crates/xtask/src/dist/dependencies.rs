//! The dependencies of the product, as a table of licences and as an SBOM.

use std::path::Path;

use serde_json::{Value, json};

use super::about::{LICENCE, VERSION};

/// A crate that is compiled into the binary or expands its macros.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    pub name: String,
    pub version: String,
    pub licence: String,
}

/// Lists the crates of `cargo tree -p memlocal -e normal`, without our own.
pub(crate) fn list(root: &Path, features: Option<&str>) -> Result<Vec<Dependency>, String> {
    let output = crate::cargo().current_dir(root).args(tree(features)).output();
    let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree fails: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// The arguments with which cargo lists the crates; features of the binary bring in more.
fn tree(features: Option<&str>) -> Vec<&str> {
    let mut arguments = vec!["tree", "--locked", "-p", "memlocal", "-e", "normal", "--prefix", "none", "-f", "{p}|{l}"];
    arguments.extend(features.into_iter().flat_map(|features| ["--features", features]));
    arguments
}

fn parse(tree: &str) -> Vec<Dependency> {
    let line = |line: &str| {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Our own crates have a path.
        let is_ours = words.any(|word| word.starts_with("(/"));
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        (!is_ours).then(|| Dependency { name: name.to_owned(), version: version.to_owned(), licence })
    };
    let mut found: Vec<Dependency> = tree.lines().filter_map(line).collect();
    found.sort();
    found.dedup();
    found
}

pub(crate) fn as_table(dependencies: &[Dependency]) -> String {
    let rows = dependencies.iter().map(|d| format!("| {} | {} | {} |\n", d.name, d.version, d.licence));
    format!(
        "# Third-party crates\n\n| crate | version | licence |\n|---|---|---|\n{}",
        rows.collect::<Vec<_>>().concat()
    )
}

/// CycloneDX 1.5.
pub(crate) fn as_sbom(dependencies: &[Dependency]) -> Vec<u8> {
    let purl = |name: &str, version: &str| format!("pkg:cargo/{name}@{version}");
    let component = |d: &Dependency| {
        let reference = purl(&d.name, &d.version);
        let licences: Value = if d.licence.is_empty() { json!([]) } else { json!([{ "expression": d.licence }]) };
        json!({ "type": "library", "bom-ref": reference, "purl": reference, "name": d.name, "version": d.version, "licenses": licences })
    };
    let root = purl("memlocal", VERSION);
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": root, "name": "memlocal", "version": VERSION,
            "licenses": [{ "expression": LICENCE }],
        } },
        "components": dependencies.iter().map(component).collect::<Vec<_>>(),
        "dependencies": [{ "ref": root, "dependsOn": dependencies.iter().map(|d| purl(&d.name, &d.version)).collect::<Vec<_>>() }],
    });
    let mut text = serde_json::to_vec_pretty(&bom).unwrap_or_default();
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_features_are_listed_too() {
        assert!(tree(Some("cuda")).ends_with(&["--features", "cuda"]));
        assert!(!tree(None).contains(&"--features"));
    }

    #[test]
    fn a_tree_is_a_list_of_foreign_crates() {
        let tree = "memlocal v0.1.0 (/m)|Apache-2.0 OR MIT\nserde v1.0.2|MIT OR Apache-2.0\n\
                    paste v1.0.1 (proc-macro)|MIT/Apache-2.0\nserde v1.0.2|MIT OR Apache-2.0 (*)\n";
        let names: Vec<String> =
            parse(tree).iter().map(|d| format!("{} {} {}", d.name, d.version, d.licence)).collect();
        assert_eq!(names, ["paste 1.0.1 MIT OR Apache-2.0", "serde 1.0.2 MIT OR Apache-2.0"]);
    }
}
