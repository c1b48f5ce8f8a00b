// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies a plan to a running process, or splits its huge pages again.
//!
//! | file | holds |
//! |---|---|
//! | `resolve` | finds the planned memory among the mappings of the process |
//! | `touched` | selects mappings in place of planned blocks that cannot be found |
//! | `regions` | makes regions huge, or splits them |

mod regions;
mod resolve;
mod touched;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use toll_linux::proc::{self, Mapping, Place};
use toll_linux::remote::{Reach, RemoteError, RemoteProcess};
use toll_linux::{Root, sys};
use toll_model::plan::Plan;
use toll_model::profile::Program;
use toll_model::site::Level;

use crate::actuate::Policy;
use crate::error::{OF_OTHERS, UserError};
use crate::executable::program_of;
use crate::messages;
pub use regions::Done;
use resolve::Resolved;
pub use touched::StandIn;

/// What to apply to which process.
#[derive(Debug)]
pub struct Request {
    pub pid: u32,
    /// The file with the plan, for messages.
    pub plan: PathBuf,
    pub policy: Policy,
    /// Only find the memory.
    pub dry_run: bool,
    /// Split the regions into 4 KiB pages again.
    pub undo: bool,
}

/// The planned memory of a process.
#[derive(Debug)]
pub struct Found {
    request: Request,
    program: Program,
    resolved: Resolved,
    stand_in: Option<StandIn>,
    unfit: Option<String>,
    notes: Vec<String>,
}

/// The result of applying a plan to a process.
#[derive(Debug, Serialize)]
pub struct Report {
    pub pid: u32,
    #[serde(flatten)]
    pub place: Place,
    pub program: String,
    pub dry_run: bool,
    pub undo: bool,
    /// `process_madvise` or `ptrace`; null if nothing had to be done.
    pub reach: Option<&'static str>,
    /// Regions of the plan that were found in this process.
    pub regions: Vec<String>,
    #[serde(flatten)]
    pub done: Done,
    /// Bytes of the process in huge pages.
    pub huge_before: u64,
    pub huge_after: u64,
    /// Planned sites that were found, with the match level.
    pub found: BTreeMap<String, Level>,
    /// Planned sites that were not found.
    pub lost: Vec<String>,
    /// The mappings selected in place of planned blocks that were not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<StandIn>,
    /// Why the plan does not fit this process, if no planned memory was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    pub notes: Vec<String>,
}

/// Finds the planned memory in the process.
///
/// # Errors
/// [`UserError::Usage`] if there is no such process, [`UserError::Target`] if no plan can be applied
/// to it, [`UserError::Missing`] if it may not be read, [`UserError::OtherProgram`] if the plan is
/// for another program.
pub fn find(request: Request) -> Result<Found> {
    let (root, pid) = (Root::system(), request.pid);
    check_target(&root, pid)?;
    let program = program_of(&root, pid).map_err(|error| no_access(pid, &error))?;
    let mut notes = machine_notes(&root);
    let maps = read_maps(&root, pid)?;
    let resolved = match &request.policy {
        Policy::Plan(plan) => {
            notes.extend(check_program(plan, &program, &called(&root, pid))?);
            resolve::resolve(plan, &maps)
        }
        Policy::Regions(list) => resolve::fixed(list, &maps),
        // A file holds only these two kinds of policy.
        _ => Resolved::default(),
    };
    let (resolved, stand_in, unseen) = with_stand_in(&request, resolved);
    let unfit = match &request.policy {
        Policy::Plan(_) => unfit(&request, &resolved, unseen.as_deref()),
        _ => None,
    };
    notes.extend(
        unseen.map(|why| format!("no mappings selected for blocks with unknown call sites: {why}")),
    );
    Ok(Found {
        request,
        program,
        resolved,
        stand_in,
        unfit,
        notes,
    })
}

