// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs perf: to record, and to print its recordings as text.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::{NO_DIRECTORY, UserError};
use toll_act::executable::Executable;
use toll_act::{files, search};
use toll_linux::events::{EventFile, blocks, site_of};
use toll_linux::symbols::Symbolizer;
use toll_linux::{Root, perf, sys};
use toll_model::error::FormatError;
use toll_model::site::Level;

use super::detect::Format;
use super::layout::Layout;
use super::place::Block;
use super::reader::Reader;
use super::reading::{Imported, Reading, WHAT};
use crate::record::options::{RecordOptions, Recorded, drop_own_memory};

/// Fields to print, in perf's names; fields that a recording lacks are omitted.
const FIELDS: [&str; 13] = [
    "comm",
    "pid",
    "tid",
    "time",
    "event",
    "period",
    "addr",
    "data_src",
    "weight",
    "ip",
    "sym",
    "dso",
    "data_page_size",
];
/// Maximum number of events per run. The space is allocated at once, in a temporary directory.
const EVENTS_MAX: u32 = 1 << 18;
/// How long a target, and perf after it, may take to end after the time limit.
const GRACE: Duration = Duration::from_secs(10);
/// The warning in every profile of this source.
pub const UNVERIFIED: &str = "the perf source has not been verified on a CPU with such events: verify its plan with `tollfree compare`";

/// Finds a working perf.
///
/// # Errors
/// [`UserError::Missing`] with the package to install.
pub fn ensure_installed() -> Result<PathBuf, UserError> {
    let path = search::find_program("perf".as_ref()).map_err(|_| {
        UserError::Missing("perf is not installed: it is in the package linux-perf (Debian), linux-tools-generic (Ubuntu) or perf (Fedora, Arch)".to_owned())
    })?;
    // Some distributions install a script that runs the perf of the running kernel.
    let works = Command::new(&path)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|o| o.status.success());
    if works {
        return Ok(path);
    }
    let path = path.display();
    Err(UserError::Missing(format!(
        "{path} does not run here: install the package linux-perf (Debian) or linux-tools-$(uname -r) (Ubuntu)"
    )))
}

/// Records a run with `perf mem record`.
///
/// # Errors
/// [`UserError::Missing`] if this CPU or its perf is not supported; errors of the run and of
/// reading.
pub fn record(options: &RecordOptions) -> Result<Recorded> {
    let ability = perf::probe();
    if !ability.usable() {
        let message = format!("perf cannot sample TLB misses here: {ability}");
        return Err(UserError::Missing(message).into());
    }
    let perf = ensure_installed()?;
    let executable = Executable::of(&options.command)?;
    let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
    let data = directory.path().join("perf.data");
    let events = EventFile::create(&directory.path().join("events"), EVENTS_MAX)?;
    let launch = options.launch()?.events(events.path());
    let page_size = knows_page_size(&perf);
    let line = command_line(&perf, &data, &switches(page_size, options.stacks));
    let mut child = launch.wrapper(line).spawn()?;
    let limited = match options.limit {
        Some(limit) => child.wait_for(limit)?,
        None => Some(child.wait(|| Duration::from_secs(1))?),
    };
    let (outcome, in_time) = match limited {
        Some(outcome) => (outcome, true),
        None => (child.stop(GRACE)?, false),
    };
    if !data.exists() {
        let message = format!("perf mem record left no recording ({})", outcome.status);
        return Err(UserError::Missing(message).into());
    }
    let reading = Reading {
        only: options.only.clone(),
        blocks: named(&events),
        random_bits: Layout::bits(&Root::system()),
        detail: version(&perf),
        command: options.words(),
    };
    let mut profile = script(&data, &reading)?.profile;
    drop_own_memory(&mut profile, events.path());
    profile.program = executable.program();
    profile.complete = in_time && outcome.interrupted.is_none();
    if profile.complete {
        profile.native_ns = Some(outcome.wall.as_nanos() as u64);
        profile.native_cpu_ns = Some(outcome.cpu().as_nanos() as u64);
    }
    let warnings = &mut profile.warnings;
    warnings.push(UNVERIFIED.to_owned());
    if !page_size {
        warnings.push("this perf or kernel does not report page sizes: memory that is already huge counts as if it were not".to_owned());
    }
    if let Some(why) = executable.obstacle {
        warnings.push(format!("allocations cannot be distinguished: {why}"));
    }
    if events.lost() > 0 {
        warnings.push(format!("{} allocation events were lost", events.lost()));
    }
    if options.actuator.is_some() {
        warnings.push("under perf, only the preload library acts for a plan: heap and unnamed memory were not changed".to_owned());
    }
    Ok(Recorded {
        profile,
        status: outcome.status,
    })
}

/// The perf command line before the target; it uses the clock of allocation events.
fn command_line(perf: &Path, data: &Path, switches: &[&str]) -> Vec<OsString> {
    let mut line = vec![perf.into()];
    line.extend(["mem", "record"].map(OsString::from));
    line.extend(switches.iter().map(OsString::from));
    line.extend([data.into(), OsString::from("--")]);
    line
}

