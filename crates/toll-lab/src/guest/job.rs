// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs of a guest, and what they returned.

use std::fmt;
use std::fs;
use std::path::Path;

/// A job of a guest.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names its results; letters, digits and `-`.
    pub name: String,
    /// Program and arguments, without tabs or newlines.
    pub command: Vec<String>,
}

impl Job {
    /// A line for the guest's shell, run with `-e`: it stops at the first command that fails. Needs
    /// the host's busybox among the guest's programs.
    pub fn shell(name: &str, line: &str) -> Job {
        Job {
            name: name.to_owned(),
            command: ["/bin/busybox", "sh", "-ec", line]
                .map(str::to_owned)
                .into(),
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exit(i32),
    Signal(i32),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Exit(code) => write!(f, "status {code}"),
            Status::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The result of one job.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub status: Status,
    pub out: String,
    pub err: String,
}

/// Reads the output of one job.
pub(super) fn result(out: &Path, name: &str) -> Result<Done, String> {
    let read = |suffix: &str| {
        let path = out.join(format!("{name}.{suffix}"));
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        String::from_utf8(content).map_err(|_| format!("{}: is not text", path.display()))
    };
    let status = read("status")?;
    let status =
        parse_status(&status).ok_or_else(|| format!("{name}.status: invalid status {status:?}"))?;
    Ok(Done {
        name: name.to_owned(),
        status,
        out: read("out")?,
        err: read("err")?,
    })
}

pub(super) fn parse_status(text: &str) -> Option<Status> {
    let (kind, number) = text.trim_end().split_once(' ')?;
    let number = number.parse().ok()?;
    match kind {
        "exit" => Some(Status::Exit(number)),
        "signal" => Some(Status::Signal(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
