// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program so that neither it nor its caller notices tollfree.
//!
//! - Standard streams and every other descriptor are inherited unchanged; our own are CLOEXEC.
//! - Signals sent to tollfree alone are forwarded. Those from the terminal reach the target through
//!   its process group. A signal that a process sends to the whole group cannot be distinguished
//!   from one for tollfree alone, and may arrive twice.
//! - When the target stops at the terminal (Ctrl-Z), tollfree stops too, so that the shell notices;
//!   `fg` continues both.
//! - If tollfree is killed, the target is killed too (PR_SET_PDEATHSIG), as if the program itself
//!   had been killed. Its children and daemons are not.
//! - [`end_like`] makes tollfree die of the signal that the target died of.

mod huge;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use toll_linux::{Root, proc};
use toll_model::wire;

use self::huge::{HugeSampler, Processes};
pub use self::huge::{Sampled, Sampling, tree_resident};
use crate::error::UserError;
use crate::executable::Executable;
use crate::thp::Switch;
use crate::{inherited, install, signals};

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
    pub fn actions(mut self, file: &Path) -> Launch {
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
    pub fn served(mut self, file: &Path) -> Launch {
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
    pub fn thp(mut self, switch: Switch) -> Launch {
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
        let mut command = self.command_line(&executable)?;
        self.streams(&mut command)?;
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
        // SAFETY: `run` makes only async-signal-safe calls and allocates nothing.
        unsafe { command.pre_exec(move || before_exec.run()) };
        let begun = Instant::now();
        let child = command
            .spawn()
            .map_err(|error| exec_error(command.get_program(), error))?;
        let pid = child.id();
        Ok(Child {
            pid,
            group: self.group,
            pidfd: pidfd(pid),
            begun,
            huge: HugeSampler::new(Processes::of(pid), self.sampling),
            reaped: false,
            _guard: guard,
        })
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

/// The actions in the child between fork and exec.
struct BeforeExec {
    mask: libc::sigset_t,
    dispositions: Vec<(i32, libc::sigaction)>,
    thp: Switch,
    group: bool,
    replaced: [bool; 3],
    parent: u32,
}

impl BeforeExec {
    /// Makes only async-signal-safe calls.
    fn run(&self) -> io::Result<()> {
        // SAFETY: none of these calls takes a pointer.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            if libc::getppid() as u32 != self.parent {
                libc::_exit(125);
            }
            if self.group {
                libc::setpgid(0, 0);
            }
        }
        self.thp.set()?;
        inherited::restore_closed(self.replaced);
        inherited::restore_sigpipe();
        for (signal, action) in &self.dispositions {
            signals::set(*signal, action);
        }
        signals::set_mask(&self.mask);
        Ok(())
    }
}

/// How a target ended, and the resources that it and its waited-for children used.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub status: ExitStatus,
    /// From before the fork to the end.
    pub wall: Duration,
    pub user: Duration,
    pub sys: Duration,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Peak of the largest process, bytes.
    pub max_rss: u64,
    /// Huge-page-backed anonymous memory, if [`Launch::sample_huge`] was set.
    pub huge: Sampled,
    /// The signal that asked tollfree to end meanwhile, if any.
    pub interrupted: Option<i32>,
}

/// A running target. It is killed if dropped before its end.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    group: bool,
    pidfd: Option<OwnedFd>,
    begun: Instant,
    huge: Option<HugeSampler<Processes>>,
    reaped: bool,
    _guard: signals::Guard,
}

impl Child {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end. Calls `tick` at once, and again each time that the duration it returned
    /// has passed. Forwards signals meanwhile.
    pub fn wait(&mut self, mut tick: impl FnMut() -> Duration) -> Result<Outcome> {
        let mut next = Instant::now();
        loop {
            if let Some(outcome) = self.try_wait()? {
                return Ok(outcome);
            }
            let now = Instant::now();
            if now >= next {
                let after = tick().min(LONGEST_TICK);
                next = Instant::now() + after;
            }
            self.pause(next.saturating_duration_since(Instant::now()))?;
        }
    }

    /// Waits for at most `limit`. Returns `None` if the target is still running.
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        let end = Instant::now() + limit;
        loop {
            if let Some(outcome) = self.try_wait()? {
                return Ok(Some(outcome));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.pause(left)?;
        }
    }

    /// Asks the target to end, and kills it if it is still running after `grace`.
    pub fn stop(&mut self, grace: Duration) -> Result<Outcome> {
        self.signal(libc::SIGTERM);
        self.signal(libc::SIGCONT);
        if let Some(outcome) = self.wait_for(grace)? {
            return Ok(outcome);
        }
        self.signal(libc::SIGKILL);
        self.wait(|| LONGEST_TICK)
    }

    /// Sends a signal to the target, or to its group if it has its own.
    pub fn signal(&self, signal: i32) {
        if !self.reaped {
            send(self.pid, self.group, signal);
        }
    }

    /// Checks whether the target has ended, stops with it if it stopped, and forwards signals.
    pub fn try_wait(&mut self) -> Result<Option<Outcome>> {
        loop {
            for note in signals::take() {
                let by_terminal = self.group && note.signal != libc::SIGCHLD;
                if note.is_for_target() || by_terminal {
                    self.signal(note.signal);
                }
            }
            let Some((status, usage)) = wait4(self.pid)? else {
                return Ok(None);
            };
            if let Some(signal) = status.stopped_signal() {
                stop_along(signal);
                continue;
            }
            self.reaped = true;
            return Ok(Some(self.outcome(status, &usage)));
        }
    }

