//! The files of a tar archive, as far as a dump needs them: regular files, with long names as GNU and POSIX write them.

const BLOCK: usize = 512;

/// Whether bytes are an archive.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

/// Names and contents of the regular files of an archive, in its order; none once a header makes no sense.
pub fn files(bytes: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let (mut files, mut at, mut long_name) = (Vec::new(), 0, None::<String>);
    while let Some(header) = bytes.get(at..at + BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let size = octal(header.get(124..136)?)?;
        let start = at + BLOCK;
        let content = bytes.get(start..start.checked_add(size)?)?;
        match header.get(156)? {
            // GNU: the name of the next file.
            b'L' => long_name = Some(text(content)),
            // POSIX: attributes of the next file, `LENGTH path=NAME`.
            b'x' => long_name = path_of(content).or(long_name),
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                files.push((name, content));
            }
            _ => long_name = None,
        }
        at = start + size.div_ceil(BLOCK) * BLOCK;
    }
    Some(files)
}

fn name(header: &[u8]) -> String {
    let part = |range: std::ops::Range<usize>| header.get(range).map(text).unwrap_or_default();
    match (part(345..500), part(0..100)) {
        (prefix, name) if prefix.is_empty() => name,
        (prefix, name) => format!("{prefix}/{name}"),
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn octal(bytes: &[u8]) -> Option<usize> {
    let digits = text(bytes);
    usize::from_str_radix(digits.trim(), 8).ok()
}

fn path_of(content: &[u8]) -> Option<String> {
    let records = String::from_utf8_lossy(content).into_owned();
    records
        .lines()
        .find_map(|line| line.split_once(" path=").map(|(_, path)| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as tar writes it.
    fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}", content.len());
        header[124..135].copy_from_slice(size.as_bytes());
        header[156] = kind;
        header[257..262].copy_from_slice(b"ustar");
        header.extend_from_slice(content);
        header.resize(header.len().div_ceil(BLOCK) * BLOCK, 0);
        header
    }

    #[test]
    fn files_have_their_names_short_and_long_and_directories_are_none() {
        let long = format!("{}/pods.yaml", "d".repeat(120));
        let archive = [
            entry("dump/", b'5', b""),
            entry("dump/nodes.yaml", b'0', b"kind: Node\n"),
            entry("././@LongLink", b'L', long.as_bytes()),
            entry(&long[..99], b'0', b"kind: Pod\n"),
            entry("x", b'x', b"24 path=dump/claims.json\n"),
            entry("cut", b'0', b"{}"),
            vec![0; 2 * BLOCK],
        ]
        .concat();
        assert!(is_archive(&archive));
        let names: Vec<String> = files(&archive).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["dump/nodes.yaml", &long, "dump/claims.json"]);
        assert_eq!(files(&archive).unwrap()[1].1, b"kind: Pod\n");
    }

    #[test]
    fn an_archive_that_is_cut_short_is_refused() {
        let archive = entry("dump/nodes.yaml", b'0', &[b'a'; 600]);
        assert_eq!(files(&archive[..700]), None);
    }
}
