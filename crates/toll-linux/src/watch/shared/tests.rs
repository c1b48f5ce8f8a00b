// SPDX-License-Identifier: MIT OR Apache-2.0
use std::fs;

use super::*;
use crate::proc::smaps;
use crate::remote::RemoteProcess;

/// A file of two regions in memory, mapped where huge pages fit.
struct Mapped {
    path: PathBuf,
    room: *mut libc::c_void,
}

impl Mapped {
    const LENGTH: usize = 3 * REGION as usize;

    fn new() -> Mapped {
        let path = PathBuf::from(format!("/dev/shm/tollfree-test-{}", std::process::id()));
        fs::write(&path, vec![7u8; 2 * REGION as usize]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        // SAFETY: a reservation of our own, in which the file is mapped.
        unsafe {
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let room = libc::mmap(null_mut(), Mapped::LENGTH, 0, private, -1, 0);
            let mapped = Mapped { path, room };
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let (at, length) = (mapped.at() as *mut libc::c_void, 2 * REGION as usize);
            assert_eq!(
                libc::mmap(at, length, protection, flags, file.as_raw_fd(), 0),
                at
            );
            mapped
        }
    }

    fn at(&self) -> u64 {
        (self.room as u64).next_multiple_of(REGION)
    }

    fn huge(&self) -> u64 {
        let all = smaps(&Root::system(), std::process::id()).unwrap();
        let ours = all.iter().filter(|smap| smap.mapping.start == self.at());
        ours.map(|smap| smap.huge()).sum()
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: our own reservation.
        unsafe { libc::munmap(self.room, Mapped::LENGTH) };
        let _ = fs::remove_file(&self.path);
    }
}

#[test]
fn huge_pages_of_a_file_are_split_after_the_process() {
    if !std::path::Path::new("/dev/shm").is_dir() {
        return println!("skipped: there is no /dev/shm");
    }
    let mapped = Mapped::new();
    let own = RemoteProcess::for_pid(std::process::id(), false).unwrap();
    if let Err(error) = own.collapse(mapped.at(), 2 * REGION) {
        return println!("skipped: shared memory cannot be collapsed: {error}");
    }
    assert_eq!(mapped.huge(), 2 * REGION);
    let maps = crate::proc::maps(&Root::system(), std::process::id()).unwrap();
    let mut restore = Restore::default();
    restore.note(mapped.at(), &maps);
    restore.note(mapped.at() + REGION, &maps);
    assert_eq!(restore.0.len(), 2);
    let offsets: Vec<u64> = restore.0.iter().map(|part| part.offset).collect();
    assert_eq!(offsets, [0, REGION]);
    // As after the end of the process: nobody else maps them.
    // SAFETY: the mapping is not used any more.
    unsafe { libc::munmap(mapped.at() as *mut libc::c_void, 2 * REGION as usize) };
    assert_eq!(restore.split(), 0);
    assert_eq!(restore, Restore::default());
    let file = File::open(&mapped.path).unwrap();
    let room = Room::reserve().unwrap();
    let page = room.map(&file, 0).unwrap();
    // SAFETY: reads the mapping of the file, which has content.
    assert_eq!(unsafe { *page.cast::<u8>() }, 7);
    assert!(!room.is_huge());
}

#[test]
fn only_files_with_a_name_are_noted() {
    let maps = |permissions: &str, name: &str| Mapping {
        start: REGION,
        end: 2 * REGION,
        read: true,
        write: true,
        execute: false,
        shared: permissions.ends_with('s'),
        offset: 0,
        device: (0, 21),
        inode: 9,
        name: name.into(),
    };
    let mut restore = Restore::default();
    restore.note(REGION, &[maps("rw-s", "/memfd:x (deleted)")]);
    restore.note(REGION, &[maps("rw-p", "/dev/shm/x")]);
    restore.note(REGION, &[maps("rw-p", "")]);
    assert_eq!(restore, Restore::default());
    restore.note(REGION, &[maps("rw-s", "/dev/shm/x")]);
    assert_eq!(restore.0.len(), 1);
}
