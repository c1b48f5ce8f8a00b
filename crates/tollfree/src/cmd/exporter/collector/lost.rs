// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU time lost so far, by cause.

use std::collections::BTreeMap;

use toll_linux::counters::{Look, Process};
use toll_model::losses::{Counter, EventCosts, Loss};

use crate::cmd::exporter::exposition::{Families, Kind, Labels};
use crate::cmd::top::gaps::Gaps;
use crate::cmd::top::rows::Figures;

/// By the counter of the cause.
#[derive(Debug, Clone, Default)]
pub struct Lost(BTreeMap<String, Loss>);

impl Lost {
    /// Adds the losses of an interval.
    pub fn add(&mut self, counters: &[Counter]) {
        for counter in counters {
            if let Some(loss) = &counter.loss {
                self.add_one(&counter.name, loss);
            }
        }
    }

    fn add_one(&mut self, cause: &str, loss: &Loss) {
        let sum = self.0.entry(cause.to_owned()).or_insert(Loss::NOTHING);
        *sum = *sum + *loss;
    }

    pub fn causes(&self) -> impl Iterator<Item = (&str, &Loss)> {
        self.0.iter().map(|(cause, loss)| (cause.as_str(), loss))
    }
}

/// What a process lost between two looks.
pub fn of_process(now: &Process, earlier: &Look, later: &Look, costs: &EventCosts) -> Loss {
    let before = earlier.processes.get(&now.pid).filter(|it| it.is(now));
    let looks = (earlier, later);
    Figures::of_process(before, now, looks, costs, &mut Gaps::default()).loss()
}

/// Adds a loss with its bounds.
pub fn add_lost(prefix: &str, loss: Loss, labels: Labels, families: &mut Families) {
    for (name, help, ns) in [
        (
            "lost_cpu_seconds",
            "Estimate of the CPU time lost since the exporter started.",
            loss.ns,
        ),
        (
            "lost_cpu_low_seconds",
            "Lower bound of the CPU time lost.",
            loss.low,
        ),
        (
            "lost_cpu_high_seconds",
            "Upper bound of the CPU time lost.",
            loss.high,
        ),
    ] {
        families.add(
            Kind::Counter,
            &format!("{prefix}_{name}"),
            help,
            labels,
            ns / 1e9,
        );
    }
}
