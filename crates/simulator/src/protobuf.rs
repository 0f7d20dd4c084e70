//! What does a body in protobuf say? kubectl sends what it makes itself so (`create`, `autoscale`), and Go's typed clients.

use std::{collections::BTreeMap, sync::OnceLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::write;

const FIELDS: &str = include_str!("protobuf/fields.txt");

/// What stands before every body, so that nobody takes it for something else.
const MAGIC: &[u8] = b"k8s\0";

/// Reads an object of a built-in kind; an error says what is wrong with the body.
pub(crate) fn read(body: &[u8]) -> Result<Value, String> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or("the body does not begin as objects of Kubernetes in protobuf do")?;
    let (mut head, mut raw) = (&[][..], &[][..]);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(bytes)) => head = bytes,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    for field in Fields(head) {
        match field? {
            (1, Wire::Bytes(bytes)) => api_version = string(bytes)?,
            (2, Wire::Bytes(bytes)) => kind = string(bytes)?,
            _ => {}
        }
    }
    let root = tables().kinds.get(&*format!("{api_version}/{kind}"));
    let root = root.ok_or_else(|| format!("{kind} of {api_version} is not served here, or not in protobuf"))?;
    let mut object = message(root, raw)?;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Ok(object)
}

/// The types of the kinds, and the fields of the types.
struct Tables {
    kinds: BTreeMap<&'static str, &'static str>,
    types: BTreeMap<&'static str, BTreeMap<u64, Field>>,
}

#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    /// Go writes it although it is zero; JSON does not.
    is_left_out_at_zero: bool,
    of: &'static str,
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let lines = || FIELDS.lines().filter(|line| !line.starts_with('#'));
        Tables {
            kinds: lines()
                .filter_map(|line| line.strip_prefix("= ")?.split_once(' '))
                .collect(),
            types: lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, fields)| (name, fields.split(", ").filter_map(field).collect()))
                .collect(),
        }
    })
}

fn field(text: &'static str) -> Option<(u64, Field)> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let name = words.next()?;
    let field = Field {
        name: name.trim_end_matches('?'),
        is_left_out_at_zero: name.ends_with('?'),
        of: words.next()?,
    };
    Some((number, field))
}

fn message(name: &str, bytes: &[u8]) -> Result<Value, String> {
    let known = tables().types.get(name);
    let mut object = json!({});
    for read in Fields(bytes) {
        let (number, wire) = read?;
        // A field that is newer than the table is ignored, as the real server ignores those it does not know.
        if let Some(field) = known.and_then(|known| known.get(&number)) {
            set(&mut object, *field, wire)?;
        }
    }
    Ok(object)
}

fn set(object: &mut Value, field: Field, wire: Wire) -> Result<(), String> {
    if let Some(of) = field.of.strip_prefix("[]") {
        let item = value(of, wire)?;
        match &mut object[field.name] {
            Value::Array(items) => items.push(item),
            list => *list = json!([item]),
        }
        return Ok(());
    }
    if let Some(of) = field.of.strip_prefix("{}") {
        let (key, value) = entry(of, wire)?;
        object[field.name][key] = value;
        return Ok(());
    }
    let value = value(field.of, wire)?;
    if field.name == "." {
        let inner = match value {
            Value::Object(inner) => inner,
            _ => Map::new(),
        };
        write::fields(object).extend(inner);
    } else if !(value.is_null() || field.is_left_out_at_zero && is_zero(&value)) {
        object[field.name] = value;
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    *value == json!(0) || *value == json!("") || *value == json!(false)
}

/// A map is a list of pairs.
fn entry(of: &str, wire: Wire) -> Result<(String, Value), String> {
    let mut key = String::new();
    let mut found = None;
    for field in Fields(wire.bytes()?) {
        match field? {
            (1, wire) => key = string(wire.bytes()?)?,
            (2, wire) => found = Some(value(of, wire)?),
            _ => {}
        }
    }
    Ok((key, found.unwrap_or_else(|| json!(""))))
}

fn value(of: &str, wire: Wire) -> Result<Value, String> {
    Ok(match of {
        "string" => json!(string(wire.bytes()?)?),
        "int" => json!(wire.number()?),
        "bool" => json!(wire.number()? != 0),
        "bytes" => json!(BASE64_STANDARD.encode(wire.bytes()?)),
        "quantity" => json!(first(wire.bytes()?)?.map_or(Ok("0".to_owned()), |text| string(text.bytes()?))?),
        "json" => match first(wire.bytes()?)? {
            Some(text) => serde_json::from_slice(text.bytes()?).map_err(|error| error.to_string())?,
            None => Value::Null,
        },
        "time" => time(wire.bytes()?)?,
        "int-or-string" => int_or_string(wire.bytes()?)?,
        of => message(of, wire.bytes()?)?,
    })
}

/// The first field of a message that has no other.
fn first(bytes: &[u8]) -> Result<Option<Wire<'_>>, String> {
    Fields(bytes).next().map(|field| Ok(field?.1)).transpose()
}

