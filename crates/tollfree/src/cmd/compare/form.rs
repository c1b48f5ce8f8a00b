// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared: one program under a plan, or two commands.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use toll_act::error::UserError;
use toll_prove::compare::Invocation;

use super::Args;

/// An environment variable: NAME=VALUE.
pub type Setting = (OsString, OsString);

/// What is compared.
#[derive(Debug)]
pub enum Form<'a> {
    /// The program without the plan, with it, and all huge.
    Plan(&'a Path),
    /// Two commands, or one in two environments.
    Two(Invocation, Invocation),
}

impl Form<'_> {
    /// # Errors
    /// [`UserError::Usage`] if the options leave open what is compared, or say it twice.
    pub fn of(args: &Args) -> Result<Form<'_>, UserError> {
        let envs = !args.env_a.is_empty() || !args.env_b.is_empty();
        if let Some(plan) = &args.plan {
            return match args.a.is_some() || args.b.is_some() || envs {
                true => wrong(
                    "--plan compares one program with and without the plan: leave out -a, -b, --env-a and --env-b",
                ),
                false if args.command.is_empty() => wrong("--plan needs the program: add -- CMD"),
                false => Ok(Form::Plan(plan)),
            };
        }
        let first = first(args)?;
        let second = match &args.b {
            Some(line) => shell("-b", line)?,
            None if envs => first.clone(),
            None if args.a.is_some() => {
                return wrong(
                    "-a needs a second command: add -b CMD, or --env-b NAME=VALUE for the same one in another environment",
                );
            }
            None => {
                return wrong(
                    "what the program is compared with is missing: add --plan PLAN, or --env-b NAME=VALUE; -a CMD -b CMD compare two commands",
                );
            }
        };
        Ok(Form::Two(
            first.with_env(&args.env_a),
            second.with_env(&args.env_b),
        ))
    }
}

/// The first command: of -a, else the one behind `--`.
fn first(args: &Args) -> Result<Invocation, UserError> {
    match (&args.a, args.command.as_slice()) {
        (Some(line), []) => shell("-a", line),
        (Some(_), _) => wrong("-a CMD and -- CMD are both the first command: leave out one"),
        (None, []) if args.b.is_some() => wrong("-b needs the first command: add -a CMD"),
        (None, []) => wrong(
            "what is compared is missing: -a CMD -b CMD, --env-b NAME=VALUE -- CMD, or --plan PLAN -- CMD",
        ),
        (None, _) if args.b.is_some() => {
            wrong("-b needs its first command in -a CMD, which the shell runs as well")
        }
        (None, command) => Ok(Invocation::program(command)),
    }
}

fn shell(option: &str, line: &OsStr) -> Result<Invocation, UserError> {
    match line.as_bytes().trim_ascii().is_empty() {
        true => wrong(&format!("{option}: the command is empty")),
        false => Ok(Invocation::shell(line)),
    }
}

fn wrong<T>(message: &str) -> Result<T, UserError> {
    Err(UserError::Usage(message.to_owned()))
}

/// Parses NAME=VALUE.
pub fn setting(text: &OsStr) -> Result<Setting, String> {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if at > 0 => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
        }
        _ => Err("is not NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests;
