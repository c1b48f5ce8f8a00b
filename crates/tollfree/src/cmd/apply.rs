// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree apply`.

mod act;
mod resolve;
mod touched;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toll_linux::proc::{self, Mapping};
use toll_linux::remote::{Reach, RemoteError, RemoteProcess};
use toll_linux::{Root, sys};
use toll_model::REGION;
use toll_model::largepages;
use toll_model::plan::Plan;
use toll_model::profile::Program;
use toll_model::site::{LEGEND, Level};
use toll_model::units::format_size;

use crate::actuate::Policy;
use crate::error::UserError;
use crate::executable::program_of;
use crate::output;
use act::Done;
use resolve::Resolved;
use touched::StandIn;

/// Apply a plan to a running process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree apply --plan server.plan --pid 4242 --dry-run

Needs CAP_SYS_NICE, or the right to ptrace the process. A region that the process has
not touched yet is retried for ten seconds, then reported. If no region could be
made huge, the exit code is 7.

Call sites are known only for processes that tollfree started. For planned blocks of another
process, tollfree selects instead the mappings that the process touches most within one second,
and reports them; if it touches none, the exit code is 7. --regions writes the addresses for
--undo, which splits the huge pages into 4 KiB pages again; memory that was allocated only by
making them huge stays allocated.")]
pub struct Args {
    /// The plan, or a list of decimal base addresses
    #[arg(long, value_name = "PLAN")]
    pub plan: PathBuf,
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the region addresses to a list for --undo --plan
    #[arg(long, value_name = "FILE")]
    pub regions: Option<PathBuf>,
    /// Overwrite the list if it exists
    #[arg(long, requires = "regions")]
    pub force: bool,
    /// Split the plan's regions into 4 KiB pages again
    #[arg(long)]
    pub undo: bool,
}

