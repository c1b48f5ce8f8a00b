// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a row.

use serde::Serialize;
use toll_linux::counters::{Look, Process};
use toll_model::losses::{self, Counter, EventCosts, Loss, Missing, Scope};

use super::gaps::{Gaps, Rows};

/// What a process, a cgroup or the machine did in an interval; `None` is in the list of gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Figures {
    pub cpu_ns: Option<f64>,
    pub loss_ns: Option<f64>,
    pub loss_interval_ns: Option<[f64; 2]>,
    pub loss_share: Option<f64>,
    pub shootdowns_sent: Option<f64>,
    pub shootdowns_received: Option<f64>,
    pub faults: Option<f64>,
    pub major_faults: Option<f64>,
    /// Memory in huge pages at the end of the interval.
    pub huge_bytes: Option<f64>,
}

impl Figures {
    /// Those of a scope, from its counters. Where they lack the CPU time, it is `cpu`.
    pub fn of_scope(
        counters: &[Counter],
        scope: Scope,
        cpu: Option<f64>,
        rows: Rows,
        gaps: &mut Gaps,
    ) -> Figures {
        let read = |name: &str| value(counters, scope, name);
        let user = gaps.value(rows, "cpu_ns", read("cpu_user"));
        let system = gaps.value(rows, "cpu_ns", read("cpu_system"));
        let counted = user.zip(system).map(|(user, system)| user + system);
        let mut figures = Figures {
            cpu_ns: counted.or(cpu),
            shootdowns_sent: gaps.value(rows, "shootdowns_sent", read("tlb_shootdowns_sent")),
            shootdowns_received: gaps.value(
                rows,
                "shootdowns_received",
                read("tlb_shootdowns_received"),
            ),
            faults: gaps.value(rows, "faults", read("page_faults")),
            major_faults: gaps.value(rows, "major_faults", read("page_faults_major")),
            huge_bytes: gaps.value(rows, "huge_bytes", huge(&read)),
            ..Figures::default()
        };
        figures.lose(losses::total(counters, scope));
        figures.explain_loss(rows, gaps);
        figures
    }

    /// Those of a process between two looks. `before` is `None` if it started after the first.
    pub fn of_process(
        before: Option<&Process>,
        now: &Process,
        (earlier, later): (&Look, &Look),
        costs: &EventCosts,
        gaps: &mut Gaps,
    ) -> Figures {
        let start = now.at_start();
        let before = before.unwrap_or(&start);
        let since = |of: fn(&Process) -> u64| Some(of(now).saturating_sub(of(before)) as f64);
        let mut figures = Figures {
            cpu_ns: since(Process::cpu_ns),
            faults: since(Process::faults),
            major_faults: since(Process::major_faults),
            shootdowns_sent: shootdowns_sent(before, now),
            huge_bytes: huge_of_process(now, gaps),
            ..Figures::default()
        };
        let is_idle = figures.cpu_ns == Some(0.0) && figures.faults == Some(0.0);
        let loss = match is_idle {
            true => Loss::NOTHING,
            false => {
                let counters = losses::counters(
                    &before.snapshot(&earlier.machine),
                    &now.snapshot(&later.machine),
                    costs,
                );
                losses::total(&counters, Scope::Tree).unwrap_or(Loss::NOTHING)
            }
        };
        figures.lose(Some(loss));
        figures.explain_loss(Rows::Processes, gaps);
        figures
    }

