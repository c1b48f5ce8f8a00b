// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

/// An aligned mapping: untouched regions, 4 KiB regions and (if the kernel provides one) huge
/// regions.
struct Memory(*mut u8, u64);

impl Memory {
    fn new(regions: u64) -> Memory {
        let length = (regions + 1) * REGION;
        // SAFETY: a new mapping of our own.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        Memory(at.cast(), length)
    }

    fn region(&self, number: u64) -> u64 {
        (self.0 as u64).next_multiple_of(REGION) + number * REGION
    }

    fn advise(&self, number: u64, advice: i32) {
        // SAFETY: the region lies in our mapping.
        let done = unsafe { libc::madvise(self.region(number) as *mut _, REGION as usize, advice) };
        assert_eq!(done, 0);
    }

    fn touch(&self, number: u64, page: u64) {
        // SAFETY: the page lies in our mapping.
        unsafe {
            ((self.region(number) + page * PAGE) as *mut u8).write_volatile(1);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our mapping, which is no longer used.
        unsafe { libc::munmap(self.0.cast(), self.1 as usize) };
    }
}

#[test]
fn regions_are_told_apart() {
    let memory = Memory::new(4);
    memory.advise(1, libc::MADV_NOHUGEPAGE);
    memory.advise(3, libc::MADV_HUGEPAGE);
    for page in [0, 2, 511] {
        memory.touch(1, page);
    }
    memory.touch(3, 100);
    let range = (memory.region(0), memory.region(4));
    let root = Root::system();
    let backing = match Backing::of(&root, std::process::id(), &[range]) {
        Ok(backing) => backing,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let smaps = crate::proc::smaps(&root, std::process::id()).unwrap();
    let of_region = |smap: &&crate::proc::Smap| smap.mapping.start == memory.region(3);
    let is_huge = smaps.iter().find(of_region).unwrap().anon_huge == REGION;
    let (small, huge) = ([1, 3].map(|n| memory.region(n)), [memory.region(3)]);
    match is_huge {
        true => assert_eq!(
            (&backing.small[..], &backing.huge[..]),
            (&small[..1], &huge[..])
        ),
        false => assert_eq!(
            (&backing.small[..], &backing.huge[..]),
            (&small[..], &[][..])
        ),
    }
}

#[test]
fn nobody_has_no_backing() {
    // Ids end at 2^22.
    assert!(Backing::of(&Root::system(), 1 << 23, &[(0, REGION)]).is_err());
}