impl Found {
    /// The addresses of the regions to act on, ascending.
    pub fn regions(&self) -> &[u64] {
        &self.resolved.regions
    }

    /// Applies the plan, unless the request is a dry run.
    ///
    /// # Errors
    /// [`UserError::Target`] if the process has ended, [`UserError::Missing`] if its memory may not
    /// be advised.
    pub fn act(self) -> Result<Report> {
        let Found {
            request,
            program,
            resolved,
            stand_in,
            unfit,
            mut notes,
        } = self;
        let pid = request.pid;
        let huge_before = huge_bytes(pid);
        let mut done = Done::default();
        let mut reach = None;
        if !request.dry_run && !resolved.regions.is_empty() {
            let remote = RemoteProcess::for_pid(pid, false).map_err(|error| refused(pid, error))?;
            reach = Some(match remote.reach() {
                Reach::ProcessMadvise => "process_madvise",
                Reach::Ptrace => "ptrace",
            });
            done = match request.undo {
                false => regions::collapse(&remote, &resolved.regions)?,
                true => regions::split(&remote, &resolved.regions, &mut notes)?,
            };
        }
        let shown = resolved.regions.iter().map(|region| format!("{region:#x}"));
        Ok(Report {
            pid,
            place: Place::of(&Root::system(), pid),
            program: program.path,
            dry_run: request.dry_run,
            undo: request.undo,
            reach,
            regions: shown.collect(),
            done,
            huge_before,
            huge_after: huge_bytes(pid),
            found: resolved.found.into_iter().collect(),
            lost: resolved.lost,
            stand_in,
            unfit,
            notes,
        })
    }
}

impl Report {
    /// Returns an error if no part of a plan was applied. A partly applied plan is not an error.
    ///
    /// # Errors
    /// [`UserError::NotApplied`] with the reason.
    pub fn check(&self) -> Result<(), UserError> {
        if let Some(unfit) = &self.unfit {
            return Err(UserError::NotApplied(unfit.clone()));
        }
        let (regions, done) = (self.regions.len(), &self.done);
        let tried = !self.dry_run && !self.undo && regions > 0;
        if !tried || done.collapsed > 0 {
            return Ok(());
        }
        let why = match &done.failure {
            Some(failure) => failure.clone(),
            None => {
                "the process has not touched them yet or forbids huge pages there, or none is free"
                    .to_owned()
            }
        };
        Err(UserError::NotApplied(format!(
            "none of the {regions} planned regions of process {} could be made huge: {why}",
            self.pid
        )))
    }
}

/// Selects memory that the process touches in place of planned blocks that were not found. The last
/// value is the reason if there is none.
fn with_stand_in(
    request: &Request,
    mut resolved: Resolved,
) -> (Resolved, Option<StandIn>, Option<String>) {
    if resolved.lost_bytes == 0 || request.undo {
        return (resolved, None, None);
    }
    match touched::stand_in(request.pid, resolved.lost_bytes, &resolved.places) {
        Ok(stand_in) => {
            resolved.regions.extend(&stand_in.regions);
            resolved.regions.sort_unstable();
            resolved.regions.dedup();
            (resolved, Some(stand_in), None)
        }
        Err(why) => (resolved, None, Some(why)),
    }
}

/// Returns why a plan does not fit a process in which no planned memory was found. `unseen`: why no
/// mappings were selected in its place.
fn unfit(request: &Request, resolved: &Resolved, unseen: Option<&str>) -> Option<String> {
    let nothing = resolved.regions.is_empty() && !resolved.lost.is_empty();
    nothing.then(|| {
        let (pid, plan) = (request.pid, request.plan.display());
        if request.undo {
            return format!(
                "no memory of the plan was found in process {pid}: --undo needs the list of \
                 addresses that `apply --regions FILE` wrote, or DIR/largepages.txt of `tune --pid`"
            );
        }
        let unseen = unseen.map_or(String::new(), |why| format!("; {why}"));
        format!(
            "no memory of the plan was found in process {pid}: allocation sites are \
             known only for processes that tollfree started{unseen}. Start the program under \
             the plan (tollfree run --plan {plan} -- CMD), or make all memory of the process huge and \
             measure (tollfree tune --pid {pid} --workload CMD)",
        )
    })
}

