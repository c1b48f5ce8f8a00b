// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read-only mappings of files that are served from a morsel: a copy in memory, in huge pages.
//!
//! A file is known by device and inode, and served as long as its size and the times of its last
//! modification and change are those of the copy. To know that takes system calls, which a program that has
//! confined itself by a filter (seccomp) may be killed for: from then on it gets the files themselves. What asks for more than to read the file (to write, to execute, flags that this module does
//! not know), the file itself serves; so it does whenever something is not as expected.

use core::ffi::{CStr, c_int};
use core::mem::size_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

use toll_model::wire::{self, Served, ServedHeader};

use crate::os::{self, Errno, File, PAGE};
use crate::{hugetlb, real};

/// The records of the morsel file.
static RECORDS: AtomicPtr<Served> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The header of the morsel file.
static HEADER: AtomicPtr<ServedHeader> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the program has installed a filter for its system calls.
static CONFINED: AtomicBool = AtomicBool::new(false);

/// A mapping that was asked for.
pub struct Request {
    pub address: usize,
    pub length: usize,
    pub protection: c_int,
    pub flags: c_int,
    pub fd: c_int,
    pub offset: i64,
}

/// Whether any file is served.
#[inline(always)]
pub fn any() -> bool {
    COUNT.load(Relaxed) != 0
}

/// Maps the morsel file that the environment names. Anything odd: nothing is served.
pub fn load() {
    let Some((start, size)) = os::variable(c"TOLLFREE_SERVED").and_then(os::map_file) else {
        return;
    };
    let Some(room) = size.checked_sub(size_of::<ServedHeader>()) else {
        return;
    };
    // SAFETY: the mapping is page-aligned, long enough for the header, made of plain integers, and there
    // for good.
    let header = unsafe { &*start.cast::<ServedHeader>() };
    if header.magic != wire::SERVED_MAGIC {
        return;
    }
    // SAFETY: inside the mapping.
    let records = unsafe { start.add(size_of::<ServedHeader>()) };
    RECORDS.store(records.cast(), Relaxed);
    HEADER.store(start.cast(), Relaxed);
    COUNT.store(
        (header.count as usize).min(room / size_of::<Served>()),
        Release,
    );
}

fn records() -> &'static [Served] {
    match COUNT.load(Acquire) {
        0 => &[],
        // SAFETY: `load` mapped so many, for good; only their atomic fields change.
        count => unsafe { core::slice::from_raw_parts(RECORDS.load(Relaxed), count) },
    }
}

/// The program is about to install a filter, for all of its threads perhaps. That counts even if it fails:
/// who tries that tries again.
#[cold]
#[inline(never)]
pub fn confine() {
    CONFINED.store(true, SeqCst);
}

/// Serves a mapping from a morsel: its address, or `None` where the file itself has to.
#[cold]
#[inline(never)]
pub fn serve(request: &Request) -> Option<usize> {
    if CONFINED.load(SeqCst) {
        // SAFETY: `load` mapped it, for good, before it counted a record.
        let header = unsafe { HEADER.load(Relaxed).as_ref() };
        header.inspect(|header| {
            header.confined.fetch_add(1, Relaxed);
        });
        return None;
    }
    let _errno = Errno::save();
    let file = os::state(request.fd)?;
    let is = |served: &&Served| (served.device, served.inode) == (file.st_dev, file.st_ino);
    let served = records().iter().find(is)?;
    let mapping = is_unchanged(served, &file)
        .then_some(())
        .and_then(|()| flags(served, request))
        .and_then(|flags| map(served, request, flags));
    match mapping {
        Some(_) => {
            add(&served.mappings, 1);
            add(&served.bytes, request.length as u64);
        }
        None => add(&served.left, 1),
    }
    mapping
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Relaxed);
}

/// Whether the file is what the morsel is a copy of.
fn is_unchanged(served: &Served, file: &libc::stat) -> bool {
    let modified = (file.st_mtime, file.st_mtime_nsec as u64);
    let changed = (file.st_ctime, file.st_ctime_nsec as u64);
    file.st_size as u64 == served.size
        && modified == (served.seconds, served.nanoseconds)
        && changed == (served.changed_seconds, served.changed_nanoseconds)
}

/// The flags to map the morsel with; `None` if the mapping asks for what a morsel does not give.
fn flags(served: &Served, request: &Request) -> Option<c_int> {
    const TYPE: c_int = 0xf;
    const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    const KNOWN: c_int = TYPE
        | FIXED
        | libc::MAP_POPULATE
        | libc::MAP_NONBLOCK
        | libc::MAP_NORESERVE
        | libc::MAP_DENYWRITE
        | libc::MAP_EXECUTABLE;
    let mode = os::access_mode(request.fd)?;
    let may_write = match request.flags & TYPE {
        // mprotect may make it writable later, and then the file is meant.
        libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE => mode != libc::O_RDONLY,
        libc::MAP_PRIVATE => false,
        _ => return None,
    };
    let reads = request.protection == libc::PROT_READ && mode != libc::O_WRONLY;
    if may_write || !reads || request.flags & !KNOWN != 0 {
        return None;
    }
    let offset = u64::try_from(request.offset).ok()?;
    let end = offset.checked_add(request.length as u64)?;
    if end > served.size.checked_next_multiple_of(PAGE as u64)? {
        return None;
    }
    if served.page == PAGE as u64 {
        return Some(request.flags);
    }
    // Pages of the hugetlb pool: they cannot go anywhere, and a copy of each would be reserved.
    let fits = request.flags & FIXED == 0 && offset.checked_rem(served.page)? == 0;
    fits.then_some(request.flags | libc::MAP_NORESERVE)
}

/// Maps the morsel, if it is still the one that is meant.
fn map(served: &Served, request: &Request, flags: c_int) -> Option<usize> {
    let path = CStr::from_bytes_until_nul(&served.path).ok()?;
    let morsel = File::open(path, libc::O_RDONLY | libc::O_NOFOLLOW)?;
    let is = os::state(morsel.fd())?;
    if (is.st_dev, is.st_ino) != (served.morsel_device, served.morsel_inode) {
        return None;
    }
    // SAFETY: what the program asked for, from another file of the same content.
    let mapping = unsafe {
        real::mmap(
            request.address as *mut _,
            request.length,
            request.protection,
            flags,
            morsel.fd(),
            request.offset,
        )
    };
    if mapping == libc::MAP_FAILED {
        return None;
    }
    let start = mapping as usize;
    let page = served.page as usize;
    if page != PAGE && !hugetlb::note(start, start + request.length, page) {
        // Nobody would know how to unmap it in parts.
        let length = request.length.next_multiple_of(page);
        // SAFETY: the mapping is new, and nobody knows of it.
        unsafe { real::munmap(mapping, length) };
        return None;
    }
    Some(start)
}
