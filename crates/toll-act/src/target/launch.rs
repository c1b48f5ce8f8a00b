// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a target is started with: command line, environment, streams.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};
use toll_model::wire;

use super::child::Child;
use super::exec::{BeforeExec, exec_error};
use super::huge::Sampling;
use crate::executable::Executable;
use crate::thp::Switch;
use crate::{install, signals};

/// The shell of execvp(3).
const SHELL: &str = "/bin/sh";

/// A program to run.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    command: Vec<OsString>,
    wrapper: Vec<OsString>,
    /// Environment variables of the target, in addition to ours.
    env: Vec<(OsString, OsString)>,
    /// Variables of the preload library, which only the target itself may see.
    preload_env: Vec<(OsString, OsString)>,
    stdin: Option<PathBuf>,
    capture: Option<PathBuf>,
    thp: Switch,
    group: bool,
    sampling: Sampling,
}

impl Launch {
    /// A program (looked up in PATH as execvp(3) does) and its arguments.
    pub fn new(command: &[OsString]) -> Launch {
        Launch {
            command: command.to_vec(),
            ..Launch::default()
        }
    }

    /// Runs the preload library in the target, with this action file.
    pub(crate) fn actions(mut self, file: &Path) -> Launch {
        self.preload_env
            .push((wire::ENV_ACTIONS.into(), file.into()));
        self
    }

    /// Runs the preload library in the target, with this event file.
    pub fn events(mut self, file: &Path) -> Launch {
        self.preload_env
            .push((wire::ENV_EVENTS.into(), file.into()));
        self
    }

    /// Runs the preload library in the target, with this morsel file.
    pub(crate) fn served(mut self, file: &Path) -> Launch {
        self.preload_env
            .push((wire::ENV_SERVED.into(), file.into()));
        self
    }

