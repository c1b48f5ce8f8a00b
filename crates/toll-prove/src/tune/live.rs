// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune --pid`: a process that is already running.
//!
//! It cannot be restarted for each variant, so nothing is interleaved: the workload runs several
//! times before and several times after all of the process's memory has been made huge, and a drift
//! in between would appear as an effect. Without `--workload` there is nothing to measure, and
//! nothing is advised.
//!
//! It makes no plan: for a live process, only the accessed bits are available, a count for each
//! mapping, and blocks have no names because their allocation was not observed. That shows which
//! mapping is idle, but not which part of the heap gains.

use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::permanent::{Candidate, GLIBC, candidates};
use toll_act::{messages, signals};
use toll_linux::remote::RemoteProcess;
use toll_linux::watch::{WatchPlan, Watcher, grown};
use toll_linux::{Root, cpu, proc};
use toll_model::stats::{Verdict, ratio_of_medians};
use toll_model::{numbers, wire};
use toll_observe::observation::Observation;
use toll_observe::observer::Observer;

use super::budget::{Course, Spending, Step, announcement, before, once};
use super::findings::{Advice, Answer, Results};
use super::today::{Host, Today};
use crate::compare::Resource;
use crate::compare::driver::Driver;
use crate::compare::load::{Load, run_workload};
use crate::compare::runner::{Clock, Progress};
use crate::compare::schedule::{CONFIDENCE, Ran};
use crate::ratio::with_interval;

/// Maximum number of timed runs of the workload before a change, and after it.
const ROUNDS: u32 = 10;

/// How long the process is observed without --for.
const LOOK: Duration = Duration::from_secs(10);
/// A process that keeps fewer CPUs busy is idle: its touches are not typical.
const IDLE: f64 = 0.05;
/// Making everything huge ends when nothing more has become huge for this long.
const QUIET: Duration = Duration::from_secs(1);

/// The file in the results directory with [`Live::regions`].
pub const REGIONS: &str = "largepages.txt";

/// The state of `--pid`.
#[derive(Debug)]
pub struct Live {
    pid: u32,
    load: Load,
    within: Duration,
    clock: Clock,
    pub progress: Progress,
    /// Addresses of the regions to make huge, as `apply --undo` accepts them.
    pub regions: Vec<u64>,
    /// Start time of the process, in ticks: its id may be reused.
    started: u64,
    /// Number of CPUs that the process and its children kept busy during the observation.
    busy: f64,
    spending: Spending,
}

impl Live {
    /// `load` without a workload: the process is only observed.
    pub fn new(pid: u32, load: Load, within: Duration, clock: Clock, progress: Progress) -> Live {
        Live {
            pid,
            load,
            within,
            clock,
            progress,
            regions: Vec::new(),
            started: 0,
            busy: 0.0,
            spending: Spending::default(),
        }
    }

    /// Observes, measures before, acts, measures after.
    ///
    /// # Errors
    /// [`UserError::Usage`] if the process does not exist, [`UserError::Missing`] if it cannot be
    /// observed or changed, [`UserError::Target`] if it ends meanwhile.
    pub fn tune(&mut self) -> Result<Results> {
        let usage = |error| UserError::Usage(format!("--pid {}: {error}", self.pid));
        let status = proc::status(&Root::system(), self.pid).map_err(usage)?;
        self.started = self.start().ok_or_else(|| self.ended())?;
        let course = Course::Live {
            look: looked_at(&self.load, self.within),
            measured: self.load.workload.is_some(),
        };
        messages::note(announcement(self.within, course));
        let mut results = Results::new(&status.name, self.within.as_secs_f64());
        results.findings.notes.push(
            "a live process cannot be restarted for each variant: before and after are not \
             interleaved, and a drift between them would appear as an effect"
                .to_owned(),
        );
        self.steps(&mut results)?;
        if signals::interrupted().is_some() {
            results.findings.complete = false;
            results.findings.advice = Advice::DoNothing;
            results.findings.answer = Answer::Undecided;
            results.findings.permanent.clear();
            results.findings.reason = "interrupted; memory made huge stays huge".to_owned();
        }
        let now = self.clock.now();
        results.findings.seconds = now.as_secs_f64();
        results.findings.spent = std::mem::take(&mut self.spending).end(now);
        Ok(results)
    }

