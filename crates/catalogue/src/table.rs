//! The file format of the embedded tables: gzipped text, a line each for the day of the prices, the columns, every type.
//!
//! Fields are separated by tabs; an empty field is an unknown or absent fact. `cargo xtask catalogue` writes it.

use std::io::Read;

/// An embedded table that cannot be read: the build is broken, not the user's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("embedded catalogue {table}, line {line}: {problem}; write it again with `cargo xtask catalogue --from DIR`")]
pub struct Damaged {
    table: &'static str,
    line: usize,
    problem: String,
}

/// An unpacked table.
#[derive(Debug)]
pub(crate) struct Table {
    name: &'static str,
    text: String,
}

impl Table {
    pub(crate) fn unpack(name: &'static str, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut text = String::new();
        match flate2::read::GzDecoder::new(bytes).read_to_string(&mut text) {
            Ok(_) => Ok(Self { name, text }),
            Err(error) => Err(Damaged {
                table: name,
                line: 0,
                problem: error.to_string(),
            }),
        }
    }

    /// The day the prices are of.
    pub(crate) fn prices_of(&self) -> &str {
        let line = self.text.lines().next().unwrap_or_default();
        line.strip_prefix("prices\t").unwrap_or_default()
    }

    /// Every row as an array in the order of `columns`, made into something.
    pub(crate) fn rows<'a, const N: usize, T>(
        &'a self,
        columns: &[&str; N],
        mut make: impl FnMut(&[&'a str; N]) -> Result<T, String>,
    ) -> Result<Vec<T>, Damaged> {
        let mut made = Vec::new();
        for (at, line) in self.text.lines().enumerate().skip(1) {
            let fields: Result<[&str; N], _> = line.split('\t').collect::<Vec<_>>().try_into();
            let row = match fields {
                Ok(header) if at == 1 && header == *columns => continue,
                Ok(fields) if at > 1 => make(&fields),
                _ => Err(format!("expected the columns {columns:?}")),
            };
            made.push(row.map_err(|problem| Damaged {
                table: self.name,
                line: at + 1,
                problem,
            })?);
        }
        Ok(made)
    }
}

/// A number; empty is zero.
pub(crate) fn number(column: &str, field: &str) -> Result<i64, String> {
    if field.is_empty() {
        return Ok(0);
    }
    field
        .parse()
        .map_err(|_| format!("{column}: `{field}` is not a whole number"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap()
    }

    fn read(text: &str) -> Result<Vec<(String, i64)>, String> {
        let table = Table::unpack("test", &packed(text)).unwrap();
        table
            .rows(&["name", "cpu"], |[name, cpu]| {
                Ok(((*name).to_owned(), number("cpu", cpu)?))
            })
            .map_err(|damaged| damaged.to_string())
    }

    #[test]
    fn rows_come_in_the_order_of_the_file() {
        let expected = vec![("b".to_owned(), 2), ("a".to_owned(), 0)];
        assert_eq!(read("prices\t2026-07-20\nname\tcpu\nb\t2\na\t\n"), Ok(expected));
    }

    #[test]
    fn a_damaged_table_says_where() {
        let cases = [
            (
                "prices\t\nname\tmemory\n",
                "line 2: expected the columns [\"name\", \"cpu\"]",
            ),
            (
                "prices\t\nname\tcpu\na\n",
                "line 3: expected the columns [\"name\", \"cpu\"]",
            ),
            ("prices\t\nname\tcpu\na\tx\n", "line 3: cpu: `x` is not a whole number"),
        ];
        for (text, problem) in cases {
            let expected =
                format!("embedded catalogue test, {problem}; write it again with `cargo xtask catalogue --from DIR`");
            assert_eq!(read(text), Err(expected));
        }
    }
}