/// A time that is not set is written as one without fields.
fn time(bytes: &[u8]) -> Result<Value, String> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, wire) => seconds = wire.number()?,
            (2, wire) => nanoseconds = wire.number()?,
            _ => {}
        }
    }
    if (seconds, nanoseconds) == (0, 0) {
        return Ok(Value::Null);
    }
    let nanoseconds = i32::try_from(nanoseconds).map_err(|error| error.to_string())?;
    let time = Timestamp::new(seconds, nanoseconds).map_err(|error| error.to_string())?;
    Ok(json!(time))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, wire) => is_text = wire.number()? != 0,
            (2, wire) => number = wire.number()?,
            (3, wire) => text = string(wire.bytes()?)?,
            _ => {}
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

fn string(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_owned()).map_err(|error| format!("a text is not UTF-8: {error}"))
}

/// A value as it is written.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    /// Of a kind that none of these types has.
    Other,
}

impl<'a> Wire<'a> {
    fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) | Self::Other => Err("a number stands where a text or an object should".to_owned()),
        }
    }

    fn number(self) -> Result<i64, String> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) | Self::Other => Err("a text or an object stands where a number should".to_owned()),
        }
    }
}

/// The fields of a message, by number.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or_else(|| "the body ends in the middle of a field".to_owned()))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?.cast_signed()),
            1 => self.take(8).map(|_| Wire::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Other)?,
            _ => return None,
        };
        Some((tag >> 3, wire))
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes, shorter than 128.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        field.extend(content);
        field
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let head = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &head), bytes(2, raw)].concat()
    }

    #[test]
    fn an_object_in_protobuf_reads_as_the_same_object_in_json() {
        let name = bytes(1, b"web");
        let label = bytes(11, &[bytes(1, b"app"), bytes(2, b"web")].concat());
        let metadata = bytes(1, &[name, label, bytes(8, &[])].concat());
        let port = bytes(
            1,
            &[bytes(1, b""), vec![3 << 3, 80], bytes(4, &[8, 0, 16, 80, 26, 0])].concat(),
        );
        let body = body("v1", "Service", &[metadata, bytes(2, &port)].concat());
        let expected = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"ports": [{"port": 80, "targetPort": 80}]}});
        assert_eq!(read(&body).unwrap(), expected);
    }

    #[test]
    fn what_is_part_of_its_holder_in_json_is_not_a_field_of_it() {
        let claim = bytes(1, b"data");
        let volume = [bytes(1, b"v"), bytes(2, &bytes(10, &claim))].concat();
        let spec = bytes(2, &bytes(1, &volume));
        let pod = read(&body("v1", "Pod", &spec)).unwrap();
        let expected = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
        assert_eq!(pod["spec"]["volumes"], expected);
    }

    #[test]
    fn a_body_that_is_cut_off_or_of_a_kind_nobody_knows_is_refused_in_words() {
        let whole = body("v1", "Namespace", &bytes(1, &bytes(1, b"shop")));
        assert_eq!(read(&whole).unwrap()["metadata"]["name"], "shop");
        for length in 1..whole.len() - 1 {
            let read = read(&whole[..length]);
            assert!(read.is_err() || read.unwrap()["metadata"].is_null(), "{length}");
        }
        let error = read(&body("x.io/v1", "Thing", &[])).unwrap_err();
        assert_eq!(error, "Thing of x.io/v1 is not served here, or not in protobuf");
    }

    #[test]
    fn every_type_that_a_field_has_is_in_the_table() {
        let plain = [
            "string",
            "int",
            "bool",
            "bytes",
            "quantity",
            "json",
            "time",
            "int-or-string",
        ];
        for (name, fields) in &tables().types {
            for field in fields.values() {
                let of = field.of.trim_start_matches("[]").trim_start_matches("{}");
                let is_known = plain.contains(&of) || tables().types.contains_key(of);
                assert!(is_known, "{name}.{}: {of}", field.name);
            }
        }
    }
}
