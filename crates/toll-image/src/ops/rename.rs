// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renames: one store makes the new name and ends the old one.

use super::slots::{From, New};
use super::{Fs, OpError, Rename, Result};
use crate::fault::Fault;
use crate::layout::{Target, inode, kind, name};
use crate::medium::Medium;
use crate::survey::is_name;

/// A directory and a name in it.
pub type Place<'a> = (u64, &'a [u8]);

/// The two slots of a rename, and what they get.
struct Plan {
    from: From,
    /// The inode that moves.
    moved: u64,
    /// The slot of the new name, and the inode that it had.
    target: u64,
    replaced: Option<u64>,
}

impl<M: Medium> Fs<M> {
    pub fn rename(&mut self, old: Place, new: Place, how: Rename) -> Result<()> {
        let moved = self.lookup(old.0, old.1)?;
        let replaced = self.lookup(new.0, new.1).ok();
        self.check_rename(old, new, moved, replaced, how)?;
        if replaced == Some(moved) {
            return Ok(());
        }
        let other = match how {
            Rename::Exchange => replaced.ok_or(OpError::NoEntry)?,
            Rename::Whiteout => self.whiteout()?,
            Rename::Replace | Rename::NoReplace => 0,
        };
        let from = From {
            slot: self.slots[&(old.0, old.1.to_vec())],
            other,
        };
        let target = self.target(new, replaced, from)?;
        let plan = Plan {
            from,
            moved,
            target,
            replaced,
        };
        self.store_rename(&plan, [old.0, new.0])?;
        self.record_rename(&plan, old, new)
    }

    fn check_rename(
        &self,
        old: Place,
        new: Place,
        moved: u64,
        replaced: Option<u64>,
        how: Rename,
    ) -> Result<()> {
        if !self.is_directory(new.0)? {
            return Err(OpError::NotDirectory);
        }
        if !is_name(new.1) || self.is_below(new.0, moved) {
            return Err(OpError::Invalid);
        }
        let Some(replaced) = replaced else {
            return match how {
                Rename::Exchange => Err(OpError::NoEntry),
                _ => Ok(()),
            };
        };
        match how {
            Rename::NoReplace => Err(OpError::Exists),
            Rename::Exchange if self.is_below(old.0, replaced) => Err(OpError::Invalid),
            Rename::Exchange => Ok(()),
            _ => self.check_replace(moved, replaced),
        }
    }

    fn check_replace(&self, moved: u64, replaced: u64) -> Result<()> {
        match (self.is_directory(moved)?, self.is_directory(replaced)?) {
            (false, true) => Err(OpError::IsDirectory),
            (true, false) => Err(OpError::NotDirectory),
            (true, true) if !self.is_empty(replaced) => Err(OpError::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Whether a directory is another one, or below it.
    fn is_below(&self, mut directory: u64, top: u64) -> bool {
        while directory != top && directory != inode::FIRST {
            let mut names = self.names.values();
            match names.find(|name| name.inode == directory) {
                Some(name) => directory = name.parent,
                None => return false,
            }
        }
        directory == top
    }

    fn whiteout(&mut self) -> Result<u64> {
        let number = self.new_inode(New {
            mode: kind::CHARACTER,
            ..New::default()
        })?;
        self.fence()?;
        Ok(number)
    }

    /// The slot of the new name, with the fields of the rename persistent.
    fn target(&mut self, new: Place, replaced: Option<u64>, from: From) -> Result<u64> {
        if self.has(Fault::FlagFirst) {
            return self.target_without_fields(new, replaced);
        }
        let slot = match replaced {
            None => self.new_name(new.0, new.1, Some(from))?,
            Some(_) => {
                let slot = self.slots[&(new.0, new.1.to_vec())];
                let at = self.name_at(slot)?;
                self.store_from(at, from)?;
                self.medium.flush(at..at + name::TEXT)?;
                slot
            }
        };
        self.fence()?;
        Ok(slot)
    }

    fn store_rename(&mut self, plan: &Plan, parents: [u64; 2]) -> Result<()> {
        let at = self.name_at(plan.target)? + name::INODE;
        let old = self.name_at(plan.from.slot)? + name::INODE;
        if self.has(Fault::OldNameFirst) {
            self.publish(old, plan.from.other)?;
            return self.publish(at, plan.moved);
        }
        if self.has(Fault::RenameWithoutFlag) {
            self.publish(at, plan.moved)?;
            return self.publish(old, plan.from.other);
        }
        let pending = Target {
            inode: plan.moved,
            pending: true,
        };
        self.publish(at, pending.pack())?;
        if self.has(Fault::FlagFirst) {
            let from = plan.from;
            self.store_from(at, from)?;
            self.medium.flush(at..at + name::TEXT)?;
            self.fence()?;
        }
        self.publish(old, plan.from.other)?;
        self.end_rename(at, plan.moved, parents)
    }

    /// Clears the flag. Until that is persistent, the old slot is not reused.
    fn end_rename(&mut self, at: u64, moved: u64, parents: [u64; 2]) -> Result<()> {
        match self.has(Fault::SlotReusedEarly) {
            true => self.medium.store_word(at, moved)?,
            false => self.set(at, moved)?,
        }
        self.touch(moved)?;
        for parent in parents {
            self.touch_content(parent)?;
        }
        self.fence()
    }

    fn record_rename(&mut self, plan: &Plan, old: Place, new: Place) -> Result<()> {
        self.forget(plan.from.slot);
        self.forget(plan.target);
        self.record(plan.target, new.0, new.1, plan.moved);
        if plan.from.other != 0 {
            self.record(plan.from.slot, old.0, old.1, plan.from.other);
        }
        match plan.replaced {
            Some(replaced) => self.after_replace(replaced),
            None => Ok(()),
        }
    }

    fn after_replace(&mut self, replaced: u64) -> Result<()> {
        self.touch(replaced)?;
        self.fence()?;
        self.drop_unused(replaced)
    }
}

/// Injected bugs.
impl<M: Medium> Fs<M> {
    fn target_without_fields(&mut self, new: Place, replaced: Option<u64>) -> Result<u64> {
        let slot = match replaced {
            None => self.new_name(new.0, new.1, None)?,
            Some(_) => self.slots[&(new.0, new.1.to_vec())],
        };
        self.fence()?;
        Ok(slot)
    }
}
