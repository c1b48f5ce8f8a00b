// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers: real seccomp filters, built from tests/data/container-filters.toml, and real
//! capability sets. The report of `doctor` is true, and its advice works when followed literally.

use std::collections::BTreeSet;
use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use toll_linux::remote::{Advice, Reach, RemoteError, RemoteProcess};

/// Capabilities by name, those used here.
const CAPABILITIES: [(&str, u32); 4] = [
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
struct Filter {
    name: String,
    #[serde(default)]
    kills: bool,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Deserialize)]
struct Rule {
    calls: Vec<String>,
    unless: Vec<String>,
}

fn filters() -> Vec<Filter> {
    let text = include_str!("data/container-filters.toml");
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
struct Container {
    filter: Filter,
    capabilities: BTreeSet<String>,
}

impl Container {
    fn new(filter: &Filter, capabilities: &[&str]) -> Container {
        Container {
            filter: filter.clone(),
            capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    fn bits(&self) -> u64 {
        let known = CAPABILITIES.iter();
        let ours = known.filter(|(name, _)| self.capabilities.contains(*name));
        ours.fold(DOCKERS_DEFAULT, |bits, (_, number)| bits | 1 << number)
    }

    /// The BPF program of the filter; empty: no filter.
    fn program(&self) -> Vec<libc::sock_filter> {
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

    /// Runs a command in the container.
    fn confine<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let bits = self.bits();
        let mut program = self.program();
        let enter = move || -> io::Result<()> {
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
        };
        // SAFETY: the closure only makes system calls and allocates nothing.
        unsafe { command.pre_exec(enter) }
    }

    /// (state, detail, fix) of a check of `doctor` in the container.
    fn doctor(&self, check: &str) -> (String, String, Option<String>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollfree"));
        command.args(["doctor", "--json"]).stderr(Stdio::inherit());
        let output = self.confine(&mut command).output().unwrap();
        assert!(output.status.success(), "{self:?}: {output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut checks = report["checks"].as_array().unwrap().iter();
        let found = checks.find(|found| found["name"] == check).unwrap();
        let text = |key: &str| found[key].as_str().map(str::to_owned);
        (text("state").unwrap(), text("detail").unwrap(), text("fix"))
    }

    /// Whether a child can be reached in the container, (by process_madvise, by ptrace).
    fn reach(&self) -> (bool, bool) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env("TOLL_PROBE", "1").stderr(Stdio::inherit());
        let output = self.confine(&mut command).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let has = |word: &str| text.split_whitespace().any(|said| said == word);
        assert!(has("done"), "{self:?}: {text} {}", output.status);
        (has("process_madvise"), has("ptrace"))
    }

    /// The container after following the advice.
    fn follow(&self, advice: &str) -> Container {
        let mut better = self.clone();
        let words: Vec<&str> = advice
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .collect();
        for (name, _) in CAPABILITIES {
            if words.contains(&format!("CAP_{name}").as_str()) {
                better.capabilities.insert(name.to_owned());
            }
        }
        // `docker run --cap-add NAME`: the same; both names are in the advice.
        for pair in words
            .windows(2)
            .filter(|pair| pair[0] == "add" && !pair[1].is_empty())
        {
            assert!(better.capabilities.contains(pair[1]), "{advice}");
        }
        if advice.contains("seccomp profile allow ") {
            for rule in &mut better.filter.rules {
                rule.calls.retain(|call| !words.contains(&call.as_str()));
            }
        }
        better
    }
}

/// Becomes the probe before the test harness starts, if the environment says so.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = {
    extern "C" fn probe() {
        if env::var_os("TOLL_PROBE").is_some() {
            probe_a_child();
        }
    }
    probe
};

/// Prints the ways in which a child can be advised.
fn probe_a_child() -> ! {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    if let Ok(remote) = RemoteProcess::for_pid(child.id(), true) {
        if remote.reach() == Reach::ProcessMadvise {
            println!("process_madvise");
        }
        // Nothing is mapped there: the kernel returns an error, but not a permission error.
        let stopped = remote
            .by_ptrace()
            .and_then(|remote| remote.advise(0x10_0000_0000, 4096, Advice::Huge));
        if !matches!(stopped, Err(RemoteError::NotPermitted(_))) {
            println!("ptrace");
        }
    }
    println!("done");
    child.kill().unwrap();
    child.wait().unwrap();
    std::process::exit(0);
}

/// Only root can enter a container.
fn can_enter() -> bool {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: not root");
    }
    root
}

fn containers() -> Vec<Container> {
    let sets: [&[&str]; 4] = [
        &[],
        &["SYS_NICE"],
        &["SYS_PTRACE"],
        &["SYS_PTRACE", "SYS_NICE"],
    ];
    let all = filters();
    let with = |filter: &Filter| sets.map(|set| Container::new(filter, set));
    all.iter().flat_map(with).collect()
}

#[test]
fn doctor_says_what_works_and_its_advice_works() {
    if !can_enter() {
        return;
    }
    for container in containers() {
        let (by_madvise, by_ptrace) = container.reach();
        for (check, works) in [("process_madvise", by_madvise), ("ptrace", by_ptrace)] {
            let (state, detail, fix) = container.doctor(check);
            let said = format!("{check} in {container:?}: {state}, {detail}, {fix:?}");
            assert_eq!(state != "missing", works, "{said}");
            if let (false, Some(fix)) = (works, fix) {
                let better = container.follow(&fix);
                let (state, detail, _) = better.doctor(check);
                assert_eq!(state, "ok", "{said}; followed: {detail}");
            }
        }
    }
}

#[test]
fn docker_lets_own_children_be_stopped_without_any_capability() {
    if !can_enter() {
        return;
    }
    let docker = filters().into_iter().find(|filter| filter.name == "docker");
    let container = Container::new(&docker.unwrap(), &[]);
    assert_eq!(container.reach(), (false, true));
}

#[test]
fn a_filter_is_told_from_a_missing_capability() {
    if !can_enter() {
        return;
    }
    for container in containers() {
        let (state, detail, _) = container.doctor("process_madvise");
        let filtered = container
            .program()
            .iter()
            .any(|statement| statement.k == libc::SYS_process_madvise as u32 && statement.jt != 0);
        let lacks = !container.capabilities.contains("SYS_NICE");
        let said = format!("{container:?}: {state}, {detail}");
        assert_eq!(detail.contains("seccomp"), filtered, "{said}");
        assert_eq!(
            detail.contains("CAP_SYS_NICE"),
            lacks && !filtered,
            "{said}"
        );
    }
}
