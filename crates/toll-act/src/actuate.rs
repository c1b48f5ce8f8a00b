// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acts on a program that is about to run: turns a plan (or another [`Policy`]) into the actions of
//! the preload library and of the watching parent.
//!
//! An [`Actuator`] serves any number of launches of one command: call [`Actuator::prepare`] before
//! each launch, and [`Actuator::act`] once the target runs.

mod acting;
mod heap;
mod policy;
mod rebase;
mod summary;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use toll_linux::events::EventFile;
use toll_linux::remote::{RemoteError, RemoteProcess};
use toll_linux::sys::{Mode, Thp};
use toll_linux::watch::{WatchPlan, Watcher};
use toll_linux::{Root, sys};
use toll_model::REGION;
use toll_model::actions::{self, Actions};
use toll_model::numbers;
use toll_model::pages::PageKind;
use toll_model::plan::Plan;
use toll_model::profile::Program;
use toll_model::wire;

use crate::error::{NO_DIRECTORY, UserError};
use crate::executable::Executable;
use crate::messages;
use crate::target::{Child, Launch};
use crate::thp::{self, Switch};

pub use acting::Acting;
use acting::Changed;
use heap::Heap;
pub use policy::Policy;
pub use summary::Summary;

/// Options for acting.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Take the pages of fixed regions from the hugetlb pool.
    pub hugetlb: bool,
    /// Make the whole heap huge, regardless of the policy.
    pub whole_heap: bool,
    /// Keep a record of allocation events, for [`Summary::blocks`].
    pub events: bool,
    /// Deny huge pages to memory that is not advised, as a machine with THP `madvise` does.
    pub only_advised: bool,
}

const SHARED_DENIED: &str = "huge pages in shared memory are forbidden: as root, \
     `echo never > /sys/kernel/mm/transparent_hugepage/shmem_enabled`; the plan collapses what it \
     names";

/// Maximum number of events per run.
const EVENTS_MAX: u32 = 1 << 16;

/// Acts on launches of one command.
#[derive(Debug)]
pub struct Actuator {
    policy: &'static str,
    executable: Executable,
    settings: Settings,
    /// Actions of the preload library; `None`: it is not used.
    actions: Option<Actions>,
    watch: WatchPlan,
    heap: Heap,
    lost: Vec<String>,
    notes: Vec<String>,
    /// What earlier targets left huge in files that outlive them.
    changed: Changed,
    /// A private temporary directory with the action file and the event file.
    directory: TempDir,
}

impl Actuator {
    /// Determines what `policy` means for `command` on this machine.
    ///
    /// # Errors
    /// [`UserError::OtherProgram`] if the plan was made for another program, [`UserError::Missing`]
    /// if the hugetlb pool is too small, [`UserError::Usage`] for settings that do not fit the policy.
    pub fn new(policy: &Policy, command: &[OsString], settings: Settings) -> Result<Actuator> {
        let executable = Executable::of(command)?;
        let directory = tempfile::Builder::new()
            .prefix("tollfree-")
            .tempdir()
            .context(NO_DIRECTORY)?;
        let mut actuator = Actuator {
            policy: policy.name(),
            executable,
            settings,
            actions: None,
            watch: WatchPlan::default(),
            heap: Heap::Left,
            lost: Vec::new(),
            notes: Vec::new(),
            changed: Changed::default(),
            directory,
        };
        if settings.hugetlb && !matches!(policy, Policy::Regions(_)) {
            let message =
                "--hugetlb takes a list of addresses (plan --format largepages), not a plan";
            return Err(UserError::Usage(message.to_owned()).into());
        }
        match policy {
            Policy::None | Policy::Never => {}
            Policy::All => actuator.take_all(),
            Policy::Plan(plan) => actuator.take_plan(plan)?,
            Policy::Regions(regions) => actuator.take_regions(regions)?,
        }
        let thp = Thp::read(&Root::system());
        actuator.decide_heap(policy, thp.as_ref().map(|thp| thp.mode));
        actuator.check_thp(policy, thp.as_ref());
        actuator.write_actions()?;
        Ok(actuator)
    }

    fn take_all(&mut self) {
        self.actions = Some(Actions::all());
        self.watch.all = true;
    }

