// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune --pid`: a process that is already running, without a restart.
//!
//! Its memory alternates between 4 KiB pages and huge pages, and work is measured in a window after
//! each change. The variants are in the same balanced order as in `compare`, and the same statistics
//! judge the pairs. At the end the page sizes from before are restored, also after Ctrl-C, after a
//! failure, and if the limit is reached.
//!
//! It makes no plan: for a live process, only the accessed bits are available, a count for each
//! mapping, and blocks have no names because their allocation was not observed. That shows which
//! mapping is idle, but not which part of the heap gains.
//!
//! | file | holds |
//! |---|---|
//! | `request` | what the user asked for |
//! | `look` | the observation before anything is changed |
//! | `measure` | one window: what is measured, and per which unit |
//! | `counter`, `lines`, `command` | counters of progress |
//! | `alternation` | the variants, run in turn on one process |
//! | `answer` | the findings on a running process |

mod alternation;
mod answer;
mod command;
mod counter;
mod lines;
mod look;
mod measure;
mod request;

use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::switch::{GENTLE, HASTY, Selection, Switch};
use toll_act::{messages, signals};
use toll_linux::proc::Placed;
use toll_linux::{Root, cpu, proc};
use toll_model::{largepages, numbers, wire};

use self::alternation::Alternation;
pub use self::answer::Alternated;
use self::look::Look;
use self::measure::Measure;
pub use self::request::{Progressing, Request};
use super::budget::{Course, Spending, Step, announcement, once};
use super::directory::Directory;
use super::findings::{Advice, Answer, Results};
use super::today::{Host, Today};
use crate::compare::Variant;
use crate::compare::driver::Driver;
use crate::compare::load::run_workload;
use crate::compare::runner::{Clock, Progress};
use crate::compare::schedule::Rules;

/// A process that keeps fewer CPUs busy is idle: its touches are not typical.
const IDLE: f64 = 0.05;

/// The files in the results directory with the regions by their page size before. `apply` reads
/// them: with `--undo` for the first, without it for the second, it restores what a killed tollfree
/// left behind.
pub const SMALL_BEFORE: &str = "largepages.txt";
pub const HUGE_BEFORE: &str = "largepages-before.txt";

/// The state of `--pid`.
#[derive(Debug)]
pub struct Live {
    request: Request,
    within: Duration,
    clock: Clock,
    pub progress: Progress,
    /// Created before the first change.
    pub directory: Option<Directory>,
    /// Start time of the process, in ticks: its id may be reused.
    started: u64,
    spending: Spending,
}

impl Live {
    pub fn new(request: Request, within: Duration, clock: Clock, progress: Progress) -> Live {
        Live {
            request,
            within,
            clock,
            progress,
            directory: None,
            started: 0,
            spending: Spending::default(),
        }
    }

    /// Observes, alternates, judges and restores.
    ///
    /// # Errors
    /// [`UserError::Usage`] if the process does not exist, [`UserError::Missing`] if it cannot be
    /// observed or changed, [`UserError::Target`] if it ends meanwhile.
    pub fn tune(&mut self) -> Result<Results> {
        let pid = self.request.pid;
        let usage = |error| UserError::Usage(format!("--pid {pid}: {error}"));
        let status = proc::status(&Root::system(), pid).map_err(usage)?;
        self.started = self.start().ok_or_else(|| self.ended())?;
        messages::note(announcement(self.within, self.course()));
        let mut results = Results::new(&status.name, self.within.as_secs_f64());
        results.findings.process = Some(Placed::of(&Root::system(), pid));
        self.steps(&mut results)?;
        if signals::interrupted().is_some() {
            interrupted(&mut results);
        }
        let now = self.clock.now();
        results.findings.seconds = now.as_secs_f64();
        results.findings.spent = std::mem::take(&mut self.spending).end(now);
        Ok(results)
    }

    fn course(&self) -> Course {
        let load = &self.request.load;
        Course::Live {
            once: load.workload.as_ref().map(|_| once(self.within)),
            look: look::time(load, self.within),
        }
    }

    fn steps(&mut self, results: &mut Results) -> Result<()> {
        let look = look::time(&self.request.load, self.within);
        let first = match self.request.load.workload {
            Some(_) => once(self.within),
            None => Duration::ZERO,
        };
        self.spending
            .begin(Step::Look, first + look, self.clock.now());
        self.check_workload()?;
        // It drives the load where something else measures it.
        let driven = self.request.progress.is_some() && self.request.load.workload.is_some();
        let _driver = driven.then(|| Driver::start(self.request.load.clone()));
        self.progress.say("quick look");
        let look = look::at(&self.request, look)?;
        let found = &mut results.findings;
        found.look = Some(look.observation.clone());
        // A program started under a plan has this variable in its environment.
        let environment = proc::words(&Root::system(), self.request.pid, "environ");
        let planned = proc::variable(&environment, wire::ENV_ACTIONS).is_some();
        found.notes.extend(look.observation.hints.text(planned));
        found.notes.extend(look.children_note());
        let today = Today::new(&look.observation, &Host::here());
        found.today = Some(today.clone());
        if signals::interrupted().is_some() {
            return Ok(());
        }
        if let Some((answer, reason)) = self.nothing_to_do(&look, &today) {
            (found.answer, found.reason) = (answer, reason);
            return Ok(());
        }
        match Measure::choose(&self.request, &look) {
            Ok(measure) => self.alternate(results, look, measure),
            Err(reason) => {
                found.reason = reason;
                Ok(())
            }
        }
    }

