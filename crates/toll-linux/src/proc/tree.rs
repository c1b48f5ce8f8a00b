// SPDX-License-Identifier: MIT OR Apache-2.0
//! The children of a process, whichever of its threads forked them.
//!
//! The kernel lists a child with the thread that forked it (`/proc/PID/task/TID/children`): Go,
//! Java and threaded Python fork from any thread. The lists are read one after the other while the
//! processes run, so what is forked or ends meanwhile may be missing.

use std::fs;

use crate::Root;

/// The children of all threads of a process, in no particular order. Empty where the process is
/// gone, or where the kernel has no such lists (it is built without `CONFIG_PROC_CHILDREN`).
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

/// A process and its descendants, each once; the process itself first, even if it is gone.
pub fn tree(root: &Root, pid: u32) -> Vec<u32> {
    let mut tree = vec![pid];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        for child in children(root, parent) {
            // A process that is handed to another thread meanwhile may be listed twice.
            if !tree.contains(&child) {
                tree.push(child);
            }
        }
        at += 1;
    }
    tree
}

/// The list of one thread; empty if it has ended.
fn of_thread(root: &Root, path: &str) -> Vec<u32> {
    let list = root.read(path).unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.collect()
}
