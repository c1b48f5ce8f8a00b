// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop: looks at the processes, and reports at the end or after each interval.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use toll_act::{messages, signals};
use toll_linux::counters::{Counters, FinalUse};
use toll_linux::proc::Place;
use toll_model::losses::{EventCosts, Snapshot};

use super::report::{Report, Subject};
use super::sink::Sink;
use super::text;

/// Time between the first two looks at a process tree; it doubles up to [`SELDOM`].
const OFTEN: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_secs(1);

/// A measurement.
pub struct Watch {
    subject: Subject,
    place: Place,
    counters: Counters,
    costs: EventCosts,
    interval: Option<Duration>,
    sink: Sink,
    json: bool,
    begun: Instant,
    before: (Instant, Snapshot),
    /// Time to the next look.
    pace: Duration,
    /// Number of reports so far.
    reports: u64,
}

impl Watch {
    pub fn new(
        subject: Subject,
        counters: Counters,
        costs: EventCosts,
        interval: Option<Duration>,
        sink: Sink,
        json: bool,
    ) -> Watch {
        let now = Instant::now();
        Watch {
            subject,
            place: Place::default(),
            counters,
            costs,
            interval,
            sink,
            json,
            begun: now,
            before: (now, Snapshot::default()),
            pace: OFTEN,
            reports: 0,
        }
    }

    /// Says where the process lives.
    pub fn at(self, place: Place) -> Watch {
        Watch { place, ..self }
    }

    /// Takes the first snapshot.
    pub fn begin(&mut self) {
        let snapshot = self.counters.read();
        self.begun = Instant::now();
        self.before = (self.begun, snapshot);
    }

    /// Follows the program that was started.
    pub fn attach(&mut self, pid: u32) {
        self.counters.attach(pid);
    }

    /// Looks, and reports if an interval has passed. Returns the time to the next look. A report that
    /// cannot be written is not the program's problem.
    pub fn tick(&mut self) -> Duration {
        if let Err(error) = self.look() {
            messages::note_once(format_args!("{error:#}"));
        }
        self.until_next()
    }

    fn look(&mut self) -> Result<()> {
        match self.interval {
            Some(interval) if self.before.0.elapsed() >= interval => self.report(),
            _ => {
                self.counters.look();
                Ok(())
            }
        }
    }

    fn until_next(&mut self) -> Duration {
        let pace = self.pace;
        self.pace = (pace * 2).min(SELDOM);
        match self.interval {
            Some(interval) => pace.min(interval.saturating_sub(self.before.0.elapsed())),
            None => pace,
        }
    }

    /// Watches until the subject is gone, a request to end, or the time has passed. `end` becomes
    /// readable when the process ends.
    pub fn until_over(mut self, limit: Option<Duration>, end: Option<OwnedFd>) -> Result<()> {
        self.begin();
        while signals::interrupted().is_none() && !self.counters.is_over() {
            let left = limit.map(|limit| limit.saturating_sub(self.begun.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            self.look()?;
            let next = self.until_next();
            pause(left.map_or(next, |left| next.min(left)), end.as_ref())?;
        }
        self.finish(None)
    }

    /// Reports the last interval, or everything.
    pub fn finish(mut self, used: Option<FinalUse>) -> Result<()> {
        if let Some(used) = used {
            self.counters.end(used);
        }
        self.report()
    }

    fn report(&mut self) -> Result<()> {
        let now = self.counters.read();
        let at = Instant::now();
        let (since, before) = &self.before;
        let report = Report::new(
            (&self.subject, &self.place),
            self.counters.scope(),
            (before, &now),
            &self.costs,
            at.duration_since(*since),
            self.begun.elapsed(),
        );
        let text = match (self.json, self.interval) {
            (true, Some(_)) => format!("{}\n", serde_json::to_string(&report)?),
            (true, None) => format!("{}\n", serde_json::to_string_pretty(&report)?),
            (false, interval) => {
                let is_part = interval.is_some();
                text::table(&report, self.sink.columns(), is_part, self.reports > 0)
            }
        };
        self.reports += 1;
        self.before = (at, now);
        self.sink.write(&text)
    }
}

/// Waits for a signal, for the end of the process, or for the time to pass.
fn pause(time: Duration, end: Option<&OwnedFd>) -> Result<()> {
    let signals = signals::readable()?;
    let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
    fds.extend(end.map(|end| PollFd::new(end, PollFlags::IN)));
    let time = Timespec::try_from(time).ok();
    match poll(&mut fds, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error).context("waiting"),
    }
    for note in signals::take() {
        if note.signal == libc::SIGTSTP {
            signals::default_action(libc::SIGTSTP);
        }
    }
    Ok(())
}
