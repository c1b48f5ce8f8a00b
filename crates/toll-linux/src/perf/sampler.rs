// SPDX-License-Identifier: MIT OR Apache-2.0
//! perf_event_open on this process, and the samples it delivers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{Ordering, fence};

use super::event::Event;

const SAMPLE_ADDR: u64 = 1 << 3;
const SAMPLE_DATA_SRC: u64 = 1 << 15;
const RECORD_SAMPLE: u32 = 9;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const PRECISE_SHIFT: u32 = 15;
const FLAG_CLOEXEC: u64 = 8;
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
/// Offset of the write position in the first page of the ring.
const DATA_HEAD: usize = 1024;
const PAGE: usize = toll_model::PAGE as usize;
/// A header page, and a power of two of data pages.
const PAGES: usize = 1 + 16;

/// One sampled access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) address: u64,
    pub(super) source: u64,
}

impl Sample {
    /// Whether the source has a TLB level: hit or miss, in L1, L2 or by a walker.
    pub(super) fn has_tlb_level(&self) -> bool {
        const SHIFT: u32 = 26;
        const HIT_OR_MISS: u64 = 0x02 | 0x04;
        const LEVELS: u64 = 0x08 | 0x10 | 0x20 | 0x40;
        let tlb = self.source >> SHIFT & 0x7f;
        tlb & HIT_OR_MISS != 0 && tlb & LEVELS != 0
    }
}

/// An open event with its ring of samples.
pub(super) struct Sampler {
    event: OwnedFd,
    /// Leader of the group, if there is one.
    leader: Option<OwnedFd>,
    ring: NonNull<u8>,
}

impl Sampler {
    /// Opens the event for this thread, user space only.
    pub(super) fn open(event: &Event) -> io::Result<Sampler> {
        let leader = match &event.leader {
            Some(leader) => Some(open(leader, -1)?),
            None => None,
        };
        let group = leader.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let file = open(event, group)?;
        // SAFETY: a new shared mapping of the event's ring.
        let ring = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let fd = file.as_raw_fd();
            libc::mmap(
                ptr::null_mut(),
                PAGES * PAGE,
                protection,
                libc::MAP_SHARED,
                fd,
                0,
            )
        };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Sampler {
            event: file,
            leader,
            ring: NonNull::new(ring.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
        })
    }

    /// Samples while `work` runs.
    pub(super) fn during(&self, work: impl FnOnce()) {
        self.control(IOC_ENABLE);
        work();
        self.control(IOC_DISABLE);
    }

    fn control(&self, request: libc::Ioctl) {
        for file in self.leader.iter().chain([&self.event]) {
            // SAFETY: these requests take no argument.
            unsafe { libc::ioctl(file.as_raw_fd(), request, 0) };
        }
    }

    /// Returns the samples so far, as many as the ring holds.
    pub(super) fn samples(&self) -> Vec<Sample> {
        // SAFETY: the ring is mapped for as long as `self` lives; the kernel writes its position
        // after the data, hence the fence between them.
        let data = unsafe {
            let head = self.ring.add(DATA_HEAD).cast::<u64>().read_volatile();
            fence(Ordering::Acquire);
            let length = (head as usize).min((PAGES - 1) * PAGE);
            std::slice::from_raw_parts(self.ring.add(PAGE).as_ptr(), length)
        };
        parse(data)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it remains.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), PAGES * PAGE) };
    }
}

fn open(event: &Event, group: i32) -> io::Result<OwnedFd> {
    // struct perf_event_attr, version 1: type and size, config, period, sample type, read
    // format, flags, wakeup and breakpoint type, config1, config2.
    let mut attributes = [0u64; 9];
    let size = size_of_val(&attributes) as u64;
    attributes[0] = u64::from(event.kind) | size << 32;
    attributes[1] = event.config;
    attributes[2] = event.period;
    attributes[3] = SAMPLE_ADDR | SAMPLE_DATA_SRC;
    attributes[5] = DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV | event.precise << PRECISE_SHIFT;
    attributes[7] = event.config1;
    attributes[8] = event.config2;
    let mut result = perf_event_open(&attributes, group);
    let refused =
        |error: &io::Error| matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP));
    if result.as_ref().is_err_and(refused) {
        // Older kernels do not support excluding the kernel with IBS.
        attributes[5] &= !(EXCLUDE_KERNEL | EXCLUDE_HV);
        result = perf_event_open(&attributes, group);
    }
    result
}

fn perf_event_open(attributes: &[u64; 9], group: i32) -> io::Result<OwnedFd> {
    // SAFETY: the attributes outlive the call and contain their own size; pid 0 and cpu -1 mean
    // this thread on any CPU.
    let fd = unsafe {
        let place = attributes.as_ptr();
        libc::syscall(libc::SYS_perf_event_open, place, 0, -1, group, FLAG_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and is not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Parses the samples in a ring that did not wrap; a record cut at its end is left out.
fn parse(mut data: &[u8]) -> Vec<Sample> {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    let mut samples = Vec::new();
    while data.len() >= 8 {
        let header = word(&data[..8]);
        let (kind, size) = (header as u32, (header >> 48) as usize);
        if size < 8 || size > data.len() {
            break;
        }
        if kind == RECORD_SAMPLE && size >= 24 {
            samples.push(Sample {
                address: word(&data[8..16]),
                source: word(&data[16..24]),
            });
        }
        data = &data[size..];
    }
    samples
}

#[cfg(test)]
mod tests;
