// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a process may be stopped.

use super::gate::{self, Call, Gate};
use crate::Root;
use crate::proc::{self, Status};

/// Number of CAP_SYS_PTRACE.
const CAP_SYS_PTRACE: u32 = 19;

/// Returns why a process may not be stopped; `None` if it may.
pub(super) fn forbidden(pid: u32, status: &Status, own_child: bool) -> Option<String> {
    let root = Root::system();
    let own = gate::own_status();
    let yama = root
        .number("/proc/sys/kernel/yama/ptrace_scope")
        .unwrap_or(0);
    if proc::is_32_bit(&root, pid).unwrap_or(false) {
        return Some("it is a 32-bit program".to_owned());
    }
    if gate::gate(Call::Ptrace) != Gate::Open {
        return Some("a seccomp filter forbids it".to_owned());
    }
    let relation = if own_child {
        Relation::Child
    } else if shares_our_container(&root, pid) {
        Relation::Neighbour
    } else {
        Relation::Stranger
    };
    objection(status, &own, relation, yama)
}

/// Relation of a process to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Started by this process.
    Child,
    /// In our container: it is confined in the same way as we are.
    Neighbour,
    Stranger,
}

/// Whether a process sees the same processes and files as we do.
fn shares_our_container(root: &Root, pid: u32) -> bool {
    ["pid", "mnt"].iter().all(|kind| {
        let space = |of: &str| std::fs::read_link(root.path(format!("/proc/{of}/ns/{kind}")));
        match (space("self"), space(&pid.to_string())) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => false,
        }
    })
}

/// Whether a process has seccomp filters other than ours: those that we had when we started it, or
/// those of the shared container. Ours permit madvise, since we call it.
fn has_foreign_filter(target: &Status, own: &Status, relation: Relation) -> bool {
    if target.seccomp == 0 {
        return false;
    }
    let same_number = target.seccomp_filters.is_some_and(|filters| filters > 0)
        && target.seccomp_filters == own.seccomp_filters;
    let ours = target.seccomp == own.seccomp && same_number;
    !ours || relation == Relation::Stranger
}

/// The decision without the system queries.
fn objection(target: &Status, own: &Status, relation: Relation, yama: u64) -> Option<String> {
    let privileged = own.can(CAP_SYS_PTRACE);
    if target.has_no_memory() {
        Some("it is a kernel thread or has ended".to_owned())
    } else if target.tracer != 0 {
        Some(format!(
            "process {} already traces it (a debugger?)",
            target.tracer
        ))
    } else if has_foreign_filter(target, own, relation) {
        Some(
            "it has a seccomp filter of its own, which might kill it for an unexpected system call"
                .to_owned(),
        )
    } else if yama >= 3 {
        Some("kernel.yama.ptrace_scope forbids it for all processes".to_owned())
    } else if privileged {
        None
    } else if target.changed_identity() {
        Some("it is a setuid or setgid program".to_owned())
    } else if target.uid[0] != own.uid[1] {
        Some(format!("it belongs to another user (id {})", target.uid[0]))
    } else if yama == 2 || (yama == 1 && relation != Relation::Child) {
        Some(format!("kernel.yama.ptrace_scope = {yama} forbids it"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
