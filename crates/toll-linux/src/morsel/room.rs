// SPDX-License-Identifier: MIT OR Apache-2.0
//! Free space in a store, and selection of morsels to remove.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use rustix::fs::statvfs;
use rustix::io::Errno;
use toll_model::units::format_size;

use super::lease::lease;
use super::pages::Mapped;
use super::{Kind, Morsel, MorselError, Store, at};
use crate::{Root, sys};

/// Reserve for other programs: this part of the memory, and at least [`LEAST_RESERVE`].
const RESERVED_PART: u64 = 16;
/// Bytes.
const LEAST_RESERVE: u64 = 64 << 20;

/// Capacity of a store, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Used by all morsels.
    pub used: u64,
    /// Additional bytes that fit.
    pub available: u64,
    /// Free memory that is reserved for other programs; 0 if the store has its own memory.
    pub reserved: u64,
}

impl Store {
    /// # Errors
    /// The directory or `/proc/meminfo` cannot be read.
    pub fn room(&self, morsels: &[Morsel]) -> Result<Room, MorselError> {
        self.room_in(&Root::system(), morsels)
    }

    /// Returns the capacity on the machine that `root` describes.
    fn room_in(&self, root: &Root, morsels: &[Morsel]) -> Result<Room, MorselError> {
        let stat = statvfs(&self.directory).map_err(at(&self.directory))?;
        // hugetlbfs without a size reports 0 or all ones.
        let of_mount = match stat.f_blocks as i64 {
            1.. => stat.f_bavail.saturating_mul(stat.f_frsize),
            _ => u64::MAX,
        };
        // morselfs accounts its page tables too: one per 512 4 KiB pages, and the upper levels.
        let of_mount = match self.backing.kind {
            Kind::Morselfs => of_mount - of_mount.min(of_mount / 512 + 4 * stat.f_bsize),
            Kind::Hugetlbfs | Kind::Tmpfs => of_mount,
        };
        let free = free(root).map_err(at("/proc/meminfo".as_ref()))?;
        let (of_machine, reserved) = match self.backing.kind {
            Kind::Hugetlbfs => (of_pool(root, self.backing.page, free.available), 0),
            Kind::Morselfs | Kind::Tmpfs => (free.available, free.reserved),
        };
        Ok(Room {
            used: distinct(morsels).map(|morsel| morsel.allocated).sum(),
            available: of_mount.min(of_machine),
            reserved,
        })
    }

    /// Whether `bytes` more bytes of memory may be taken: other programs may have used memory since
    /// the copy began.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        // A pool fails by itself when it is empty.
        self.backing.kind == Kind::Hugetlbfs
            || free(&Root::system()).is_ok_and(|free| free.available >= bytes)
    }

    /// Removes the least recently used morsels that are not in use, until `needed` more bytes fit
    /// and all morsels together stay below `limit`. Returns the removed morsels. If not enough can
    /// be removed, removes nothing.
    pub(super) fn make_room(
        &self,
        needed: u64,
        limit: Option<u64>,
    ) -> Result<Vec<Morsel>, MorselError> {
        let morsels = self.list()?;
        let room = self.room(&morsels)?;
        let mapped = Mapped::read(&Root::system());
        let mut held = Vec::new();
        let chosen = choose(&morsels, room, needed, limit, &mut |morsel| match unused(
            morsel, &mapped,
        ) {
            Some(lease) => {
                held.push(lease);
                true
            }
            None => false,
        });
        let Some(chosen) = chosen else {
            return Err(MorselError::Full {
                path: self.directory.clone(),
                needed,
                why: why_full(room, limit),
            });
        };
        for morsel in &chosen {
            self.unlink(morsel)?;
        }
        Ok(chosen)
    }
}

/// Memory of a machine, bytes.
struct Free {
    /// Available to morsels.
    available: u64,
    /// Reserved for other programs.
    reserved: u64,
}

/// Returns how much free memory morsels may use, on the machine and in the control group.
fn free(root: &Root) -> io::Result<Free> {
    let meminfo = sys::meminfo(root)?;
    let headroom = sys::memory_headroom(root).unwrap_or(u64::MAX);
    let total = sys::memory_limit(root).map_or(meminfo.total, |limit| limit.min(meminfo.total));
    let reserved = (total / RESERVED_PART).max(LEAST_RESERVE);
    let free = meminfo.available.min(headroom);
    Ok(Free {
        available: free.saturating_sub(reserved),
        reserved,
    })
}

/// Returns the capacity of a hugetlb pool: free pages, and surplus pages that it may allocate.
fn of_pool(root: &Root, page: u64, available: u64) -> u64 {
    let pools = sys::hugetlb(root);
    let Some(pool) = pools.iter().find(|pool| pool.page == page) else {
        return 0;
    };
    pool.free * page + (pool.overcommit * page).min(available / page * page)
}

/// Returns each morsel once, even if it has several names.
fn distinct(morsels: &[Morsel]) -> impl Iterator<Item = &Morsel> {
    let mut seen = BTreeSet::new();
    morsels
        .iter()
        .filter(move |morsel| seen.insert(morsel.inode))
}

/// Selects the morsels to remove so that `needed` bytes fit, the least recently used first; `None`
/// if not enough can be removed. Morsels that are not copies of a file are never removed.
fn choose(
    morsels: &[Morsel],
    room: Room,
    needed: u64,
    limit: Option<u64>,
    can_go: &mut dyn FnMut(&Morsel) -> bool,
) -> Option<Vec<Morsel>> {
    let limit = limit.unwrap_or(u64::MAX);
    let mut oldest: Vec<&Morsel> = distinct(morsels)
        .filter(|it| it.identity.is_some())
        .collect();
    oldest.sort_by_key(|morsel| morsel.used);
    let mut chosen: Vec<Morsel> = Vec::new();
    let mut freed = 0;
    let mut oldest = oldest.into_iter();
    while room.available.saturating_add(freed) < needed
        || (room.used - freed).saturating_add(needed) > limit
    {
        let morsel = oldest.find(|morsel| can_go(morsel))?;
        freed += morsel.allocated;
        chosen.push(morsel.clone());
    }
    Some(chosen)
}

fn why_full(room: Room, limit: Option<u64>) -> String {
    let Room {
        used,
        available,
        reserved,
    } = room;
    let mut why = match reserved {
        0 => format!("{} are free", format_size(available)),
        _ => format!(
            "{} may be used, and {} of memory are left to other programs",
            format_size(available),
            format_size(reserved)
        ),
    };
    if let Some(limit) = limit {
        why += &format!(
            ", {} of the limit of {} are used",
            format_size(used),
            format_size(limit)
        );
    }
    why + ", and the removable morsels are in use or not enough"
}

/// A lease on a morsel that no other process has open or mapped: while it is held, opens of the
/// morsel block. On file systems without leases, a morsel that no process maps.
fn unused(morsel: &Morsel, mapped: &Mapped) -> Option<File> {
    let file = File::open(&morsel.path).ok()?;
    let is_unused = match lease(&file, libc::F_WRLCK) {
        Ok(()) => true,
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            mapped.count(morsel.device, morsel.inode) == 0
        }
        Err(_) => false,
    };
    is_unused.then_some(file)
}

#[cfg(test)]
mod tests;
