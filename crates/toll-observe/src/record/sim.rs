// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source `sim`: the program under QEMU's user emulation, with a plugin that models the TLBs
//! (plugins/user). Needs no PMU and no privileges; about ten times slower than native.
//!
//! The recording is in memory shared with the plugin, so that nothing is lost when the program
//! crashes, is killed, or closes its descriptors. Addresses differ from those of a native run: the
//! profile names memory by site only.

mod command;
mod counts;
mod qemu;
mod recording;

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_act::error::{NO_DIRECTORY, UserError};
use toll_act::executable::{Executable, Obstacle};
use toll_act::messages;
use toll_act::target::{Child, Outcome};
use toll_linux::events::EventFile;
use toll_linux::sys::{Mode, Thp};
use toll_linux::{Root, cpu};
use toll_model::cost::TlbGeometry;
use toll_model::wire;

use super::options::{RecordOptions, Recorded, drop_own_memory};
pub use qemu::Simulator;
use recording::Recording;

/// Default fraction of the accesses that the models see.
const SAMPLE: f64 = 0.1;
/// A run that is slower than native by more than this factor is stopped.
const SLOWEST: u32 = 20;
/// Shorter native times say too little about the slow-down: the startup takes longer.
const TOO_SHORT: Duration = Duration::from_millis(500);
/// How long a target may take to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum number of events per run.
const EVENTS_MAX: u32 = 1 << 16;

/// Records a run of a program.
///
/// # Errors
/// As [`Simulator::find`]; [`UserError::Target`] for programs that QEMU does not support; otherwise as
/// `Launch::spawn`.
pub fn record(options: &RecordOptions) -> Result<Recorded> {
    let simulated = command::unwrap(&options.command)?;
    let executable = Executable::of(&simulated.command)?;
    check_program(&executable)?;
    let simulator = Simulator::find()?;
    let geometry = geometry(options.preset.as_deref())?;
    let memory = recording::create()?;
    let directory = tempfile::tempdir().context(NO_DIRECTORY)?;
    let events_path = directory.path().join("events");
    EventFile::create(&events_path, EVENTS_MAX)?;

    let mut launch = options
        .launch_as(&simulated.command)?
        .wrapper(wrapper(&simulator, options, &geometry, &memory))
        .env(wire::ENV_SIM, "1");
    for (name, value) in &simulated.env {
        launch = launch.env(name, value);
    }
    if executable.obstacle.is_none() {
        launch = launch.events(&events_path);
    }
    let mut child = launch.spawn()?;
    let ran = wait(&mut child, options)?;

    let recording = Recording::read(memory)?;
    let events = EventFile::open(&events_path)?;
    let about = counts::About {
        program: Executable::of(&options.command)?.program(),
        command: options.words(),
        source_detail: detail(&simulator.version, &geometry, options),
        complete: !ran.cut && ran.outcome.interrupted.is_none(),
        native: options.native,
        only: options.only.clone(),
        warnings: warnings(&executable, &simulated, &ran),
    };
    let mut profile = counts::profile(&recording, &events, about)?;
    drop_own_memory(&mut profile, events.path());
    Ok(Recorded {
        profile,
        status: ran.outcome.status,
    })
}

/// Rejects programs that must not or cannot be simulated.
fn check_program(executable: &Executable) -> Result<(), UserError> {
    let path = executable.path.display();
    match executable.obstacle {
        Some(obstacle @ (Obstacle::ThirtyTwoBit | Obstacle::Privileged)) => Err(UserError::Target(
            format!("{path} cannot be simulated: {obstacle}; use --source accessed"),
        )),
        _ => Ok(()),
    }
}

/// The TLBs to model.
fn geometry(preset: Option<&str>) -> Result<TlbGeometry, UserError> {
    match preset {
        None => Ok(cpu::tlb_geometry()),
        Some(name) => TlbGeometry::preset(name).ok_or_else(|| {
            let known = TlbGeometry::PRESETS.join(", ");
            UserError::Usage(format!("{name}: no such TLB preset; there are {known}"))
        }),
    }
}

/// QEMU's command line, up to the target.
fn wrapper(
    simulator: &Simulator,
    options: &RecordOptions,
    tlb: &TlbGeometry,
    memory: &File,
) -> Vec<OsString> {
    let mut plugin = doubled_commas(simulator.plugin.as_os_str());
    for argument in arguments(options, tlb, memory) {
        plugin.push(",");
        plugin.push(argument);
    }
    // The default CPU has no AVX2; "max" has all features of QEMU.
    let cpu = ["-cpu".into(), "max".into()];
    [simulator.qemu.clone().into()]
        .into_iter()
        .chain(cpu)
        .chain(["-plugin".into(), plugin])
        .collect()
}

