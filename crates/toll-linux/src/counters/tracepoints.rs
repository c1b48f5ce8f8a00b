// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints that perf counts where BPF programs cannot.

use std::ffi::CStr;

use toll_model::losses::{Missing, Scope};

use crate::Root;
use crate::perf::Event;

const KIND: u32 = 2;
const TRACING: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// A tracepoint, and the counter that it counts.
#[derive(Debug)]
pub(super) struct Tracepoint {
    pub counter: &'static str,
    path: &'static str,
    pub filter: Option<&'static CStr>,
}

const ALL: [Tracepoint; 3] = [
    Tracepoint {
        counter: "tlb_shootdowns_sent",
        path: "tlb/tlb_flush",
        // A flush that interrupts other CPUs (TLB_REMOTE_SEND_IPI).
        filter: Some(c"reason == 4"),
    },
    Tracepoint {
        counter: "direct_reclaims",
        path: "vmscan/mm_vmscan_direct_reclaim_begin",
        filter: None,
    },
    Tracepoint {
        counter: "direct_compactions",
        path: "compaction/mm_compaction_try_to_compact_pages",
        filter: None,
    },
];

/// Those that the kernel does not count for a scope by itself.
pub(super) fn of(root: &Root, scope: Scope) -> Vec<&'static Tracepoint> {
    let counts_flushes = || {
        let text = root.read("/proc/vmstat").unwrap_or_default();
        text.contains("nr_tlb_remote_flush ")
    };
    let tracepoints = ALL.iter();
    match scope {
        Scope::Tree | Scope::Cgroup => tracepoints.collect(),
        Scope::Machine if counts_flushes() => Vec::new(),
        Scope::Machine => tracepoints.take(1).collect(),
    }
}

impl Tracepoint {
    /// # Errors
    /// It is not visible.
    pub(super) fn event(&self, root: &Root) -> Result<Event, Missing> {
        let id = |tracing: &&str| root.number(format!("{tracing}/events/{}/id", self.path));
        let event = |config| Event {
            kind: KIND,
            config,
            ..Event::default()
        };
        let id = TRACING.iter().find_map(id);
        id.map(event).ok_or_else(|| self.not_visible())
    }

    fn not_visible(&self) -> Missing {
        let what = match self.counter {
            "tlb_shootdowns_sent" => "shootdowns",
            "direct_reclaims" => "direct reclaims",
            _ => "direct compactions",
        };
        let name = self.path.replace('/', ":");
        Missing::new(
            format!(
                "{what} of a process are known only to the tracepoint {name}, which is not visible"
            ),
            "as root `mount -t tracefs none /sys/kernel/tracing`, on a kernel with CONFIG_FTRACE (for a container: on the host, and -v /sys/kernel/tracing:/sys/kernel/tracing:ro)",
        )
    }
}

#[cfg(test)]
mod tests;
