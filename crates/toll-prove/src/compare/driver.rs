// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives a load in a thread of its own.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use super::load::{Load, RETRY, SETTLE};

/// Drives the load repeatedly in its own thread while the server is recorded. It does not use
/// [`toll_act::target`], because its signal forwarding belongs to the recorder.
#[derive(Debug)]
pub struct Driver {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Driven>>,
}

/// The results of the runs of a driven workload, except the one in progress at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Driven {
    /// Whether the server was ready for any run.
    pub ready: bool,
    pub succeeded: u32,
    pub failed: u32,
}

impl Driver {
    pub fn start(load: Load) -> Driver {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = std::thread::spawn(move || drive_until(&load, &seen));
        Driver {
            over,
            thread: Some(thread),
        }
    }

    /// Stops the load.
    pub fn finish(mut self) -> Driven {
        self.end()
    }

    fn end(&mut self) -> Driven {
        self.over.store(true, Relaxed);
        let driven = self.thread.take().and_then(|thread| thread.join().ok());
        driven.unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

fn drive_until(load: &Load, over: &AtomicBool) -> Driven {
    let mut driven = Driven::default();
    match &load.ready {
        None => {
            std::thread::sleep(SETTLE);
            driven.ready = true;
        }
        Some(ready) => {
            while !over.load(Relaxed) && !driven.ready {
                driven.ready = shell_until(ready, over);
            }
        }
    }
    while let Some(workload) = load.workload.as_ref().filter(|_| !over.load(Relaxed)) {
        match shell_until(workload, over) {
            true => driven.succeeded += 1,
            false if over.load(Relaxed) => {}
            false => driven.failed += 1,
        }
        std::thread::sleep(RETRY);
    }
    driven
}

/// Runs a shell command. Kills its process group when `over` is set. Returns whether it succeeded.
fn shell_until(command: &str, over: &AtomicBool) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = shell.spawn() else {
        return false;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if !over.load(Relaxed) => std::thread::sleep(RETRY / 4),
            _ => {
                // SAFETY: kill takes no pointer; the group's leader has not been reaped.
                unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
                let _ = child.wait();
                return false;
            }
        }
    }
}
