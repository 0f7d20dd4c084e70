//! MIME archives: the form in which cloud-init and nodeadm take several documents at once.

/// The line that parts our archives.
const BOUNDARY: &str = "//";

/// A shell script.
pub(super) const SHELL_SCRIPT: &str = "text/x-shellscript; charset=\"us-ascii\"";
/// A NodeConfig of nodeadm.
pub(super) const NODE_CONFIG: &str = "application/node.eks.aws";

/// A document of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Names and values, as written.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Part {
    /// A document of a content type.
    pub(super) fn new(content_type: &str, body: String) -> Self {
        Self {
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body,
        }
    }

    #[cfg(test)]
    pub(super) fn content_type(&self) -> &str {
        header(&self.headers, "content-type").unwrap_or_default()
    }
}

/// Whether a text claims to be an archive.
pub(super) fn is_archive(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("MIME-Version:") || text.starts_with("Content-Type:")
}

/// The documents of an archive. Carriage returns are taken out: nothing that reads user data wants them.
pub(super) fn read(text: &str) -> Result<Vec<Part>, String> {
    let text = text.replace('\r', "");
    let (headers, body) = split_headers(text.trim_start())?;
    let content_type = header(&headers, "content-type").ok_or("there is no Content-Type header")?;
    if !content_type.trim_start().to_ascii_lowercase().starts_with("multipart/") {
        return Err(format!("its Content-Type is {content_type}, not multipart/mixed"));
    }
    let boundary = boundary(content_type).ok_or("its Content-Type names no boundary")?;
    let (delimiter, end) = (format!("--{boundary}"), format!("--{boundary}--"));
    let (mut parts, mut current, mut is_closed) = (Vec::new(), None::<Vec<&str>>, false);
    for line in body.lines() {
        let bare = line.trim_end_matches([' ', '\t']);
        if bare == end {
            is_closed = true;
            break;
        }
        if bare == delimiter {
            parts.extend(current.replace(Vec::new()));
        } else if let Some(lines) = &mut current {
            lines.push(line);
        }
    }
    parts.extend(current);
    if !is_closed {
        return Err(format!("the closing line {end} is missing"));
    }
    parts.into_iter().map(|lines| part(&lines.join("\n"))).collect()
}

fn part(text: &str) -> Result<Part, String> {
    // A document may come without headers, after an empty line.
    if let Some(body) = text.strip_prefix('\n') {
        return Ok(Part {
            headers: Vec::new(),
            body: body.to_owned(),
        });
    }
    let (headers, body) = split_headers(text)?;
    Ok(Part {
        headers,
        body: body.to_owned(),
    })
}

type Headers = Vec<(String, String)>;

fn split_headers(text: &str) -> Result<(Headers, &str), String> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut headers: Headers = Vec::new();
    for line in head.lines() {
        if line.starts_with([' ', '\t']) {
            let (_, value) = headers
                .last_mut()
                .ok_or_else(|| format!("line {line:?} continues no header"))?;
            value.push(' ');
            value.push_str(line.trim());
        } else {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| format!("line {line:?} is no header"))?;
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    Ok((headers, body))
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn boundary(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1);
    let value = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))
        .map(|(_, value)| value.trim().trim_matches('"').to_owned());
    value.filter(|value| !value.is_empty())
}

/// An archive of documents, in this order.
pub(super) fn write(parts: &[Part]) -> String {
    let mut text = format!("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n");
    for (at, part) in parts.iter().enumerate() {
        let before = if at == 0 { "" } else { "\n" };
        text.push_str(&format!("{before}--{BOUNDARY}\n"));
        for (name, value) in &part.headers {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text.push('\n');
        text.push_str(&part.body.replace('\r', ""));
    }
    text.push_str(&format!("\n--{BOUNDARY}--\n"));
    text
}
