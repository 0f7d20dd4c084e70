//! What names a thing: one newtype per kind of name, so that a node name never passes for a pool name.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An immutable string, one allocation for all its holders once it went through [`Sharing`](crate::sharing::Sharing).
///
/// Empty means unset, as in the Kubernetes API, where an absent string and an empty one are the same value.
pub type Text = Arc<str>;

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub(crate) Text);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<Text> for $name {
            fn from(name: Text) -> Self {
                Self(name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// The name of a Node.
    NodeName;
    /// The cloud's name for an instance, the link between a NodeClaim and its Node.
    ProviderId;
    /// The name of a NodePool.
    NodePoolName;
    /// The name of a NodeClaim.
    NodeClaimName;
    /// The name of an instance type, the value of `node.kubernetes.io/instance-type`.
    InstanceTypeName;
}

/// The identity of one incarnation of an object: 16 bytes when it is a canonical UUID, else the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Other(Box<str>),
}

/// The identity of one incarnation of a Pod.
pub type PodUid = Uid;

/// Offsets of the dashes in `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    /// True when the object has none, as in a template or a hand-written manifest.
    pub fn is_unset(&self) -> bool {
        matches!(&self.0, Repr::Other(text) if text.is_empty())
    }

    /// A canonical UUID as a number; numbers are in the order of the texts.
    pub fn number(&self) -> Option<u128> {
        match &self.0 {
            Repr::Uuid(bytes) => Some(u128::from_be_bytes(*bytes)),
            Repr::Other(_) => None,
        }
    }
}

impl Default for Uid {
    fn default() -> Self {
        Self(Repr::Other(Box::default()))
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(parse_uuid(text).map_or_else(|| Repr::Other(text.into()), Repr::Uuid))
    }
}

/// Only the canonical spelling counts, because the text must come back byte for byte.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut uuid = [0u8; 16];
    let mut nibble = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if DASHES.contains(&at) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        let slot = uuid.get_mut(nibble / 2)?;
        *slot = *slot << 4 | value;
        nibble += 1;
    }
    Some(uuid)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Other(text) => f.write_str(text),
            Repr::Uuid(bytes) => {
                for (at, byte) in bytes.iter().enumerate() {
                    if matches!(at, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Byte order of the text, which is the order the scheduling queue breaks ties in. The hexadecimal spelling of two
/// UUIDs sorts as their bytes do, so only mixed pairs need the text.
impl Ord for Uid {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        match (&self.0, &other.0) {
            (Repr::Uuid(a), Repr::Uuid(b)) => a.cmp(b),
            (Repr::Other(a), Repr::Other(b)) => a.cmp(b),
            _ => self.to_string().cmp(&other.to_string()),
        }
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Uid;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a uid as a string")
            }
            fn visit_str<E>(self, text: &str) -> Result<Uid, E> {
                Ok(Uid::from(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// The server's version of an object. Opaque by contract; eight bytes when it is the usual decimal number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ResourceVersion {
    /// A decimal number without leading zeros; zero means unset.
    Number(u64),
    /// Any other text.
    Opaque(Text),
}

impl ResourceVersion {
    /// True when the object does not come from an API server.
    pub fn is_unset(&self) -> bool {
        *self == Self::Number(0)
    }
}

impl Default for ResourceVersion {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        match u64::from_str(text) {
            Ok(number) if number != 0 && !text.starts_with(['0', '+']) => Self::Number(number),
            _ if text.is_empty() => Self::default(),
            _ => Self::Opaque(text.into()),
        }
    }
}

impl Serialize for ResourceVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.collect_str(number),
            Self::Opaque(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for ResourceVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = ResourceVersion;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource version as a string")
            }
            fn visit_str<E>(self, text: &str) -> Result<ResourceVersion, E> {
                Ok(ResourceVersion::from(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// Namespace and name, the key of an object within its kind; cluster-scoped kinds have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-scoped kinds.
    pub namespace: Text,
    /// Unique within the namespace.
    pub name: Text,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster_scoped(name: &str) -> Self {
        Self::new("", name)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_text_comes_back_byte_for_byte() {
        for text in [
            "0b5e6a8e-7a43-4c0f-9d1b-2f3c4d5e6f70",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "0B5E6A8E-7A43-4C0F-9D1B-2F3C4D5E6F70",
            "0b5e6a8e7a434c0f9d1b2f3c4d5e6f70",
            "buffer-uid-1",
            "",
        ] {
            assert_eq!(Uid::from(text).to_string(), text);
        }
    }

    #[test]
    fn a_canonical_uuid_needs_no_heap() {
        assert!(matches!(
            Uid::from("0b5e6a8e-7a43-4c0f-9d1b-2f3c4d5e6f70").0,
            Repr::Uuid(_)
        ));
        assert!(matches!(
            Uid::from("0b5e6a8e-7a43-4c0f-9d1b+2f3c4d5e6f70").0,
            Repr::Other(_)
        ));
    }

    #[test]
    fn uids_sort_as_their_text_does() {
        let mut texts = vec![
            "b",
            "0b5e6a8e-7a43-4c0f-9d1b-2f3c4d5e6f70",
            "a0000000-0000-0000-0000-000000000000",
            "0a",
            "z",
        ];
        let mut uids: Vec<Uid> = texts.iter().map(|text| Uid::from(*text)).collect();
        texts.sort_unstable();
        uids.sort_unstable();
        assert_eq!(uids.iter().map(Uid::to_string).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn resource_version_is_opaque_unless_it_is_a_plain_number() {
        let cases = [
            ("812", ResourceVersion::Number(812)),
            ("", ResourceVersion::Number(0)),
            ("0", ResourceVersion::Opaque("0".into())),
            ("007", ResourceVersion::Opaque("007".into())),
            ("+7", ResourceVersion::Opaque("+7".into())),
            ("etag-1", ResourceVersion::Opaque("etag-1".into())),
        ];
        for (text, expected) in cases {
            assert_eq!(ResourceVersion::from(text), expected, "{text:?}");
        }
    }
}
