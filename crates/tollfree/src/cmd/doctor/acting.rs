// SPDX-License-Identifier: MIT OR Apache-2.0
//! By which ways tollfree can act on memory here.

use std::process::{Command, Stdio};

use toll_linux::hand::{Advice, Hand, HandError, Reach};
use toll_linux::{Root, proc, sys};

use super::Check;
use crate::install;

/// Number of CAP_SYS_NICE.
const CAP_SYS_NICE: u32 = 23;
const CAP_SYS_PTRACE: u32 = 19;

pub(super) fn checks(root: &Root) -> Vec<Check> {
    vec![preload(root), collapse(root), remote(root), ptrace(root)]
}

fn preload(root: &Root) -> Check {
    const NAME: &str = "preload library";
    if !root.is_system() {
        return Check::ok(NAME, "comes with tollfree");
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
        // SAFETY: an empty range; the kernel only says whether it knows the advice.
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
    const FIX: &str = "run as root, or give CAP_SYS_NICE (docker run --cap-add SYS_NICE)";
    let status = proc::status(root, own_pid(root)).unwrap_or_default();
    if sys::kernel_version(root).is_none_or(|version| version < (5, 10)) {
        return Check::missing(NAME, "this kernel has none", "Linux 5.10 or later");
    }
    if !status.can(CAP_SYS_NICE) {
        return Check::missing(NAME, "needs CAP_SYS_NICE, which this process lacks", FIX);
    }
    let reach = root
        .is_system()
        .then(|| Hand::for_pid(own_pid(root), false));
    match reach {
        None => Check::ok(NAME, "other processes can be collapsed"),
        Some(Ok(hand)) if hand.reach() == Reach::ProcessMadvise => {
            Check::ok(NAME, "other processes can be collapsed")
        }
        Some(_) => Check::missing(NAME, "blocked (a container's seccomp profile?)", FIX),
    }
}

fn ptrace(root: &Root) -> Check {
    const NAME: &str = "ptrace";
    const FIX: &str =
        "sysctl kernel.yama.ptrace_scope=1 or less; in a container: --cap-add SYS_PTRACE";
    let yama = root
        .number("/proc/sys/kernel/yama/ptrace_scope")
        .unwrap_or(0);
    let status = proc::status(root, own_pid(root)).unwrap_or_default();
    let privileged = status.can(CAP_SYS_PTRACE);
    if yama >= 3 || (yama == 2 && !privileged) {
        return Check::missing(
            NAME,
            format!("forbidden (kernel.yama.ptrace_scope is {yama})"),
            FIX,
        );
    }
    if root.is_system() {
        if let Err(reason) = stop_a_child() {
            return Check::missing(NAME, reason, FIX);
        }
    }
    match yama == 1 && !privileged {
        true => Check::partial(
            NAME,
            "own children only (kernel.yama.ptrace_scope is 1)",
            FIX,
        ),
        false if privileged => Check::ok(NAME, "any process"),
        false => Check::ok(NAME, "processes of the same user"),
    }
}

/// Stops a child for one injected call; `Err` says why that does not work.
fn stop_a_child() -> Result<(), String> {
    let mut child = Command::new("sleep")
        .arg("5")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("not probed: sleep cannot be run ({error})"))?;
    let probe = || -> Result<(), HandError> {
        // Nothing is mapped at address 0: any answer but "not permitted" is a success.
        let hand = Hand::for_pid(child.id(), true)?.by_ptrace()?;
        match hand.advise(0, toll_model::PAGE, Advice::Huge) {
            Err(error @ HandError::NotPermitted(_)) => Err(error),
            _ => Ok(()),
        }
    };
    let result = probe().map_err(|error| error.to_string());
    let _ = child.kill();
    let _ = child.wait();
    result
}

/// Fixtures keep the process under the number 1.
fn own_pid(root: &Root) -> u32 {
    if root.is_system() {
        std::process::id()
    } else {
        1
    }
}
