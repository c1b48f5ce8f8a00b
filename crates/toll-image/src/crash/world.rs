// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file system that may crash, with a model of what it should hold.

use super::lines::Lines;
use super::model::{File, Model};
use super::op::{Op, find};
use super::trace::{Event, Trace};
use crate::fault::Fault;
use crate::layout::{PAGE, Time, inode, kind};
use crate::make::{Template, make};
use crate::ops::{Fs, Rename};

/// A file system, what of it is persistent, and its model.
#[derive(Debug, Clone)]
pub struct World {
    pub fs: Fs<Trace>,
    pub durable: Trace,
    pub lines: Lines,
    pub model: Model,
    clock: i64,
}

/// An operation that was performed.
#[derive(Debug)]
pub struct Step {
    pub before: Model,
    pub events: Vec<Event>,
}

impl World {
    /// An empty file system.
    pub fn new(pages: u64, fault: Option<Fault>) -> World {
        let template = Template {
            uuid: [7; 16],
            pages,
            now: Time::default(),
            mode: 0o755,
            uid: 0,
            gid: 0,
        };
        let mut image = vec![0; (pages * PAGE) as usize];
        make(&mut image, &template).expect("memory");
        let directory = File {
            mode: kind::DIRECTORY | 0o755,
            ..File::default()
        };
        let files = [(inode::FIRST, directory)].into();
        World {
            fs: Fs::mount_with(Trace::new(image.clone()), fault).expect("a new image"),
            durable: Trace::new(image),
            lines: Lines::default(),
            model: Model {
                files,
                ..Model::default()
            },
            clock: 0,
        }
    }

    /// Fills all free pages with bytes that mean nothing, as earlier use leaves them.
    pub fn soil(&mut self) {
        for page in 0..self.fs.owned().pages() {
            if !self.fs.owned().has(page) {
                for at in (page * PAGE..(page + 1) * PAGE).step_by(8) {
                    let noise = (at | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    self.durable.poke(at, noise);
                    self.fs.medium_mut().poke(at, noise);
                }
            }
        }
        self.durable.commit();
        self.fs.medium_mut().commit();
    }

    /// Performs an operation; `None` if it fails. Its trace is not followed yet.
    pub fn perform(&mut self, op: &Op) -> Option<Step> {
        self.clock += 1;
        self.fs.now = Time {
            seconds: self.clock,
            steps: 0,
        };
        op.perform(&mut self.fs).ok()?;
        let made = self.made(op);
        let before = self.model.clone();
        self.model.perform(op, made, self.clock)?;
        let events = std::mem::take(&mut self.fs.medium_mut().events);
        self.fs.medium_mut().commit();
        Some(Step { before, events })
    }

    /// The inode that an operation made, or 0.
    fn made(&self, op: &Op) -> u64 {
        let path = match *op {
            Op::Create(path)
            | Op::Mkdir(path)
            | Op::Mknod(path)
            | Op::Symlink(path, _)
            | Op::Unnamed(path)
            | Op::Rename(path, _, Rename::Whiteout) => path,
            _ => return 0,
        };
        find(&self.fs, path).unwrap_or(0)
    }

    /// Follows the trace of an operation without a crash.
    pub fn follow(&mut self, events: &[Event]) {
        for event in events {
            self.lines.follow(event, &mut self.durable);
        }
        self.durable.commit();
    }

    /// Performs an operation without a crash; whether it succeeded.
    pub fn run(&mut self, op: &Op) -> bool {
        let step = self.perform(op);
        if let Some(step) = &step {
            self.follow(&step.events);
        }
        step.is_some()
    }
}