    /// Sleeps until the target ends or stops, a signal arrives, or `limit` has passed.
    fn pause(&mut self, mut limit: Duration) -> Result<()> {
        if let Some(huge) = &mut self.huge {
            limit = limit.min(huge.tick());
        }
        let signals = signals::readable()?;
        let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
        if let Some(pidfd) = &self.pidfd {
            fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
        }
        let limit = rustix::time::Timespec::try_from(limit).ok();
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }

    fn outcome(&self, status: ExitStatus, usage: &libc::rusage) -> Outcome {
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
        };
        let huge = self.huge.as_ref();
        let huge = huge.map(HugeSampler::sampled).unwrap_or_default();
        Outcome {
            status,
            wall: self.begun.elapsed(),
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            max_rss: usage.ru_maxrss as u64 * 1024,
            huge,
            interrupted: signals::interrupted(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(libc::SIGKILL);
            let _ = self.wait(|| LONGEST_TICK);
        }
    }
}

/// Upper bound of one wait.
const LONGEST_TICK: Duration = Duration::from_secs(3600);

/// Ends tollfree as the target ended: with its exit code, or by its signal (without a second core
/// file). Drop temporary files before.
pub fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(status.code().unwrap_or(1) as u8);
    };
    // SAFETY: PR_SET_DUMPABLE takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    signals::default_action(signal);
    // Reached only if the signal does not end this process, which SIG_DFL does for all but init.
    ExitCode::from(128u8.wrapping_add(signal as u8))
}

/// Finds a program as execvp(3) does. Like a shell, skips directories of PATH that are not
/// readable.
///
/// # Errors
/// [`UserError::NotFound`], or [`UserError::NotExecutable`] if no file of that name is executable.
pub fn find_program(name: &OsStr) -> Result<PathBuf, UserError> {
    let program = || name.to_string_lossy().into_owned();
    let is_path = has_slash(name);
    let mut refused = None;
    for path in candidates(name) {
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() && is_path => refused = Some("is a directory"),
            Ok(meta) if meta.is_dir() => {}
            Ok(_) if executable(&path) => return Ok(path),
            Ok(_) => refused = Some("permission denied"),
            Err(error) if is_path && error.kind() == io::ErrorKind::PermissionDenied => {
                refused = Some("permission denied");
            }
            Err(_) => {}
        }
    }
    match refused {
        Some(detail) => Err(UserError::NotExecutable {
            program: program(),
            detail: detail.to_owned(),
        }),
        None => Err(UserError::NotFound { program: program() }),
    }
}

fn has_slash(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

/// The paths that a command name can mean, in order.
fn candidates(name: &OsStr) -> Vec<PathBuf> {
    if has_slash(name) {
        return vec![PathBuf::from(name)];
    }
    if name.is_empty() {
        return Vec::new();
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path)
        .map(|directory| match directory.as_os_str().is_empty() {
            true => Path::new(".").join(name),
            false => directory.join(name),
        })
        .collect()
}

fn executable(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Classifies a failed start: the program does not exist, is not executable, or a system limit is
/// reached.
fn exec_error(program: &OsStr, error: io::Error) -> anyhow::Error {
    let program = program.to_string_lossy().into_owned();
    match error.raw_os_error() {
        Some(libc::ENOENT) => UserError::NotFound { program }.into(),
        Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) | None => {
            anyhow::Error::new(error).context(format!("{program}: cannot be started"))
        }
        Some(_) => UserError::NotExecutable {
            program,
            detail: error.to_string(),
        }
        .into(),
    }
}

/// Handles a stopped target: a stop from the terminal also stops tollfree. The sender of a SIGSTOP
/// (a debugger, a throttle) continues the target itself.
fn stop_along(signal: i32) {
    if [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) {
        signals::default_action(signal);
    }
}

fn send(pid: u32, group: bool, signal: i32) {
    let pid = pid as libc::pid_t;
    // SAFETY: kill takes no pointer; the child has not been reaped, so the id is its own.
    unsafe { libc::kill(if group { -pid } else { pid }, signal) };
}

/// The child's new state, if it changed.
fn wait4(pid: u32) -> Result<Option<(ExitStatus, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: both out-pointers are valid, and a zeroed rusage is too.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let flags = libc::WNOHANG | libc::WUNTRACED;
        match libc::wait4(pid as libc::pid_t, &mut status, flags, &mut usage) {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()).context("cannot wait for the target"),
            _ => Ok(Some((ExitStatus::from_raw(status), usage))),
        }
    }
}

/// A descriptor that becomes readable at the child's end; without it, SIGCHLD signals the end.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open returns a new descriptor (CLOEXEC) or -1.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}

/// A process and its descendants, whichever threads forked them.
pub fn process_tree(pid: u32) -> Vec<u32> {
    proc::tree(&Root::system(), pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In this test process, threads of the harness fork, not the main thread.
    #[test]
    fn a_child_of_a_thread_belongs_to_the_tree() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let tree = process_tree(std::process::id());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(
            tree.contains(&child.id()),
            "{} is not in {tree:?}",
            child.id()
        );
    }
}
