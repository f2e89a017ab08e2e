//! Values that the command line and run folders know by name.

/// The value of a name.
///
/// # Errors
/// With all names.
pub(crate) fn value<T: Copy>(names: &[(T, &str)], typed: &str) -> Result<T, String> {
    let known = names.iter().find(|(_, name)| *name == typed);
    known.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        format!("`{typed}` is not one of {}", names.join(", "))
    })
}

/// The name of a value; empty if it has none.
pub(crate) fn name<T: PartialEq>(names: &[(T, &'static str)], value: &T) -> &'static str {
    names.iter().find(|(known, _)| known == value).map_or("", |(_, name)| name)
}
