// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound of a goal: `change <= -99 %`, `value < 8192`, `reduction_factor >= 100`.

use serde::{Deserialize, Serialize};

/// What a goal limits, and the limit.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bound {
    pub text: String,
    pub quantity: Quantity,
    relation: Relation,
    /// A change is a ratio here, as in results: -99 % is 0.01.
    limit: f64,
}

/// What is computed from the metric of the compared configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Ours.
    Value,
    /// Ours - base.
    Difference,
    /// Ours / base - 1.
    Change,
    /// Ours / base.
    RelativeCost,
    /// Base / ours.
    ReductionFactor,
    /// (base - ours) / (base - best).
    SavedShare,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    AtLeast,
    Above,
    /// A change in either direction, by at most this.
    Within,
}

/// Whether a goal is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    NotMet,
    /// The interval includes the bound.
    NotShown,
    NotMeasured,
}

/// Relative difference that rounding may cause.
const ROUNDING: f64 = 1e-9;

impl Quantity {
    const ALL: [(&'static str, Quantity); 6] = [
        ("value", Quantity::Value),
        ("difference", Quantity::Difference),
        ("change", Quantity::Change),
        ("relative_cost", Quantity::RelativeCost),
        ("reduction_factor", Quantity::ReductionFactor),
        ("saved_share", Quantity::SavedShare),
    ];

    /// Computes it for one round. A change is a ratio.
    pub fn of(self, ours: f64, base: f64, best: f64) -> f64 {
        match self {
            Quantity::Value => ours,
            Quantity::Difference => ours - base,
            Quantity::Change | Quantity::RelativeCost => ours / base,
            Quantity::ReductionFactor => base / ours,
            Quantity::SavedShare => (base - ours) / (base - best),
        }
    }

    fn is_ratio(self) -> bool {
        use Quantity::{Change, ReductionFactor, RelativeCost};
        matches!(self, Change | RelativeCost | ReductionFactor)
    }
}

impl Bound {
    /// Whether it needs the metric of another configuration.
    pub fn is_relative(&self) -> bool {
        self.quantity != Quantity::Value
    }

    /// Returns the verdict for a quantity in this interval.
    pub fn verdict(&self, low: f64, high: f64) -> Verdict {
        let slack = self.limit.abs() * ROUNDING;
        let (least, most) = match self.relation {
            Relation::Below | Relation::AtMost => (f64::NEG_INFINITY, self.limit),
            Relation::AtLeast | Relation::Above => (self.limit, f64::INFINITY),
            Relation::Within => (1.0 - self.limit, 1.0 + self.limit),
        };
        let is_strict = matches!(self.relation, Relation::Below | Relation::Above);
        let (is_inside, is_outside) = match is_strict {
            true => (least < low && high < most, high <= least || most <= low),
            false => (
                least - slack <= low && high <= most + slack,
                high < least - slack || most + slack < low,
            ),
        };
        match (is_inside, is_outside) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::NotMet,
            _ => Verdict::NotShown,
        }
    }

    /// Orders intervals by how far they reach to the wrong side.
    pub fn badness(&self, low: f64, high: f64) -> f64 {
        match self.relation {
            Relation::Below | Relation::AtMost => high,
            Relation::AtLeast | Relation::Above => -low,
            Relation::Within => (1.0 - low).max(high - 1.0),
        }
    }

    fn impossible(&self) -> Option<&'static str> {
        let limit = self.limit;
        match self.relation {
            Relation::Within if self.quantity != Quantity::Change => {
                Some("within is only for a change")
            }
            Relation::Within => (limit <= 0.0).then_some("cannot be met"),
            _ if !self.quantity.is_ratio() => None,
            Relation::AtMost => (limit < 0.0).then_some("cannot be met"),
            Relation::Below => (limit <= 0.0).then_some("cannot be met"),
            Relation::AtLeast => (limit <= 0.0).then_some("is always met"),
            Relation::Above => (limit < 0.0).then_some("is always met"),
        }
    }
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Bound, String> {
        let bad = |why: &str| format!("bound {text:?}: {why}");
        let form = || bad("expected QUANTITY RELATION NUMBER, such as \"change <= -5 %\"");
        let words: Vec<&str> = text.splitn(3, ' ').collect();
        let [quantity, relation, number] = words[..] else {
            return Err(form());
        };
        let found = Quantity::ALL.iter().find(|(name, _)| *name == quantity);
        let Some((_, quantity)) = found.copied() else {
            let names = Quantity::ALL.map(|(name, _)| name).join(", ");
            return Err(bad(&format!("{quantity}: expected one of {names}")));
        };
        let relation = match relation {
            "<" => Relation::Below,
            "<=" => Relation::AtMost,
            ">=" => Relation::AtLeast,
            ">" => Relation::Above,
            "within" => Relation::Within,
            _ => return Err(bad("expected one of <, <=, >=, >, within")),
        };
        let percent = number.strip_suffix('%');
        let value: Result<f64, _> = percent.unwrap_or(number).trim().parse();
        let value = value.map_err(|_| form())?;
        if !value.is_finite() {
            return Err(form());
        }
        let share = if percent.is_some() {
            value / 100.0
        } else {
            value
        };
        let is_change = quantity == Quantity::Change;
        if is_change && percent.is_none() {
            return Err(bad("a change is a percentage"));
        }
        let limit = match is_change && relation != Relation::Within {
            true => 1.0 + share,
            false => share,
        };
        let bound = Bound {
            text: text.clone(),
            quantity,
            relation,
            limit,
        };
        match bound.impossible() {
            Some(why) => Err(bad(why)),
            None => Ok(bound),
        }
    }
}

#[cfg(test)]
mod tests;
