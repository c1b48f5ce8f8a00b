// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers without a container tool: real namespaces, hidden and read-only files, capability
//! sets, seccomp filters and control groups.
//!
//! | file | holds |
//! |---|---|
//! | `container` | capabilities and the filter |
//! | `namespaces` | namespaces and mounts, as a container's runtime makes them |
//! | `group` | control groups |
//! | `doctor` | what `doctor` says |
//! | `memory` | a program with memory of a kind |
//! | `inside` | the other commands in a container |
//! | `outside` | processes of a container, seen from outside |
//! | `options` | what each option of docs/guide/containers.md makes possible |
//! | `units` | examples/systemd |

mod container;
mod doctor;
mod group;
mod inside;
mod memory;
mod namespaces;
mod options;
mod outside;
mod units;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use toll_testkit::{Directory, tool};

/// Becomes what the environment says before the test harness starts.
fn become_another() {
    if env::var_os("TOLL_PROBE").is_some() {
        doctor::probe_a_child();
    }
    namespaces::enter();
}

toll_testkit::before_main!(become_another);

/// Only root can enter a container.
fn can_enter() -> bool {
    let root = toll_testkit::machine::is_root();
    if !root {
        eprintln!("skipped: not root");
    }
    root
}

/// Runs a program as another user, without rights.
const OTHER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/// Lets other users enter a directory.
fn open(directory: &Directory) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A directory with `tollfree`, which every user may execute.
fn executable() -> Directory {
    let directory = Directory::empty();
    fs::copy(tool::tollfree(), directory.path("tollfree")).unwrap();
    open(&directory);
    directory
}
