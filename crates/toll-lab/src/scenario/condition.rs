// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conditions on counters: those that a scenario requires, and those of `--fail-if`.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// `COUNTER>+5%`: any later variant has more than the first, by more than 5 %. `COUNTER<-5%`: less.
/// `COUNTER>100`, `COUNTER<100`: any variant has such a value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    text: String,
    pub counter: String,
    is_above: bool,
    pub limit: Limit,
}

/// What a condition compares a counter with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Change relative to the first variant, as a fraction.
    Change(f64),
    Value(f64),
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let bad =
            || format!("{text:?}: expected COUNTER>+5%, COUNTER<-5%, COUNTER>100 or COUNTER<100");
        let at = text.find(['<', '>']).ok_or_else(bad)?;
        let (counter, rest) = (text[..at].trim(), text[at + 1..].trim());
        let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
        let limit = match rest.strip_suffix('%') {
            Some(share) => Limit::Change(number(share.trim()).ok_or_else(bad)? / 100.0),
            None => Limit::Value(number(rest).ok_or_else(bad)?),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if counter.is_empty() || !counter.chars().all(is_name) {
            return Err(bad());
        }
        Ok(Condition {
            text: text.to_owned(),
            counter: counter.to_owned(),
            is_above: text.as_bytes()[at] == b'>',
            limit,
        })
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Condition, String> {
        text.parse()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// Whether a value is beyond a limit in the condition's direction.
    pub fn compare(&self, value: f64, limit: f64) -> bool {
        match self.is_above {
            true => value > limit,
            false => value < limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "x=5", ">5", "x>", "x>five", "x y>5", "x>inf"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
    }
}
