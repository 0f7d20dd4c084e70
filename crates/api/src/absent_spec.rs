//! Kinds whose `spec` users may leave out.
//!
//! `kube`'s derive makes `spec` a plain field, which serde then requires. Serde asks a type for an optional value
//! before it reports a missing field, so a spec that reads itself as an option may be absent.

/// Lets `$spec`, which derives serde with `#[serde(remote = "Self")]`, be absent or null and stand for its default.
macro_rules! spec_may_be_absent {
    ($spec:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $spec {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct OrDefault;
                impl<'de> ::serde::de::Visitor<'de> for OrDefault {
                    type Value = $spec;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("a ", stringify!($spec)))
                    }

                    fn visit_none<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_unit<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_some<D: ::serde::Deserializer<'de>>(self, deserializer: D) -> Result<$spec, D::Error> {
                        $spec::deserialize(deserializer)
                    }
                }
                deserializer.deserialize_option(OrDefault)
            }
        }

        impl ::serde::Serialize for $spec {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }
    };
}

pub(crate) use spec_may_be_absent;
