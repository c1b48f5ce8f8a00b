// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of `doctor` is true in every container, and its advice works when followed literally.

use std::env;
use std::process::{Command, Stdio};

use serde_json::Value;
use toll_linux::remote::{Advice, Reach, RemoteError, RemoteProcess};

use crate::can_enter;
use crate::container::{CAPABILITIES, Container, Filter, filters};

impl Container {
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

/// Prints the ways in which a child can be advised.
pub fn probe_a_child() -> ! {
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
    assert_eq!(Container::docker(&[]).reach(), (false, true));
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
