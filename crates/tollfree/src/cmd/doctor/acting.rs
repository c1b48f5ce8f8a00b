// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which tollfree can act on memory on this machine.

use std::io;

use toll_act::install;
use toll_linux::proc::{self, Status};
use toll_linux::remote::{self, Advice, Call, Gate, Reach, RemoteError, RemoteProcess};
use toll_linux::{Root, sys};

use super::{Check, State};

pub(super) fn checks(root: &Root) -> Vec<Check> {
    vec![preload(root), collapse(root), remote(root), ptrace(root)]
}

fn preload(root: &Root) -> Check {
    const NAME: &str = "preload library";
    if !root.is_system() {
        return Check::ok(NAME, "installed with tollfree");
    }
    match install::component(install::PRELOAD) {
        Ok(path) => Check::ok(NAME, path.display().to_string()),
        Err(error) => Check::missing(
            NAME,
            format!("{error:#}"),
            "make install, or set TOLLFREE_LIBDIR",
        ),
    }
}

fn collapse(root: &Root) -> Check {
    const NAME: &str = "MADV_COLLAPSE";
    let works = match root.is_system() {
        // SAFETY: an empty range; the kernel only checks whether it supports the advice.
        true => unsafe { libc::madvise(std::ptr::null_mut(), 0, Advice::Collapse.number()) == 0 },
        false => sys::kernel_version(root).is_some_and(|version| version >= (6, 1)),
    };
    match works && sys::Thp::read(root).is_some() {
        true => Check::ok(NAME, "memory that is in use already can be made huge"),
        false => Check::missing(
            NAME,
            "only memory that is advised before its first touch can be huge",
            "Linux 6.1 or later with transparent huge pages",
        ),
    }
}

fn remote(root: &Root) -> Check {
    const NAME: &str = "process_madvise";
    let rights = Rights::of(root);
    if sys::kernel_version(root).is_none_or(|version| version < (5, 10)) {
        return Check::missing(NAME, "this kernel has none", "Linux 5.10 or later");
    }
    match rights.gate(Call::ProcessMadvise) {
        Gate::Absent => {
            return Check::missing(NAME, "this kernel has none", "Linux 5.10 or later");
        }
        Gate::Filtered => {
            let fix = rights.through_filter("process_madvise", &[SYS_PTRACE, SYS_NICE]);
            return Check::missing(NAME, "a seccomp filter forbids it", fix);
        }
        Gate::Open => {}
    }
    if !rights.has(SYS_NICE) {
        let detail = "needs CAP_SYS_NICE, which this process lacks";
        return Check::missing(NAME, detail, rights.how_to_get(&[SYS_NICE]));
    }
    if root.is_system() {
        if let Err(reason) = reach_a_child() {
            return Check::new(NAME, State::Missing, reason, None);
        }
    }
    let whose = match rights.has(SYS_PTRACE) {
        true => "other processes",
        false => "processes of the same user",
    };
    Check::ok(NAME, format!("{whose} can be collapsed"))
}

fn ptrace(root: &Root) -> Check {
    const NAME: &str = "ptrace";
    let yama = root
        .number("/proc/sys/kernel/yama/ptrace_scope")
        .unwrap_or(0);
    let rights = Rights::of(root);
    let privileged = rights.has(SYS_PTRACE);
    let detail = format!("forbidden (kernel.yama.ptrace_scope is {yama})");
    let lift = |scope: u64| {
        let capability = rights.how_to_get(&[SYS_PTRACE]);
        format!("as root on the host: sysctl kernel.yama.ptrace_scope={scope}; or {capability}")
    };
    if yama >= 3 {
        let fix = "boot with a lower kernel.yama.ptrace_scope: 3 is final until then";
        return Check::missing(NAME, detail, fix);
    }
    if rights.gate(Call::Ptrace) != Gate::Open {
        let fix = rights.through_filter("ptrace", &[SYS_PTRACE]);
        return Check::missing(NAME, "a seccomp filter forbids it", fix);
    }
    if yama == 2 && !privileged {
        return Check::missing(NAME, detail, lift(1));
    }
    if root.is_system() {
        if let Err(reason) = stop_a_child() {
            return Check::new(NAME, State::Missing, reason, None);
        }
    }
    match yama == 1 && !privileged {
        true => Check::partial(
            NAME,
            "own children only (kernel.yama.ptrace_scope is 1)",
            lift(0),
        ),
        false if privileged => Check::ok(NAME, "any process"),
        false => Check::ok(NAME, "processes of the same user"),
    }
}

