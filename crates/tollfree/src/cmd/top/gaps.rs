// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cannot be measured here, each reason once.

use serde::Serialize;
use toll_model::losses::Missing;

/// The rows that a reason concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    Machine,
    Cgroups,
    Processes,
}

/// Why fields are null or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    pub rows: Rows,
    pub fields: Vec<&'static str>,
    pub reason: String,
    pub fix: Option<String>,
}

#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// Notes the reason for a field.
    pub fn note(&mut self, rows: Rows, field: &'static str, missing: &Missing) {
        let is_same = |gap: &&mut Gap| gap.rows == rows && gap.reason == missing.reason;
        match self.0.iter_mut().find(is_same) {
            Some(gap) if gap.fields.contains(&field) => {}
            Some(gap) => gap.fields.push(field),
            None => self.0.push(Gap {
                rows,
                fields: vec![field],
                reason: missing.reason.clone(),
                fix: missing.fix.clone(),
            }),
        }
    }

    /// Takes a value, or notes why there is none.
    pub fn value<T>(
        &mut self,
        rows: Rows,
        field: &'static str,
        value: Result<T, Missing>,
    ) -> Option<T> {
        value
            .inspect_err(|missing| self.note(rows, field, missing))
            .ok()
    }

    pub fn all(&self) -> &[Gap] {
        &self.0
    }
}
