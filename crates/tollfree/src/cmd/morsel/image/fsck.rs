// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel fsck`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use toll_act::error::UserError;
use toll_image::{Finding, Severity, Survey, repair};
use toll_model::numbers::of;

use super::{Document, found, headline, open, read, refused};
use crate::output;

/// Check an image or device with persistent morsels
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The device, or the image file
    pub image: PathBuf,
    /// Complete what a crash interrupted, and drop what is damaged and was not sealed
    #[arg(long)]
    pub repair: bool,
}

pub fn run(args: &Args, json: bool) -> Result<ExitCode> {
    let path = &args.image;
    let (survey, fixed) = match args.repair {
        false => (read(path)?.1, None),
        true => {
            let mut image = open(path, true)?;
            let done = repair(&mut image).map_err(|refusal| refused(path, refusal))?;
            (done.survey, Some(done.fixed))
        }
    };
    if json {
        let mut document = Document::new("fsck", path, &survey);
        document.repaired = fixed.as_deref().map(found);
        output::json(&document)?;
    } else {
        output::text(&text(path, &survey, fixed.as_deref()))?;
    }
    verdict(path, &survey)
}

/// Damage that is left is an error.
fn verdict(path: &Path, survey: &Survey) -> Result<ExitCode> {
    let shown = path.display();
    match survey.findings.damages() {
        0 => Ok(ExitCode::SUCCESS),
        count => {
            let count = of(count as usize, "finding");
            Err(UserError::UnfitFile(format!("{shown}: is damaged: {count}")).into())
        }
    }
}

fn text(path: &Path, survey: &Survey, fixed: Option<&[Finding]>) -> String {
    let mut text = headline(path, survey);
    for finding in fixed.unwrap_or_default() {
        text += &line(finding, "repaired");
    }
    for finding in &survey.findings.list {
        text += &line(finding, outlook(finding));
    }
    if survey.findings.more > 0 {
        text += &format!(
            "and {}\n",
            of(survey.findings.more as usize, "more finding")
        );
    }
    text
}

/// What becomes of a finding.
fn outlook(finding: &Finding) -> &'static str {
    match (finding.severity, &finding.fix) {
        (Severity::Leftover, _) => "a mount completes it",
        (Severity::Damage, Some(_)) => "--repair ends it",
        (Severity::Damage, None) => "not repairable",
    }
}

fn line(finding: &Finding, outlook: &str) -> String {
    let inode = match finding.inode {
        Some(inode) => format!("inode {inode}: "),
        None => String::new(),
    };
    let text = format!("{:#x}: {inode}{} ({outlook})", finding.offset, finding.what);
    let mut lines = String::new();
    output::push_wrapped(&mut lines, "  ", &text, output::COLUMNS);
    lines
}
