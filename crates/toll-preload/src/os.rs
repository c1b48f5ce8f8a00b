// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that bypass the hooks, and small file reads.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::ptr::null_mut;

/// Size of a base page in bytes.
pub const PAGE: usize = toll_wire::PAGE as usize;

/// Rounds a length to whole pages.
pub fn rounded(length: usize) -> usize {
    length.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Preserves the program's `errno`.
pub struct Errno(c_int);

impl Errno {
    pub fn save() -> Errno {
        // SAFETY: the location is valid for the life of the thread.
        Errno(unsafe { *libc::__errno_location() })
    }

    /// Keeps the current `errno`.
    pub fn forget(self) {
        core::mem::forget(self);
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 }
    }
}

/// Calls `mmap` as a system call; `None` on failure.
pub fn map(
    address: usize,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
) -> Option<usize> {
    // SAFETY: callers pass either no address or a range that they own.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length,
            c_long::from(protection),
            c_long::from(flags),
            c_long::from(fd),
            0usize,
        )
    };
    (result != -1).then_some(result as usize)
}

/// Maps zeroed memory for this library, populated from the start.
fn map_anonymous(length: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    map(0, length, libc::PROT_READ | libc::PROT_WRITE, flags, -1)
}

pub fn unmap(address: usize, length: usize) {
    // SAFETY: callers pass a mapping of this library's own.
    unsafe { libc::syscall(libc::SYS_munmap, address, length) };
}

/// Calls `mremap` as a system call and returns its raw result (-1 and `errno`).
pub fn remap(old: usize, old_length: usize, length: usize, flags: c_int, new: usize) -> isize {
    // SAFETY: the program requested exactly this.
    unsafe {
        let flags = c_long::from(flags);
        libc::syscall(libc::SYS_mremap, old, old_length, length, flags, new) as isize
    }
}

/// Gives `advice` for a page-aligned range; true if the kernel accepted it.
pub fn advise(start: usize, end: usize, advice: c_int) -> bool {
    // SAFETY: huge-page advice changes no content.
    unsafe { libc::madvise(start as *mut c_void, end - start, advice) == 0 }
}

/// Returns CLOCK_MONOTONIC in ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

pub fn process_id() -> u32 {
    // SAFETY: cannot fail.
    unsafe { libc::getpid() as u32 }
}

/// Returns the value of an environment variable.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: `name` is terminated; the value is used only while the library starts.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Whether the C library has set up the environment yet.
pub fn has_environment() -> bool {
    unsafe extern "C" {
        static environ: *const *const libc::c_char;
    }
    // SAFETY: `environ` exists in every C library; it is only compared.
    unsafe { !environ.is_null() }
}

/// An open file that is closed on drop.
pub struct File(c_int);

impl File {
    pub fn open(path: &CStr, flags: c_int) -> Option<File> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: `path` is terminated.
        let fd = unsafe { libc::open(path.as_ptr(), flags) };
        (fd >= 0).then_some(File(fd))
    }

    /// Returns the size in bytes; `None` for anything but a regular file.
    fn size(&self) -> Option<usize> {
        let stat = state(self.0)?;
        let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        (regular && stat.st_size > 0).then_some(stat.st_size as usize)
    }

    pub fn fd(&self) -> c_int {
        self.0
    }

    /// Reads at an offset into `buffer`; returns 0 at the end and on errors.
    pub fn read_at(&self, buffer: &mut [u8], offset: usize) -> usize {
        let offset = offset as libc::off_t;
        // SAFETY: the buffer is writable for its length.
        let got = unsafe { libc::pread(self.0, buffer.as_mut_ptr().cast(), buffer.len(), offset) };
        if got > 0 { got as usize } else { 0 }
    }

    /// Reads into `buffer`; returns 0 at the end and on errors.
    pub fn read(&self, buffer: &mut [u8]) -> usize {
        // SAFETY: the buffer is writable for its length.
        let got = unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) };
        if got > 0 { got as usize } else { 0 }
    }
}

/// Returns the status of an open file.
pub fn state(fd: c_int) -> Option<libc::stat> {
    // SAFETY: all zeroes is a valid `stat`, which is only written to.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then_some(stat)
    }
}

/// Returns the access mode of an open file: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
pub fn access_mode(fd: c_int) -> Option<c_int> {
    // SAFETY: F_GETFL takes no pointer.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    (flags >= 0).then_some(flags & libc::O_ACCMODE)
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours.
        unsafe { libc::close(self.0) };
    }
}

/// Makes a private read-only copy of a regular file that stays mapped permanently, so that later
/// changes to the file cannot affect the program; followed by zeroed words, in the number that
/// `words` returns for a file of that many bytes. All of it is populated: single page faults would
/// take longer than the rest.
pub fn read_file(
    path: &CStr,
    words: fn(usize) -> usize,
) -> Option<(&'static [u8], &'static mut [u32])> {
    let file = File::open(path, libc::O_RDONLY)?;
    let size = file.size()?;
    let front = size.checked_next_multiple_of(PAGE)?;
    let words = words(size);
    let length = front.checked_add(words.checked_mul(size_of::<u32>())?)?;
    let address = map_anonymous(length)?;
    // SAFETY: `length` bytes were just mapped, page-aligned, and are not shared; the two parts do
    // not overlap.
    let (bytes, words) = unsafe {
        (
            core::slice::from_raw_parts_mut(address as *mut u8, size),
            core::slice::from_raw_parts_mut((address + front) as *mut u32, words),
        )
    };
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            0 => break,
            got => done += got,
        }
    }
    if done != size {
        unmap(address, length);
        return None;
    }
    // SAFETY: removes a permission that is no longer used.
    unsafe { libc::mprotect(address as *mut c_void, front, libc::PROT_READ) };
    Some((bytes, words))
}

/// Maps a regular file, shared and writable; returns its address and size.
pub fn map_file(path: &CStr) -> Option<(*mut u8, usize)> {
    let file = File::open(path, libc::O_RDWR)?;
    let size = file.size()?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let address = map(0, size, protection, libc::MAP_SHARED, file.0)?;
    Some((address as *mut u8, size))
}

/// Returns the target of a symbolic link, NUL-terminated in `buffer`; empty on errors.
pub fn read_link(path: &CStr, buffer: &mut [u8]) {
    let room = buffer.len().saturating_sub(1);
    // SAFETY: at most `room` bytes are written.
    let got = unsafe { libc::readlink(path.as_ptr(), buffer.as_mut_ptr().cast(), room) };
    let end = if got > 0 { got as usize } else { 0 };
    if let Some(byte) = buffer.get_mut(end) {
        *byte = 0;
    }
}

/// Returns the next function called `name` after this library in the search order.
pub fn next_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: `name` is terminated. The call must not become a tail call of an
    // exported function: RTLD_NEXT counts from the caller's module.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    core::hint::black_box(found)
}

/// A null function pointer.
pub const NOTHING: *mut c_void = null_mut();
