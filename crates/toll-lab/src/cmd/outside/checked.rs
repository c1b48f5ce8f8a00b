// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the adversarial TLB found while the tests of a kernel ran.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::cmd::adversary::findings::{Counts, Findings, Report, merge};
use crate::cmd::adversary::symbols::Symbols;
use crate::kernel::Built;
use crate::output;

/// The findings of all guests of a kernel.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    variant: String,
    #[serde(skip)]
    symbols: Symbols,
    /// Guests with and without findings.
    guests: u32,
    unchecked: u32,
    #[serde(flatten)]
    counts: Counts,
    reports: Vec<Report>,
}

impl Checked {
    pub(super) fn new(built: &Built) -> Result<Checked> {
        Ok(Checked {
            variant: built.variant.clone(),
            symbols: Symbols::read(&built.config.with_file_name("System.map"))?,
            guests: 0,
            unchecked: 0,
            counts: Counts::default(),
            reports: Vec::new(),
        })
    }

    /// Adds what the plugin wrote into a guest's directory. A guest that was killed has written
    /// nothing.
    pub(super) fn add(&mut self, directory: &Path) {
        self.guests += 1;
        match Findings::read(&directory.join("findings/adversary.json"), &self.symbols) {
            Ok(findings) => {
                self.counts.add(&findings.counts);
                let reports = findings.reports.into_iter();
                reports.for_each(|it| merge(&mut self.reports, it));
            }
            Err(error) => {
                output::note(error);
                self.unchecked += 1;
            }
        }
    }

    /// What is wrong with the kernel or the run.
    pub(super) fn problem(&self) -> Option<String> {
        let (variant, reports) = (&self.variant, self.reports.len());
        if reports > 0 {
            return Some(format!(
                "{variant}: hardware could be hurt in {reports} ways"
            ));
        }
        if self.unchecked > 0 {
            return Some(format!(
                "{variant}: {} guests were not checked",
                self.unchecked
            ));
        }
        let why = self.counts.problem()?;
        Some(format!("{variant}: {why}"))
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} guests, {} of them not checked, {} accesses checked, {} stale-capable, \
             {} legal, {} unmaps, {} flushes, {} reports",
            self.variant,
            self.guests,
            self.unchecked,
            self.counts.checked,
            self.counts.stale_capable,
            self.counts.legal,
            self.counts.unmaps,
            self.counts.flushes,
            self.reports.len()
        )?;
        for it in &self.reports {
            write!(f, "\n{it}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
