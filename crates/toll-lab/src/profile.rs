// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles for the kernel, recorded on the host as a user would: `tollfree record --source sim`,
//! then `tollfree kernel profile`.
//!
//! Recordings are cached by a digest of the command, the programs and the simulator's plugin. The
//! recorded input differs from the guest's input, so that a measurement never uses a profile of the
//! same run.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::LabError;
use crate::files;
use crate::guest::Program;
use crate::preset::Preset;
use crate::scenario::{ProfileSpec, Scenario, Size};
use crate::workspace::Workspace;
use crate::{output, parallel};

/// Directory of the profiles in the guest.
const GUEST_DIRECTORY: &str = "/lab/profiles";
/// Record all accesses: inputs are small, and equal runs must give equal profiles.
const SAMPLE: &str = "1";
/// Time limit for a server to end after its load.
const GRACE: Duration = Duration::from_secs(60);

/// Creates the profiles that the jobs of a form name, `jobs` at a time.
///
/// # Errors
/// [`LabError::Missing`] without the simulator or a program; [`LabError::Input`] with the
/// scenario's line for a profile that cannot be recorded.
pub fn profiles(
    workspace: &Workspace,
    scenario: &Scenario,
    size: Size,
    preset: &Preset,
    jobs: usize,
) -> Result<Vec<Program>> {
    let bar = output::progress("");
    let make = |spec: &ProfileSpec, _| {
        bar.set_message(format!("recording {}", spec.name));
        let recorder = Recorder::new(workspace, scenario, spec, preset)?;
        recorder.made().map_err(|error| {
            let line = scenario.line_of(&format!("name = \"{}\"", spec.name));
            let why = format!("{}: line {line}: profile {}", scenario.name, spec.name);
            match error.downcast_ref::<LabError>() {
                Some(LabError::Missing(what)) => LabError::Missing(format!("{why}: {what}")),
                _ => LabError::Input(format!("{why}: {error:#}")),
            }
            .into()
        })
    };
    parallel::map(jobs, scenario.profiles(size), make)
}

/// Creates one profile.
struct Recorder<'a> {
    workspace: &'a Workspace,
    spec: &'a ProfileSpec,
    preset: &'a Preset,
    /// Lists the scenario's commands from lab/guest.
    programs: Vec<Program>,
    tollfree: PathBuf,
}

