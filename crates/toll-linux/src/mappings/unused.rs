// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of huge pages that were never written: 4 KiB that hold only zeros. A huge page has one
//! accessed bit, so what was touched cannot be told from the page tables. The kernel uses the same
//! criterion to split huge pages that are mostly unused (Linux 6.12, `mm/huge_memory.c`,
//! `thp_underused`).

use std::io;
use std::time::{Duration, Instant};

use toll_model::random::Random;
use toll_model::{PAGE, REGION};

use crate::Root;
use crate::watch::Backing;

/// What was read of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Content {
    /// Number of huge pages that could have been read.
    pub regions: usize,
    /// For each that was read: bytes in 4 KiB parts of zeros.
    pub zero: Vec<u64>,
}

/// The regions of an anonymous mapping, and how much of them is huge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    pub start: u64,
    pub end: u64,
    pub huge: u64,
}

/// Returns the backing of the regions of mappings. Before Linux 6.7, only mappings that are huge
/// throughout can be told; `None` if none of them is.
pub fn backing(root: &Root, pid: u32, mappings: &[Inner]) -> Option<Backing> {
    let ranges: Vec<(u64, u64)> = mappings.iter().map(|it| (it.start, it.end)).collect();
    if let Ok(backing) = Backing::of(root, pid, &ranges) {
        return Some(backing);
    }
    let whole = mappings.iter().filter(|it| it.huge == it.end - it.start);
    let huge: Vec<u64> = whole
        .flat_map(|it| (it.start..it.end).step_by(REGION as usize))
        .collect();
    (!huge.is_empty()).then(|| Backing {
        huge,
        ..Backing::default()
    })
}

/// Reads at most `most` huge pages, chosen at random, for at most `time`.
///
/// # Errors
/// Not even one can be read: not permitted, or the process has ended.
pub fn unused(pid: u32, mut regions: Vec<u64>, most: usize, time: Duration) -> io::Result<Content> {
    let begun = Instant::now();
    let mut random = Random::new(1);
    let mut content = Content {
        regions: regions.len(),
        zero: Vec::new(),
    };
    let mut buffer = vec![0; REGION as usize];
    for at in 0..regions.len().min(most) {
        let other = at + random.below(regions.len() - at);
        regions.swap(at, other);
        match read(pid, regions[at], &mut buffer) {
            Ok(()) => content.zero.push(zero(&buffer)),
            Err(error) if content.zero.is_empty() => return Err(error),
            // It was freed meanwhile.
            Err(_) => content.regions -= 1,
        }
        if begun.elapsed() > time {
            break;
        }
    }
    Ok(content)
}

fn read(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let ours = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let theirs = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: buffer.len(),
    };
    // SAFETY: the buffer outlives the call, and is as long as it says.
    let got = unsafe { libc::process_vm_readv(pid as i32, &ours, 1, &theirs, 1, 0) };
    match got {
        -1 => Err(io::Error::last_os_error()),
        got if got as usize == buffer.len() => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Bytes in pages of zeros.
fn zero(buffer: &[u8]) -> u64 {
    let pages = buffer.chunks_exact(PAGE as usize);
    // SAFETY: any bytes are valid integers.
    let is_zero = |page: &&[u8]| {
        unsafe { page.align_to::<u128>() }
            .1
            .iter()
            .all(|it| *it == 0)
    };
    pages.filter(is_zero).count() as u64 * PAGE
}

#[cfg(test)]
mod tests;
