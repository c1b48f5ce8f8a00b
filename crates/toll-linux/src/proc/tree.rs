// SPDX-License-Identifier: MIT OR Apache-2.0
//! The children of a process, forked by any of its threads.
//!
//! The kernel lists a child with the thread that forked it (`/proc/PID/task/TID/children`): Go,
//! Java and threaded Python fork from any thread. The lists are read one after the other while the
//! processes run, so processes that start or end meanwhile may be missing.

use std::fs;

use crate::Root;

/// Returns the children of all threads of a process, in no particular order. Empty if the process
/// has ended, or if the kernel has no such lists (built without `CONFIG_PROC_CHILDREN`).
pub fn children(root: &Root, pid: u32) -> Vec<u32> {
    let threads = format!("/proc/{pid}/task");
    let Ok(entries) = fs::read_dir(root.path(&threads)) else {
        return Vec::new();
    };
    let thread = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    entries
        .filter_map(|entry| thread(entry.ok()?))
        .flat_map(|thread| of_thread(root, &format!("{threads}/{thread}/children")))
        .collect()
}

/// Returns a process and its descendants, each once; the process itself comes first, even if it has
/// ended.
pub fn tree(root: &Root, pid: u32) -> Vec<u32> {
    let mut tree = vec![pid];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        for child in children(root, parent) {
            // A process that is reparented to another thread meanwhile may be listed twice.
            if !tree.contains(&child) {
                tree.push(child);
            }
        }
        at += 1;
    }
    tree
}

/// Returns the list of one thread; empty if it has ended.
fn of_thread(root: &Root, path: &str) -> Vec<u32> {
    let list = root.read(path).unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.collect()
}