/// Checks that a plan can be applied to the process.
fn check_target(root: &Root, pid: u32) -> Result<(), UserError> {
    let Ok(status) = proc::status(root, pid) else {
        return Err(UserError::Usage(format!("there is no process {pid}")));
    };
    if status.tgid != pid {
        let message = format!(
            "{pid} is a thread of process {}: name the process",
            status.tgid
        );
        return Err(UserError::Usage(message));
    }
    let target = |what: &str| Err(UserError::Target(format!("process {pid} {what}")));
    match status.state {
        'Z' | 'X' => return target("has ended"),
        _ if status.has_no_memory() => return target("is a kernel thread"),
        _ => {}
    }
    if proc::is_32_bit(root, pid).unwrap_or(false) {
        return target("is a 32-bit program, which tollfree does not support");
    }
    if status.thp_enabled == Some(false) {
        messages::note("the process has disabled huge pages for itself; collapse may fail");
    }
    Ok(())
}

fn read_maps(root: &Root, pid: u32) -> Result<Vec<Mapping>> {
    proc::maps(root, pid).map_err(|error| no_access(pid, &error).into())
}

fn no_access(pid: u32, error: &std::io::Error) -> UserError {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => UserError::Missing(format!(
            "process {pid} belongs to another user or is protected: {OF_OTHERS}"
        )),
        _ => UserError::Target(format!("process {pid} has ended")),
    }
}

fn refused(pid: u32, error: RemoteError) -> anyhow::Error {
    match error {
        RemoteError::Gone => UserError::Target(format!("process {pid} has ended")),
        other => UserError::Missing(format!("process {pid}: madvise failed: {other}")),
    }
    .into()
}

/// The name in `argv[0]`, if it differs from the file's name: a symbolic link.
fn called(root: &Root, pid: u32) -> String {
    let line = root
        .read(format!("/proc/{pid}/cmdline"))
        .unwrap_or_default();
    match line.split('\0').next() {
        Some(name) if !name.is_empty() => format!(" (started as {name})"),
        _ => String::new(),
    }
}

/// Refuses a plan for another program. Returns a note for another build of the same program.
fn check_program(plan: &Plan, program: &Program, called: &str) -> Result<Option<String>> {
    let planned = &plan.program;
    if planned.path.is_empty()
        || (planned.build_id == program.build_id && !planned.build_id.is_empty())
    {
        return Ok(None);
    }
    let name = |path: &str| {
        let path = path.trim_end_matches(" (deleted)");
        Path::new(path).file_name().map(OsStr::to_owned)
    };
    if name(&planned.path) != name(&program.path) {
        let message = format!(
            "the plan is for {}, not for {}{called}",
            planned.path, program.path
        );
        return Err(UserError::OtherProgram(message).into());
    }
    Ok(Some(format!(
        "the plan is for another build of {}",
        program.path
    )))
}

/// Notes on machine settings that affect the plan.
fn machine_notes(root: &Root) -> Vec<String> {
    let mut notes = Vec::new();
    match sys::Thp::read(root) {
        None => notes.push("this kernel has no transparent huge pages".to_owned()),
        Some(thp) if thp.region_mode() == sys::Mode::Never => notes.push(
            "transparent huge pages are set to never: collapsed regions stay huge, no others become huge"
                .to_owned(),
        ),
        Some(_) => {}
    }
    notes
}

fn huge_bytes(pid: u32) -> u64 {
    let mut huge = 0;
    // An error means that the process has ended meanwhile: 0 bytes.
    let _ = proc::smaps_each(&Root::system(), pid, |smap| huge += smap.huge());
    huge
}
