// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the kernel refuses BPF programs, and what would change that.

use std::error::Error;
use std::io;

use aya::maps::MapError;
use aya::programs::ProgramError;
use toll_model::losses::Missing;

use crate::Root;
use crate::proc;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// ENOTSUPP, which only the kernel knows: no trampoline for programs at the entry of functions.
const NOT_SUPPORTED: i32 = 524;

/// What can be told without asking the kernel.
pub(super) fn foreseen(root: &Root) -> Option<Missing> {
    if !root.is_system() {
        return Some(Missing::without_fix(
            "only the running machine can be asked",
        ));
    }
    untyped(root)
}

/// Whether the kernel lacks the types of its functions.
pub(super) fn untyped(root: &Root) -> Option<Missing> {
    (!root.path(BTF).exists()).then(no_btf)
}

fn no_btf() -> Missing {
    Missing::new(
        "BPF: this kernel does not describe its types (BTF)",
        "a kernel built with CONFIG_DEBUG_INFO_BTF (for a container without it: a complete /sys)",
    )
}

/// Whether this process sees the ids that the kernel uses: it is in the first pid namespace.
pub(super) fn other_ids(root: &Root) -> Option<Missing> {
    /// Inode of the first pid namespace, the same on every kernel (PROC_PID_INIT_INO).
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link(root.path("/proc/self/ns/pid")).ok()?;
    (own.as_os_str() != FIRST).then(|| {
        Missing::new(
            "BPF: this container's process ids are not those of the kernel",
            "run it outside of the container (docker run --pid host)",
        )
    })
}

/// The reason for an error while a program is started. The maps are there: so the system call is not
/// blocked, and EPERM has another cause than a lack of capabilities.
pub(super) fn of_program(root: &Root, error: &(dyn Error + 'static)) -> Missing {
    let is_refused = matches!(code(error), Some(libc::EPERM | libc::EACCES));
    match is_refused && lacks_nothing(root) {
        true => not_traceable(),
        false => of(root, error),
    }
}

fn not_traceable() -> Missing {
    Missing::new(
        "BPF: this kernel cannot run programs at its functions",
        "Linux 5.11 or later (arm64: 6.0) with CONFIG_BPF_EVENTS, CONFIG_FUNCTION_TRACER and CONFIG_DYNAMIC_FTRACE",
    )
}

/// The reason for an error while loading.
pub(super) fn of(root: &Root, error: &(dyn Error + 'static)) -> Missing {
    match code(error) {
        Some(libc::EPERM | libc::EACCES) => not_permitted(root),
        Some(libc::ENOSYS) => Missing::new(
            "BPF: not in this kernel",
            "a kernel built with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS",
        ),
        Some(libc::EINVAL | NOT_SUPPORTED) => not_traceable(),
        Some(libc::ENOENT) => no_btf(),
        Some(libc::EMFILE) => Missing::new(
            "BPF: too many open files",
            "`ulimit -n` with a higher limit",
        ),
        Some(libc::ENOMEM) => Missing::new(
            "BPF: no memory for the counters",
            "a higher memory limit, or `ulimit -l unlimited` before Linux 5.11",
        ),
        Some(other) => {
            Missing::without_fix(format!("BPF: {}", io::Error::from_raw_os_error(other)))
        }
        None => Missing::without_fix(format!("BPF: {}", first_line(error))),
    }
}

/// An error's number, of itself or of its cause.
fn code(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(code) = system(error).and_then(io::Error::raw_os_error) {
            return Some(code);
        }
        at = error.source();
    }
    None
}

/// The error of a system call. Some of aya's errors hide it from `source`.
fn system<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    if let Some(MapError::IoError(error)) = error.downcast_ref() {
        return Some(error);
    }
    if let Some(ProgramError::IOError(error)) = error.downcast_ref() {
        return Some(error);
    }
    error.downcast_ref()
}

/// The first line of the innermost error.
fn first_line(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Whether this process has the capabilities, and no lockdown forbids programs.
fn lacks_nothing(root: &Root) -> bool {
    has_capabilities(root) && lockdown(root).is_none()
}

fn has_capabilities(root: &Root) -> bool {
    let status = proc::status(root, std::process::id()).unwrap_or_default();
    let can = |capability| status.can(capability) || status.can(CAP_SYS_ADMIN);
    can(CAP_BPF) && can(CAP_PERFMON)
}

fn not_permitted(root: &Root) -> Missing {
    if !has_capabilities(root) {
        return Missing::new(
            "BPF: not permitted",
            "CAP_BPF and CAP_PERFMON: root, or docker run --cap-add BPF --cap-add PERFMON",
        );
    }
    if let Some(mode) = lockdown(root) {
        return Missing::new(
            format!("BPF: forbidden by the kernel's lockdown ({mode})"),
            "a start without lockdown=, or with Secure Boot off",
        );
    }
    Missing::new(
        "BPF: blocked (a container's seccomp profile or a security module?)",
        "allow the system call bpf in the container's seccomp profile",
    )
}

/// The mode of the lockdown, if there is one: `none [integrity] confidentiality`.
fn lockdown(root: &Root) -> Option<String> {
    let text = root.line("/sys/kernel/security/lockdown")?;
    let mode = text.split_once('[')?.1.split_once(']')?.0;
    (mode != "none").then(|| mode.to_owned())
}

#[cfg(test)]
mod tests;
