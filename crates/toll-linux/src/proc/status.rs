// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/status`, `/proc/PID/stat` and the ELF class of a process.

use std::fs::File;
use std::io::{self, Read};

use super::damaged;
use crate::Root;

/// The fields of `/proc/PID/status` that decide what may be done to a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    pub name: String,
    pub state: char,
    /// Thread group: differs from the requested id if that is a thread's.
    pub tgid: u32,
    pub ppid: u32,
    /// Process id of the tracer; 0: none.
    pub tracer: u32,
    /// Real, effective and saved user id.
    pub uid: [u32; 3],
    pub gid: [u32; 3],
    pub threads: u32,
    /// 0: no seccomp; 1: strict; 2: a filter.
    pub seccomp: u32,
    /// Number of filters; missing before Linux 5.9.
    pub seccomp_filters: Option<u32>,
    /// Resident bytes; `None` for a kernel thread or a zombie.
    pub rss: Option<u64>,
    /// Bytes of page tables; missing where `rss` is.
    pub page_tables: Option<u64>,
    /// Whether `PR_SET_THP_DISABLE` is off; missing before Linux 5.0.
    pub thp_enabled: Option<bool>,
    pub effective_capabilities: u64,
    /// Its id in its own pid namespace, if that is below the namespace of this /proc.
    pub namespace_pid: Option<u32>,
}

impl Status {
    /// Whether it has no memory of its own: a kernel thread, or a zombie.
    pub fn has_no_memory(&self) -> bool {
        self.rss.is_none()
    }

    /// Whether it changed its identity by a setuid or setgid file.
    pub fn changed_identity(&self) -> bool {
        let same = |ids: &[u32; 3]| ids.iter().all(|id| *id == ids[0]);
        !same(&self.uid) || !same(&self.gid)
    }

    /// Whether a capability (its number) is in the effective set.
    pub fn can(&self, capability: u32) -> bool {
        self.effective_capabilities >> capability & 1 == 1
    }

    fn parse(text: &str) -> Option<Status> {
        let mut status = Status::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match key {
                "Name" => status.name = value.to_owned(),
                "State" => status.state = value.chars().next()?,
                "Tgid" => status.tgid = value.parse().ok()?,
                "PPid" => status.ppid = value.parse().ok()?,
                "TracerPid" => status.tracer = value.parse().ok()?,
                "Uid" => status.uid = identities(value)?,
                "Gid" => status.gid = identities(value)?,
                "Threads" => status.threads = value.parse().ok()?,
                "Seccomp" => status.seccomp = value.parse().ok()?,
                "Seccomp_filters" => status.seccomp_filters = value.parse().ok(),
                "VmRSS" => {
                    status.rss = Some(value.trim_end_matches(" kB").parse::<u64>().ok()? << 10)
                }
                "VmPTE" => {
                    let kilobytes = value.trim_end_matches(" kB").parse::<u64>();
                    status.page_tables = kilobytes.ok().map(|number| number << 10);
                }
                "THP_enabled" => status.thp_enabled = Some(value != "0"),
                "CapEff" => status.effective_capabilities = u64::from_str_radix(value, 16).ok()?,
                "NSpid" => status.namespace_pid = innermost(value),
                _ => {}
            }
        }
        (status.tgid != 0).then_some(status)
    }
}

/// The last of several ids: the first is the one that the reader sees.
fn innermost(ids: &str) -> Option<u32> {
    let below = ids.split_ascii_whitespace().skip(1);
    below.last()?.parse().ok()
}

fn identities(value: &str) -> Option<[u32; 3]> {
    let mut ids = value.split_ascii_whitespace().map(|id| id.parse().ok());
    Some([ids.next()??, ids.next()??, ids.next()??])
}

/// Reads `/proc/PID/status`.
///
/// # Errors
/// No such process, no permission, or text that is not a status.
pub fn status(root: &Root, pid: u32) -> io::Result<Status> {
    let path = format!("/proc/{pid}/status");
    Status::parse(&root.read(&path)?).ok_or_else(|| damaged(&path, "is not a valid status"))
}

/// The relevant fields of `/proc/PID/stat`. Times are clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The name, which the process may choose freely.
    pub name: String,
    pub state: char,
    /// Process id of the parent; 0: none that is visible.
    pub parent: u32,
    pub is_kernel_thread: bool,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// The same of children that ended and were waited for.
    pub children: Children,
    /// Start time in ticks after boot: together with the id it identifies a process uniquely.
    pub start_ticks: u64,
    /// Pages in memory, huge ones included; those of hugetlb are not.
    pub resident_pages: u64,
    /// Start of the brk heap; 0 or 1 if the reader lacks the permission.
    pub heap_start: u64,
}

/// Counters of children that ended and were waited for, with those of their own such children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Children {
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
}

/// Flag of a kernel thread (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The name may contain anything, including parentheses and blanks.
        let (start, fields) = text.rsplit_once(") ")?;
        let (_, name) = start.split_once('(')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts fields from 1; the state is the third.
        let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
        Some(Stat {
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: field(4)?.try_into().ok()?,
            is_kernel_thread: field(9)? & KERNEL_THREAD != 0,
            minor_faults: field(10)?,
            major_faults: field(12)?,
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            children: Children {
                minor_faults: field(11)?,
                major_faults: field(13)?,
                user_ticks: field(16)?,
                system_ticks: field(17)?,
            },
            start_ticks: field(22)?,
            resident_pages: field(24).unwrap_or(0),
            heap_start: field(47).unwrap_or(0),
        })
    }
}

/// Reads `/proc/PID/stat`.
///
/// # Errors
/// No such process, no permission, or text that is not a stat.
pub fn stat(root: &Root, pid: u32) -> io::Result<Stat> {
    let path = format!("/proc/{pid}/stat");
    Stat::parse(&root.read(&path)?).ok_or_else(|| damaged(&path, "is not a valid stat"))
}

/// Whether the program of a process is a 32-bit ELF file.
///
/// # Errors
/// No such process, no permission, or a kernel thread (which has no program).
pub fn is_32_bit(root: &Root, pid: u32) -> io::Result<bool> {
    let mut head = [0; 5];
    File::open(root.path(format!("/proc/{pid}/exe")))?.read_exact(&mut head)?;
    Ok(head[4] == 1)
}

/// Returns the ids of all processes.
pub fn processes(root: &Root) -> Vec<u32> {
    let names = root.names("/proc");
    names.iter().filter_map(|name| name.parse().ok()).collect()
}
