// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a survey finds.

/// How a finding came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A crash may leave it; the next mount completes it.
    Leftover,
    /// No crash explains it.
    Damage,
}

/// What ends a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fix {
    /// Store the payload of a word.
    Set { offset: u64, payload: u64 },
    /// Complete a rename: the first word gets the inode, and then the second loses its flag.
    Complete {
        from: u64,
        other: u64,
        target: u64,
        inode: u64,
    },
    /// Write this copy of the superblock anew.
    Superblock { page: u64 },
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Its place in the range.
    pub offset: u64,
    /// The inode that it belongs to.
    pub inode: Option<u64>,
    pub what: &'static str,
    /// What ends it without the loss of anything sealed, if there is such a thing.
    pub fix: Option<Fix>,
}

/// The findings of one survey.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub list: Vec<Finding>,
    /// Findings beyond those that are listed.
    pub more: u64,
    damage: u64,
}

/// The number of findings that are listed.
const MOST: usize = 10_000;

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        self.damage += u64::from(finding.severity == Severity::Damage);
        if self.list.len() < MOST {
            self.list.push(finding);
        } else {
            self.more += 1;
        }
    }

    pub fn damage(
        &mut self,
        offset: u64,
        inode: Option<u64>,
        what: &'static str,
        fix: Option<Fix>,
    ) {
        self.add(Finding {
            severity: Severity::Damage,
            offset,
            inode,
            what,
            fix,
        });
    }

    pub fn leftover(&mut self, offset: u64, inode: Option<u64>, what: &'static str, fix: Fix) {
        self.add(Finding {
            severity: Severity::Leftover,
            offset,
            inode,
            what,
            fix: Some(fix),
        });
    }

    pub fn is_damaged(&self) -> bool {
        self.damage > 0
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number of those that a mount does not end.
    pub fn damages(&self) -> u64 {
        self.damage
    }

    pub fn leftovers(&self) -> u64 {
        self.list.len() as u64 + self.more - self.damage
    }
}