    /// Puts another program's command line (QEMU's, perf's) before the target. The preload
    /// library's variables then reach the target only: by QEMU's `-E`, else by env(1).
    pub fn wrapper(mut self, wrapper: Vec<OsString>) -> Launch {
        self.wrapper = wrapper;
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Launch {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets which huge pages the target and its children may have.
    pub(crate) fn thp(mut self, switch: Switch) -> Launch {
        self.thp = switch;
        self
    }

    /// Uses a file as stdin instead of the inherited one.
    pub fn stdin(mut self, file: &Path) -> Launch {
        self.stdin = Some(file.to_owned());
        self
    }

    /// Writes stdout and stderr to files of these names in `directory`.
    pub fn capture(mut self, directory: &Path) -> Launch {
        self.capture = Some(directory.to_owned());
        self
    }

    /// Puts the target into its own process group, which [`Child::stop`] and dropping the [`Child`]
    /// end as a whole. Not for targets that use the terminal.
    pub fn own_group(mut self) -> Launch {
        self.group = true;
        self
    }

    /// Samples the huge-page-backed memory of the target and its children, for [`Outcome::huge`].
    pub fn sample_huge(mut self, sampling: Sampling) -> Launch {
        self.sampling = sampling;
        self
    }

    /// Starts the target. Call it from a thread that outlives the target.
    ///
    /// # Errors
    /// [`UserError::NotFound`] and [`UserError::NotExecutable`] for the program,
    /// [`UserError::Missing`] for the preload library.
    pub fn spawn(&self) -> Result<Child> {
        let executable = Executable::of(&self.command)?;
        let guard = signals::watch().context("no pipe for signals")?;
        let blocked = signals::Blocked::all();
        let before_exec = BeforeExec {
            mask: blocked.before(),
            dispositions: signals::inherited(),
            thp: self.thp,
            group: self.group,
            replaced: [
                self.stdin.is_some(),
                self.capture.is_some(),
                self.capture.is_some(),
            ],
            parent: std::process::id(),
        };
        let (id, begun) = self.start(&executable, &before_exec)?;
        Ok(Child::new(id, self.group, begun, self.sampling, guard))
    }

    /// Starts the command; a file without an interpreter line by the shell. glibc's execvp(3) does
    /// the latter itself, musl's does not. Returns the process's number and the time.
    fn start(&self, executable: &Executable, before_exec: &BeforeExec) -> Result<(u32, Instant)> {
        let mut command = self.command_line(executable)?;
        loop {
            self.streams(&mut command)?;
            let before_exec = before_exec.clone();
            // SAFETY: `run` makes only async-signal-safe calls and allocates nothing.
            unsafe { command.pre_exec(move || before_exec.run()) };
            let begun = Instant::now();
            match command.spawn() {
                Ok(child) => return Ok((child.id(), begun)),
                Err(error) if self.is_script(&command, &error) => {
                    command = by_shell(&command, &executable.named);
                }
                Err(error) => return Err(exec_error(command.get_program(), error)),
            }
        }
    }

    /// Whether `command` is the target and no format that the kernel knows.
    fn is_script(&self, command: &Command, error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::ENOEXEC)
            && self.wrapper.is_empty()
            && command.get_program() != SHELL
    }

    /// The command with its arguments and environment.
    fn command_line(&self, executable: &Executable) -> Result<Command> {
        let target_env = match executable.obstacle {
            Some(obstacle) if !obstacle.is_harmless() => Vec::new(),
            _ => self.target_env()?,
        };
        let mut command = match self.wrapper.split_first() {
            None => {
                let mut command = Command::new(&self.command[0]);
                command.envs(target_env);
                command
            }
            Some((wrapper, rest)) => {
                let mut command = Command::new(wrapper);
                command.args(rest);
                command.args(behind_wrapper(wrapper, &self.command[0], target_env));
                command.arg(&executable.named);
                command
            }
        };
        command.args(&self.command[1..]);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// The preload library's variables, with our library first in the user's LD_PRELOAD.
    fn target_env(&self) -> Result<Vec<(OsString, OsString)>> {
        let mut env = self.preload_env.clone();
        if let Some((_, file)) = env.first() {
            let library = install::component(install::PRELOAD)?;
            let mut preload = nameable(library, Path::new(file))?.into_os_string();
            if let Some(theirs) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
                preload.push(":");
                preload.push(theirs);
            }
            env.push(("LD_PRELOAD".into(), preload));
        }
        Ok(env)
    }

    fn streams(&self, command: &mut Command) -> Result<()> {
        if let Some(file) = &self.stdin {
            let input = File::open(file).with_context(|| format!("{}", file.display()))?;
            command.stdin(input);
        }
        if let Some(directory) = &self.capture {
            let create = |name: &str| -> Result<Stdio> {
                let path = directory.join(name);
                let file = File::create(&path).with_context(|| format!("{}", path.display()))?;
                Ok(file.into())
            };
            command.stdout(create("stdout")?).stderr(create("stderr")?);
        }
        Ok(())
    }
}

/// The command that lets the shell execute `file`.
fn by_shell(command: &Command, file: &Path) -> Command {
    let mut shell = Command::new(SHELL);
    shell.arg(file).args(command.get_args());
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    shell.envs(set);
    shell
}

/// A path of the library that LD_PRELOAD can contain: LD_PRELOAD is split at colons and white
/// space, so a library in such a directory gets a symbolic link next to the (temporary) file
/// `beside`.
fn nameable(library: PathBuf, beside: &Path) -> Result<PathBuf> {
    let is_nameable = |path: &Path| {
        let bytes = path.as_os_str().as_encoded_bytes();
        !bytes.iter().any(|b| *b == b':' || b.is_ascii_whitespace())
    };
    if is_nameable(&library) {
        return Ok(library);
    }
    let link = beside.with_file_name(install::PRELOAD);
    anyhow::ensure!(
        is_nameable(&link),
        "{}: LD_PRELOAD cannot contain a path with a colon or white space; set another TMPDIR",
        link.display()
    );
    match std::os::unix::fs::symlink(&library, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("{}", link.display()))
        }
        _ => Ok(link),
    }
}

/// The arguments that make a wrapper set variables for the target only: QEMU has options for them
/// (and for the target's own name), other wrappers run it through env(1).
fn behind_wrapper(wrapper: &OsStr, name: &OsStr, env: Vec<(OsString, OsString)>) -> Vec<OsString> {
    let settings = env.into_iter().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        name
    });
    let is_qemu = Path::new(wrapper)
        .file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"qemu"));
    if is_qemu {
        let options = settings.flat_map(|setting| [OsString::from("-E"), setting]);
        return options.chain(["-0".into(), name.to_owned()]).collect();
    }
    let settings: Vec<OsString> = settings.collect();
    match settings.is_empty() {
        true => settings,
        false => std::iter::once("env".into()).chain(settings).collect(),
    }
}