    fn steps(&mut self, results: &mut Results) -> Result<()> {
        let measured = self.load.workload.is_some();
        let first = if measured {
            once(self.within)
        } else {
            Duration::ZERO
        };
        let allowance = first + looked_at(&self.load, self.within);
        self.spending.begin(Step::Look, allowance, self.clock.now());
        self.check_workload()?;
        let look = self.look()?;
        results.findings.look = Some(look.clone());
        // A program started under a plan has this variable in its environment.
        let planned = env_of(self.pid, wire::ENV_ACTIONS).is_some();
        results.findings.notes.extend(look.hints.text(planned));
        let today = Today::new(&look, &Host::here());
        results.findings.today = Some(today.clone());
        match self.refusal(&look, &today) {
            Some((answer, reason)) => {
                (results.findings.answer, results.findings.reason) = (answer, reason);
            }
            None => self.measure(results, &look)?,
        }
        Ok(())
    }

    /// Returns why nothing is measured, and the resulting answer.
    fn refusal(&self, look: &Observation, today: &Today) -> Option<(Answer, String)> {
        let measured = self.load.workload.is_some();
        if !measured && self.busy < IDLE {
            let idle = "it was idle while observed; use --workload to drive a load, which \
                        is then timed";
            return Some((Answer::Undecided, idle.to_owned()));
        }
        if let Some(reason) = self.nothing_to_do(look, today) {
            return Some((Answer::DoNothing, reason));
        }
        let unmeasured = "nothing to measure: use --workload to drive a load, which is then timed";
        (!measured).then(|| (Answer::Undecided, unmeasured.to_owned()))
    }

    /// Returns why there is nothing to do, if so.
    fn nothing_to_do(&self, look: &Observation, today: &Today) -> Option<String> {
        let reach = cpu::tlb_geometry().reach_4k();
        // The touches of an idle process are not typical: then its workload is measured.
        if look.windows > 0 && self.busy >= IDLE && look.working_set < reach {
            let (touched, reach) = (numbers::bytes(look.working_set), numbers::bytes(reach));
            return Some(format!(
                "it touches at most {touched} within a second, within the reach of this CPU's TLB \
                 with 4 KiB pages ({reach}): no translation overhead to save"
            ));
        }
        if look.switched_off {
            return Some(today.text());
        }
        if look.is_huge() {
            return Some(format!(
                "{}; their effect can only be measured from program start: tollfree tune -- CMD",
                today.text()
            ));
        }
        None
    }

    /// Runs the workload once: the time of a failing one is meaningless.
    fn check_workload(&mut self) -> Result<()> {
        if self.load.workload.is_some() {
            self.progress.say("workload, first run");
            run_workload(&self.load, once(self.within))?;
            self.check_alive()?;
        }
        Ok(())
    }

    /// Observes the process and its children, under the load if there is one: an idle server
    /// touches nothing.
    fn look(&mut self) -> Result<Observation> {
        self.progress.say("quick look");
        let loaded = self.load.workload.is_some();
        let _driver = loaded.then(|| Driver::start(self.load.clone()));
        let time = looked_at(&self.load, self.within);
        let (begun, before) = (Instant::now(), cpu_seconds(self.pid));
        let end = begun + time;
        let mut observer = Observer::default();
        while Instant::now() < end && signals::interrupted().is_none() {
            let pause = observer.tick(self.pid).min(Duration::from_millis(100));
            std::thread::sleep(pause);
        }
        let used = cpu_seconds(self.pid) - before;
        self.busy = used / begun.elapsed().as_secs_f64();
        let look = observer.look();
        if look.windows == 0 && signals::interrupted().is_none() {
            let message = format!(
                "--pid {}: it cannot be observed (not yours, or it ended)",
                self.pid
            );
            return Err(UserError::Missing(message).into());
        }
        Ok(look)
    }

