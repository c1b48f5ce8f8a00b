// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results as text, JSON and a document.

use std::fmt::{self, Write as _};

use serde::Serialize;

use super::findings::{Counts, Report};
use super::tested::{Ended, Plain, Planted};

/// All results of a call.
#[derive(Debug, Default)]
pub struct Sheet {
    pub kernels: Vec<Plain>,
    pub plants: Vec<Planted>,
}

/// The same as JSON.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    planted: usize,
    caught: usize,
    checked: u64,
    stale_capable: u64,
    unexplained_reports: usize,
    /// Of the time to the first finding, over all bugs.
    median_seconds: Option<f64>,
    kernels: &'a [Plain],
    plants: &'a [Planted],
}

impl Sheet {
    pub fn summary(&self) -> Summary<'_> {
        let counts = self.counts();
        Summary {
            planted: self
                .plants
                .iter()
                .filter(|it| it.caught || it.is_missed())
                .count(),
            caught: self.plants.iter().filter(|it| it.caught).count(),
            checked: counts.checked,
            stale_capable: counts.stale_capable,
            unexplained_reports: self.reports().count(),
            median_seconds: self.median(),
            kernels: &self.kernels,
            plants: &self.plants,
        }
    }

    /// Of kernels without a planted bug.
    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        self.kernels.iter().for_each(|it| sum.add(&it.counts));
        sum
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.kernels.iter().flat_map(|it| &it.reports)
    }

    fn median(&self) -> Option<f64> {
        let mut all: Vec<f64> = self.plants.iter().filter_map(|it| it.seconds).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    /// The first thing that is wrong.
    pub fn problem(&self) -> Option<String> {
        let missed = self.plants.iter().filter(|it| it.is_missed());
        let missed: Vec<&str> = missed.map(|it| it.name.as_str()).collect();
        let kernel = self.kernels.iter().find_map(|it| {
            let why = it.problem()?;
            Some(format!("{} on {}: {why}", it.variant, it.machine))
        });
        kernel.or_else(|| match missed.is_empty() {
            true => None,
            false => Some(format!("not found: {}", missed.join(", "))),
        })
    }

    /// The last line: what was planted, found and checked.
    pub fn total(&self) -> String {
        let it = self.summary();
        format!(
            "planted {}, caught {}, accesses checked {}, stale-capable {}, unexplained reports {}",
            it.planted, it.caught, it.checked, it.stale_capable, it.unexplained_reports
        )
    }

    pub fn markdown(&self) -> String {
        let mut text = "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
             # The adversarial TLB\n\n\
             Made by `make adversary`. [The guide](../guide/adversary.md) describes the method and \
             the terms.\n\n"
            .to_owned();
        let _ = writeln!(
            text,
            "{}.\n\n## Kernels without a planted bug\n",
            self.total()
        );
        text += "| kernel | machine | scenarios | not possible | accesses checked | stale-capable | legal | unmaps | flushes | drains | reports | time |\n\
                 |---|---|---|---|---|---|---|---|---|---|---|---|\n";
        for it in &self.kernels {
            let (passed, not_possible) = it.scenario_counts();
            let counts = &it.counts;
            let _ = writeln!(
                text,
                "| {} | {} | {passed} | {not_possible} | {} | {} | {} | {} | {} | {} | {} | {:.0} s |",
                it.release,
                it.machine,
                counts.checked,
                counts.stale_capable,
                counts.legal,
                counts.unmaps,
                counts.flushes,
                counts.drains,
                it.reports.len(),
                it.seconds
            );
        }
        self.plants_markdown(&mut text);
        text
    }

    fn plants_markdown(&self, text: &mut String) {
        if self.plants.is_empty() {
            return;
        }
        *text += "\n## Planted bugs\n\n";
        if let Some(median) = self.median() {
            let _ = writeln!(
                text,
                "The time is from the begin of the scenario to the first finding; its median is \
                 {median:.1} s. A bug that is not found is planted in a second and a third guest.\n"
            );
        }
        *text += "| bug | kernel | what is wrong | scenario | found as | guests | time |\n\
                  |---|---|---|---|---|---|---|\n";
        for it in &self.plants {
            let found = match (it.caught, it.is_missed()) {
                (true, _) => it.kinds(),
                (_, true) => format!("**not found**: {}", it.says.replace('\n', " ")),
                (_, false) => format!("not seen: {}", it.unseen),
            };
            let seconds = it
                .seconds
                .map(|it| format!("{it:.1} s"))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {found} | {} | {seconds} |",
                it.name, it.variant, it.breaks, it.scenario, it.guests
            );
        }
    }
}

impl Plain {
    /// Scenarios that passed, and those that are not possible there.
    fn scenario_counts(&self) -> (usize, usize) {
        let count = |ended| self.scenarios.iter().filter(|it| it.ended == ended).count();
        (count(Ended::Passed), count(Ended::NotPossible))
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, not_possible) = self.scenario_counts();
        write!(
            f,
            "{} on {}: {passed} scenarios passed, {not_possible} not possible, {} accesses checked, \
             {} stale-capable, {} legal, {} unmaps, {} flushes, {} drains, {:.0} s",
            self.release,
            self.machine,
            self.counts.checked,
            self.counts.stale_capable,
            self.counts.legal,
            self.counts.unmaps,
            self.counts.flushes,
            self.counts.drains,
            self.seconds
        )?;
        for it in self.scenarios.iter().filter(|it| it.ended != Ended::Passed) {
            write!(f, "\n  {}: {}", it.name, it.says)?;
        }
        for it in &self.reports {
            write!(f, "\n{it}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, variant) = (&self.name, &self.variant);
        match (self.caught, self.seconds) {
            (true, Some(seconds)) => write!(
                f,
                "{name:20} {variant:15} found in {seconds:.1} s: {}",
                self.kinds()
            ),
            _ if self.is_missed() => {
                write!(f, "{name:20} {variant:15} NOT FOUND: {}", self.says)
            }
            _ => write!(
                f,
                "{name:20} {variant:15} not seen ({}): {}",
                self.says, self.unseen
            ),
        }
    }
}