    fn take_plan(&mut self, plan: &Plan) -> Result<()> {
        self.check_program(&plan.program)?;
        let rebaser = rebase::Rebaser::new(&plan.program, &self.executable);
        let actions = actions::compile(plan, &|frame| rebaser.rebase(frame));
        self.watch = WatchPlan {
            heap: actions.heap.clone(),
            addresses: actions.addresses.clone(),
            vmas: actions.vmas.clone(),
            files: actions.files.clone(),
            reservations: actions.reservations.clone(),
            all: actions.anonymous,
        };
        self.lost = actions.lost.clone();
        if actions.reservations.iter().any(|runtime| runtime == "jvm") {
            let switch = "Java's heap is not changed: use -XX:+UseTransparentHugePages";
            self.notes.push(switch.to_owned());
        }
        self.actions = Some(actions).filter(concerns_preload);
        Ok(())
    }

    fn take_regions(&mut self, regions: &[u64]) -> Result<()> {
        let ranges: Vec<(u64, u64)> = regions.iter().map(|at| (*at, at + REGION)).collect();
        if self.settings.hugetlb {
            check_pool(ranges.len() as u64)?;
        } else {
            // Pages of the pool need no collapse.
            self.watch.addresses = ranges.clone();
        }
        let mut actions = Actions {
            addresses: ranges,
            ..Actions::default()
        };
        if self.settings.hugetlb {
            actions.flags |= wire::flags::HUGETLB;
        }
        self.actions = Some(actions).filter(concerns_preload);
        Ok(())
    }

    /// Refuses a plan for another program. Warns about another build of the same program.
    fn check_program(&mut self, planned: &Program) -> Result<()> {
        if planned.path.is_empty() {
            return Ok(());
        }
        let ours = self.executable.program();
        if !planned.build_id.is_empty() && planned.build_id == ours.build_id {
            return Ok(());
        }
        let base = |path: &Path| path.file_name().map(OsStr::to_owned);
        let planned_name = base(Path::new(&planned.path));
        if ![&self.executable.path, &self.executable.named]
            .iter()
            .any(|path| base(path) == planned_name)
        {
            let detail = format!("the plan is for {}, not for {}", planned.path, ours.path);
            return Err(UserError::OtherProgram(detail).into());
        }
        if planned.build_id != ours.build_id {
            self.notes.push(format!(
                "the plan is for another build of {}; functions are matched by name",
                ours.path
            ));
        }
        Ok(())
    }

    /// Chooses the allocator for a heap that is planned whole, if it has a tunable. Otherwise, and
    /// for a partly planned heap, chooses the watcher.
    fn decide_heap(&mut self, policy: &Policy, thp: Option<Mode>) {
        let planned = match policy {
            Policy::All => true,
            Policy::Plan(plan) => plan.whole_heap,
            _ => false,
        };
        let whole = planned || self.settings.whole_heap;
        if whole && heap::has_switch(&self.executable, thp) {
            self.heap = Heap::Allocator;
            self.watch.heap.clear();
            return;
        }
        if self.settings.whole_heap {
            self.watch.heap = vec![(0, u64::MAX)];
        }
        if !self.watch.heap.is_empty() || self.watch.all {
            self.heap = Heap::Watcher;
        }
        if whole && !self.watch.all {
            self.notes.push(no_switch(&self.executable.path));
        }
    }

    /// Adds a note if the kernel's settings allow no huge pages.
    fn check_thp(&mut self, policy: &Policy, thp: Option<&Thp>) {
        let wanted = self.actions.is_some() || !self.watch.is_empty() || self.heap != Heap::Left;
        if !wanted || self.settings.hugetlb {
            return;
        }
        if thp::is_off() {
            self.notes.push(
                "tollfree was started with huge pages disabled (PR_SET_THP_DISABLE); they are \
                 enabled again for the program"
                    .into(),
            );
        }
        let takes_shared =
            matches!(policy, Policy::Plan(plan) if plan.pages().contains(&PageKind::Shared));
        if takes_shared && thp.is_some_and(Thp::forbids_shared) {
            self.notes.push(SHARED_DENIED.into());
        }
        match thp.map(Thp::region_mode) {
            None => self
                .notes
                .push("this kernel has no transparent huge pages".into()),
            Some(Mode::Never) => self.notes.push(
                "transparent huge pages are off (`never`): as root, \
                 `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`"
                    .into(),
            ),
            Some(_) => {}
        }
    }

    /// Writes the action file. Adds a note if no preload library will read it.
    fn write_actions(&mut self) -> Result<()> {
        let Some(actions) = &self.actions else {
            return Ok(());
        };
        if let Some(obstacle) = self.executable.obstacle {
            self.notes.push(format!(
                "{} does not load the preload library: {obstacle}; only its parent acts",
                self.executable.path.display()
            ));
        }
        let path = self.actions_file();
        fs::write(&path, actions.to_bytes()).with_context(|| format!("{}", path.display()))
    }

