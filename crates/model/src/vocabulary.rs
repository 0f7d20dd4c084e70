//! Which number stands for which label key and value, so that requirements are sets of bits.
//!
//! A vocabulary belongs to one snapshot or planning run; there is no global state, and numbers are given out in the
//! order of first sight, so equal inputs give equal numbers. The keys that decisions name themselves have fixed numbers.

use std::sync::Arc;

use api::labels::{
    ARCH, CAPACITY_TYPE, CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_RESERVED, CAPACITY_TYPE_SPOT, HOSTNAME, INSTANCE_TYPE,
    LabelRules, NODEPOOL, OS, REGION, WINDOWS_BUILD, ZONE,
};

use rustc_hash::FxHashMap;

use crate::bitset::BitSet;

/// A label key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u32);

impl KeyId {
    /// `karpenter.sh/nodepool`
    pub const NODE_POOL: Self = Self(0);
    /// `topology.kubernetes.io/zone`
    pub const ZONE: Self = Self(1);
    /// `topology.kubernetes.io/region`
    pub const REGION: Self = Self(2);
    /// `node.kubernetes.io/instance-type`
    pub const INSTANCE_TYPE: Self = Self(3);
    /// `kubernetes.io/arch`
    pub const ARCH: Self = Self(4);
    /// `kubernetes.io/os`
    pub const OS: Self = Self(5);
    /// `karpenter.sh/capacity-type`
    pub const CAPACITY_TYPE: Self = Self(6);
    /// `node.kubernetes.io/windows-build`
    pub const WINDOWS_BUILD: Self = Self(7);
    /// `kubernetes.io/hostname`
    pub const HOSTNAME: Self = Self(8);

    /// As a member of a set of keys.
    pub fn bit(self) -> u32 {
        self.0
    }
}

/// The keys with fixed numbers, in the order of those.
const FIXED_KEYS: [&str; 9] = [
    NODEPOOL,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    CAPACITY_TYPE,
    WINDOWS_BUILD,
    HOSTNAME,
];

/// A value of one label key; the same number means another value under another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u32);

impl ValueId {
    /// `karpenter.sh/capacity-type: on-demand`
    pub const ON_DEMAND: Self = Self(0);
    /// `karpenter.sh/capacity-type: spot`
    pub const SPOT: Self = Self(1);
    /// `karpenter.sh/capacity-type: reserved`
    pub const RESERVED: Self = Self(2);

    /// As a member of a set of values.
    pub fn bit(self) -> u32 {
        self.0
    }

    /// The member of a set of values.
    pub fn from_bit(bit: u32) -> Self {
        Self(bit)
    }
}

const CAPACITY_TYPES: [&str; 3] = [CAPACITY_TYPE_ON_DEMAND, CAPACITY_TYPE_SPOT, CAPACITY_TYPE_RESERVED];

/// The label keys and values of one run. Cloning it costs a reference count per key: a run that begins where another
/// began shares all it does not add to.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    keys: Vec<Arc<Key>>,
    key_ids: FxHashMap<Arc<str>, KeyId>,
    /// The key that a requirement on a name is about, for the names met so far.
    normalized: FxHashMap<Arc<str>, KeyId>,
    /// Whose aliases are resolved.
    rules: Arc<LabelRules>,
    well_known: BitSet,
}

#[derive(Clone, Debug)]
struct Key {
    name: Arc<str>,
    values: Vec<Value>,
    value_ids: FxHashMap<Arc<str>, ValueId>,
}

#[derive(Clone, Debug)]
struct Value {
    name: Arc<str>,
    /// Bounds compare numbers; parsing them once per vocabulary is what makes a bound cheap.
    integer: Option<i64>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::new()
    }
}

impl Vocabulary {
    /// With core's label rules alone.
    pub fn new() -> Self {
        Self::with_rules(LabelRules::new(&[]))
    }