impl<'a> Recorder<'a> {
    fn new(
        workspace: &'a Workspace,
        scenario: &Scenario,
        spec: &'a ProfileSpec,
        preset: &'a Preset,
    ) -> Result<Recorder<'a>> {
        let compiled = |name: &String| Program::compiled(workspace, name);
        Ok(Recorder {
            workspace,
            spec,
            preset,
            programs: scenario.guest.iter().map(compiled).collect::<Result<_>>()?,
            tollfree: workspace.tollfree()?,
        })
    }

    fn made(&self) -> Result<Program> {
        let directory = self.workspace.cache.join("profiles");
        let stem = format!("{}-{:016x}", self.spec.name, self.digest()?);
        let recording = directory.join(&stem).with_extension("json");
        let _lock = files::lock(&directory.join(&stem).with_extension("lock"))?;
        if !recording.is_file() {
            self.record(&recording)?;
        }
        let made = directory.join(&stem).with_extension("mm_profile");
        self.plan(&recording, &made)?;
        Ok(Program {
            host: made,
            guest: format!("{GUEST_DIRECTORY}/{}", self.spec.name),
        })
    }

    fn digest(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        (self.spec, &self.preset.name).hash(&mut hasher);
        files::read(&self.workspace.plugin("libtoll_user.so")?)?.hash(&mut hasher);
        for program in self.own_and_host()? {
            files::read(&program.host)?.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// Lists the program with its libraries, and our other programs that the lines name.
    fn own_and_host(&self) -> Result<Vec<Program>> {
        let lines = [
            Some(&self.spec.run),
            self.spec.input.as_ref(),
            self.spec.load.as_ref(),
        ];
        let words: Vec<&str> = lines
            .into_iter()
            .flatten()
            .flat_map(|line| line.split_whitespace())
            .collect();
        let is_named = |program: &&Program| {
            let name = program.guest.rsplit('/').next().unwrap_or_default();
            words.contains(&name)
        };
        let mut found: Vec<Program> = self.programs.iter().filter(is_named).cloned().collect();
        let first = words.first().copied().unwrap_or_default();
        if !found.iter().any(|it| it.guest == format!("/bin/{first}")) {
            found.extend(Program::installed(first)?);
        }
        Ok(found)
    }

    /// Runs the program in a temporary directory that contains our commands by name.
    fn record(&self, to: &Path) -> Result<()> {
        let place = tempfile::tempdir()?;
        let commands = place.path().join("bin");
        fs::create_dir(&commands)?;
        for program in &self.programs {
            let name = program.guest.rsplit('/').next().unwrap_or_default();
            symlink(&program.host, commands.join(name))?;
        }
        let here = Here {
            directory: place.path(),
            commands: &commands,
        };
        if let Some(line) = &self.spec.input {
            here.shell(line)?;
        }
        let recorded = place.path().join("recorded.json");
        let mut recording = self.recording(&here, &recorded)?;
        if let Some(line) = &self.spec.load {
            let loaded = here.shell(line);
            end(&mut recording)?;
            loaded?;
        }
        let output = recording.wait_with_output()?;
        let is_kept = recorded.is_file() && (output.status.success() || self.spec.load.is_some());
        if !is_kept {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = files::last_lines(&said, 5);
            return Err(LabError::Test(format!("{}: {said}", output.status)).into());
        }
        files::write(to, &fs::read(&recorded)?)
    }

    fn recording(&self, here: &Here<'_>, to: &Path) -> Result<Child> {
        let mut words = self.spec.run.split_whitespace();
        let program = words.next().unwrap_or_default();
        // The program's file name is part of a profile: use neither the cache's name nor the target
        // of a host symlink. The input may have created another program of this name.
        let own = here.commands.join(program);
        if own.is_symlink() {
            let host = fs::read_link(&own)?;
            fs::remove_file(&own)?;
            fs::copy(host, &own)?;
        } else if !own.is_file() {
            fs::copy(&Program::installed(program)?[0].host, &own)?;
        }
        here.command(&self.tollfree)
            .args(["record", "--source", "sim", "--sample", SAMPLE])
            .args(["--preset", &self.preset.name, "--output"])
            .arg(to)
            .arg("--")
            .arg(own)
            .args(words)
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| self.tollfree.display().to_string())
    }

    /// Converts the profile for the kernel; not cached, since that takes no time.
    fn plan(&self, recording: &Path, to: &Path) -> Result<()> {
        let costs = to.with_extension("costs");
        files::write(&costs, self.preset.costs().to_json()?.as_bytes())?;
        let output = Command::new(&self.tollfree)
            .args(["kernel", "profile"])
            .arg(recording)
            .args(["--force", "--baseline", &self.spec.baseline, "--costs"])
            .arg(&costs)
            .arg("--output")
            .arg(to)
            .output()
            .with_context(|| self.tollfree.display().to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(LabError::Test(files::last_lines(&said, 5)).into())
            }
        }
    }
}

/// Ends a server that is still running after its load; the recording is kept.
fn end(recording: &mut Child) -> Result<()> {
    let until = Instant::now() + GRACE;
    while recording.try_wait()?.is_none() {
        if Instant::now() > until {
            kill_process(Pid::from_child(recording), Signal::TERM)?;
            return Ok(());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Directory in which a program is recorded.
struct Here<'a> {
    directory: &'a Path,
    commands: &'a Path,
}

impl Here<'_> {
    fn command(&self, program: &Path) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .current_dir(self.directory)
            .env("PATH", format!("{}:{path}", self.commands.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn shell(&self, line: &str) -> Result<()> {
        let output = self
            .command(Path::new("/bin/sh"))
            .args(["-ec", line])
            .stderr(Stdio::piped())
            .output()?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = files::last_lines(&said, 5);
                Err(LabError::Test(format!("{line}: {}: {said}", output.status)).into())
            }
        }
    }
}
