// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delay accounting: how long a process waited for memory, by the netlink family TASKSTATS.
//!
//! The kernel answers for a process with all its threads, ended ones included, as long as the
//! process lives. The times of an ended process are those of the last look.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use toll_model::losses::Missing;

use crate::Root;

/// The counters, in the order of [`Times`].
pub(super) const NAMES: [&str; 4] = [
    "delay_reclaim",
    "delay_compaction",
    "delay_swap_in",
    "delay_thrashing",
];

/// Times in ns, by [`NAMES`].
type Times = [u64; 4];

/// The delays of a set of processes.
#[derive(Debug, Default)]
pub(super) struct Delays {
    connection: Option<Result<Connection, Missing>>,
    seen: BTreeMap<u32, Times>,
    ended: Times,
}

impl Delays {
    /// Looks at these processes, and keeps the times of those that are gone.
    pub(super) fn look(&mut self, root: &Root, pids: &[u32]) {
        let connection = self
            .connection
            .get_or_insert_with(|| Connection::open(root));
        let Ok(connection) = connection else {
            return;
        };
        let mut now = BTreeMap::new();
        for pid in pids {
            if let Ok((_, times)) = connection.ask(*pid) {
                now.insert(*pid, times);
            }
        }
        for (pid, times) in &self.seen {
            if !now.contains_key(pid) {
                add(&mut self.ended, times);
            }
        }
        self.seen = now;
    }

    /// The sum over all processes, ended ones included.
    pub(super) fn totals(&mut self, root: &Root) -> [Result<u64, Missing>; 4] {
        let connection = self
            .connection
            .get_or_insert_with(|| Connection::open(root));
        let version = match connection {
            Ok(connection) => connection.version,
            Err(missing) => return std::array::from_fn(|_| Err(missing.clone())),
        };
        let mut sum = self.ended;
        self.seen.values().for_each(|times| add(&mut sum, times));
        let mut totals = sum.map(Ok);
        if version < WITH_COMPACTION {
            let missing = Missing::new(
                "this kernel does not time compaction",
                "Linux 5.18 or later",
            );
            totals[1] = Err(missing);
        }
        totals
    }
}

fn add(sum: &mut Times, times: &Times) {
    for (sum, time) in sum.iter_mut().zip(times) {
        *sum = sum.saturating_add(*time);
    }
}

/// Reasons why the kernel has no delays.
fn refusal(root: &Root) -> Option<Missing> {
    match root.number("/proc/sys/kernel/task_delayacct") {
        None => Some(Missing::new(
            "this kernel does not account delays",
            "a kernel built with CONFIG_TASK_DELAY_ACCT",
        )),
        Some(0) => Some(Missing::new(
            "delay accounting is off",
            "`sysctl kernel.task_delayacct=1` as root on the host, before the program starts",
        )),
        Some(_) if !root.is_system() => Some(Missing::without_fix(
            "only the running machine can be asked",
        )),
        Some(_) => None,
    }
}

/// A socket of generic netlink, the number of the family, and the version of its answers.
#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    family: u16,
    version: u16,
}

const GENERIC_NETLINK: i32 = 16;
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GET_STATS: u8 = 1;
const BY_TGID: u16 = 2;
const STATS: u16 = 3;
const OF_TGID: u16 = 5;
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
/// Headers of netlink and of generic netlink.
const HEADERS: usize = 16 + 4;

