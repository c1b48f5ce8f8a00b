// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well the sites of a plan were found again.

use super::planned::Planned;
use crate::site::{Level, SiteKind};

/// Shares of the planned benefit by how well its sites were found again; they sum to 1 (all 0 for a
/// plan without benefit).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Matched {
    pub exact: f64,
    pub class: f64,
    pub kind: f64,
    pub lost: f64,
}

/// Benefit by match quality.
#[derive(Default)]
pub(super) struct Tally(Matched);

impl Tally {
    /// `exact`: whether the same event was found; `None` if it was not found, or is not an event.
    pub fn add(&mut self, planned: &Planned<'_>, exact: Option<bool>) {
        let is_event = matches!(planned.site.kind, SiteKind::Alloc { .. });
        let share = match (is_event, exact, planned.site.level) {
            (true, None, _) => &mut self.0.lost,
            (true, Some(true), _) => &mut self.0.exact,
            (true, Some(false), _) => &mut self.0.class,
            (false, _, Level::Exact) => &mut self.0.exact,
            (false, _, Level::Class) => &mut self.0.class,
            (false, _, Level::Kind) => &mut self.0.kind,
            (false, _, Level::NotFound) => &mut self.0.lost,
        };
        *share += planned.benefit;
    }

    pub fn shares(self) -> Matched {
        let Matched {
            exact,
            class,
            kind,
            lost,
        } = self.0;
        let all = exact + class + kind + lost;
        if all <= 0.0 {
            return Matched::default();
        }
        Matched {
            exact: exact / all,
            class: class / all,
            kind: kind / all,
            lost: lost / all,
        }
    }
}