    /// With the label rules of the providers at work.
    pub fn with_rules(rules: LabelRules) -> Self {
        let well_known: Vec<_> = rules.well_known().map(str::to_owned).collect();
        let keys = Vec::new();
        let mut vocabulary = Self {
            keys,
            key_ids: FxHashMap::default(),
            normalized: FxHashMap::default(),
            rules: Arc::new(rules),
            well_known: BitSet::default(),
        };
        for key in FIXED_KEYS {
            vocabulary.intern_key(key);
        }
        for key in well_known {
            vocabulary.add_well_known(&key);
        }
        for value in CAPACITY_TYPES {
            vocabulary.intern_value(KeyId::CAPACITY_TYPE, value);
        }
        vocabulary
    }

    /// Makes a key one that a NodeClaim may leave undefined, beyond those of the rules.
    pub fn add_well_known(&mut self, key: &str) {
        let id = self.intern_key(key);
        self.well_known.insert(id.bit());
    }

    /// Whether a NodeClaim may leave the key undefined.
    pub fn is_well_known(&self, key: KeyId) -> bool {
        self.well_known.contains(key.bit())
    }

    /// The well-known keys in the order of their names.
    pub fn well_known(&self) -> impl Iterator<Item = &str> {
        let known = self.well_known.iter().map(|bit| self.key_name(KeyId(bit)));
        let mut names: Vec<&str> = known.collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// Whose aliases are resolved.
    pub fn rules(&self) -> &LabelRules {
        &self.rules
    }

    /// The key's number, given out on first sight. Aliases are keys of their own here: upstream resolves them in
    /// requirements only, see [`Vocabulary::intern_normalized`].
    pub fn intern_key(&mut self, name: &str) -> KeyId {
        if let Some(id) = self.key(name) {
            return id;
        }
        let (id, name) = (KeyId(next(self.keys.len())), Arc::<str>::from(name));
        self.keys.push(Arc::new(Key::new(Arc::clone(&name))));
        self.key_ids.insert(name, id);
        id
    }

    /// The value's number under a key, given out on first sight.
    pub fn intern_value(&mut self, key: KeyId, name: &str) -> ValueId {
        let Some(key) = self.keys.get_mut(key.0 as usize) else {
            return ValueId(u32::MAX);
        };
        // Only a new value is worth a copy of what others share.
        match key.value_ids.get(name) {
            Some(id) => *id,
            None => Arc::make_mut(key).add(name),
        }
    }

    /// The key a requirement on `name` is about, aliases resolved.
    pub fn intern_normalized(&mut self, name: &str) -> KeyId {
        if let Some(id) = self.normalized.get(name) {
            return *id;
        }
        let id = self.intern_key(self.rules.normalize(name));
        self.normalized.insert(name.into(), id);
        id
    }

    /// The value a requirement on `key` means by `name`, aliases resolved.
    pub fn intern_normalized_value(&mut self, key: KeyId, name: &str) -> ValueId {
        let name = self.rules.normalize_value(self.key_name(key), name);
        self.intern_value(key, name)
    }

    /// The key's number, if it was met before.
    pub fn key(&self, name: &str) -> Option<KeyId> {
        self.key_ids.get(name).copied()
    }

    /// The value's number, if it was met before.
    pub fn value(&self, key: KeyId, name: &str) -> Option<ValueId> {
        self.keys.get(key.0 as usize)?.value_ids.get(name).copied()
    }

    /// The text of a key.
    pub fn key_name(&self, key: KeyId) -> &str {
        self.keys.get(key.0 as usize).map_or("", |key| &key.name)
    }

    /// The text of a value.
    pub fn value_name(&self, key: KeyId, value: ValueId) -> &str {
        self.entry(key, value).map_or("", |value| &value.name)
    }

    /// The value as a number, if it is one.
    pub fn integer(&self, key: KeyId, value: ValueId) -> Option<i64> {
        self.entry(key, value)?.integer
    }

    /// The values of a key, in the order they were first met.
    pub fn values(&self, key: KeyId) -> impl Iterator<Item = ValueId> {
        (0..next(self.value_count(key))).map(ValueId)
    }

    /// How many values of the key were met.
    pub fn value_count(&self, key: KeyId) -> usize {
        self.keys.get(key.0 as usize).map_or(0, |key| key.values.len())
    }

    /// How many keys were met.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    fn entry(&self, key: KeyId, value: ValueId) -> Option<&Value> {
        self.keys.get(key.0 as usize)?.values.get(value.0 as usize)
    }
}

