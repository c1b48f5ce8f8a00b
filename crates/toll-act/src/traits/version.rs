// SPDX-License-Identifier: MIT OR Apache-2.0
//! Versions of programs and libraries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of up to three numbers; those that are missing are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        text.parse()
    }
}

impl FromStr for Version {
    type Err = String;

    /// Reads the leading numbers of a text such as `3.15.0rc1` or `2.2`.
    fn from_str(text: &str) -> Result<Version, String> {
        let mut numbers = text.split('.').map(leading_number);
        let first = numbers.next().flatten();
        let major = first.ok_or_else(|| format!("{text:?} is not a version"))?;
        let mut next = || numbers.next().flatten().unwrap_or(0);
        Ok(Version(major, next(), next()))
    }
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_compared_and_printed() {
        let read = |text: &str| text.parse::<Version>().unwrap();
        assert_eq!(read("1.21.6"), Version(1, 21, 6));
        assert_eq!(read("2.36"), Version(2, 36, 0));
        assert_eq!(read("3.15.0rc1"), Version(3, 15, 0));
        assert_eq!(read("15rc1.7"), Version(15, 7, 0));
        assert!(read("1.21.10") > read("1.21.6"));
        assert!(read("1.22") > read("1.21.6"));
        assert_eq!(read("2.36").to_string(), "2.36.0");
        assert!("".parse::<Version>().is_err());
        assert!("v3".parse::<Version>().is_err());
    }
}
