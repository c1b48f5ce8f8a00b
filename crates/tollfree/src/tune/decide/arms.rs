// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which arms are run, and what they are compared with.

use std::time::Duration;

use anyhow::Result;
use toll_model::plan::{Estimate, Plan};

use super::{ROUNDS_WORTH_IT, Run, is_huge};
use crate::compare::Arm;
use crate::compare::observe::Look;
use crate::compare::result::ArmResult;
use crate::compare::schedule::Stopped;
use crate::permanent::Candidate;
use crate::tune::narrowed;
use crate::tune::today::SwitchedOff;

impl Run<'_> {
    /// An arm of an earlier comparison by its name; `None` if there is none like it now.
    pub(super) fn arm_again(&mut self, name: &str, look: &Look) -> Result<Option<Arm>> {
        Ok(match name {
            "none" => Some(Arm::none()),
            "all" => Some(Arm::all()),
            "never" => Some(Arm::never()),
            "plan-only" => match self.acting_plan() {
                Some(plan) => Some(Arm::plan_only(self.lab.plan_file(&plan)?)),
                None => None,
            },
            "plan" => match self.acting_plan() {
                Some(plan) => Some(Arm::plan(self.lab.plan_file(&plan)?)),
                None => None,
            },
            change => self
                .measurable(look)
                .into_iter()
                .map(|(_, arm)| arm)
                .find(|arm| arm.name == change),
        })
    }

    /// The arms of the ceiling; `None` where nobody can make the program huge from outside.
    pub(super) fn ceiling_arms(&self, look: &Look) -> Option<Vec<Arm>> {
        if self.is_switched_off() {
            // Only its own switch can.
            let (_, own) = self.measurable(look).into_iter().next()?;
            return Some(vec![Arm::none(), own]);
        }
        Some(match self.is_backed(look) {
            true => vec![Arm::none(), Arm::never(), Arm::all()],
            false => vec![Arm::none(), Arm::all()],
        })
    }

    /// The arms of the last comparison, as many as the time allows; the plan first.
    pub(super) fn arms(&mut self, look: &Look, allowance: Duration) -> Result<Vec<Arm>> {
        let mut arms = vec![Arm::none()];
        let mut others: Vec<Arm> = self
            .measurable(look)
            .into_iter()
            .map(|(_, arm)| arm)
            .collect();
        match self.acting_plan() {
            Some(plan) if self.is_plan_only(look) => {
                // The plan is judged against no huge page at all: three arms at least.
                arms.push(Arm::plan_only(self.lab.plan_file(&plan)?));
                arms.push(Arm::never());
            }
            Some(plan) => {
                arms.push(Arm::plan(self.lab.plan_file(&plan)?));
                others.insert(0, Arm::all());
            }
            // The ceiling has told about everything huge; a change is what can be advised.
            None if self.is_plan_only(look) => arms.push(Arm::never()),
            None if self.results.findings.speedup_all.is_some() => others.push(Arm::all()),
            None => others.insert(0, Arm::all()),
        }
        if self.is_backed(look) && !arms.contains(&Arm::never()) {
            others.push(Arm::never());
        }
        // Two arms at least; more while enough rounds of them fit.
        let run = self.run_seconds.or(self.native()).unwrap_or(0.0);
        for arm in others {
            let rounds = allowance.as_secs_f64() / (run * (arms.len() + 1) as f64).max(1e-9);
            if arms.len() < 2 || rounds >= f64::from(ROUNDS_WORTH_IT) {
                arms.push(arm);
            }
        }
        Ok(arms)
    }

    /// The changes that can be measured; at `never` none of them has an effect.
    pub(super) fn measurable(&self, look: &Look) -> Vec<(Candidate, Arm)> {
        if self.lab.host().is_never() {
            return Vec::new();
        }
        let arm = |c: Candidate| {
            c.arm
                .clone()
                .map(|change| (c.clone(), Arm::change(c.name, change)))
        };
        self.lab
            .candidates(look)
            .into_iter()
            .filter_map(arm)
            .collect()
    }

    /// The plan, if it does something.
    pub(super) fn acting_plan(&self) -> Option<Plan> {
        let plan = self.results.plan.as_ref();
        plan.filter(|plan| !plan.does_nothing()).cloned()
    }

    /// Whether the program itself denies itself huge pages.
    pub(super) fn is_switched_off(&self) -> bool {
        let by = self.today().and_then(|today| today.switched_off);
        by == Some(SwitchedOff::Program)
    }

    /// Whether the program has huge pages as it is.
    pub(super) fn is_backed(&self, look: &Look) -> bool {
        is_huge(look) || self.lab.host().is_always() && !look.switched_off
    }

    /// Whether the question is what a machine at `madvise` would do, and can be answered.
    pub(super) fn is_plan_only(&self, look: &Look) -> bool {
        let host = self.lab.host();
        self.is_backed(look) && host.is_always() && host.can_limit
    }

    /// The arm of the ceiling that a plan is to improve.
    pub(super) fn base(&self) -> Option<&ArmResult> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        match self.is_plan_only(look) {
            true => ceiling.arm("never"),
            false => ceiling.arms.first(),
        }
    }

    /// Seconds of one run without a plan.
    pub(super) fn native(&self) -> Option<f64> {
        self.base()?.median.as_ref().map(|median| median.elapsed)
    }

    pub(super) fn cpu_ns(&self) -> Option<f64> {
        self.base()?
            .median
            .as_ref()
            .map(|median| median.cpu * 1e9)
            .filter(|ns| *ns > 0.0)
    }

    /// The ceiling as a second opinion for the model, which works with 80 % intervals.
    pub(super) fn ceiling_estimate(&self) -> Option<Estimate> {
        let ceiling = self.results.findings.ceiling.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        let all = match self.is_plan_only(look) {
            // As it is, everything is huge.
            true => ceiling.between("never", "none"),
            false => ceiling.speedup_all,
        };
        let all = all.filter(|_| ceiling.stopped != Stopped::Interrupted)?;
        narrowed(&all, ceiling.pairs)
    }
}
