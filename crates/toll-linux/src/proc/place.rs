// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a process lives: its control group, and its id in a pid namespace of its own.

use std::fmt;

use serde::{Deserialize, Serialize};
use toll_model::names::plain;

use super::{cgroup, status};
use crate::Root;

/// The place of a process. Outputs that name a process by its id have these fields too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Path of its control group, as [`cgroup`] returns it; `None` if it has none.
    pub cgroup: Option<String>,
    /// Its id in its own pid namespace, if that is another one than the reader's.
    pub namespace_pid: Option<u32>,
}

impl Place {
    /// Reads the place of a process; what cannot be read is `None`.
    pub fn of(root: &Root, pid: u32) -> Place {
        let status = status(root, pid).ok();
        Place {
            cgroup: cgroup(root, pid).ok().flatten(),
            namespace_pid: status.and_then(|status| status.namespace_pid),
        }
    }
}

/// A process by its id and its place, as outputs name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    pub pid: u32,
    #[serde(flatten)]
    pub place: Place,
}

impl Placed {
    /// Reads the place of a process.
    pub fn of(root: &Root, pid: u32) -> Placed {
        Placed {
            pid,
            place: Place::of(root, pid),
        }
    }
}

/// The id, and what follows it.
impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.pid, self.place)
    }
}

/// What follows the id of a process in a text: `, 22 in its pid namespace, cgroup /a`. The path has
/// no control characters.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pid) = self.namespace_pid {
            write!(f, ", {pid} in its pid namespace")?;
        }
        match &self.cgroup {
            Some(path) => write!(f, ", cgroup {}", plain(path)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use toll_testkit::Directory;

    use super::*;

    fn place(status: &str, cgroup: &str) -> Place {
        let machine = Directory::with(&[
            ("proc/7/status", &format!("Name:\tx\nTgid:\t7\n{status}")),
            ("proc/7/cgroup", cgroup),
        ]);
        Place::of(&Root::at(machine.as_path()), 7)
    }

    #[test]
    fn a_process_in_a_container_has_both() {
        let place = place("NSpid:\t7\t31\t2\n", "0::/pod/a b\n");
        assert_eq!(place.namespace_pid, Some(2), "the innermost");
        assert_eq!(
            place.to_string(),
            ", 2 in its pid namespace, cgroup /pod/a b"
        );
    }

    #[test]
    fn a_process_of_the_readers_namespace_has_one_id() {
        for status in ["NSpid:\t7\n", "", "NSpid:\tx y\n"] {
            assert_eq!(place(status, "").to_string(), "", "{status}");
        }
    }

    #[test]
    fn a_hostile_path_is_harmless() {
        let place = place("", "0::/\x1b[2J\u{202e}\n");
        assert_eq!(place.to_string(), ", cgroup /?[2J?");
        assert_eq!(place.cgroup.as_deref(), Some("/\x1b[2J\u{202e}"));
    }

    #[test]
    fn a_process_that_ended_has_no_place() {
        let machine = Directory::empty();
        let place = Place::of(&Root::at(machine.as_path()), 7);
        assert_eq!(place, Place::default());
    }
}
