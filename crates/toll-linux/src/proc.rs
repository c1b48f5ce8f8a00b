// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of `/proc/PID`.

mod cgroup;
mod hierarchies;
mod in_memory;
mod maps;
mod mountinfo;
mod pagemap;
mod place;
mod smaps;
mod status;
mod tree;
mod words;
mod work;

pub use cgroup::cgroup;
pub(crate) use hierarchies::{Hierarchies, hierarchies};
pub use in_memory::InMemory;
pub(crate) use in_memory::OWN;
pub use maps::{Kind, Mapping, maps};
pub use mountinfo::{Mount, mounts, own_mounts};
pub use pagemap::Pagemap;
pub use place::{Place, Placed};
pub use smaps::{Smap, smaps, smaps_each};
pub use status::{Children, Stat, Status, is_32_bit, processes, stat, status};
pub use tree::{children, tree};
pub use words::{variable, words};
pub use work::{calls, cpu_time};

use std::io;

/// Returns an error that names the file and the problem.
fn damaged(path: &str, detail: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {detail}"))
}