    /// Those of the processes of a cgroup together.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Figures>) -> Figures {
        let zero = Figures {
            cpu_ns: Some(0.0),
            faults: Some(0.0),
            major_faults: Some(0.0),
            shootdowns_sent: Some(0.0),
            huge_bytes: Some(0.0),
            ..Figures::default()
        };
        let plus = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        let mut loss = Loss::NOTHING;
        let mut sum = all.fold(zero, |sum, one| {
            loss = loss + one.loss();
            Figures {
                cpu_ns: plus(sum.cpu_ns, one.cpu_ns),
                faults: plus(sum.faults, one.faults),
                major_faults: plus(sum.major_faults, one.major_faults),
                shootdowns_sent: plus(sum.shootdowns_sent, one.shootdowns_sent),
                huge_bytes: plus(sum.huge_bytes, one.huge_bytes),
                ..sum
            }
        });
        sum.lose(Some(loss));
        sum
    }

    /// Notes what a sum over processes lacks.
    pub fn explain_sum(&self, gaps: &mut Gaps) {
        self.explain_loss(Rows::Cgroups, gaps);
        gaps.note(Rows::Cgroups, "shootdowns_received", &not_by(Scope::Cgroup));
        if self.shootdowns_sent.is_none() {
            gaps.note(Rows::Cgroups, "shootdowns_sent", &not_by(Scope::Cgroup));
        }
        if self.huge_bytes.is_none() {
            gaps.note(Rows::Cgroups, "huge_bytes", &of_a_process());
        }
    }

    fn explain_loss(&self, rows: Rows, gaps: &mut Gaps) {
        match (self.loss_ns, self.loss_share) {
            (None, _) => {
                for field in ["loss_ns", "loss_share"] {
                    gaps.note(rows, field, &no_events());
                }
            }
            (_, None) => gaps.note(rows, "loss_share", &no_tick()),
            _ => {}
        }
    }

    /// The loss with its bounds; 0 if it is not known.
    pub fn loss(&self) -> Loss {
        let bounds = self.loss_interval_ns.unwrap_or_default();
        Loss {
            ns: self.loss_ns.unwrap_or(0.0),
            low: bounds[0],
            high: bounds[1],
        }
    }

    /// Sets the loss, of at most the time that was used, as far as that is known.
    fn lose(&mut self, loss: Option<Loss>) {
        let most = self.cpu_ns.filter(|cpu| *cpu > 0.0);
        let limited = |ns: f64| ns.min(most.unwrap_or(f64::INFINITY));
        self.loss_ns = loss.map(|loss| limited(loss.ns));
        self.loss_interval_ns = loss.map(|loss| [limited(loss.low), limited(loss.high)]);
        self.loss_share = match (self.loss_ns, most) {
            (Some(0.0), _) => Some(0.0),
            (Some(loss), Some(cpu)) => Some(loss / cpu),
            _ => None,
        };
    }
}

/// A counter's value, or why it has none.
fn value(counters: &[Counter], scope: Scope, name: &str) -> Result<f64, Missing> {
    let is_it = |counter: &&Counter| counter.scope == scope && counter.name == name;
    let Some(counter) = counters.iter().find(is_it) else {
        return Err(not_by(scope));
    };
    counter
        .value
        .ok_or_else(|| counter.missing.clone().unwrap_or_else(|| not_by(scope)))
}

/// Memory in huge pages: what is known of it.
fn huge(read: &dyn Fn(&str) -> Result<f64, Missing>) -> Result<f64, Missing> {
    const OTHERS: [&str; 3] = ["mapped_huge_shmem", "mapped_huge_file", "mapped_hugetlb"];
    let anonymous = read("mapped_huge_anon")?;
    let others = OTHERS.iter().filter_map(|name| read(name).ok());
    Ok(anonymous + others.sum::<f64>())
}

fn huge_of_process(process: &Process, gaps: &mut Gaps) -> Option<f64> {
    let huge = process.huge().map(|bytes| bytes as f64);
    gaps.value(
        Rows::Processes,
        "huge_bytes",
        huge.map_err(|unread| unread.missing()),
    )
}

/// Those since the first look; all of a process that started after it.
fn shootdowns_sent(before: &Process, now: &Process) -> Option<f64> {
    let now = now.shootdowns_sent()?;
    let before = before.shootdowns_sent().unwrap_or(0);
    Some(now.saturating_sub(before) as f64)
}

fn not_by(scope: Scope) -> Missing {
    let of = match scope {
        Scope::Machine => "this machine",
        Scope::Cgroup => "a cgroup",
        Scope::Tree => "a process",
    };
    Missing::without_fix(format!("the kernel does not count them for {of}"))
}

fn of_a_process() -> Missing {
    Missing::without_fix("the memory of one of its processes was not read")
}

fn no_events() -> Missing {
    Missing::without_fix("no event with a cost is counted")
}

fn no_tick() -> Missing {
    Missing::new(
        "less CPU time than the kernel's unit of it, 10 ms, was used",
        "a longer interval",
    )
}

#[cfg(test)]
mod tests;
