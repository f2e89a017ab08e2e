//! Options of methods: each method has a struct of its own, kept in the settings under its type and visible to everything
//! else as JSON.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// An option as a command line, a form or an API documents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionSpec {
    /// Its name in JSON; with hyphens that of its flag. Methods may share a name, such as `k`.
    pub name: &'static str,
    /// What a value is called in help texts.
    pub value_name: &'static str,
    pub kind: OptionKind,
    /// When it has an effect.
    pub stage: Stage,
    /// The value of another option with which this one must be given.
    pub required_with: Option<(&'static str, &'static str)>,
    pub help: &'static str,
}

impl OptionSpec {
    /// Of the methods that work in rounds.
    pub(crate) const MAX_ITERATIONS: OptionSpec = OptionSpec {
        name: "max_iterations",
        value_name: "N",
        kind: OptionKind::Integer { min: 1 },
        stage: Stage::Ask,
        required_with: None,
        help: "Rounds of research, search, probing or tools",
    };

    /// Of the methods that take the best results of a search.
    pub(crate) const K: OptionSpec = OptionSpec {
        name: "k",
        value_name: "N",
        kind: OptionKind::Integer { min: 1 },
        stage: Stage::Ask,
        required_with: None,
        help: "Pages or turns that each search returns",
    };
}

/// What values an option has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// An integer, at least this.
    Integer { min: usize },
    /// One of these names.
    Name(&'static [&'static str]),
    /// Any of these names.
    Names(&'static [&'static str]),
    /// A list of texts; on the command line a file with one a line.
    Lines,
}

/// When an option has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// While a corpus is prepared, and so also while a question is answered from it.
    Prepare,
    /// While a question is answered.
    Ask,
}

/// Option structs, at most one of each type.
#[derive(Debug, Clone, Default)]
pub struct OptionSet(Vec<Arc<dyn AnyOptions>>);

trait AnyOptions: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> AnyOptions for T {}

impl OptionSet {
    /// The options of this type; their defaults if none were set.
    pub(crate) fn get<T: Any + Clone + Default>(&self) -> T {
        let set = self.0.iter().find_map(|options| (&**options as &dyn Any).downcast_ref::<T>());
        set.cloned().unwrap_or_default()
    }

    /// Replaces the options of this type.
    pub(crate) fn set<T: Any + Debug + Send + Sync>(&mut self, options: T) {
        self.0.retain(|options| !(&**options as &dyn Any).is::<T>());
        self.0.push(Arc::new(options));
    }
}

/// The options of one method: their documentation, and how to read and set them by name.
#[derive(Debug, Clone, Copy)]
pub struct MethodOptions {
    pub(crate) specs: &'static [OptionSpec],
    pub(crate) values: fn(&OptionSet) -> Map<String, Value>,
    pub(crate) change: fn(&Map<String, Value>, &mut OptionSet) -> Result<(), String>,
}

impl MethodOptions {
    /// A method without options.
    pub const NONE: MethodOptions = MethodOptions { specs: &[], values: |_| Map::new(), change: |_, _| Ok(()) };

    /// The fields of `T`, a struct of numbers, names and lists of them.
    pub const fn of<T>(specs: &'static [OptionSpec]) -> MethodOptions
    where
        T: Any + Clone + Debug + Default + Send + Sync + Serialize + DeserializeOwned,
    {
        MethodOptions { specs, values: |set| object(&set.get::<T>()), change: change::<T> }
    }
}

/// Options as a JSON object, which a struct of numbers, names and lists of them always is.
fn object(options: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(values)) => values,
        other => unreachable!("options are a struct: {other:?}"),
    }
}

/// Sets those of `changes` that `T` has; the others belong to other methods.
///
/// # Errors
/// Names the option whose value is invalid; the set is unchanged then.
fn change<T>(changes: &Map<String, Value>, set: &mut OptionSet) -> Result<(), String>
where
    T: Any + Clone + Debug + Default + Send + Sync + Serialize + DeserializeOwned,
{
    let mut options = set.get::<T>();
    for (name, value) in changes {
        let mut values = object(&options);
        if let Some(current) = values.get_mut(name) {
            *current = value.clone();
            options = serde_json::from_value(values.into()).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    set.set(options);
    Ok(())
}
