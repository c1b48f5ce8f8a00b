// SPDX-License-Identifier: MIT OR Apache-2.0
//! econ's files do not depend on configuration symbols that its Kconfig entry does not name.
//!
//! The tests build the tollfree kernel: `setup/setup.sh lab` installs the dependencies.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use toll_lab::kernel::{Variant, build};
use toll_lab::workspace::Workspace;

/// The entries of /proc/PID as the preprocessor leaves them with these symbols and no others.
fn entries(source: &str, symbols: &[&str]) -> String {
    let (_, table) = source.split_once("tgid_base_stuff[] = {").unwrap();
    let (table, _) = table.split_once("\n};").unwrap();
    let mut child = Command::new("gcc")
        .args(["-E", "-P", "-x", "c"])
        .args(symbols.iter().map(|symbol| format!("-D{symbol}")))
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(table.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "builds a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_profile_can_be_given_without_page_monitor() {
    let workspace = Workspace::find().unwrap();
    let built = build(
        &workspace,
        &Variant::find(&workspace, "tollfree", &[]).unwrap(),
    )
    .unwrap();
    let source = fs::read_to_string(built.tree.join("fs/proc/base.c")).unwrap();
    let found = entries(&source, &["CONFIG_ECON"]);
    assert!(!found.contains("smaps"), "{found}");
    assert!(found.contains("mm_profile"), "{found}");
    assert!(found.contains("mm_ledger"), "{found}");
    let without = entries(&source, &["CONFIG_PROC_PAGE_MONITOR"]);
    assert!(without.contains("smaps"), "{without}");
    assert!(!without.contains("mm_profile"), "{without}");
}
