//! Enumerations that tolerate words from the future.
//!
//! The schema lists the known words, so the API server refuses others today. An object stored by a newer release can
//! still hold one, and a single such object must not make a whole watch undecodable: it is kept as `Other`.

/// Declares an enumeration of words with an `Other` escape, its text form, serde and JSON schema.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
            /// A word this release does not know.
            Other(String),
        }

        impl $name {
            /// Every word the schema admits, in its order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in the document.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <::std::borrow::Cow<'de, str> as ::serde::Deserialize<'de>>::deserialize(deserializer)?;
                Ok(Self::from(word.as_ref()))
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string", "enum": Self::WORDS })
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    open_enum! {
        /// Sizes of a cup.
        Cup {
            /// A small one.
            Small = "small",
            /// A large one.
            Large = "Large",
        }
    }

    #[test]
    fn known_words_become_variants_and_unknown_words_survive_a_round_trip() {
        for (word, cup) in [
            ("small", Cup::Small),
            ("Large", Cup::Large),
            ("large", Cup::Other("large".into())),
        ] {
            let read: Cup = serde_json::from_value(word.into()).unwrap();
            assert_eq!(read, cup);
            assert_eq!(serde_json::to_value(read).unwrap(), word);
        }
    }
}
