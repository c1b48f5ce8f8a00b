// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sites: identify memory across runs and ASLR.

mod frame;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use frame::Frame;

/// Legend for lists of allocation site names.
pub const LEGEND: &str = "FUNCTION+OFFSET 2^N #K: a block of 2^N bytes or more (less than 2^(N+1)), \
     allocated by the call there; K such blocks came before it";

/// Kind of a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SiteKind {
    /// An allocation event: a call of at least 1 MiB to malloc, mmap or a related function.
    Alloc {
        /// First frames outside the allocator, innermost first (at most [`crate::wire::MAX_FRAMES`]).
        /// Thousands of events come from few call sites, so each frame is held once.
        frames: Vec<Arc<Frame>>,
        /// `floor(log2(length))`.
        class: u8,
        /// Number of earlier events of this thread with this site and class.
        ordinal: u32,
        /// Creation ordinal of the thread; 0 is the first thread.
        thread: u32,
        /// Whether it is a shared anonymous mapping.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
    },
    /// The brk heap; offsets are relative to its start.
    Heap,
    /// The main thread's stack; offsets count *down* from its top.
    Stack,
    /// A reservation by a managed runtime (`"jvm"`, `"go"`).
    Reservation { runtime: String },
    /// A file mapping; offsets are relative to the start of the file.
    File {
        /// Build-id in hex, empty if the file has none.
        build_id: String,
        path: String,
    },
    /// A file in memory that is mapped shared: on tmpfs, a memfd, a System V segment; offsets are
    /// relative to the start of the file.
    Shared { path: String },
    /// A named VMA, for instance `[anon:heap-a]`; offsets are relative to its start.
    Vma { name: String },
    /// All other large anonymous memory, combined.
    Anonymous,
    /// A fixed address (as in `largepages.txt`); offsets are relative to `start`.
    Address { start: u64 },
}

impl SiteKind {
    /// Whether it is memory that processes share.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            SiteKind::Shared { .. } | SiteKind::Alloc { shared: true, .. }
        )
    }

    /// Returns the call stack of an allocation event.
    pub(crate) fn frames(&self) -> Option<&[Arc<Frame>]> {
        match self {
            SiteKind::Alloc { frames, .. } => Some(frames),
            _ => None,
        }
    }
}

/// Match quality of a profile's site in another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// The same event: site, length class, ordinal and thread.
    Exact,
    /// The same site and at least the same length class.
    Class,
    /// The same kind of memory only.
    Kind,
    /// Not found: reported to the user, never advised.
    NotFound,
}

/// A named piece of memory in a profile or a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Unique within the file; rows and regions refer to it.
    pub id: u32,
    #[serde(flatten)]
    pub kind: SiteKind,
    /// Length in bytes as recorded (the largest, if it grew).
    pub length: u64,
    /// Distance in bytes from the last 2 MiB boundary to the site's start, as recorded.
    pub misalignment: u64,
    /// The best match level of this site in another run.
    pub level: Level,
}

/// Upper bound of a site's length: the user half of a 57-bit address space.
pub(crate) const MAX_LENGTH: u64 = 1 << 56;

impl Site {
    /// Returns the common name of all allocations of this one's call site and length class:
    /// `new_arena+0x2c 2^20`; `None` if the site is not an allocation.
    pub fn call_site(&self) -> Option<String> {
        let SiteKind::Alloc { frames, class, .. } = &self.kind else {
            return None;
        };
        let call = match frames.first() {
            None => "unknown site".to_owned(),
            Some(frame) => frame.name(),
        };
        Some(format!("{call} 2^{class}"))
    }

    /// Checks the site and returns what is invalid.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.length > MAX_LENGTH {
            return Err(format!("length {:#x} is no length of memory", self.length));
        }
        if self.misalignment >= crate::REGION {
            return Err(format!(
                "misalignment {:#x} is not below 2 MiB",
                self.misalignment
            ));
        }
        match &self.kind {
            SiteKind::Address { start } if *start > MAX_LENGTH => {
                Err(format!("start {start:#x} is no user address"))
            }
            SiteKind::Alloc { frames, .. } if frames.len() > crate::wire::MAX_FRAMES => {
                Err(format!(
                    "{} frames, more than {}",
                    frames.len(),
                    crate::wire::MAX_FRAMES
                ))
            }
            SiteKind::Alloc { frames, .. }
                if frames.iter().any(|frame| frame.module.is_empty()) =>
            {
                Err("a frame without a module".to_owned())
            }
            SiteKind::Alloc { class, .. } if *class > 63 => {
                Err(format!("class {class} is no power of two of bytes"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Site {
    /// Formats the name for reports, plans and JSON: `main (skew.c:40) 2^27 #0`; see [`LEGEND`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SiteKind::Alloc {
                ordinal, thread, ..
            } => {
                write!(f, "{} #{ordinal}", self.call_site().unwrap_or_default())?;
                if *thread != 0 {
                    write!(f, " thread {thread}")?;
                }
                Ok(())
            }
            SiteKind::Heap => write!(f, "heap"),
            SiteKind::Stack => write!(f, "stack"),
            SiteKind::Reservation { runtime } => write!(f, "{runtime} reservation"),
            SiteKind::File { path, .. } => write!(f, "file {path}"),
            SiteKind::Shared { path } => write!(f, "shared memory {path}"),
            SiteKind::Vma { name } => write!(f, "{name}"),
            SiteKind::Anonymous => write!(f, "other anonymous memory"),
            SiteKind::Address { start } => write!(f, "address {start:#x}"),
        }
    }
}
