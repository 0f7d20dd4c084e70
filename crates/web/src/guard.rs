//! Which requests are answered at all, and what every answer tells the browser.
//!
//! The page is read by a browser that also has other sites open. They must not be able to ask on a person's behalf: not
//! by a link, not by a frame, not by a name that resolves to this machine.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};

/// Nothing but our own files, nowhere else, in nobody's frame.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// Puts what every answer tells the browser on one.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// Under which names the page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosts {
    /// Only as this machine: what anybody on it may see must not be reached by another name.
    Loopback,
    /// Any: who asks shows a token, which a browser sends to nobody by itself.
    Any,
}

/// Why a request is not answered.
pub(crate) type Refusal = (StatusCode, &'static str);

/// Looks at the head of a request.
pub(crate) fn check(head: &Parts, hosts: Hosts) -> Result<(), Refusal> {
    let text = |name: HeaderName| head.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).or_else(|| head.uri.host()).unwrap_or_default();
    if hosts == Hosts::Loopback && !is_loopback(host) {
        return Err((
            StatusCode::MISDIRECTED_REQUEST,
            "this page answers to localhost only; open it under the address that was printed",
        ));
    }
    if !matches!(head.method, Method::GET | Method::HEAD | Method::POST) {
        return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are answered here"));
    }
    if let Some(origin) = text(header::ORIGIN)
        && origin.split_once("://").map(|(_, host)| host) != Some(host)
    {
        return Err((StatusCode::FORBIDDEN, "another site may not ask here"));
    }
    let site = text(HeaderName::from_static("sec-fetch-site"));
    let is_ours = matches!(site, None | Some("same-origin" | "none"));
    let is_api = head.uri.path().starts_with("/api/");
    // Somebody may follow a link to the page itself: it has nothing in it yet.
    let is_link = text(HeaderName::from_static("sec-fetch-mode")) == Some("navigate") && !is_api;
    let is_followed = is_link && head.method == Method::GET;
    if !is_ours && !is_followed {
        return Err((StatusCode::FORBIDDEN, "another site may not ask here"));
    }
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    if head.method == Method::POST && !kind.starts_with("application/json") {
        // Without this, a form of another site could ask in browsers that say nothing of sites.
        return Err((
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send JSON: content-type: application/json",
        ));
    }
    Ok(())
}

/// Whether a host is this machine, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn code(method: &str, path: &str, headers: &[(&str, &str)], hosts: Hosts) -> Option<u16> {
        check(&head(method, path, headers), hosts)
            .err()
            .map(|(code, _)| code.as_u16())
    }

    #[test]
    fn a_page_without_a_login_answers_only_as_this_machine() {
        for host in [
            "localhost",
            "localhost:80",
            "127.0.0.1:3000",
            "[::1]:3000",
            "LOCALHOST:1",
        ] {
            assert_eq!(code("GET", "/", &[("host", host)], Hosts::Loopback), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:3000",
            "127.0.0.1.evil.example",
            "10.0.0.7",
            "",
        ] {
            let refused = code("GET", "/api/stream", &[("host", host)], Hosts::Loopback);
            assert_eq!(refused, Some(421), "{host}");
        }
        assert_eq!(code("GET", "/", &[("host", "dovetail.example")], Hosts::Any), None);
    }

    #[test]
    fn another_site_may_link_to_the_page_and_do_nothing_else() {
        let host = ("host", "localhost:1");
        let from = |site, mode| [host, ("sec-fetch-site", site), ("sec-fetch-mode", mode)];
        let code = |method, path, headers: &[_]| code(method, path, headers, Hosts::Loopback);
        assert_eq!(code("GET", "/api/stream", &from("same-origin", "cors")), None);
        assert_eq!(code("GET", "/", &from("none", "navigate")), None);
        assert_eq!(code("GET", "/", &from("cross-site", "navigate")), None);
        assert_eq!(code("GET", "/app.js", &from("cross-site", "no-cors")), Some(403));
        assert_eq!(code("GET", "/api/document", &from("cross-site", "navigate")), Some(403));
        assert_eq!(code("GET", "/api/document", &from("same-site", "cors")), Some(403));
        let foreign = [
            host,
            ("origin", "http://evil.example"),
            ("content-type", "application/json"),
        ];
        assert_eq!(code("POST", "/api/demo/spot-storm", &foreign), Some(403));
        let ours = [
            host,
            ("origin", "http://localhost:1"),
            ("content-type", "application/json"),
        ];
        assert_eq!(code("POST", "/api/demo/spot-storm", &ours), None);
        let null = [host, ("origin", "null"), ("content-type", "application/json")];
        assert_eq!(code("POST", "/api/whatif", &null), Some(403));
        let form = [host, ("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(code("POST", "/api/whatif", &form), Some(415));
        assert_eq!(code("DELETE", "/api/whatif", &[host]), Some(405));
        assert_eq!(code("OPTIONS", "/api/whatif", &[host]), Some(405));
    }

    #[test]
    fn every_answer_forbids_frames_foreign_code_and_guessing_of_types() {
        let mut headers = HeaderMap::new();
        protect(&mut headers);
        let policy = headers["content-security-policy"].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
    }
}
