// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and times in the kernel, by BPF programs: TLB shootdowns that were sent, page faults, direct
//! reclaim and direct compaction, for the machine, a control group or processes.
//!
//! The programs are `bpf/toll.bpf.c`. Nothing of them outlives this process.
//!
//! | file | does |
//! |---|---|
//! | `abi` | the layout of the sums |
//! | `kernel` | loads and starts the programs |
//! | `calls` | reads and writes maps |
//! | `refusal` | says why the kernel refuses them |

mod abi;
mod calls;
mod kernel;
mod refusal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use toll_model::losses::{Missing, Reading, Scope, Snapshot};

use self::abi::{Event, Key, Mode, Totals};
use self::kernel::Kernel;
use crate::Root;

/// For what is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Of {
    Machine,
    /// The machine, by process.
    Processes,
    /// A control group of version 2, by its directory.
    Cgroup(PathBuf),
    /// Processes, with those that they fork.
    Followed,
}

impl Of {
    fn mode(&self) -> Mode {
        match self {
            Of::Machine => Mode::Machine,
            Of::Processes => Mode::Processes,
            Of::Cgroup(_) => Mode::Cgroup,
            Of::Followed => Mode::Followed,
        }
    }

    fn cgroup(&self) -> Option<&Path> {
        match self {
            Of::Cgroup(directory) => Some(directory),
            _ => None,
        }
    }
}

/// What can be started by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Shootdowns,
    Faults,
    Reclaim,
    Compaction,
}

const PARTS: [Part; 4] = [
    Part::Shootdowns,
    Part::Faults,
    Part::Reclaim,
    Part::Compaction,
];

/// A counter, the event and its part. `true`: its value is the time, and not the number.
type Row = (&'static str, Part, Event, bool);

#[rustfmt::skip]
const ROWS: [Row; 8] = [
    ("tlb_shootdowns_sent", Part::Shootdowns, Event::Shootdown, false),
    ("faults_timed", Part::Faults, Event::Fault, false),
    ("fault_time", Part::Faults, Event::Fault, true),
    ("fault_time_slept", Part::Faults, Event::FaultSlept, true),
    ("direct_reclaims", Part::Reclaim, Event::Reclaim, false),
    ("delay_reclaim", Part::Reclaim, Event::Reclaim, true),
    ("direct_compactions", Part::Compaction, Event::Compaction, false),
    ("delay_compaction", Part::Compaction, Event::Compaction, true),
];

/// The maps of the programs, so that users of the sums can be tested without a kernel.
trait Table: fmt::Debug + Send {
    fn sums(&self) -> io::Result<Vec<(Key, Totals)>>;
    fn remove(&self, key: Key);
    /// Updates for which the maps had no room.
    fn lost(&self) -> io::Result<u64>;
    fn followed(&self) -> io::Result<Vec<u32>>;
    fn follow(&self, process: u32, with_itself: bool) -> io::Result<()>;
    fn forget(&self, process: u32);
}

/// Why a part could not be started.
type MissingParts = BTreeMap<Part, Missing>;

/// Programs that count.
#[derive(Debug)]
pub(crate) struct Probes {
    table: Box<dyn Table>,
    missing: Arc<MissingParts>,
    /// Sums of processes that have ended.
    ended: Totals,
}

/// What was counted for something.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    totals: Totals,
    missing: Arc<MissingParts>,
}

/// What was counted until a moment.
#[derive(Debug)]
pub(crate) struct Sums {
    /// For everything that is watched.
    pub all: Counted,
    by_process: BTreeMap<u32, Totals>,
    lost: u64,
}

