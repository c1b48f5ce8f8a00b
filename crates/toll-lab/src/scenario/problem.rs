// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a scenario that go beyond the form of its file.

use super::Size;
use super::disk::DiskSpec;
use super::file::Scenario;
use super::goal::{Goal, Row, Side, TableSpec};
use super::name::bad_name;
use super::profile::ProfileSpec;
use crate::kernel::NAMES;

impl Scenario {
    /// Returns what is invalid about the scenario, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let mut policies = self.policies.iter().map(|it| it.name.as_str());
        if self.policies.is_empty() {
            return Some("policy: at least one is required".to_owned());
        }
        if self.judged_by.is_empty() {
            return Some("judged_by: at least one is required".to_owned());
        }
        if self.variants.is_empty() {
            return Some("variants: at least one is required".to_owned());
        }
        policies
            .find_map(bad_name)
            .or_else(|| twice("judged_by", names(&self.judged_by)))
            .or_else(|| twice("variants", names(&self.variants)))
            .or_else(|| twice("policy", self.policies.iter().map(|it| it.name.as_str())))
            .or_else(|| self.unknown_policy())
            .or_else(|| self.profiles.iter().find_map(ProfileSpec::problem))
            .or_else(|| twice("profile", self.profiles.iter().map(|it| it.name.as_str())))
            .or_else(|| self.problem_of(Size::Short))
            .or_else(|| self.problem_of(Size::Full))
            .or_else(|| self.problem_of_report())
    }

    /// Checks that `tail` and `workloads` name policies.
    fn unknown_policy(&self) -> Option<String> {
        let tail = self.tail.iter().map(|name| ("tail", name));
        let workloads = self.workloads.iter().flat_map(|it| {
            let all = std::iter::once(&it.ours).chain(&it.stock);
            all.map(|name| ("workloads", name))
        });
        let is_known = |name: &String| self.policies.iter().any(|it| it.name == *name);
        let found = tail.chain(workloads).find(|(_, name)| !is_known(name));
        let unknown = found.map(|(key, name)| format!("{key}: {name}: is not one of its policies"));
        let is_alone = self
            .workloads
            .as_ref()
            .is_some_and(|it| it.stock.is_empty());
        unknown.or_else(|| is_alone.then(|| "workloads: stock: one is required".to_owned()))
    }

    fn unknown_profile(&self, size: Size) -> Option<String> {
        let is_known = |name: &&str| self.profiles.iter().any(|it| it.name == **name);
        let name = self.named_profiles(size).find(|name| !is_known(name))?;
        let line = self.line_of(&format!("with {name} "));
        Some(format!("line {line}: with {name}: no such profile"))
    }

    fn problem_of(&self, size: Size) -> Option<String> {
        let form = self.form(size);
        let in_form = |problem: String| format!("{}: {problem}", size.name());
        if form.jobs.is_empty() {
            return Some(in_form("job: at least one is required".to_owned()));
        }
        if form.runs == 0 || form.within == 0 {
            return Some(in_form("runs and within must be at least 1".to_owned()));
        }
        let jobs = || form.jobs.iter().map(|job| job.name.as_str());
        jobs()
            .chain(form.jobs.iter().filter_map(|job| job.needs.as_deref()))
            .find_map(bad_name)
            .or_else(|| twice("job", jobs()))
            .or_else(|| self.unknown_profile(size))
            .or_else(|| self.machine(size).problem())
            .or_else(|| {
                let is_one_thread = self.lines && self.machine(size).icount;
                is_one_thread.then(|| "lines: requires CPUs that run in parallel".to_owned())
            })
            .or_else(|| {
                let variant = &form.crashes.as_ref()?.variant;
                let unknown = self.unknown_variant(variant)?;
                Some(format!("crashes: {unknown}"))
            })
            .or_else(|| self.disks(size).iter().find_map(DiskSpec::problem))
            .map(in_form)
    }

    /// Checks that goals and tables name variants and policies that exist.
    fn problem_of_report(&self) -> Option<String> {
        let forms = [&self.short, &self.full].map(|form| &form.goals);
        let mut goals = self.goals.iter().chain(forms.into_iter().flatten());
        let is_empty = goals.clone().next().is_none() && self.tables.is_empty();
        if self.subject.is_none() && !is_empty {
            return Some("subject: is required for goals and tables".to_owned());
        }
        let goal_names = |form: Size| self.goals(form).map(|goal| goal.name.as_str());
        goals
            .find_map(|goal| self.problem_of_goal(goal))
            .or_else(|| twice("goal", goal_names(Size::Short)))
            .or_else(|| twice("goal", goal_names(Size::Full)))
            .or_else(|| self.tables.iter().find_map(|it| self.problem_of_table(it)))
    }

    fn problem_of_goal(&self, goal: &Goal) -> Option<String> {
        let of_side = |variant: &str, policy: Option<&str>, side: &Side| {
            let mut policies = policy.into_iter().chain(names(&side.best_of));
            self.unknown_variant(variant)
                .or_else(|| policies.find_map(|name| self.unusable(name, Some(variant))))
        };
        let of_other = |side| of_side(goal.base_variant(side), goal.base_policy(side), side);
        let problem = goal
            .problem()
            .or_else(|| of_side(goal.our_variant(), goal.ours.policy.as_deref(), &goal.ours))
            .or_else(|| goal.others().find_map(of_other));
        problem.map(|why| format!("goal {:?}: {why}", goal.name))
    }

    fn problem_of_table(&self, table: &TableSpec) -> Option<String> {
        let of_row = |row: &Row| {
            let variant = row.variant.as_deref();
            let policy = row.policy.as_deref();
            let unknown = variant.and_then(|name| self.unknown_variant(name));
            unknown.or_else(|| policy.and_then(|name| self.unusable(name, variant)))
        };
        let problem = match table.columns.is_empty() || table.title.is_empty() {
            true => Some("title and column must not be empty".to_owned()),
            false => table.rows.iter().find_map(of_row),
        };
        problem.map(|why| format!("table {:?}: {why}", table.title))
    }

    fn unknown_variant(&self, name: &str) -> Option<String> {
        let is_known = NAMES.contains(&name) || names(&self.variants).any(|it| it == name);
        let known = NAMES.join(", ");
        (!is_known).then(|| format!("{name}: no such variant (expected {known})"))
    }

    /// Checks that a policy exists and applies to a variant.
    fn unusable(&self, name: &str, variant: Option<&str>) -> Option<String> {
        let Some(policy) = self.policies.iter().find(|it| it.name == name) else {
            return Some(format!("{name}: is not one of the scenario's policies"));
        };
        let variant = variant.filter(|variant| !policy.is_for(variant))?;
        Some(format!("{name}: is not a policy of the variant {variant}"))
    }
}

fn names(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}

fn twice<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Some(format!("{what} {name}: is defined twice"));
        }
        seen.push(name);
    }
    None
}