/// A capability: its number, and its name without CAP_.
type Capability = (u32, &'static str);

const SYS_PTRACE: Capability = (19, "SYS_PTRACE");
const SYS_NICE: Capability = (23, "SYS_NICE");

/// The capabilities of this process, and how to get more.
struct Rights {
    status: Status,
    is_system: bool,
}

impl Rights {
    fn of(root: &Root) -> Rights {
        Rights {
            status: proc::status(root, own_pid(root)).unwrap_or_default(),
            is_system: root.is_system(),
        }
    }

    fn has(&self, capability: Capability) -> bool {
        self.status.can(capability.0)
    }

    /// What a seccomp filter does with a call. A machine of fixtures cannot be probed: a filter
    /// there is taken for Docker's.
    fn gate(&self, call: Call) -> Gate {
        let filtered = self.is_confined() && !self.has(SYS_PTRACE) && call != Call::Ptrace;
        match (self.is_system, filtered) {
            (true, _) => remote::gate(call),
            (false, true) => Gate::Filtered,
            (false, false) => Gate::Open,
        }
    }

    fn is_confined(&self) -> bool {
        self.status.seccomp != 0
    }

    /// How to allow a call in the filter, with the capabilities that it then needs.
    fn through_filter(&self, call: &str, capabilities: &[Capability]) -> String {
        // The filters of Docker, Podman and Kubernetes allow these calls together with
        // CAP_SYS_PTRACE. The rules of other filters are unknown.
        let opens = self.gate(Call::Kcmp) == Gate::Filtered && !self.has(SYS_PTRACE);
        if opens {
            return self.how_to_get(capabilities);
        }
        let allow = format!("have the container's seccomp profile allow {call}");
        // CAP_SYS_PTRACE would only pass the filter.
        let lacks = call == "process_madvise" && !self.has(SYS_NICE);
        match lacks {
            true => format!("{allow}, and {}", self.how_to_get(&[SYS_NICE])),
            false => allow,
        }
    }

    /// How to get capabilities. Existing capabilities must be named again when a container is
    /// started anew.
    fn how_to_get(&self, capabilities: &[Capability]) -> String {
        let wanted = [SYS_PTRACE, SYS_NICE]
            .into_iter()
            .filter(|known| capabilities.contains(known) || self.is_confined() && self.has(*known));
        let names = |prefix: &str, between: &str| {
            let names: Vec<String> = wanted
                .clone()
                .map(|(_, name)| format!("{prefix}{name}"))
                .collect();
            names.join(between)
        };
        let capabilities = names("CAP_", " and ");
        let switches = names("--cap-add ", " ");
        if self.is_confined() || self.status.uid[1] == 0 {
            format!(
                "give the container {capabilities} (docker run {switches}; in Kubernetes, \
                 securityContext.capabilities.add)"
            )
        } else {
            format!("run as root, or give {capabilities}")
        }
    }
}

/// A child process that sleeps until it is dropped. It is a copy of this one: a container may have
/// no other program.
struct Sleeper(libc::pid_t);

impl Sleeper {
    fn start() -> Result<Sleeper, String> {
        // SAFETY: the child makes only system calls.
        match unsafe { libc::fork() } {
            -1 => Err(format!("not probed: {}", io::Error::last_os_error())),
            // SAFETY: as above. It ends with its parent, also if that is killed.
            0 => unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    libc::pause();
                }
            },
            child => Ok(Sleeper(child)),
        }
    }

    fn pid(&self) -> u32 {
        self.0.unsigned_abs()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so its number is not in use again.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Advises a child through process_madvise. `Err` is the reason for a failure.
fn reach_a_child() -> Result<(), String> {
    let child = Sleeper::start()?;
    match RemoteProcess::for_pid(child.pid(), true) {
        Ok(remote) if remote.reach() == Reach::ProcessMadvise => Ok(()),
        Ok(_) => Err("the system forbids it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Stops a child for one injected call. `Err` is the reason for a failure.
fn stop_a_child() -> Result<(), String> {
    let child = Sleeper::start()?;
    let probe = || -> Result<(), RemoteError> {
        // Nothing is mapped at address 0: any error other than "not permitted" is a success.
        let remote = RemoteProcess::for_pid(child.pid(), true)?.by_ptrace()?;
        match remote.advise(0, toll_model::PAGE, Advice::Huge) {
            Err(error @ RemoteError::NotPermitted(_)) => Err(error),
            _ => Ok(()),
        }
    };
    probe().map_err(|error| error.to_string())
}

/// Fixtures have this process as number 1.
fn own_pid(root: &Root) -> u32 {
    if root.is_system() {
        std::process::id()
    } else {
        1
    }
}
