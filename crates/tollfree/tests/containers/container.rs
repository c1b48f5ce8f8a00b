// SPDX-License-Identifier: MIT OR Apache-2.0
//! A container's capabilities and seccomp filter, from tests/data/container-filters.toml.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde::Deserialize;

/// Capabilities by name, those used here.
pub const CAPABILITIES: [(&str, u32); 4] = [
    ("SYS_PTRACE", 19),
    ("SYS_ADMIN", 21),
    ("SYS_NICE", 23),
    ("PERFMON", 38),
];

/// Docker's default capabilities of a container, as a bit set.
const DOCKERS_DEFAULT: u64 = 0xa804_25fb;

#[derive(Debug, Clone, Deserialize)]
struct Filters {
    filter: Vec<Filter>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Filter {
    pub name: String,
    #[serde(default)]
    kills: bool,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Rule {
    pub calls: Vec<String>,
    unless: Vec<String>,
}

pub fn filters() -> Vec<Filter> {
    let text = include_str!("../data/container-filters.toml");
    toml::from_str::<Filters>(text).unwrap().filter
}

fn number(call: &str) -> i64 {
    match call {
        "process_madvise" => libc::SYS_process_madvise,
        "kcmp" => libc::SYS_kcmp,
        "pidfd_getfd" => libc::SYS_pidfd_getfd,
        "perf_event_open" => libc::SYS_perf_event_open,
        "mbind" => libc::SYS_mbind,
        "get_mempolicy" => libc::SYS_get_mempolicy,
        "set_mempolicy" => libc::SYS_set_mempolicy,
        "mount" => libc::SYS_mount,
        "umount2" => libc::SYS_umount2,
        "setns" => libc::SYS_setns,
        "unshare" => libc::SYS_unshare,
        "userfaultfd" => libc::SYS_userfaultfd,
        "keyctl" => libc::SYS_keyctl,
        "add_key" => libc::SYS_add_key,
        "request_key" => libc::SYS_request_key,
        "io_uring_setup" => libc::SYS_io_uring_setup,
        "ptrace" => libc::SYS_ptrace,
        "process_vm_readv" => libc::SYS_process_vm_readv,
        "process_vm_writev" => libc::SYS_process_vm_writev,
        other => panic!("no call {other}"),
    }
}

/// A container: a filter, and capabilities beyond Docker's default.
#[derive(Debug, Clone)]
pub struct Container {
    pub filter: Filter,
    pub capabilities: BTreeSet<String>,
}

impl Container {
    pub fn new(filter: &Filter, capabilities: &[&str]) -> Container {
        Container {
            filter: filter.clone(),
            capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// `docker run`, with these options `--cap-add`.
    pub fn docker(capabilities: &[&str]) -> Container {
        let docker = filters().into_iter().find(|filter| filter.name == "docker");
        Container::new(&docker.unwrap(), capabilities)
    }

    fn bits(&self) -> u64 {
        let known = CAPABILITIES.iter();
        let ours = known.filter(|(name, _)| self.capabilities.contains(*name));
        ours.fold(DOCKERS_DEFAULT, |bits, (_, number)| bits | 1 << number)
    }

    /// The BPF program of the filter; empty: no filter.
    pub fn program(&self) -> Vec<libc::sock_filter> {
        let closed = self.filter.rules.iter().filter(|rule| {
            let opens = |name: &String| self.capabilities.contains(name);
            !rule.unless.iter().any(opens)
        });
        let calls: Vec<i64> = closed
            .flat_map(|rule| rule.calls.iter().map(|call| number(call)))
            .collect();
        if calls.is_empty() {
            return Vec::new();
        }
        let statement = |code: u32, k: u32, jump: u8| libc::sock_filter {
            code: code as u16,
            jt: jump,
            jf: 0,
            k,
        };
        let refusal = match self.filter.kills {
            true => libc::SECCOMP_RET_KILL_PROCESS,
            false => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        };
        let answer = libc::BPF_RET | libc::BPF_K;
        // The first word of a filter's input is the number of the system call.
        let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
        for (index, call) in calls.iter().enumerate() {
            let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
            let to_refusal = calls.len() - index;
            program.push(statement(equal, *call as u32, to_refusal as u8));
        }
        program.push(statement(answer, libc::SECCOMP_RET_ALLOW, 0));
        program.push(statement(answer, refusal, 0));
        program
    }

    /// Enters the container: the calls between fork and exec, which allocate nothing.
    fn entry(&self) -> impl FnMut() -> io::Result<()> + Send + Sync + use<> {
        let bits = self.bits();
        let mut program = self.program();
        move || {
            let done = |result: i32| match result {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
            // SAFETY: plain system calls; the program outlives them.
            unsafe {
                for capability in (0..64).filter(|number| bits >> number & 1 == 0) {
                    if libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) == 1 {
                        done(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0))?;
                    }
                }
                if program.is_empty() {
                    return Ok(());
                }
                let filter = libc::sock_fprog {
                    len: program.len() as u16,
                    filter: program.as_mut_ptr(),
                };
                // The required capability is lost at the exec.
                let mode = libc::SECCOMP_MODE_FILTER;
                done(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter))
            }
        }
    }

    /// Runs a command in the container.
    pub fn confine<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        // SAFETY: the closure only makes system calls and allocates nothing.
        unsafe { command.pre_exec(self.entry()) }
    }
}
