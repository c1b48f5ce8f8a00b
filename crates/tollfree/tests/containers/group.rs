// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use toll_linux::{Root, proc};

/// A control group with a memory limit, beside the one of this process; removed with the value.
pub struct Group {
    /// As /proc/PID/cgroup has it.
    pub path: String,
    pub directory: PathBuf,
}

impl Group {
    pub const LIMIT: u64 = 256 << 20;

    /// Creates a group with a name that starts so; `None`, with a message, where that is not possible.
    pub fn new(name: &str) -> Option<Group> {
        let own = proc::cgroup(&Root::system(), std::process::id());
        let own = own.ok().flatten()?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = own.trim_end_matches('/');
        let path = format!("{own}/{name}-{}-{number}", std::process::id());
        let below = |mount: &str| PathBuf::from(format!("{mount}{path}"));
        for (mount, limit) in [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ] {
            let directory = below(mount);
            let parent = directory.parent()?;
            if !parent.join("cgroup.procs").exists() || fs::create_dir(&directory).is_err() {
                continue;
            }
            let group = Group {
                path: path.clone(),
                directory,
            };
            if fs::write(group.directory.join(limit), Group::LIMIT.to_string()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no control group with memory can be created here");
        None
    }

    /// Runs a command in the group.
    pub fn holding<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let file = self.directory.join("cgroup.procs");
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        // SAFETY: one system call; 0 stands for the process that writes it.
        unsafe { command.pre_exec(move || (&file).write_all(b"0")) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel removes a process from its group a little after its end.
        for _ in 0..100 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