impl Connection {
    fn open(root: &Root) -> Result<Connection, Missing> {
        if let Some(missing) = refusal(root) {
            return Err(missing);
        }
        let asked = Connection::connect().and_then(|mut connection| {
            connection.family = connection.find_family()?;
            connection.version = connection.ask(std::process::id())?.0;
            Ok(connection)
        });
        asked.map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => Missing::new(
                "delay accounting: not permitted",
                "CAP_NET_ADMIN in the initial namespaces (root, outside of a container)",
            ),
            Some(libc::ENOENT) => Missing::new(
                "delay accounting is not visible in this network namespace",
                "run it in the initial network namespace (docker run --net host)",
            ),
            _ => Missing::without_fix(format!("delay accounting: {error}")),
        })
    }

    fn connect() -> io::Result<Connection> {
        // SAFETY: socket(2) takes no pointer, and the new descriptor is not shared.
        let socket = unsafe {
            let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            let fd = libc::socket(libc::AF_NETLINK, flags, GENERIC_NETLINK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Connection {
            socket,
            family: 0,
            version: 0,
        })
    }

    fn find_family(&self) -> io::Result<u16> {
        let answer = self.call(CONTROLLER, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
        let id = attribute(&answer, FAMILY_ID).and_then(|id| id.first_chunk());
        id.map(|id| u16::from_ne_bytes(*id)).ok_or_else(damaged)
    }

    /// The version of the answer, and the delays of a process with all its threads.
    fn ask(&self, pid: u32) -> io::Result<(u16, Times)> {
        let answer = self.call(self.family, GET_STATS, BY_TGID, &pid.to_ne_bytes())?;
        let stats = attribute(&answer, OF_TGID).and_then(|inner| attribute(inner, STATS));
        stats.and_then(times).ok_or_else(damaged)
    }

    /// Sends a request with one attribute. Returns the attributes of the answer.
    fn call(&self, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
        let request = request(family, command, kind, value);
        let mut answer = vec![0u8; 4096];
        // SAFETY: both buffers are valid for their lengths.
        let got = unsafe {
            let fd = self.socket.as_raw_fd();
            if libc::send(fd, request.as_ptr().cast(), request.len(), 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        if got < 0 {
            return Err(io::Error::last_os_error());
        }
        answer.truncate(got as usize);
        let word = |at: usize| answer.get(at..at + 4)?.first_chunk().copied();
        let kind = answer
            .get(4..6)
            .and_then(|kind| kind.first_chunk().copied());
        if kind.map(u16::from_ne_bytes) == Some(ERROR) {
            let code = word(16).map(i32::from_ne_bytes).unwrap_or(-libc::EIO);
            return Err(io::Error::from_raw_os_error(-code));
        }
        match answer.len() {
            HEADERS.. => Ok(answer.split_off(HEADERS)),
            _ => Err(damaged()),
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the kernel's answer is not valid",
    )
}

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let padded = value.len().next_multiple_of(4);
    let length = HEADERS + 4 + padded;
    let mut request = Vec::with_capacity(length);
    request.extend((length as u32).to_ne_bytes());
    request.extend(family.to_ne_bytes());
    request.extend(REQUEST.to_ne_bytes());
    // Sequence number, and the port: the kernel assigns it.
    request.extend([0; 8]);
    request.extend([command, 1, 0, 0]);
    request.extend(((4 + value.len()) as u16).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(length, 0);
    request
}

/// The value of the first attribute of a kind.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    /// Flags for nesting and byte order.
    const FLAGS: u16 = 0xc000;
    while let Some((head, _)) = attributes.split_first_chunk::<4>() {
        let length = u16::from_ne_bytes([head[0], head[1]]) as usize;
        let kind = u16::from_ne_bytes([head[2], head[3]]) & !FLAGS;
        let value = attributes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// The version with fields in the middle, which moved all others; later ones have them at the end.
const INCOMPATIBLE: u16 = 15;
/// The first version with the delay of compaction.
const WITH_COMPACTION: u16 = 11;

/// The version and the times of a `struct taskstats`: the offsets have been the same since version
/// 10, but for [`INCOMPATIBLE`].
fn times(stats: &[u8]) -> Option<(u16, Times)> {
    const SWAP_IN: usize = 56;
    const RECLAIM: usize = 320;
    const THRASHING: usize = 336;
    const COMPACTION: usize = 360;
    let version = u16::from_ne_bytes(*stats.first_chunk()?);
    if version == INCOMPATIBLE {
        return None;
    }
    let time = |at: usize| Some(u64::from_ne_bytes(*stats.get(at..)?.first_chunk()?));
    let compaction = match version {
        WITH_COMPACTION.. => time(COMPACTION)?,
        _ => 0,
    };
    let times = [time(RECLAIM)?, compaction, time(SWAP_IN)?, time(THRASHING)?];
    Some((version, times))
}

#[cfg(test)]
mod tests;