/// Doubles commas: QEMU separates options by commas, and reads two as one.
fn doubled_commas(text: &std::ffi::OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let doubled = text.as_bytes().iter().flat_map(|byte| match byte {
        b',' => vec![b',', b','],
        other => vec![*other],
    });
    OsString::from_vec(doubled.collect())
}

/// The plugin's arguments (plugins/user/options.h).
fn arguments(options: &RecordOptions, tlb: &TlbGeometry, memory: &File) -> Vec<String> {
    let mut arguments = vec![
        // Our descriptor, by a path that any process of this user can open.
        format!("out=/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd()),
        format!("sample={}", share(options)),
        format!("thp={}", thp_mode(options)),
    ];
    arguments.extend(tlb.plugin_words());
    if let Some(only) = &options.only {
        arguments.push(format!("only={}-{}", only.start, only.end));
    }
    arguments
}

fn share(options: &RecordOptions) -> f64 {
    options.sample.unwrap_or(SAMPLE)
}

/// The THP mode for the program: the machine's, unless huge pages are disabled for it.
fn thp_mode(options: &RecordOptions) -> &'static str {
    let switched_off = match &options.actuator {
        Some(actuator) => actuator.switches_off(),
        None => toll_act::thp::is_off(),
    };
    if switched_off {
        return "never";
    }
    match Thp::read(&Root::system()).map(|thp| thp.region_mode()) {
        Some(Mode::Always) => "always",
        Some(Mode::Never) | None => "never",
        Some(_) => "madvise",
    }
}

/// The result of a simulated run.
struct Ran {
    outcome: Outcome,
    /// Whether tollfree ended it.
    cut: bool,
    /// The reason, if so.
    reason: Option<String>,
}

/// Waits for the end. Stops the target if it takes too long.
fn wait(child: &mut Child, options: &RecordOptions) -> Result<Ran> {
    let began = Instant::now();
    let (limit, reason) = time_limit(options);
    let mut act = options.act(child);
    loop {
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            messages::note(&reason);
            return Ok(Ran {
                outcome: child.stop(GRACE)?,
                cut: true,
                reason: Some(reason),
            });
        }
        if let Some(outcome) = child.wait_for(act().min(left).min(Duration::from_secs(60)))? {
            return Ok(Ran {
                outcome,
                cut: false,
                reason: None,
            });
        }
    }
}

/// The time limit of the run, and the message when it is exceeded.
fn time_limit(options: &RecordOptions) -> (Duration, String) {
    let slow = options
        .native
        .filter(|native| *native >= TOO_SHORT)
        .map(|native| {
            let reason = format!(
                "the simulated program is more than {SLOWEST} times slower than natively ({native:.1?}); stopped; the counts so far are kept. Use --source accessed, or a smaller input"
            );
            (native * SLOWEST, reason)
        });
    let limit = options.limit.map(|limit| {
        let reason = format!(
            "the time limit of the simulation ({limit:.0?}) is reached; the counts so far are kept"
        );
        (limit, reason)
    });
    [slow, limit]
        .into_iter()
        .flatten()
        .min_by_key(|(time, _)| *time)
        .unwrap_or((Duration::MAX, String::new()))
}

/// The source's parameters, as text.
fn detail(version: &str, tlb: &TlbGeometry, options: &RecordOptions) -> String {
    let version = version.split(" (").next().unwrap_or(version);
    format!(
        "{version}, TLB {}, {:.0} % of the accesses in random windows",
        tlb.name,
        100.0 * share(options)
    )
}

fn warnings(executable: &Executable, simulated: &command::Simulated, ran: &Ran) -> Vec<String> {
    let mut warnings: Vec<String> = ran.reason.iter().cloned().collect();
    if let Some(note) = &simulated.note {
        warnings.push(note.clone());
    }
    if let Some(obstacle) = executable.obstacle {
        warnings.push(format!(
            "allocations have no names: {} does not load the preload library: {obstacle}",
            executable.path.display()
        ));
    }
    if std::arch::is_x86_feature_detected!("avx512f") {
        warnings.push(
            "the simulator has no AVX-512, which this CPU has: code that uses it took another path"
                .to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
