//! The methods, one folder each, and the registry that names them. A further method is a folder here and a line in [`ALL`].

pub mod auto;
pub mod comorag;
pub mod direct;
pub mod gam;
pub mod memcot;
pub mod mindgraph;
mod partial;
pub mod rag;

use std::str::FromStr;

use serde_json::{Map, Value};

use crate::core::graph_view::GraphKind;
use crate::core::method::{Method, Settings};
use crate::core::options::OptionSpec;

pub use partial::ask_what_is_ready;

/// All methods, in the order in which they are listed.
pub static ALL: &[&dyn Method] =
    &[&auto::Auto, &gam::Gam, &memcot::Memcot, &comorag::Comorag, &mindgraph::Mindgraph, &rag::Rag, &direct::Direct];

/// The method of programs and APIs where the user names none.
pub const DEFAULT: &dyn Method = &auto::Auto;

/// The method that answers where the preparation for another is incomplete: it needs vectors only, and searches pages
/// that have none by their words.
pub const SUBSTITUTE: &dyn Method = &rag::Rag;

/// The name of the kind of graph where none is named.
const DEFAULT_GRAPH: &str = "mindgraph";

/// The method of a name.
///
/// # Errors
/// Lists the names.
pub fn find(name: &str) -> Result<&'static dyn Method, String> {
    let known = ALL.iter().copied().find(|method| method.name() == name);
    known.ok_or_else(|| format!("`{name}` is not one of {}", list(ALL.iter().map(|method| method.name()))))
}

/// The methods that run themselves: all but [`auto`].
pub fn concrete() -> Vec<&'static dyn Method> {
    ALL.iter().copied().filter(|method| *method != DEFAULT).collect()
}

/// The kinds of graphs, with the methods that make them.
pub fn graphs() -> impl Iterator<Item = (&'static dyn Method, &'static GraphKind)> {
    ALL.iter().filter_map(|method| Some((*method, method.graph()?)))
}

/// The kind of graph of a name, with the method that makes it; the default one without a name.
///
/// # Errors
/// Lists the names.
pub fn graph(name: Option<&str>) -> Result<(&'static dyn Method, &'static GraphKind), String> {
    let name = name.unwrap_or(DEFAULT_GRAPH);
    let known = graphs().find(|(_, kind)| kind.name == name);
    known.ok_or_else(|| format!("`{name}` is not one of {}", list(graphs().map(|(_, kind)| kind.name))))
}

/// The options of all methods, each name once, with the methods that have it.
pub fn option_specs() -> Vec<(&'static OptionSpec, Vec<&'static dyn Method>)> {
    let mut specs: Vec<(&'static OptionSpec, Vec<&'static dyn Method>)> = Vec::new();
    for method in ALL.iter().copied() {
        for spec in method.option_specs() {
            match specs.iter_mut().find(|(known, _)| known.name == spec.name) {
                Some((_, methods)) => methods.push(method),
                None => specs.push((spec, vec![method])),
            }
        }
    }
    specs
}

/// The first of these options that has no effect on any of these methods, and the methods that have it.
pub fn without_effect<'n>(
    mut options: impl Iterator<Item = &'n str>,
    methods: &[&'static dyn Method],
) -> Option<(&'n str, String)> {
    let name = options.find(|name| !methods.iter().any(|method| method.has_option(name)))?;
    let having = ALL.iter().filter(|method| method.option_specs().iter().any(|spec| spec.name == name));
    Some((name, list(having.map(|method| method.name()))))
}

/// Sets options by name, for every method that has them.
///
/// # Errors
/// Names an option that no method has, or whose value is invalid; the settings are unchanged then.
pub fn set_options(changes: &Map<String, Value>, settings: &mut Settings) -> Result<(), String> {
    if let Some(name) =
        changes.keys().find(|name| !ALL.iter().any(|method| method.options(settings).contains_key(*name)))
    {
        return Err(format!("no method has an option `{name}`"));
    }
    let mut changed = settings.clone();
    ALL.iter().try_for_each(|method| method.set_options(changes, &mut changed))?;
    *settings = changed;
    Ok(())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

impl FromStr for &'static dyn Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        find(name)
    }
}

