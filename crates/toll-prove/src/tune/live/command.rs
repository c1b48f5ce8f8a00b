// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a metric command.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::signals;

use crate::compare::schedule::Ran;

/// How long a metric command may take: what it prints describes one moment.
const LIMIT: Duration = Duration::from_secs(10);
/// How often its end is checked.
const GLANCE: Duration = Duration::from_millis(1);

/// Runs a shell command; returns what it printed on stdout.
///
/// # Errors
/// [`UserError::Target`] if it fails or takes too long.
pub(super) fn output_of(command: &str) -> Result<Ran<String>> {
    let temporary = || tempfile::tempfile().context("no temporary file");
    let (stdout, stderr) = (temporary()?, temporary()?);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    shell.stdin(Stdio::null());
    shell
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    let mut child = shell.spawn().context("sh: cannot be started")?;
    let end = Instant::now() + LIMIT;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(Ran::Done(text(stdout)?)),
            Some(status) => {
                let said = text(stderr)?;
                let said = said.trim().lines().last().unwrap_or("no message");
                return Err(failed(command, &format!("ended with {status}: {said}")));
            }
            None if signals::interrupted().is_some() => {
                stop(&mut child);
                return Ok(Ran::Interrupted);
            }
            None if Instant::now() > end => {
                stop(&mut child);
                let limit = LIMIT.as_secs();
                return Err(failed(command, &format!("took more than {limit} s")));
            }
            None => std::thread::sleep(GLANCE),
        }
    }
}

/// Returns the number that a command printed.
///
/// # Errors
/// [`UserError::Target`] if it printed something else.
pub(super) fn number(command: &str, text: &str) -> Result<f64> {
    let number = text.trim().parse::<f64>();
    match number.ok().filter(|number| number.is_finite()) {
        Some(number) => Ok(number),
        None => {
            let shown: String = text.trim().chars().take(60).collect();
            let what = format!("printed {shown:?}, which is not a number");
            Err(failed(command, &what))
        }
    }
}

pub(super) fn failed(command: &str, what: &str) -> anyhow::Error {
    UserError::Target(format!("--metric-command `{command}` {what}")).into()
}

fn stop(child: &mut Child) {
    // SAFETY: kill takes no pointer; the group's leader has not been reaped.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let _ = child.wait();
}

fn text(mut file: File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
