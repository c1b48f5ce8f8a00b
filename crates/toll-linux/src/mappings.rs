// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `why` reads: the facts that decide about huge pages in the mappings of a process.
//!
//! | file | reads |
//! |---|---|
//! | `facts` | the settings that hold for a process, and the facts of each mapping |
//! | `unused` | the parts of huge pages that were never written |
//! | `folios` | the sizes of the pages behind 4 KiB entries |
//! | `machine` | how the machine's huge faults ended since boot |
//! | `span` | how much memory khugepaged has to look at |

mod facts;
mod folios;
mod machine;
mod span;
mod unused;

use crate::Root;

pub use facts::Survey;
pub use folios::{Folios, folios};
pub use machine::Machine;
pub use span::{Span, span};
pub use unused::{Content, Inner, backing, unused};

/// Tells whether two reads saw the same program: it changes if the process ends or calls exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    start_ticks: u64,
    heap_start: u64,
    name: String,
}

impl Identity {
    /// Whether the heap is not placed yet, as in the middle of exec.
    pub fn is_incomplete(&self) -> bool {
        self.heap_start == 0
    }

    /// Returns `None` if there is no such process.
    pub fn of(root: &Root, pid: u32) -> Option<Identity> {
        let stat = crate::proc::stat(root, pid).ok()?;
        let has_ended = matches!(stat.state, 'Z' | 'X');
        (!has_ended).then_some(Identity {
            start_ticks: stat.start_ticks,
            heap_start: stat.heap_start,
            name: stat.name,
        })
    }
}
