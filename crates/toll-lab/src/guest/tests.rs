// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn crashes_are_told_from_other_lines() {
    let panic = "[    0.9] Kernel panic - not syncing: VFS: Unable to mount";
    assert_eq!(
        crash(panic),
        Some("Kernel panic - not syncing: VFS: Unable to mount")
    );
    assert!(crash("[  1.2] BUG: KASAN: use-after-free in f").is_some());
    assert!(crash("[  1.2] WARNING: CPU: 0 PID: 1 at mm/x.c:1").is_some());
    assert!(crash("[  9.9] Out of memory: Killed process 70 (model)").is_some());
    assert!(crash("[  9.9] Out of memory: Killed process 70 (a) oom_score_adj:1000").is_none());
    assert!(crash("[  9.9] Out of memory: Killed process 70 (a) oom_score_adj:0").is_some());
    assert!(crash("[  1.2] x86/mm: Checked W+X mappings: passed").is_none());
}