impl Key {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            values: Vec::new(),
            value_ids: FxHashMap::default(),
        }
    }

    fn add(&mut self, name: &str) -> ValueId {
        let (id, name) = (ValueId(next(self.values.len())), Arc::<str>::from(name));
        self.values.push(Value {
            name: Arc::clone(&name),
            integer: name.parse().ok(),
        });
        self.value_ids.insert(name, id);
        id
    }
}

fn next(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use api::{labels::LabelRules, provider::Provider};

    use super::{CAPACITY_TYPES, FIXED_KEYS, KeyId, ValueId, Vocabulary};

    #[test]
    fn fixed_numbers_name_the_keys_and_values_they_promise() {
        let vocabulary = Vocabulary::new();
        let fixed = [
            KeyId::NODE_POOL,
            KeyId::ZONE,
            KeyId::REGION,
            KeyId::INSTANCE_TYPE,
            KeyId::ARCH,
            KeyId::OS,
            KeyId::CAPACITY_TYPE,
            KeyId::WINDOWS_BUILD,
            KeyId::HOSTNAME,
        ];
        assert_eq!(fixed.map(|key| vocabulary.key_name(key)), FIXED_KEYS);
        let types = [ValueId::ON_DEMAND, ValueId::SPOT, ValueId::RESERVED];
        assert_eq!(
            types.map(|value| vocabulary.value_name(KeyId::CAPACITY_TYPE, value)),
            CAPACITY_TYPES
        );
        let undefinable = fixed.map(|key| vocabulary.is_well_known(key));
        assert_eq!(undefinable, [true, true, true, true, true, true, true, true, false]);
    }

    #[test]
    fn alias_is_resolved_for_requirements_and_a_key_of_its_own_elsewhere() {
        let mut vocabulary = Vocabulary::new();
        let alias = "failure-domain.beta.kubernetes.io/zone";
        assert_eq!(vocabulary.intern_normalized(alias), KeyId::ZONE);
        assert_ne!(vocabulary.intern_key(alias), KeyId::ZONE);
    }

    #[test]
    fn value_alias_of_a_provider_is_resolved_for_requirements_on_its_key_only() {
        let mut vocabulary = Vocabulary::with_rules(LabelRules::new(&[Provider::Azure]));
        let regional = vocabulary.intern_normalized_value(KeyId::ZONE, "");
        assert_eq!(vocabulary.value_name(KeyId::ZONE, regional), "0");
        let arch = vocabulary.intern_normalized_value(KeyId::ARCH, "");
        assert_eq!(vocabulary.value_name(KeyId::ARCH, arch), "");
    }

    #[test]
    fn well_known_keys_are_those_of_the_providers_and_those_added() {
        let mut vocabulary = Vocabulary::with_rules(LabelRules::new(&[Provider::Kwok]));
        vocabulary.add_well_known("size");
        let is_known = ["karpenter.kwok.sh/instance-size", "size", "team"].map(|name| {
            let key = vocabulary.intern_key(name);
            vocabulary.is_well_known(key)
        });
        assert_eq!(is_known, [true, true, false]);
    }

    #[test]
    fn values_remember_the_integer_they_spell() {
        let mut vocabulary = Vocabulary::new();
        let key = vocabulary.intern_key("size");
        let cases = [
            ("8", Some(8)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("007", Some(7)),
            ("8.0", None),
            ("", None),
        ];
        for (text, integer) in cases {
            let value = vocabulary.intern_value(key, text);
            assert_eq!(vocabulary.integer(key, value), integer, "{text:?}");
        }
    }
}