    /// Returns why nothing is measured, and the resulting answer.
    fn nothing_to_do(&self, look: &Look, today: &Today) -> Option<(Answer, String)> {
        let load = &self.request.load;
        let measured = load.workload.is_some() || self.request.progress.is_some();
        if !measured && look.busy < IDLE {
            let idle = "it was idle while observed; use --workload to drive a load";
            return Some((Answer::Undecided, idle.to_owned()));
        }
        let seen = &look.observation;
        let reach = cpu::tlb_geometry().reach_4k();
        // The touches of an idle process are not typical: then its workload is measured.
        if seen.windows > 0 && look.busy >= IDLE && seen.working_set < reach {
            let (touched, reach) = (numbers::bytes(seen.working_set), numbers::bytes(reach));
            let small = format!(
                "it touches at most {touched} within a second, within the reach of this CPU's TLB \
                 with 4 KiB pages ({reach}): no translation overhead to save"
            );
            return Some((Answer::DoNothing, small));
        }
        if seen.switched_off {
            return Some((Answer::DoNothing, today.text()));
        }
        let nothing = look.selection.regions.is_empty();
        nothing.then(|| {
            let none = "no 2 MiB region of the memory that it touches can be huge: it is not \
                        private and anonymous, mostly not resident, locked, or forbids huge pages";
            (Answer::DoNothing, none.to_owned())
        })
    }

    /// Runs the workload once: the time of a failing one is meaningless.
    fn check_workload(&mut self) -> Result<()> {
        if self.request.load.workload.is_some() {
            self.progress.say("workload, first run");
            run_workload(&self.request.load, once(self.within))?;
            self.check_alive()?;
        }
        Ok(())
    }

    fn alternate(&mut self, results: &mut Results, look: Look, measure: Measure) -> Result<()> {
        results.findings.step = Step::Compare;
        let now = self.clock.now();
        let left = self.within.saturating_sub(now);
        self.spending.begin(Step::Compare, left, now);
        let switch = Switch::new(self.request.pid, &look.selection)?;
        self.keep_regions(&look.selection, &results.findings.program)?;
        let mut alternation = Alternation::new(self, &look.selection, measure, switch);
        if !look.is_mostly_huge() {
            alternation.look_before(now + left)?;
        }
        let rules = Rules {
            pairs: None,
            // The rest is for restoring.
            deadline: now + left.mul_f64(0.95),
            each: false,
        };
        let variants = [Variant::never(), Variant::all()];
        let program = results.findings.program.clone();
        let compared = crate::compare::compare(&mut alternation, &program, &variants, &rules, None);
        let keeps = self.request.keep
            && compared
                .as_ref()
                .is_ok_and(|it| it.complete && gains(it.main()));
        let ended = alternation.end(keeps, self.pace());
        if let (Err(_), Ok(ended)) = (&compared, &ended) {
            ended.warn(self.request.pid, self.directory.as_ref());
        }
        let compared = compared?;
        let context = answer::Context {
            pid: self.request.pid,
            look: &look,
            directory: self.directory.as_ref(),
        };
        answer::conclude(results, compared, ended?, &context);
        Ok(())
    }

    /// How fast the memory is restored.
    fn pace(&self) -> f64 {
        match signals::interrupted() {
            Some(_) => HASTY,
            None => GENTLE,
        }
    }

    /// Writes the lists that restore the memory by hand, before anything is changed.
    fn keep_regions(&mut self, selection: &Selection, program: &str) -> Result<()> {
        let output = self.request.output.as_deref();
        let directory = Directory::create(output, program, self.request.force)?;
        for (name, huge) in [(SMALL_BEFORE, false), (HUGE_BEFORE, true)] {
            let regions = selection.of_size(huge);
            match regions.is_empty() {
                // One of an earlier tune would restore something else.
                true => directory.remove(name)?,
                false => drop(directory.write(name, largepages::format(&regions).as_bytes())?),
            }
        }
        self.directory = Some(directory);
        Ok(())
    }

    /// The start time of the process with this id; `None` if there is none.
    fn start(&self) -> Option<u64> {
        let stat = proc::stat(&Root::system(), self.request.pid).ok()?;
        (stat.state != 'Z').then_some(stat.start_ticks)
    }

    /// Times of a load on a process that has ended are meaningless.
    fn check_alive(&self) -> Result<(), UserError> {
        match self.start() {
            Some(start) if start == self.started => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&self) -> UserError {
        let pid = self.request.pid;
        UserError::Target(format!("--pid {pid}: the process has ended"))
    }
}

fn gains(interval: Option<toll_model::stats::Interval>) -> bool {
    interval.is_some_and(|interval| interval.is_gain())
}

fn interrupted(results: &mut Results) {
    let found = &mut results.findings;
    found.complete = false;
    found.advice = Advice::DoNothing;
    found.answer = Answer::Undecided;
    found.permanent.clear();
    let state = match &found.live {
        Some(live) if live.unrestored_regions > 0 => "a part of the memory is not as it was before",
        _ => "the memory has the page sizes that it had before",
    };
    found.reason = format!("interrupted; {state}");
}
