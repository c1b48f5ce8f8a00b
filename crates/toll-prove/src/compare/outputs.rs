// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the program printed the same in every run: a change of the results is no gain.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::schedule::Runs;
use super::variant::Variant;
use crate::fnv::Fnv;

/// The compared streams, which are also the names of their files.
const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// Bytes per side in the description of a difference.
const SHOWN: usize = 40;

/// The result of comparing the outputs of all runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum OutputCheck {
    /// The same in every run of every variant.
    Same,
    /// Runs of one variant differ: the program's output varies, so nothing can be concluded.
    Varies {
        #[serde(alias = "arm")]
        variant: String,
        difference: String,
    },
    /// The output is the same in all runs of each variant, and differs between two variants.
    #[serde(alias = "differs-between-arms")]
    DiffersBetweenVariants {
        #[serde(alias = "arm")]
        variant: String,
        difference: String,
    },
    /// Not compared.
    NotChecked { reason: String },
}

/// Compares each run's output with that of the first run.
#[derive(Debug)]
pub struct OutputChecker {
    directory: tempfile::TempDir,
    reference: Option<[u64; 2]>,
}

impl OutputChecker {
    pub fn new() -> Result<OutputChecker> {
        let directory = tempfile::Builder::new()
            .prefix("tollfree-output-")
            .tempdir();
        let directory = directory.context("no temporary directory for the program's output")?;
        fs::create_dir(directory.path().join("first"))?;
        fs::create_dir(directory.path().join("now"))?;
        Ok(OutputChecker {
            directory,
            reference: None,
        })
    }

    /// The directory for the next run's `stdout` and `stderr`.
    pub fn directory(&self) -> PathBuf {
        self.directory.path().join("now")
    }

    /// Returns the fingerprints of the outputs in [`OutputChecker::directory`], and the first difference
    /// from the first run's.
    pub fn take(&mut self) -> Result<([u64; 2], Option<String>)> {
        let now = self.directory();
        let first = self.directory.path().join("first");
        let mut prints = [0; 2];
        for (print, stream) in prints.iter_mut().zip(STREAMS) {
            *print = fingerprint(&now.join(stream)).context("the program's output")?;
        }
        let Some(reference) = self.reference else {
            for stream in STREAMS {
                fs::rename(now.join(stream), first.join(stream))?;
            }
            self.reference = Some(prints);
            return Ok((prints, None));
        };
        let differing = (0..2).find(|&i| prints[i] != reference[i]);
        let difference = match differing {
            None => None,
            Some(i) => Some(describe(
                &first.join(STREAMS[i]),
                &now.join(STREAMS[i]),
                STREAMS[i],
            )?),
        };
        Ok((prints, difference))
    }

    /// The last run's text on a stream, lossily decoded (the reference's if nothing ran since).
    pub fn text(&self, stream: &str) -> String {
        let read =
            |directory: &str| fs::read(self.directory.path().join(directory).join(stream)).ok();
        let bytes = read("now").or_else(|| read("first")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Compares the outputs of all runs, including warm-up.
pub fn check(variants: &[Variant], runs: &Runs) -> OutputCheck {
    let all = || runs.variants.iter().flatten();
    if all().any(|sample| sample.output.is_none()) {
        return OutputCheck::NotChecked {
            reason: "a server's output is not compared".to_owned(),
        };
    }
    let Some(first) = all().next().map(|sample| sample.output) else {
        return OutputCheck::NotChecked {
            reason: "there was no complete run".to_owned(),
        };
    };
    if all().all(|sample| sample.output == first) {
        return OutputCheck::Same;
    }
    let difference = |variant: usize| {
        let found = runs.variants[variant]
            .iter()
            .find_map(|sample| sample.difference.clone());
        found
            .or_else(|| all().find_map(|sample| sample.difference.clone()))
            .unwrap_or_default()
    };
    let varying = |samples: &Vec<Sample>| samples.iter().any(|s| s.output != samples[0].output);
    let varies = |variant: usize| OutputCheck::Varies {
        variant: variants[variant].name.clone(),
        difference: difference(variant),
    };
    if let Some(variant) = runs.variants.iter().position(varying) {
        return varies(variant);
    }
    let other = |samples: &Vec<Sample>| samples.first().is_some_and(|s| s.output != first);
    let variant = runs.variants.iter().position(other).unwrap_or(0);
    if runs.variants.iter().any(|samples| samples.len() < 2) {
        return varies(variant);
    }
    OutputCheck::DiffersBetweenVariants {
        variant: variants[variant].name.clone(),
        difference: difference(variant),
    }
}

/// FNV-1a over the bytes of a file.
fn fingerprint(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut hash = Fnv::default();
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.0),
            n => hash.add(&buffer[..n]),
        }
    }
}

/// "stdout differs at byte 17 (line 2): `abc` in the first run, `abd` now".
fn describe(first: &Path, now: &Path, stream: &str) -> Result<String> {
    let (mut a, mut b) = (
        BufReader::new(File::open(first)?),
        BufReader::new(File::open(now)?),
    );
    let (mut offset, mut line) = (0u64, 1u64);
    loop {
        let (x, y) = (a.fill_buf()?, b.fill_buf()?);
        let common = x.len().min(y.len());
        let same = x.iter().zip(y).take_while(|(p, q)| p == q).count();
        line += x[..same].iter().filter(|byte| **byte == b'\n').count() as u64;
        if same < common || common == 0 {
            let shown = |bytes: &[u8]| match bytes[same..].is_empty() {
                true => "the end".to_owned(),
                false => {
                    let end = bytes.len().min(same + SHOWN);
                    format!(
                        "`{}`",
                        String::from_utf8_lossy(&bytes[same..end]).escape_debug()
                    )
                }
            };
            let at = offset + same as u64;
            return Ok(format!(
                "{stream} differs at byte {at} (line {line}): {} in the first run, {} in another",
                shown(x),
                shown(y)
            ));
        }
        offset += same as u64;
        a.consume(same);
        b.consume(same);
    }
}

#[cfg(test)]
mod tests;
