// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variants to run, and their references.

use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::{Candidate, GLIBC_HUGETLB_1G, GLIBC_HUGETLB_2M, reserved, smaller_pages};
use toll_model::REGION;
use toll_model::cost::CostTable;
use toll_model::pages::PageKind;
use toll_model::plan::{Estimate, Plan};
use toll_model::stats::{Interval, SMALLEST_EFFECT};
use toll_observe::observation::Observation;

use super::narrowed::narrowed;
use super::run::{ROUNDS_WORTH_IT, Run};
use crate::compare::Variant;
use crate::compare::result::VariantResult;
use crate::compare::schedule::Stopped;
use crate::tune::findings::{PLAN_FILE, text_file};
use crate::tune::kinds::{hot_text, pages};
use crate::tune::today::SwitchedOff;

/// Names of the variants with program text in huge pages: alone, and beside the plan.
pub(super) const TEXT: &str = "text";
pub(super) const PLAN_AND_TEXT: &str = "plan+text";

impl Run<'_> {
    /// A variant of an earlier comparison, by name; `None` if it no longer exists.
    pub(super) fn variant_again(
        &mut self,
        name: &str,
        look: &Observation,
    ) -> Result<Option<Variant>> {
        Ok(match name {
            "none" => Some(Variant::none()),
            "all" => Some(Variant::all()),
            "never" => Some(Variant::never()),
            "plan-only" => match self.acting_plan() {
                Some(plan) => Some(self.plan_only(&plan)?),
                None => None,
            },
            "plan" => match self.acting_plan() {
                Some(plan) => Some(self.planned(&plan)?),
                None => None,
            },
            TEXT | PLAN_AND_TEXT => self.with_text(look)?,
            change => self.change(change, look),
        })
    }

    /// The variants of the upper bound; `None` if the program cannot be made huge from outside.
    pub(super) fn upper_bound_variants(
        &mut self,
        look: &Observation,
    ) -> Result<Option<Vec<Variant>>> {
        if self.is_switched_off() {
            // Only its own setting can.
            let own = self.measurable(look).into_iter().next();
            return Ok(own.map(|(_, own)| vec![Variant::none(), own]));
        }
        let mut variants = match self.is_backed(look) {
            true => vec![Variant::none(), Variant::never(), Variant::all()],
            false => vec![Variant::none(), Variant::all()],
        };
        variants.extend(self.with_text(look)?);
        variants.extend(self.smaller().and_then(|it| self.change(it.name, look)));
        Ok(Some(variants))
    }

    /// The variant of a change, by its name.
    fn change(&self, name: &str, look: &Observation) -> Option<Variant> {
        let mut all = self.measurable(look).into_iter();
        all.find(|(change, _)| change.name == name)
            .map(|(_, variant)| variant)
    }

    /// Pages below 2 MiB, where they may be tried.
    fn smaller(&self) -> Option<Candidate> {
        smaller_pages(self.experiment.pages().size_to_try()?)
    }

    /// The plan's variant.
    fn planned(&mut self, plan: &Plan) -> Result<Variant> {
        let file = self.experiment.plan_file(PLAN_FILE, plan)?;
        Ok(Variant::plan(file).with(plan.pages()))
    }

    fn plan_only(&mut self, plan: &Plan) -> Result<Variant> {
        let file = self.experiment.plan_file(PLAN_FILE, plan)?;
        Ok(Variant::plan_only(file).with(plan.pages()))
    }

    /// The variant with program text in huge pages, beside the plan if there is one; `None` if text
    /// cannot pay.
    fn with_text(&mut self, look: &Observation) -> Result<Option<Variant>> {
        let Ok(text) = hot_text(look, &self.experiment.pages()) else {
            return Ok(None);
        };
        let (name, plan) = match self.acting_plan() {
            Some(plan) => (PLAN_AND_TEXT, Plan { text, ..plan }),
            None => (TEXT, Plan::of_text(text)),
        };
        let file = self.experiment.plan_file(text_file(name), &plan)?;
        Ok(Some(Variant::text(name, file).with(plan.pages())))
    }

    /// Whether the upper bound leaves it open that text in huge pages gains.
    pub(super) fn may_text_pay(&self) -> bool {
        self.may_pay(TEXT)
    }

    /// Whether it leaves that open of a kind of pages that is in no plan.
    pub(super) fn may_other_pages_pay(&self) -> bool {
        self.may_text_pay() || self.smaller().is_some_and(|it| self.may_pay(it.name))
    }

    fn may_pay(&self, variant: &str) -> bool {
        let upper_bound = self.results.findings.upper_bound.as_ref();
        let found = upper_bound.and_then(|upper_bound| upper_bound.variant(variant));
        let may = |speedup: Interval| speedup.high > 1.0 + SMALLEST_EFFECT;
        found.is_some_and(|variant| variant.speedup.is_none_or(may))
    }

    /// The variants of the last comparison, as many as the time allows; the plan first.
    pub(super) fn variants(
        &mut self,
        look: &Observation,
        allowance: Duration,
    ) -> Result<Vec<Variant>> {
        let mut variants = vec![Variant::none()];
        let smaller = self.smaller().map(|it| it.name);
        let mut others: Vec<Variant> = self
            .measurable(look)
            .into_iter()
            .filter(|(change, _)| Some(change.name) != smaller || self.may_pay(change.name))
            .map(|(_, variant)| variant)
            .collect();
        match self.acting_plan() {
            Some(plan) if self.is_plan_only(look) => {
                // The plan is compared with huge pages disabled: at least three variants.
                variants.push(self.plan_only(&plan)?);
                variants.push(Variant::never());
            }
            Some(plan) => {
                variants.push(self.planned(&plan)?);
                others.insert(0, Variant::all());
            }
            // The upper bound has measured everything huge; a change is what can be advised.
            None if self.is_plan_only(look) => variants.push(Variant::never()),
            None if self.results.findings.speedup_all.is_some() => others.push(Variant::all()),
            None => others.insert(0, Variant::all()),
        }
        if self.is_backed(look) && !variants.contains(&Variant::never()) {
            others.push(Variant::never());
        }
        if self.may_text_pay() {
            let text = self.with_text(look)?;
            text.into_iter().for_each(|text| others.insert(0, text));
        }
        // At least two variants; more while enough rounds of them fit.
        let run = self.run_seconds.or(self.native()).unwrap_or(0.0);
        for variant in others {
            let rounds = allowance.as_secs_f64() / (run * (variants.len() + 1) as f64).max(1e-9);
            if variants.len() < 2 || rounds >= f64::from(ROUNDS_WORTH_IT) {
                variants.push(variant);
            }
        }
        Ok(variants)
    }

    /// The changes that can be measured; at `never` none of them has an effect.
    pub(super) fn measurable(&self, look: &Observation) -> Vec<(Candidate, Variant)> {
        if self.experiment.host().is_never() {
            return Vec::new();
        }
        let variant = |c: Candidate| {
            let change = c.variant.clone()?;
            let pages = match c.name {
                GLIBC_HUGETLB_2M => vec![PageKind::Hugetlb2m],
                GLIBC_HUGETLB_1G => vec![PageKind::Hugetlb1g],
                _ if change.machine.is_some() => vec![PageKind::Mthp],
                _ => Vec::new(),
            };
            let variant = Variant::change(c.name, change).with(pages);
            Some((c, variant))
        };
        let changes = self.changes(look).into_iter();
        changes.filter_map(variant).collect()
    }

    /// The changes that fit the program, its own first. Those with reserved pages only where the
    /// pool has room for all of its anonymous memory, and the plan has a part of that.
    pub(super) fn changes(&self, look: &Observation) -> Vec<Candidate> {
        let mut all = self.experiment.candidates(look);
        let planned = self
            .acting_plan()
            .map_or_else(Vec::new, |plan| plan.pages());
        if planned.contains(&PageKind::Anonymous) {
            let machine = self.experiment.pages();
            let fits = |page: &u64| machine.has_pool(*page, look.anonymous);
            let sizes = [REGION, 1 << 30].into_iter().filter(fits);
            let more: Vec<Candidate> = sizes
                .filter_map(|page| reserved(&all, page, pages(page, look.anonymous)))
                .collect();
            all.extend(more);
        }
        all.extend(self.smaller());
        all
    }

    /// The plan, if it makes anything huge.
    pub(super) fn acting_plan(&self) -> Option<Plan> {
        let plan = self.results.plan.as_ref();
        plan.filter(|plan| !plan.does_nothing()).cloned()
    }

    /// Whether the program itself disables huge pages.
    pub(super) fn is_switched_off(&self) -> bool {
        let by = self.today().and_then(|today| today.switched_off);
        by == Some(SwitchedOff::Program)
    }

    /// Whether the program has huge pages as it is.
    pub(super) fn is_backed(&self, look: &Observation) -> bool {
        look.is_huge() || self.experiment.host().is_always() && !look.switched_off
    }

    /// Whether the question is the effect of a machine at `madvise`, and it can be measured.
    pub(super) fn is_plan_only(&self, look: &Observation) -> bool {
        let host = self.experiment.host();
        self.is_backed(look) && host.is_always() && host.can_limit
    }

    /// The variant of the upper bound that a plan is to improve.
    pub(super) fn base(&self) -> Option<&VariantResult> {
        let upper_bound = self.results.findings.upper_bound.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        match self.is_plan_only(look) {
            true => upper_bound.variant("never"),
            false => upper_bound.variants.first(),
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

    /// The share of that CPU time that page faults of 4 KiB take, by what one costs.
    pub(super) fn native_fault_share(&self, costs: &CostTable) -> Option<f64> {
        let faults = self.base()?.median.as_ref()?.minor_faults;
        Some(faults * costs.fault_4k.median / self.cpu_ns()?)
    }

    /// The upper bound as additional evidence for the model, which uses 80 % intervals.
    pub(super) fn upper_bound_estimate(&self) -> Option<Estimate> {
        let upper_bound = self.results.findings.upper_bound.as_ref()?;
        let look = self.results.findings.look.as_ref()?;
        let all = match self.is_plan_only(look) {
            // As it is, everything is huge.
            true => upper_bound.between("never", "none"),
            false => upper_bound.speedup_all,
        };
        let all = all.filter(|_| upper_bound.stopped != Stopped::Interrupted)?;
        narrowed(&all, upper_bound.pairs)
    }
}
