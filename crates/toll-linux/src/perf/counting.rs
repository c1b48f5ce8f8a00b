// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting events: perf_event_open without samples.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::event::Event;

const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const DISABLED: u64 = 1;
const ENABLE_ON_EXEC: u64 = 1 << 12;
/// The value is followed by the times in which the event was enabled, and in which it was counted.
const WITH_TIMES: u64 = 1 | 2;
const FLAG_CGROUP: u64 = 4;
const FLAG_CLOEXEC: u64 = 8;
/// `_IOW('$', 6, char *)`.
const IOC_SET_FILTER: libc::Ioctl = 0x4008_2406;

/// What an event is counted for.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// Programs that this thread's children execute, with their descendants.
    Children,
    /// A thread, with the threads and processes that it starts later.
    Thread(u32),
    /// A CPU.
    Cpu(u32),
    /// A control group, on a CPU.
    Cgroup(&'a OwnedFd, u32),
}

/// An event that is being counted.
#[derive(Debug)]
pub struct Counting(std::fs::File);

/// A count, scaled to the whole time if the event was multiplexed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    pub value: u64,
    /// Time in which the event should have been counted, ns.
    pub enabled: u64,
    /// Time in which it was counted.
    pub running: u64,
}

impl Count {
    /// Parses what the kernel returns, and scales it. `None` if it was enabled and never counted.
    fn parse(words: [u64; 3]) -> Option<Count> {
        let [value, enabled, running] = words;
        let value = match (enabled, running) {
            (0, _) => value,
            (_, 0) => return None,
            _ if running >= enabled => value,
            _ => (value as f64 * (enabled as f64 / running as f64)) as u64,
        };
        Some(Count {
            value,
            enabled,
            running,
        })
    }
}

impl Counting {
    /// Opens an event. `filter` is one of the kernel's expressions over a tracepoint's fields.
    ///
    /// # Errors
    /// As perf_event_open(2).
    pub fn open(
        event: &Event,
        of: Of,
        with_kernel: bool,
        filter: Option<&std::ffi::CStr>,
    ) -> io::Result<Counting> {
        // struct perf_event_attr, version 1: see the sampler.
        let mut attributes = [0u64; 9];
        let size = size_of_val(&attributes) as u64;
        attributes[0] = u64::from(event.kind) | size << 32;
        attributes[1] = event.config;
        attributes[4] = WITH_TIMES;
        attributes[5] = match of {
            Of::Children => DISABLED | INHERIT | ENABLE_ON_EXEC,
            Of::Thread(_) => INHERIT,
            Of::Cpu(_) | Of::Cgroup(..) => 0,
        };
        if !with_kernel {
            attributes[5] |= EXCLUDE_KERNEL | EXCLUDE_HV;
        }
        attributes[7] = event.config1;
        attributes[8] = event.config2;
        let (pid, cpu, flags) = match of {
            Of::Children => (0, -1, 0),
            Of::Thread(thread) => (thread as i32, -1, 0),
            Of::Cpu(cpu) => (-1, cpu as i32, 0),
            Of::Cgroup(directory, cpu) => (directory.as_raw_fd(), cpu as i32, FLAG_CGROUP),
        };
        // SAFETY: the attributes outlive the call and contain their own size.
        let fd = unsafe {
            let place = attributes.as_ptr();
            let flags = flags | FLAG_CLOEXEC;
            libc::syscall(libc::SYS_perf_event_open, place, pid, cpu, -1, flags)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and is not owned elsewhere.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        if let Some(filter) = filter {
            // SAFETY: the filter is a string that outlives the call.
            let set = unsafe { libc::ioctl(fd.as_raw_fd(), IOC_SET_FILTER, filter.as_ptr()) };
            if set < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Counting(fd.into()))
    }

    /// Reads the count so far, with that of inherited events. `None` if it was never counted.
    ///
    /// # Errors
    /// The event cannot be counted any more.
    pub fn read(&self) -> io::Result<Option<Count>> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Ok(Count::parse([word(0), word(8), word(16)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplexed_count_is_scaled() {
        let value = |words| Count::parse(words).map(|count| count.value);
        assert_eq!(value([100, 10, 10]), Some(100));
        assert_eq!(value([100, 40, 10]), Some(400));
        assert_eq!(value([0, 40, 0]), None, "never counted");
        assert_eq!(value([0, 0, 0]), Some(0), "not enabled yet");
        assert_eq!(value([u64::MAX, 1 << 40, 1]), Some(u64::MAX));
    }

    /// The kernel counts this thread's page faults.
    #[test]
    fn page_faults_of_a_thread_are_counted() {
        let event = Event {
            kind: 1,
            config: 2,
            ..Event::default()
        };
        let counting = match Counting::open(&event, Of::Thread(0), false, None) {
            Ok(counting) => counting,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let memory = crate::memory::Memory::new(toll_model::REGION).unwrap();
        let before = counting.read().unwrap().unwrap().value;
        memory.touch_pages(0, 64 << 12);
        let after = counting.read().unwrap().unwrap().value;
        assert!(after > before, "{before} {after}");
    }
}