impl Probes {
    /// Loads and starts the programs.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn open(root: &Root, of: &Of) -> Result<Probes, Missing> {
        let has_ids = matches!(of, Of::Processes | Of::Followed);
        let foreseen = refusal::foreseen(root);
        let foreseen = foreseen.or_else(|| has_ids.then(|| refusal::other_ids(root)).flatten());
        if let Some(missing) = foreseen {
            return Err(missing);
        }
        let mut kernel = Kernel::load(root, of.mode(), of.cgroup())?;
        if *of == Of::Followed {
            kernel.follow_forks(root)?;
        }
        let started = PARTS.map(|part| Some((part, kernel.start(root, part).err()?)));
        kernel.ready();
        let missing: MissingParts = started.into_iter().flatten().collect();
        if missing.len() == PARTS.len() {
            return Err(missing.into_values().next().expect("there are parts"));
        }
        Ok(Probes::new(Box::new(kernel), missing))
    }

    fn new(table: Box<dyn Table>, missing: MissingParts) -> Probes {
        Probes {
            table,
            missing: Arc::new(missing),
            ended: Totals::default(),
        }
    }

    /// Whether a counter is counted.
    pub(crate) fn counts(&self, name: &str) -> bool {
        let mut rows = ROWS.iter();
        rows.any(|(its, part, ..)| *its == name && !self.missing.contains_key(part))
    }

    /// Follows processes, with those that they fork.
    pub(crate) fn follow(&self, processes: &[u32]) {
        for process in processes {
            // Without room it is not counted. The programs count each fork for which there is none.
            let _ = self.table.follow(*process, true);
        }
    }

    /// Follows the processes that this one forks from now on.
    pub(crate) fn follow_own_forks(&self) {
        let _ = self.table.follow(std::process::id(), false);
    }

    /// Follows no process that this one forks later.
    pub(crate) fn leave_own_forks(&self) {
        self.table.forget(std::process::id());
    }

    /// Forgets followed processes that have ended: another one may get the id.
    pub(crate) fn forget_ended(&self, root: &Root) {
        let followed = self.table.followed().unwrap_or_default();
        let lives = |process: u32| root.path(format!("/proc/{process}")).exists();
        for process in followed.into_iter().filter(|process| !lives(*process)) {
            self.table.forget(process);
        }
    }

    /// Reads the sums.
    ///
    /// # Errors
    /// The kernel does not return them.
    pub(crate) fn read(&self) -> Result<Sums, Missing> {
        let read = || io::Result::Ok((self.table.sums()?, self.table.lost()?));
        let (sums, lost) =
            read().map_err(|error| Missing::without_fix(format!("BPF: reading: {error}")))?;
        let mut totals = self.ended;
        let mut by_process: BTreeMap<u32, Totals> = BTreeMap::new();
        for (key, sum) in sums {
            totals.add(&sum);
            by_process.entry(key.process).or_default().add(&sum);
        }
        let missing = self.missing.clone();
        Ok(Sums {
            all: Counted { totals, missing },
            by_process,
            lost,
        })
    }

    /// Removes what was counted for processes that had ended after [`Probes::read`]. It stays in the
    /// sum of all.
    pub(crate) fn keep_only(&mut self, sums: &Sums, lives: impl Fn(u32) -> bool) {
        if sums.by_process.keys().all(|process| lives(*process)) {
            return;
        }
        let now = self.table.sums().unwrap_or_default();
        for (key, totals) in now.into_iter().filter(|(key, _)| !lives(key.process)) {
            self.ended.add(&totals);
            self.table.remove(key);
        }
    }
}

impl Sums {
    /// What was counted for a process.
    pub(crate) fn of_process(&self, process: u32) -> Counted {
        Counted {
            totals: self.by_process.get(&process).copied().unwrap_or_default(),
            missing: self.all.missing.clone(),
        }
    }

    /// Sets the counters of a scope for everything that is watched.
    pub(crate) fn set(&self, scope: Scope, snapshot: &mut Snapshot) {
        self.all.set(scope, snapshot);
        if self.lost > 0 {
            snapshot.set(scope, "bpf_lost", Ok(self.lost));
        }
    }
}

impl Counted {
    /// Nothing yet, of the same parts.
    pub(crate) fn nothing(&self) -> Counted {
        Counted {
            totals: Totals::default(),
            missing: self.missing.clone(),
        }
    }

    pub(crate) fn shootdowns(&self) -> Result<u64, Missing> {
        match self.missing.get(&Part::Shootdowns) {
            Some(missing) => Err(missing.clone()),
            None => Ok(self.totals.of(Event::Shootdown).count),
        }
    }

    /// Sets the counters of a scope. A number that is there already is the kernel's own, and stays.
    pub(crate) fn set(&self, scope: Scope, snapshot: &mut Snapshot) {
        for (name, part, event, is_time) in ROWS {
            let sum = self.totals.of(event);
            let value = if is_time { sum.ns } else { sum.count };
            let has_own = !is_time && snapshot.value(scope, name).is_some();
            match self.missing.get(&part) {
                _ if has_own => {}
                Some(missing) => set_missing(scope, name, missing, snapshot),
                None => snapshot.set_reading(scope, name, Reading::of("bpf", value)),
            }
        }
        if !self.missing.contains_key(&Part::Faults) {
            let squares = self.totals.fault_squares;
            snapshot.set(scope, "fault_time_squares", Ok(squares));
        }
    }
}

/// Gives the reason for the counters of a scope, where no other source has them or a reason.
pub(crate) fn miss(scope: Scope, missing: &Missing, snapshot: &mut Snapshot) {
    for (name, ..) in ROWS {
        set_missing(scope, name, missing, snapshot);
    }
}

fn set_missing(scope: Scope, name: &str, missing: &Missing, snapshot: &mut Snapshot) {
    if !snapshot.has(scope, name) {
        snapshot.set(scope, name, Err(missing.clone()));
    }
}

/// Whether programs can be started here: the reasons for those that cannot. Of a directory of
/// fixtures, its files tell.
///
/// # Errors
/// The reason why none can.
pub fn probe(root: &Root) -> Result<Vec<Missing>, Missing> {
    if !root.is_system() {
        return refusal::untyped(root).map_or(Ok(Vec::new()), Err);
    }
    let probes = Probes::open(root, &Of::Followed)?;
    Ok(probes.missing.values().cloned().collect())
}

#[cfg(test)]
mod tests;
