// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_stop_harms_some_calls() {
    let in_call = |number: i64, arguments: [u64; 6]| {
        let words = arguments.map(|argument| format!("{argument:#x}")).join(" ");
        harm(&format!("{number} {words} 0x7ffcfa7fe518 0x7f7401d2b2ad"))
    };
    assert_eq!(harm("running"), Harm::None);
    assert_eq!(harm("-1 0x7ffcfa7fe518 0x7f7401d2b2ad"), Harm::None);
    assert_eq!(in_call(libc::SYS_read, [0, 1, 1, 0, 0, 0]), Harm::None);
    let timed = [3, 1, 1, 100, 0, 0];
    assert_eq!(in_call(libc::SYS_epoll_wait, timed), Harm::Delay);
    let endless = [3, 1, 1, 0xffff_ffff, 0, 0];
    assert_eq!(in_call(libc::SYS_epoll_wait, endless), Harm::None);
    assert_eq!(in_call(libc::SYS_write, [1, 1, 1, 0, 0, 0]), Harm::CutShort);
    let all = libc::MSG_WAITALL as u64;
    let receive = |flags| in_call(libc::SYS_recvfrom, [3, 1, 1, flags, 0, 0]);
    assert_eq!(receive(all), Harm::CutShort);
    assert_eq!(receive(0), Harm::None);
}

#[test]
fn the_first_thread_comes_first() {
    let directory = tempfile::tempdir().unwrap();
    for thread in [9, 10, 100, 200] {
        std::fs::create_dir_all(directory.path().join(format!("proc/100/task/{thread}"))).unwrap();
    }
    let threads: Vec<u32> = all(&Root::at(directory.path()), 100).collect();
    assert_eq!(threads, [100, 9, 10, 200]);
}
