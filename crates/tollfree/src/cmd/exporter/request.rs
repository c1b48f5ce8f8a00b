// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head of an HTTP/1 request.

use super::exposition::Format;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub wants_body: bool,
    pub target: Target,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    Metrics(Format),
    Start,
}

/// A status other than 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused(pub u16, pub &'static str);

pub const BAD: Refused = Refused(400, "Bad Request");
pub const LATE: Refused = Refused(408, "Request Timeout");
pub const LARGE: Refused = Refused(431, "Request Header Fields Too Large");
pub const BUSY: Refused = Refused(503, "Service Unavailable");
const ABSENT: Refused = Refused(404, "Not Found");
pub const METHOD: Refused = Refused(405, "Method Not Allowed");

/// Parses a head, which ends with an empty line.
///
/// # Errors
/// It is not HTTP/1, or asks for something else.
pub fn parse(head: &[u8]) -> Result<Request, Refused> {
    let head = std::str::from_utf8(head).map_err(|_| BAD)?;
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next())
    else {
        return Err(BAD);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(BAD);
    }
    let wants_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err(METHOD),
    };
    let target = match target.split('?').next() {
        Some("/metrics") => Target::Metrics(format(lines)),
        Some("/") => Target::Start,
        _ => return Err(ABSENT),
    };
    Ok(Request { wants_body, target })
}

/// The format that the headers accept.
fn format<'a>(headers: impl Iterator<Item = &'a str>) -> Format {
    let accepts = headers
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("accept"))
        .any(|(_, value)| value.contains("application/openmetrics-text"));
    match accepts {
        true => Format::OpenMetrics,
        false => Format::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(head: &str) -> Result<Target, u16> {
        let request = parse(head.as_bytes());
        request.map(|it| it.target).map_err(|refused| refused.0)
    }

    #[test]
    fn metrics_have_the_format_that_is_accepted() {
        let older = "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(target(older), Ok(Target::Metrics(Format::Text)));
        let newer = "GET /metrics HTTP/1.0\r\nACCEPT: text/plain;q=0.1, application/openmetrics-text;version=1.0.0\r\n\r\n";
        assert_eq!(target(newer), Ok(Target::Metrics(Format::OpenMetrics)));
        assert!(!parse(b"HEAD / HTTP/1.1\r\n\r\n").unwrap().wants_body);
    }

    #[test]
    fn what_is_no_such_request_is_refused() {
        for (head, status) in [
            ("GET /other HTTP/1.1\r\n\r\n", 404),
            ("POST /metrics HTTP/1.1\r\n\r\n", 405),
            ("GET /metrics HTTP/2\r\n\r\n", 400),
            ("GET  /metrics HTTP/1.1\r\n\r\n", 400),
            ("GET metrics HTTP/1.1\r\n\r\n", 400),
            ("\r\n\r\n", 400),
        ] {
            assert_eq!(target(head), Err(status), "{head:?}");
        }
        assert_eq!(parse(b"GET /\xff HTTP/1.1\r\n\r\n"), Err(BAD));
    }
}
