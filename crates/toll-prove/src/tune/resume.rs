// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune --resume`: reads the state of an earlier tune from its directory.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Result;
use toll_act::error::UserError;
use toll_model::plan::Plan;
use toll_model::profile::Profile;

use super::findings::{FORMAT, Findings, Results, VERSION};
use crate::fnv::Fnv;

/// A fingerprint of everything that affects a run: the command line, and the relevant `options`.
/// The arguments themselves are not stored, because they may be private.
pub fn fingerprint(command: &[OsString], options: &[Option<&str>]) -> String {
    let mut hash = Fnv::default();
    for word in command {
        hash.add(word.as_bytes());
        hash.add(&[0]);
    }
    for option in options {
        hash.add(&[1]);
        hash.add(option.map_or(&[][..], str::as_bytes));
        hash.add(&[u8::from(option.is_some())]);
    }
    format!("{:016x}", hash.0)
}

/// A fingerprint of a file's text.
pub(crate) fn text_fingerprint(text: &[u8]) -> String {
    let mut hash = Fnv::default();
    hash.add(text);
    format!("{:016x}", hash.0)
}

/// Reads the results of an earlier tune of the same `subject`.
///
/// # Errors
/// [`UserError::Usage`] if the directory has none, [`UserError::UnfitFile`] and
/// [`UserError::Input`] for damaged files, [`UserError::OtherProgram`] for another subject.
pub fn read(directory: &Path, subject: &str) -> Result<Results> {
    let findings = findings(&directory.join("tune.json"))?;
    if findings.subject.as_deref() != Some(subject) {
        let message = format!(
            "--resume {}: it was measured with another command line, workload or --cold (of {})",
            directory.display(),
            findings.program
        );
        return Err(UserError::OtherProgram(message).into());
    }
    let part = |name: &str| directory.join(name);
    check_plan(&part("plan.toml"), findings.plan_fingerprint.as_deref())?;
    Ok(Results {
        findings,
        plan: optional(&part("plan.toml"), Plan::from_toml)?,
        profile: optional(&part("profile.json"), Profile::from_json)?,
        after: optional(&part("profile-after.json"), Profile::from_json)?,
    })
}

fn findings(path: &Path) -> Result<Findings, UserError> {
    let shown = path.display();
    let text =
        fs::read(path).map_err(|error| UserError::Usage(format!("--resume: {shown}: {error}")))?;
    let unfit = |why: String| UserError::UnfitFile(format!("{shown}: {why}"));
    let findings: Findings =
        serde_json::from_slice(&text).map_err(|error| unfit(error.to_string()))?;
    if findings.format != FORMAT || findings.version != VERSION {
        return Err(unfit(format!(
            "is {} version {}, not {FORMAT} version {VERSION}",
            findings.format, findings.version
        )));
    }
    Ok(findings)
}

/// Rejects a plan that was edited since.
fn check_plan(path: &Path, fingerprint: Option<&str>) -> Result<(), UserError> {
    let now = fs::read(path).ok().map(|text| text_fingerprint(&text));
    match now.as_deref() == fingerprint {
        true => Ok(()),
        false => Err(UserError::UnfitFile(format!(
            "{}: is not the plan of the stored rounds",
            path.display()
        ))),
    }
}

/// Reads a file that not every directory has.
fn optional<T>(
    path: &Path,
    parse: impl Fn(Vec<u8>) -> Result<T, toll_model::error::FormatError>,
) -> Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow::Error::new(error).context(format!("{}", path.display()))),
        Ok(bytes) => {
            let input = |source| UserError::Input {
                path: path.to_owned(),
                source,
            };
            Ok(Some(parse(bytes).map_err(input)?))
        }
    }
}

#[cfg(test)]
mod tests;