/// The result of applying a plan to a process.
#[derive(Debug, Serialize)]
struct Report {
    pid: u32,
    program: String,
    dry_run: bool,
    undo: bool,
    /// `process_madvise` or `ptrace`; null if nothing had to be done.
    reach: Option<&'static str>,
    /// Regions of the plan that were found in this process.
    regions: Vec<String>,
    #[serde(flatten)]
    done: Done,
    /// Bytes of the process in huge pages.
    huge_before: u64,
    huge_after: u64,
    /// Planned sites that were found, with the match level.
    found: BTreeMap<String, Level>,
    /// Planned sites that were not found.
    lost: Vec<String>,
    /// The mappings selected in place of planned blocks that were not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    stand_in: Option<StandIn>,
    /// Why the plan does not fit this process, if no planned memory was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfit: Option<String>,
    notes: Vec<String>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let policy = Policy::read(&args.plan)?;
    if let Some(list) = &args.regions {
        output::check_writable(list, args.force)?;
    }
    let root = Root::system();
    check_target(&root, args.pid)?;
    let program = program_of(&root, args.pid).map_err(|error| no_access(args.pid, &error))?;
    let mut notes = machine_notes(&root);
    let maps = read_maps(&root, args.pid)?;
    let resolved = match &policy {
        Policy::Plan(plan) => {
            notes.extend(check_program(plan, &program, &called(&root, args.pid))?);
            resolve::resolve(plan, &maps)
        }
        Policy::Regions(list) => resolve::fixed(list, &maps),
        // A file holds only these two kinds of policy.
        _ => Resolved::default(),
    };
    let (resolved, stand_in, unseen) = with_stand_in(&args, resolved);
    let unfit = match &policy {
        Policy::Plan(_) => unfit(&args, &resolved, unseen.as_deref()),
        _ => None,
    };
    notes.extend(
        unseen.map(|why| format!("no mappings selected for blocks with unknown call sites: {why}")),
    );
    if let Some(list) = &args.regions {
        output::write_file(list, largepages::format(&resolved.regions).as_bytes())?;
    }
    let mut report = act_on(&args, &program, resolved, notes)?;
    (report.stand_in, report.unfit) = (stand_in, unfit);
    if json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    if let Some(unfit) = report.unfit {
        return Err(UserError::NotApplied(unfit).into());
    }
    check_applied(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// Selects memory that the process touches in place of planned blocks that were not found. The last
/// value is the reason if there is none.
fn with_stand_in(
    args: &Args,
    mut resolved: Resolved,
) -> (Resolved, Option<StandIn>, Option<String>) {
    if resolved.lost_bytes == 0 || args.undo {
        return (resolved, None, None);
    }
    match touched::stand_in(args.pid, resolved.lost_bytes, &resolved.places) {
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
fn unfit(args: &Args, resolved: &Resolved, unseen: Option<&str>) -> Option<String> {
    let nothing = resolved.regions.is_empty() && !resolved.lost.is_empty();
    nothing.then(|| {
        let (pid, plan) = (args.pid, args.plan.display());
        if args.undo {
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

/// Returns an error if no part of a plan was applied. A partly applied plan is not an error.
fn check_applied(report: &Report) -> Result<(), UserError> {
    let (regions, done) = (report.regions.len(), &report.done);
    let tried = !report.dry_run && !report.undo && regions > 0;
    if !tried || done.collapsed > 0 {
        return Ok(());
    }
    let why = match &done.failure {
        Some(failure) => failure.clone(),
        None => "the process has not touched them yet or forbids huge pages there, or none is free"
            .to_owned(),
    };
    Err(UserError::NotApplied(format!(
        "none of the {regions} planned regions of process {} could be made huge: {why}",
        report.pid
    )))
}

/// Applies the plan, or with --dry-run only resolves it, and reports.
fn act_on(
    args: &Args,
    program: &Program,
    resolved: Resolved,
    mut notes: Vec<String>,
) -> Result<Report> {
    let huge_before = huge_bytes(args.pid);
    let mut done = Done::default();
    let mut reach = None;
    if !args.dry_run && !resolved.regions.is_empty() {
        let remote =
            RemoteProcess::for_pid(args.pid, false).map_err(|error| refused(args.pid, error))?;
        reach = Some(match remote.reach() {
            Reach::ProcessMadvise => "process_madvise",
            Reach::Ptrace => "ptrace",
        });
        done = match args.undo {
            false => act::collapse(&remote, &resolved.regions)?,
            true => act::split(&remote, &resolved.regions, &mut notes)?,
        };
    }
    Ok(Report {
        pid: args.pid,
        program: program.path.clone(),
        dry_run: args.dry_run,
        undo: args.undo,
        reach,
        regions: resolved
            .regions
            .iter()
            .map(|region| format!("{region:#x}"))
            .collect(),
        done,
        huge_before,
        huge_after: huge_bytes(args.pid),
        found: resolved.found.into_iter().collect(),
        lost: resolved.lost,
        stand_in: None,
        unfit: None,
        notes,
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
        output::note("the process has disabled huge pages for itself; collapse may fail");
    }
    Ok(())
}

fn read_maps(root: &Root, pid: u32) -> Result<Vec<Mapping>> {
    proc::maps(root, pid).map_err(|error| no_access(pid, &error).into())
}

fn no_access(pid: u32, error: &std::io::Error) -> UserError {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => UserError::Missing(format!(
            "process {pid} belongs to another user or is protected: run tollfree as that user or as root"
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

/// The mappings selected in place of blocks that were not found, and how certain the match is.
fn stand_in_text(stand_in: &StandIn) -> String {
    let mut text = format!(
        "call sites are known only for processes that tollfree started: for {} of planned blocks, \
         whole mappings that the process touched most within {} s were selected:\n",
        format_size(stand_in.wanted_bytes),
        stand_in.window_seconds
    );
    let mut table = output::table(["mapping", "size", "in memory", "touched"]);
    for taken in &stand_in.mappings {
        table.add_row([
            format!("{:#x}", taken.start),
            format_size(taken.end - taken.start),
            format_size(taken.resident_bytes),
            format_size(taken.touched_bytes),
        ]);
    }
    text.push_str(&format!("{table}\n"));
    text
}

/// The report as text.
fn text(report: &Report) -> String {
    let mut text = format!("{} (process {})\n", report.program, report.pid);
    let planned = format_size(report.regions.len() as u64 * REGION);
    text.push_str(&format!(
        "planned here: {} regions ({planned})\n",
        report.regions.len()
    ));
    if !report.found.is_empty() || !report.lost.is_empty() {
        text.push_str(&format!("memory of the plan, allocations as {LEGEND}:\n"));
    }
    for (name, level) in &report.found {
        let level = match level {
            Level::Exact => "exactly",
            Level::Class | Level::Kind => "by its kind or size",
            Level::NotFound => "not",
        };
        text.push_str(&format!("  found {level}: {name}\n"));
    }
    let left = match report.stand_in {
        Some(_) => "not found by its call site",
        None => "not found, left alone",
    };
    for name in &report.lost {
        text.push_str(&format!("  {left}: {name}\n"));
    }
    if let Some(stand_in) = &report.stand_in {
        text.push_str(&stand_in_text(stand_in));
    }
    if report.dry_run {
        text.push_str("nothing was done (--dry-run)\n");
    } else {
        text.push_str(&report.done.text());
        let [before, after] = [report.huge_before, report.huge_after].map(format_size);
        text.push_str(&format!(
            "memory of the process in huge pages: {before} before, {after} after\n"
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
