// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn stopped_in(number: i64, result: i64) -> libc::user_regs_struct {
    // SAFETY: all bit patterns are valid registers.
    let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
    registers.orig_rax = number as u64;
    registers.rax = result as u64;
    registers
}

#[test]
fn only_calls_that_failed_with_eintr_are_repeated() {
    let eintr = -i64::from(libc::EINTR);
    assert!(interrupted(&stopped_in(libc::SYS_epoll_wait, eintr)).is_some());
    assert!(interrupted(&stopped_in(libc::SYS_epoll_wait, 1)).is_none());
    assert!(interrupted(&stopped_in(libc::SYS_epoll_wait, -512)).is_none());
    // A handler has returned into the program: its EINTR must be delivered.
    assert!(interrupted(&stopped_in(-1, eintr)).is_none());
}

#[test]
fn calls_that_have_done_something_are_not_repeated() {
    let eintr = -i64::from(libc::EINTR);
    for number in [libc::SYS_close, libc::SYS_ioctl, libc::SYS_dup2] {
        assert!(
            interrupted(&stopped_in(number, eintr)).is_none(),
            "{number}"
        );
    }
}

#[test]
fn a_timeout_is_told_from_none() {
    let wait = libc::SYS_epoll_wait as u64;
    assert!(has_timeout(wait, &[0, 0, 0, 100, 0, 0]));
    // As the kernel prints an int of -1.
    assert!(!has_timeout(wait, &[0, 0, 0, 0xffff_ffff, 0, 0]));
    let wait = libc::SYS_epoll_pwait2 as u64;
    assert!(has_timeout(wait, &[0, 0, 0, 0x7fff_0000, 0, 0]));
    assert!(!has_timeout(wait, &[0; 6]));
    assert!(!has_timeout(libc::SYS_getpid as u64, &[1; 6]));
}
