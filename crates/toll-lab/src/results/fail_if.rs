// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--fail-if`: a condition that turns a comparison into an error.

use std::str::FromStr;

use serde::Deserialize;

use super::{Entry, MAIN, Results};

/// `COUNTER>+5%`: any later variant has more than the first, by more than 5 %. `COUNTER<-5%`: less.
/// `COUNTER>100`, `COUNTER<100`: any variant has such a value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    text: String,
    counter: String,
    is_above: bool,
    limit: Limit,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
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

impl Condition {
    /// Describes each run in which a condition on a value does not hold in the main section. A
    /// missing counter is 0.
    pub fn broken(&self, results: &Results) -> Vec<String> {
        let Limit::Value(limit) = self.limit else {
            return vec![format!("{}: a change cannot be a requirement", self.text)];
        };
        let mains = results.results.iter().filter(|entry| entry.section == MAIN);
        let say = |entry: &Entry, value: f64| {
            let place = format!("{}, {}", entry.variant, entry.policy);
            format!("{place}: {} is required, found {value}", self.text)
        };
        mains
            .flat_map(|entry| {
                let values = entry.values(&self.counter).into_iter();
                values
                    .filter(|value| !self.compare(*value, limit))
                    .map(|value| say(entry, value))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Describes each place where the condition holds.
    ///
    /// # Errors
    /// No entry has the counter, or there is no second variant for a relative condition.
    pub fn holds(&self, results: &Results) -> Result<Vec<String>, String> {
        let is_there = |entry: &Entry| entry.counters.contains_key(&self.counter);
        if !results.results.iter().any(is_there) {
            return Err(format!(
                "{}: no such counter in this scenario",
                self.counter
            ));
        }
        let variants = results.variants();
        if matches!(self.limit, Limit::Change(_)) && variants.len() < 2 {
            return Err(format!("{}: a change needs two variants", self.text));
        }
        let found = results
            .results
            .iter()
            .filter_map(|entry| self.holds_in(results, entry));
        Ok(found.collect())
    }

    fn holds_in(&self, results: &Results, entry: &Entry) -> Option<String> {
        let of = |entry: &Entry| entry.counters.get(&self.counter).map(|it| it.median);
        let value = of(entry)?;
        let (is, said) = match self.limit {
            Limit::Value(limit) => (self.compare(value, limit), format!("{value}")),
            Limit::Change(change) => {
                let first = results.variants().first().copied()?.to_owned();
                if entry.variant == first {
                    return None;
                }
                let base = of(results.counterpart(entry, &first)?)?;
                let is = self.compare(value, base * (1.0 + change));
                (is, format!("{value}, and {base} with {first}"))
            }
        };
        let place = format!("{}, {}, {}", entry.variant, entry.policy, entry.section);
        is.then(|| format!("{}: {place}: {said}", self.text))
    }

    fn compare(&self, value: f64, limit: f64) -> bool {
        match self.is_above {
            true => value > limit,
            false => value < limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    fn holds(condition: &str, vanilla: f64, tollfree: f64) -> usize {
        let results = example(&[vanilla], &[tollfree]);
        let condition: Condition = condition.parse().unwrap();
        condition.holds(&results).unwrap().len()
    }

    #[test]
    fn a_change_is_against_the_first_variant() {
        assert_eq!(holds("shootdown_irqs>+5%", 100.0, 105.0), 0);
        assert_eq!(holds("shootdown_irqs>+5%", 100.0, 106.0), 1);
        assert_eq!(holds("shootdown_irqs > 5 %", 100.0, 106.0), 1);
        assert_eq!(holds("shootdown_irqs<-99%", 100.0, 0.5), 1);
        assert_eq!(holds("shootdown_irqs<-99%", 100.0, 1.5), 0);
        assert_eq!(holds("shootdown_irqs>0%", 0.0, 1.0), 1);
    }

    #[test]
    fn a_value_is_for_every_variant() {
        assert_eq!(holds("shootdown_irqs>99", 100.0, 101.0), 2);
        assert_eq!(holds("shootdown_irqs<100.5", 100.0, 101.0), 1);
    }

    #[test]
    fn a_requirement_is_of_every_run() {
        let results = example(&[100.0, 5.0], &[100.0]);
        let broken = |text: &str| text.parse::<Condition>().unwrap().broken(&results);
        assert_eq!(broken("shootdown_irqs>1"), Vec::<String>::new());
        let found = broken("shootdown_irqs>10");
        assert_eq!(
            found,
            ["vanilla, default: shootdown_irqs>10 is required, found 5"]
        );
        assert_eq!(broken("nothing>0").len(), 3);
        assert_eq!(broken("shootdown_irqs>+5%").len(), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x", "x=5", ">5", "x>", "x>five", "x y>5", "x>inf"] {
            assert!(text.parse::<Condition>().is_err(), "{text}");
        }
        let results = example(&[1.0], &[1.0]);
        let unknown: Condition = "nothing>5".parse().unwrap();
        assert!(unknown.holds(&results).unwrap_err().contains("nothing"));
        let mut one = results;
        one.environment.kernels.truncate(1);
        let change: Condition = "walks>+5%".parse().unwrap();
        assert!(change.holds(&one).unwrap_err().contains("two variants"));
    }
}
