// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read-only mappings of files that are served from a morsel: a copy in memory, in huge pages.
//!
//! A file is identified by device and inode, and served while its size and its modification and
//! change times equal those of the copy. This check takes system calls, for which a program with a
//! seccomp filter may be killed: after it installs one it gets the files themselves. A mapping that
//! requests more than reading (writing, execution, flags unknown to this module) is made from the
//! file itself, and so is any mapping in an unexpected case.

use core::ffi::{CStr, c_int};
use core::mem::size_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

use toll_wire::{self as wire, Served, ServedHeader};

use crate::os::{self, Errno, File, PAGE};
use crate::{hugetlb, real};

/// The records of the morsel file.
static RECORDS: AtomicPtr<Served> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The header of the morsel file.
static HEADER: AtomicPtr<ServedHeader> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the program has installed a system call filter.
static CONFINED: AtomicBool = AtomicBool::new(false);

/// A requested mapping.
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

/// Maps the morsel file that the environment names. On any problem nothing is served.
pub fn load() {
    let Some((start, size)) = os::variable(wire::variables::SERVED).and_then(os::map_file) else {
        return;
    };
    let Some(room) = size.checked_sub(size_of::<ServedHeader>()) else {
        return;
    };
    // SAFETY: the mapping is page-aligned, long enough for the header, made of plain integers, and
    // permanent.
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
        // SAFETY: `load` permanently mapped this many; only their atomic fields change.
        count => unsafe { core::slice::from_raw_parts(RECORDS.load(Relaxed), count) },
    }
}

/// Called before the program installs a filter, possibly for all of its threads. This also takes
/// effect if the installation fails, since the program may retry.
#[cold]
#[inline(never)]
pub fn confine() {
    CONFINED.store(true, SeqCst);
}

/// Whether the program has installed a filter, or has tried to.
pub fn is_confined() -> bool {
    CONFINED.load(SeqCst)
}

/// Serves a mapping from a morsel: returns its address, or `None` if the file itself must be
/// mapped.
#[cold]
#[inline(never)]
pub fn serve(request: &Request) -> Option<usize> {
    if CONFINED.load(SeqCst) {
        // SAFETY: `load` mapped it permanently before it counted a record.
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

/// Whether the file is unchanged since the copy.
fn is_unchanged(served: &Served, file: &libc::stat) -> bool {
    let modified = (file.st_mtime, file.st_mtime_nsec as u64);
    let changed = (file.st_ctime, file.st_ctime_nsec as u64);
    file.st_size as u64 == served.size
        && modified == (served.seconds, served.nanoseconds)
        && changed == (served.changed_seconds, served.changed_nanoseconds)
}

/// Returns the flags for mapping the morsel; `None` if the mapping requests something that a morsel
/// does not support.
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
        // mprotect may make it writable later, which must affect the file.
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
    // Pages of the hugetlb pool cannot be mapped at any address or offset, and without
    // MAP_NORESERVE a private copy of each would be reserved.
    let fits = request.flags & FIXED == 0 && offset.checked_rem(served.page)? == 0;
    fits.then_some(request.flags | libc::MAP_NORESERVE)
}

/// Maps the morsel, if it is still the expected one.
fn map(served: &Served, request: &Request, flags: c_int) -> Option<usize> {
    let path = CStr::from_bytes_until_nul(&served.path).ok()?;
    let morsel = File::open(path, libc::O_RDONLY | libc::O_NOFOLLOW)?;
    let is = os::state(morsel.fd())?;
    if (is.st_dev, is.st_ino) != (served.morsel_device, served.morsel_inode) {
        return None;
    }
    // SAFETY: as the program requested, from another file with the same content.
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
        // A partial unmap could not be handled.
        let length = request.length.next_multiple_of(page);
        // SAFETY: the mapping is new, and no other code knows its address.
        unsafe { real::munmap(mapping, length) };
        return None;
    }
    Some(start)
}