/// The options of `perf record`, up to the name of its file.
fn switches(page_size: bool, stacks: bool) -> Vec<&'static str> {
    // Reading all files for build-ids takes long after the target's end, and a perf that is killed
    // meanwhile leaves a truncated recording.
    let always = ["-q", "-B", "-k", "mono"];
    // Without the page size, memory that is already huge would count as gain.
    let sized = page_size.then_some("--data-page-size");
    let chains = stacks.then_some("--call-graph=fp");
    let options = always.into_iter().chain(sized).chain(chains);
    options.chain(["-o"]).collect()
}

/// Whether samples can have the page size: since Linux 5.11, if this perf supports it.
fn knows_page_size(perf: &Path) -> bool {
    if sys::kernel_version(&Root::system()).is_none_or(|version| version < (5, 11)) {
        return false;
    }
    let help = Command::new(perf)
        .args(["record", "-h"])
        .stdin(Stdio::null())
        .output();
    help.is_ok_and(|output| {
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).contains("--data-page-size")
    })
}

/// The blocks of a run with their sites.
fn named(file: &EventFile) -> Vec<Block> {
    let (events, modules) = (file.events(), file.modules());
    let mut symbolizer = Symbolizer::new();
    let mut name = |block: &toll_linux::events::Block| {
        let event = &events[block.event_index];
        Block {
            kind: site_of(event, &modules, &mut symbolizer),
            level: match event.thread {
                0 => Level::Exact,
                _ => Level::Class,
            },
            process: block.process,
            start: block.address,
            length: block.length,
            born_ns: block.born_ns,
            died_ns: block.died_ns,
        }
    };
    blocks(&events).iter().map(&mut name).collect()
}

/// `perf version 6.1.0`, or an empty string.
fn version(perf: &Path) -> String {
    let output = Command::new(perf).arg("--version").output();
    output.map_or_else(
        |_| String::new(),
        |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
    )
}

/// Reads a perf.data file through `perf script`.
pub fn script(path: &Path, reading: &Reading) -> Result<Imported> {
    let perf = ensure_installed()?;
    let mut fields = Some(FIELDS.to_vec());
    // Each iteration omits one field that the recording does not have.
    loop {
        let (result, status, complaint) = print(&perf, path, fields.as_deref(), reading)?;
        if status.success() {
            return result.map_err(|source| files::in_file(path, source));
        }
        match (missing_field(&complaint), &mut fields) {
            // Several events were recorded, not all with addresses: perf chooses the fields of
            // each.
            (Some("addr" | "data_src"), fields @ Some(_)) => *fields = None,
            (Some(field), Some(known)) if known.contains(&field) => known.retain(|f| *f != field),
            _ => {
                let detail = format!(
                    "perf script cannot read it: {}",
                    last_line(&complaint, status)
                );
                return Err(files::in_file(
                    path,
                    FormatError::Damaged { what: WHAT, detail },
                ));
            }
        }
    }
}

/// Runs `perf script` once and parses its output. Returns the result, its status, and stderr.
fn print(
    perf: &Path,
    path: &Path,
    fields: Option<&[&str]>,
    reading: &Reading,
) -> Result<(Result<Imported, FormatError>, ExitStatus, String)> {
    let mut complaints = tempfile::tempfile().context("a file for perf's messages")?;
    let fields = fields.map_or_else(|| "+pid".to_owned(), |f| f.join(","));
    let mut child = Command::new(perf)
        .args([
            "script",
            "-f",
            "--header",
            "--ns",
            "--show-mmap-events",
            "--show-task-events",
            // Inlined functions would take a process of addr2line for each address.
            "--no-inline",
            "-F",
        ])
        .arg(&fields)
        .arg("-i")
        .arg(path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(
            complaints
                .try_clone()
                .map(Stdio::from)
                .unwrap_or(Stdio::null()),
        )
        .spawn()
        .with_context(|| format!("{} script", perf.display()))?;
    let text = BufReader::with_capacity(1 << 16, child.stdout.take().expect("piped"));
    let result = Reader::new(reading).read(text, Some(Format::Script));
    if result.is_err() {
        // It may have more output, which is discarded.
        let _ = child.kill();
    }
    let mut status = child.wait()?;
    let complaint = read_back(&mut complaints);
    if result.is_err() && missing_field(&complaint).is_none() && killed(status) {
        // The status is that of our kill; only the parse error counts.
        status = ExitStatus::default();
    }
    Ok((result, status, complaint))
}

fn killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(libc::SIGKILL)
}

fn read_back(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind();
    let _ = file.take(1 << 16).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The field that perf reports as missing in the recording, or as unknown.
fn missing_field(complaint: &str) -> Option<&'static str> {
    let named = complaint
        .split("Cannot print '")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    let unknown = complaint
        .contains("Invalid field requested")
        .then_some("data_page_size");
    FIELDS
        .into_iter()
        .find(|field| named.or(unknown) == Some(field))
}

/// The last message of perf, without its advice about kernel symbols.
fn last_line(complaint: &str, status: ExitStatus) -> String {
    let line = complaint.lines().map(str::trim).rfind(|l| !l.is_empty());
    line.map_or_else(|| status.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