    /// Whether the program runs without any huge page.
    pub fn switches_off(&self) -> bool {
        self.policy == Policy::Never.name()
    }

    /// Messages for the user, one per item; usually empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Sites of the plan that were not found in this build of the program.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Prints the notes and the lost sites on stderr.
    pub fn say_notes(&self) {
        self.notes.iter().for_each(messages::note);
        for lost in &self.lost {
            messages::note(format_args!("not found in this program: {lost}"));
        }
    }

    /// Adds what this policy needs to a launch.
    ///
    /// # Errors
    /// The event file cannot be created.
    pub fn prepare(&self, mut launch: Launch) -> Result<Launch> {
        self.restore();
        launch = launch.thp(self.switch());
        if self.actions.is_some() {
            launch = launch.actions(&self.actions_file());
        }
        if self.settings.events {
            let path = self.events_file();
            EventFile::create(&path, EVENTS_MAX)?;
            launch = launch.events(&path);
        }
        if self.heap == Heap::Allocator {
            let theirs = std::env::var_os(heap::TUNABLES);
            launch = launch.env(heap::TUNABLES, heap::tunables(theirs.as_deref()));
        }
        Ok(launch)
    }

    /// Starts to act on a running target that was launched with [`Actuator::prepare`].
    pub fn act(&self, child: &Child) -> Acting {
        let mut acting = Acting {
            watcher: None,
            failure: None,
            changed: self.changed.clone(),
        };
        if !self.watch.is_empty() {
            match RemoteProcess::for_pid(child.pid(), true) {
                Ok(remote) => {
                    acting.watcher = Some(Watcher::new(child.pid(), remote, self.watch.clone()));
                }
                // The target has ended already; its exit status is reported elsewhere.
                Err(RemoteError::Gone) => {}
                Err(error) => acting.failure = Some(error.to_string()),
            }
        }
        acting
    }

    /// Splits the huge pages that ended targets left in files of shared memory, so that the next
    /// one finds them as they were.
    pub fn restore(&self) {
        match self.changed.split() {
            0 => {}
            left => messages::note(format_args!(
                "{} of shared memory stay: another process maps them",
                numbers::of(left, "huge page")
            )),
        }
    }

    /// The THP setting of the target. A policy that needs huge pages enables them even if tollfree
    /// was started with them disabled.
    fn switch(&self) -> Switch {
        match self.policy {
            _ if self.settings.only_advised => Switch::Advised,
            name if name == Policy::None.name() => Switch::Inherited,
            name if name == Policy::Never.name() => Switch::Off,
            _ if thp::is_off() => Switch::On,
            _ => Switch::Inherited,
        }
    }

    fn actions_file(&self) -> PathBuf {
        self.directory.path().join("actions")
    }

    fn events_file(&self) -> PathBuf {
        self.directory.path().join("events")
    }
}

impl Drop for Actuator {
    fn drop(&mut self) {
        self.restore();
    }
}

/// The note for a heap that is planned whole if the allocator has no tunable.
fn no_switch(program: &Path) -> String {
    format!(
        "{}: its malloc has no tunable for a huge heap here (glibc 2.35 or later has, \
         where THP is `madvise`); the heap is collapsed as it grows",
        program.display()
    )
}

/// Whether the actions include any that only the preload library can do.
fn concerns_preload(actions: &Actions) -> bool {
    let all = actions.flags & wire::flags::ALL != 0;
    let shared = actions.flags & wire::flags::SHARED != 0;
    all || shared
        || !actions.texts.is_empty()
        || !actions.rules.is_empty()
        || !actions.addresses.is_empty()
}

/// Returns an error if the hugetlb pool has fewer than `regions` available pages of 2 MiB.
fn check_pool(regions: u64) -> Result<(), UserError> {
    let pools = sys::hugetlb(&Root::system());
    let pool = pools.iter().find(|pool| pool.page == REGION);
    let available = pool.map_or(0, |pool| pool.free + pool.overcommit);
    if available >= regions {
        return Ok(());
    }
    Err(UserError::Missing(format!(
        "the hugetlb pool has {available} of the {regions} pages of 2 MiB needed: \
         as root, `sysctl vm.nr_hugepages={}`",
        pool.map_or(0, |pool| pool.total - pool.free) + regions
    )))
}

#[cfg(test)]
mod tests;
