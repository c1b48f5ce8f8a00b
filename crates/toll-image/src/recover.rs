// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completes what a crash interrupted, and drops what is damaged and was open.

use std::io;

use thiserror::Error;

use crate::fault::Fault;
use crate::finding::{Finding, Fix, Severity};
use crate::layout::PAGE;
use crate::medium::Medium;
use crate::superblock::{Refusal, Superblock};
use crate::survey::{Survey, survey, survey_with};

/// Why a range cannot be recovered.
#[derive(Debug, Error)]
pub enum Unrecovered {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("is damaged at offset {offset:#x}: {what}")]
    Damaged { offset: u64, what: &'static str },
}

/// What a mount does first: completes renames, and drops what has no name or lies beyond an end.
/// Refuses a range with damage, and changes nothing there.
pub fn recover(medium: &mut impl Medium) -> Result<Survey, Unrecovered> {
    recover_with(medium, None)
}

/// [`recover`] with an injected bug.
pub fn recover_with(medium: &mut impl Medium, fault: Option<Fault>) -> Result<Survey, Unrecovered> {
    let mut before = u64::MAX;
    loop {
        let survey = survey_with(medium, fault)?;
        if survey.findings.is_damaged() {
            return Err(damaged(&survey));
        }
        let list = &survey.findings.list;
        if list.is_empty() {
            return Ok(survey);
        }
        // Each pass ends some findings, and makes none.
        let count = survey.findings.leftovers();
        if count >= before {
            let (offset, what) = (list[0].offset, "recovery does not end");
            return Err(Unrecovered::Damaged { offset, what });
        }
        before = count;
        let fixes: Vec<&Fix> = list.iter().filter_map(|it| it.fix.as_ref()).collect();
        apply(medium, &fixes, &survey.superblock, fault).map_err(Refusal::Io)?;
    }
}

/// The first damage.
fn damaged(survey: &Survey) -> Unrecovered {
    let mut list = survey.findings.list.iter();
    match list.find(|it| it.severity == Severity::Damage) {
        Some(Finding { offset, what, .. }) => Unrecovered::Damaged {
            offset: *offset,
            what,
        },
        None => Unrecovered::Damaged {
            offset: 0,
            what: "there are too many findings to list",
        },
    }
}

/// What a repair did.
#[derive(Debug)]
pub struct Repaired {
    /// The range as it is now.
    pub survey: Survey,
    /// What was done, in order.
    pub fixed: Vec<Finding>,
}

/// Does what recovery does, and drops what is damaged, unless it may be sealed.
pub fn repair(medium: &mut impl Medium) -> Result<Repaired, Refusal> {
    let mut fixed = Vec::new();
    let mut last = Vec::new();
    loop {
        let survey = survey(medium)?;
        let fixable = survey.findings.list.iter().filter(|it| it.fix.is_some());
        let fixable: Vec<Finding> = fixable.cloned().collect();
        // A fix clears something, so there is an end.
        if fixable.is_empty() || fixable == last {
            return Ok(Repaired { survey, fixed });
        }
        let fixes: Vec<&Fix> = fixable.iter().filter_map(|it| it.fix.as_ref()).collect();
        apply(medium, &fixes, &survey.superblock, None)?;
        fixed.extend(fixable.iter().cloned());
        last = fixable;
    }
}

/// Applies fixes: the old names of renames first, and once they are persistent, the rest.
fn apply(
    medium: &mut impl Medium,
    fixes: &[&Fix],
    superblock: &Superblock,
    fault: Option<Fault>,
) -> io::Result<()> {
    if fault == Some(Fault::RecoveryFlagFirst) {
        rest(medium, fixes, superblock)?;
        return old_names(medium, fixes);
    }
    if fault != Some(Fault::OneSideCompleted) {
        old_names(medium, fixes)?;
    }
    rest(medium, fixes, superblock)
}

fn old_names(medium: &mut impl Medium, fixes: &[&Fix]) -> io::Result<()> {
    let mut is_any = false;
    for fix in fixes {
        if let Fix::Complete { from, other, .. } = fix {
            medium.write_word(*from, *other)?;
            is_any = true;
        }
    }
    if is_any { medium.fence() } else { Ok(()) }
}

fn rest(medium: &mut impl Medium, fixes: &[&Fix], superblock: &Superblock) -> io::Result<()> {
    for fix in fixes {
        match fix {
            Fix::Complete { target, inode, .. } => medium.write_word(*target, *inode)?,
            Fix::Set { offset, payload } => medium.write_word(*offset, *payload)?,
            Fix::Superblock { page } => medium.write(page * PAGE, &superblock.encode())?,
        }
    }
    medium.fence()
}

#[cfg(test)]
mod tests;
