//! Enums whose variants have names: the same on the command line, in HTTP and in JSON.

/// Gives an enum `ALL`, `Display`, `FromStr`, `Serialize` and `Deserialize` by the names of its variants.
macro_rules! named {
    ($type:ident: $($variant:ident = $name:literal),*) => {
        impl $type {
            /// All variants.
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$variant),*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($type::$variant => $name),* })
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> std::result::Result<Self, String> {
                match name {
                    $($name => Ok($type::$variant),)*
                    other => Err(format!("`{other}` is not one of {}", [$($name),*].join(", "))),
                }
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use named;
