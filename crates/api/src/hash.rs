//! The structural hash behind static drift, bit-equal to `mitchellh/hashstructure` v2.0.2 (format v2) with the options
//! Karpenter passes: slices as sets, zero values ignored, nil as zero.
//!
//! There is no reflection here: each hashed type lists its fields in upstream's declaration order, because every
//! included field is folded into the running hash. Getting one hash wrong replaces every node of a cluster.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// 64-bit FNV-1 (multiply, then xor: not FNV-1a).
pub fn bytes(input: &[u8]) -> u64 {
    input
        .iter()
        .fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u64::from(*byte))
}

/// A Go `string`.
pub fn string(input: &str) -> u64 {
    bytes(input.as_bytes())
}

/// A Go `int`, `int64` or `time.Duration`.
pub fn int64(input: i64) -> u64 {
    bytes(&input.to_le_bytes())
}

/// A Go `int32`.
pub fn int32(input: i32) -> u64 {
    bytes(&input.to_le_bytes())
}

/// A Go `bool`, which the library hashes as an `int8`.
pub fn boolean(input: bool) -> u64 {
    bytes(&[u8::from(input)])
}

/// A Go map: order-free over its entries, then finished.
pub fn map(entries: impl IntoIterator<Item = (u64, u64)>) -> u64 {
    finish(
        entries
            .into_iter()
            .fold(0, |hash, (key, value)| hash ^ ordered(key, value)),
    )
}

/// A Go `map[string]string`.
pub fn string_map<'a>(entries: impl IntoIterator<Item = (&'a String, &'a String)>) -> u64 {
    map(entries.into_iter().map(|(key, value)| (string(key), string(value))))
}

/// A Go slice hashed as a set: xor of its elements and no finish, so two equal elements cancel out.
pub fn set(elements: impl IntoIterator<Item = u64>) -> u64 {
    elements.into_iter().fold(0, |hash, element| hash ^ element)
}

/// A Go struct under construction: the type's name, then its non-zero fields in declaration order.
#[derive(Clone, Copy, Debug)]
pub struct Struct(u64);

impl Struct {
    /// Starts a struct with its Go type name, without the package.
    pub fn new(type_name: &str) -> Self {
        Self(string(type_name))
    }

    /// Folds in one field by its Go name. `None` stands for Go's zero value, which is skipped.
    #[must_use]
    pub fn field(self, name: &str, value: impl Into<Option<u64>>) -> Self {
        match value.into() {
            Some(value) => Self(finish(self.0 ^ ordered(string(name), value))),
            None => self,
        }
    }

    /// The struct's hash.
    pub fn done(self) -> u64 {
        self.0
    }
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut pair = [0; 16];
    pair[..8].copy_from_slice(&first.to_le_bytes());
    pair[8..].copy_from_slice(&second.to_le_bytes());
    bytes(&pair)
}

fn finish(hash: u64) -> u64 {
    bytes(&hash.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_hash_as_the_published_fnv_1_vectors() {
        let cases = [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_bd4c_8601_b7be),
            ("foobar", 0x340d_8765_a4dd_a9c2),
        ];
        for (text, hash) in cases {
            assert_eq!(string(text), hash, "{text}");
        }
    }

    #[test]
    fn a_set_has_no_order_and_equal_elements_cancel_out() {
        let (a, b) = (string("a"), string("b"));
        assert_eq!(set([a, b]), set([b, a]));
        assert_eq!(set([a, a, b]), set([b]));
        assert_eq!(set([]), 0);
    }

    #[test]
    fn a_skipped_field_leaves_the_struct_as_it_was() {
        assert_eq!(Struct::new("T").field("A", None).done(), Struct::new("T").done());
        assert_ne!(Struct::new("T").field("A", 0).done(), Struct::new("T").done());
    }

    /// The vector of Karpenter's `v1alpha5` Provisioner test: maps, a set of structs and an `int32`.
    #[test]
    fn a_provisioner_hashes_as_in_its_published_test() {
        let map = |entries: &[(&str, &str)]| map(entries.iter().map(|(key, value)| (string(key), string(value))));
        let taint = |key| {
            Struct::new("Taint")
                .field("Key", string(key))
                .field("Effect", string("NoExecute"))
                .done()
        };
        let taints = set([taint("keyValue1"), taint("keyValue2")]);
        let hash = Struct::new("ProvisionerSpec")
            .field(
                "Annotations",
                map(&[
                    ("keyAnnotation", "valueAnnotation"),
                    ("keyAnnotation2", "valueAnnotation2"),
                ]),
            )
            .field(
                "Labels",
                map(&[
                    ("keyLabel", "valueLabel"),
                    ("keyLabel2", "valueLabel2"),
                    ("testing/cluster", "unspecified"),
                ]),
            )
            .field("Taints", taints)
            .field("StartupTaints", taints)
            .field(
                "KubeletConfiguration",
                Struct::new("KubeletConfiguration").field("MaxPods", int32(10)).done(),
            )
            .done();
        assert_eq!(hash, 775_825_888_864_018_614);
    }
}