/// Those of GAM, which needs no choice; programs start from [`DEFAULT`].
impl Default for Settings {
    fn default() -> Settings {
        Settings::new(&gam::Gam)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_method_describes_itself() {
        for method in ALL {
            let (summary, documentation) = (method.about().summary(), method.about().documentation());
            assert!(
                summary.len() > 40 && documentation.replace('\n', " ").starts_with(&summary),
                "{method}: {summary}"
            );
            let is_code = |line: &str| line.contains("//!") || line.starts_with("use ") || line.starts_with("mod ");
            assert!(!documentation.lines().any(is_code), "{method}: {documentation}");
            assert_eq!(method.about().paper.is_some(), documentation.contains("\n# Departures\n"), "{method}");
            assert_eq!(find(method.name()).map(Method::name), Ok(method.name()));
        }
        assert_eq!(
            find("best").unwrap_err(),
            "`best` is not one of auto, gam, memcot, comorag, mindgraph, rag, direct"
        );
    }

    #[test]
    fn an_option_of_other_methods_has_no_effect() {
        let check = |name: &'static str, methods: &[&'static dyn Method]| without_effect([name].into_iter(), methods);
        assert_eq!(check("memcot_store", &[&rag::Rag]), Some(("memcot_store", "memcot".to_owned())));
        assert_eq!(check("k", &[&direct::Direct]), Some(("k", "gam, memcot, rag".to_owned())));
        assert_eq!(check("window", &[DEFAULT]), Some(("window", "memcot".to_owned())), "auto does not choose it");
        assert_eq!([check("output", &[DEFAULT]), check("k", &[&direct::Direct, &rag::Rag])], [None, None]);
    }

    #[test]
    fn every_documented_option_exists_and_reads_its_own_value() {
        for method in ALL {
            let mut settings = Settings::new(*method);
            let values = method.options(&settings);
            for spec in method.option_specs() {
                assert!(values.contains_key(spec.name), "{method}: {}", spec.name);
            }
            method.set_options(&values, &mut settings).expect("its own values are valid");
            assert_eq!(method.options(&settings), values, "{method}");
        }
    }

    #[test]
    fn an_option_reaches_every_method_that_has_it() {
        let mut settings = Settings::default();
        let changes = json!({ "k": 7, "max_iterations": 2 });
        set_options(changes.as_object().expect("it is an object"), &mut settings).expect("both exist");
        let of = |method: &str, name: &str| {
            let method = find(method).expect("it is a method");
            method.options(&settings).get(name).cloned()
        };
        for method in ["gam", "memcot", "rag"] {
            assert_eq!(of(method, "k"), Some(json!(7)), "{method}");
        }
        for method in ["gam", "memcot", "comorag", "mindgraph"] {
            assert_eq!(of(method, "max_iterations"), Some(json!(2)), "{method}");
        }
        assert_eq!(of("direct", "k"), None);
    }

    #[test]
    fn an_unknown_option_or_an_invalid_value_changes_nothing() {
        let refused = |changes: Value| {
            let mut settings = Settings::default();
            let before = format!("{settings:?}");
            let error = set_options(changes.as_object().expect("it is an object"), &mut settings).unwrap_err();
            assert_eq!(format!("{settings:?}"), before, "{error}");
            error
        };
        assert_eq!(refused(json!({ "knob": 1 })), "no method has an option `knob`");
        assert_eq!(refused(json!({ "memcot_store": "best" })), "memcot_store: `best` is not one of hybrid, lightrag");
        assert!(refused(json!({ "window": "many" })).starts_with("window: invalid type"));
    }

    #[test]
    fn graphs_have_names() {
        for (method, kind) in graphs() {
            let found = graph(Some(kind.name)).map(|(method, kind)| (method.name(), kind.name));
            assert_eq!(found, Ok((method.name(), kind.name)));
        }
        assert_eq!(graph(None).map(|(_, kind)| kind.name), Ok("mindgraph"));
        let refused = graph(Some("gam")).map(|(_, kind)| kind.name);
        assert_eq!(refused, Err("`gam` is not one of lightrag, comorag, mindgraph".to_owned()));
    }
}
