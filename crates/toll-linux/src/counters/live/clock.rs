// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU clock of a process: `clock_getcpuclockid(3)`. Everyone may read it.

use crate::Root;

/// Whether the ids in /proc are those that system calls of this process use.
pub(super) fn has_clocks(root: &Root) -> bool {
    let own = std::fs::read_link(root.path("/proc/self"));
    root.is_system() && own.is_ok_and(|own| own.as_os_str() == &*std::process::id().to_string())
}

/// CPU time of a process with all its threads, ns; `None` if it has ended.
pub(super) fn cpu_time(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both places outlive the calls.
    let is_read = unsafe {
        libc::clock_getcpuclockid(pid, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    let ns = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    is_read.then(|| ns.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_clock_goes_on() {
        if !has_clocks(&Root::system()) {
            eprintln!("skipped: /proc is of another namespace");
            return;
        }
        let begun = cpu_time(std::process::id()).unwrap();
        while cpu_time(std::process::id()).unwrap() <= begun {}
        assert!(!has_clocks(&Root::at("/nowhere")));
    }

    #[test]
    fn what_is_no_process_has_no_clock() {
        assert_eq!(cpu_time(u32::MAX), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(cpu_time(child.id()), None);
    }
}