    fn measure(&mut self, results: &mut Results, look: &Observation) -> Result<()> {
        results.findings.step = Step::Compare;
        let remote = RemoteProcess::for_pid(self.pid, false)
            .map_err(|error| UserError::Missing(format!("--pid {}: {error}", self.pid)))?;
        let now = self.clock.now();
        let left = self.within.saturating_sub(now);
        self.spending.begin(Step::Compare, left, now);
        let before = self.windows("before", self.clock.now() + before(left))?;
        if signals::interrupted().is_some() {
            return Ok(());
        }
        self.make_huge(remote)?;
        let after = self.windows("after", self.within)?;
        let speedup = match before.len().min(after.len()) {
            0 | 1 => None,
            _ => ratio_of_medians(&before, &after, CONFIDENCE),
        };
        let found = &mut results.findings;
        found.speedup_all = speedup;
        found.confidence = Some(CONFIDENCE);
        found.resource = Some(match &self.load.metric {
            None => Resource::Elapsed,
            Some(_) => Resource::MetricTime,
        });
        match speedup {
            None => found.reason = "the time limit did not suffice; raise --within".to_owned(),
            Some(interval) if interval.is_gain() => {
                (found.advice, found.answer) = (Advice::Apply, Answer::Apply);
                found.reason = format!(
                    "with all of its memory huge the workload ran {} times as fast as before",
                    with_interval(&interval)
                );
                let known = candidates(&look.traits, &[], &|name| env_of(self.pid, name));
                let fitting = known.iter().filter(|change| fits(change, look));
                found.permanent = fitting.map(|c| c.with(None)).collect();
            }
            Some(interval) => {
                found.answer = match interval.verdict() {
                    Verdict::CannotTell => Answer::Undecided,
                    _ => Answer::DoNothing,
                };
                found.reason = format!(
                    "with all of its memory huge the workload ran {} times as fast as before: no gain \
                     of 2 % above the noise",
                    with_interval(&interval)
                );
            }
        }
        Ok(())
    }

    /// Times of the workload without the first run, until there are enough or the time is up.
    fn windows(&mut self, when: &str, until: Duration) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for round in 0..=ROUNDS {
            self.progress.say(&format!("workload {when}, {round}"));
            let begun = self.clock.now();
            let timed = run_workload(&self.load, until.saturating_sub(begun))?;
            self.check_alive()?;
            match timed {
                Ran::Done(time) => times.push(time),
                Ran::Late | Ran::Interrupted => break,
            }
            let took = self.clock.now().saturating_sub(begun);
            if self.clock.now() + took > until {
                break;
            }
        }
        Ok(times.split_off(1.min(times.len())))
    }

    /// The start time of the process with this id; `None` if there is none.
    fn start(&self) -> Option<u64> {
        let stat = proc::stat(&Root::system(), self.pid).ok()?;
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
        UserError::Target(format!("--pid {}: the process has ended", self.pid))
    }

    fn make_huge(&mut self, remote: RemoteProcess) -> Result<()> {
        self.progress.say("making all of its memory huge");
        let plan = WatchPlan {
            all: true,
            ..WatchPlan::default()
        };
        let mut watcher = Watcher::new(self.pid, remote, plan.clone());
        let (mut last, mut since) = (0, Instant::now());
        while since.elapsed() < QUIET && signals::interrupted().is_none() {
            let pause = watcher.tick();
            if watcher.counters().collapsed > last {
                (last, since) = (watcher.counters().collapsed, Instant::now());
            }
            std::thread::sleep(pause);
        }
        self.check_alive()?;
        let maps = proc::maps(&Root::system(), self.pid).unwrap_or_default();
        self.regions = grown(&maps, &plan);
        match (&watcher.counters().failure, last) {
            (Some(failure), 0) => {
                let pid = self.pid;
                let message = format!("--pid {pid}: nothing could be made huge: {failure}");
                Err(UserError::Missing(message).into())
            }
            _ => Ok(()),
        }
    }
}

/// How long a running process is observed, within a time limit.
fn looked_at(load: &Load, within: Duration) -> Duration {
    load.window.unwrap_or(LOOK).min(within.mul_f64(0.2))
}

/// CPU time of a process and its children so far, seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let root = Root::system();
    let stats = proc::tree(&root, pid).into_iter();
    let stats = stats.filter_map(|pid| proc::stat(&root, pid).ok());
    let ticks: u64 = stats.map(|stat| stat.user_ticks + stat.system_ticks).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Whether an unmeasured change can affect the memory at all. Memory that a program maps itself
/// (arenas of Python) is not malloc's, and cannot be distinguished from malloc's large blocks.
fn fits(change: &Candidate, look: &Observation) -> bool {
    change.name != GLIBC || 2 * look.heap >= look.anonymous
}

/// An environment variable of another process.
fn env_of(pid: u32, name: &str) -> Option<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let prefix = format!("{name}=");
    text.split('\0')
        .find_map(|line| line.strip_prefix(&prefix))
        .map(str::to_owned)
}
