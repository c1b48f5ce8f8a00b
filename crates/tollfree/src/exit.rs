// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exit codes.
//!
//! [`EXIT_CODES`] is the list that the help prints. The program that `run`, `record` and `stat` start
//! may exit with any status, so these commands report tollfree's own failures as 125, as env(1) and
//! timeout(1) do.

use std::process::ExitCode;

use toll_act::error::UserError;

/// The exit codes, as printed in the help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success (tune: a verdict was reached, including \"do nothing\")
  1    a system error or an internal error of tollfree
  2    command line usage error
  3    an input file is of another kind, damaged, unsuitable, or for another program
  4    this machine lacks something that the command needs
  5    the target program failed
  6    compare: the plan, or the second command, is slower than --fail-if-slower allows
  7    apply: no planned region could be made huge, or no memory of the plan was
       found in the process
  126  the program cannot be executed
  127  the program does not exist
  130  interrupted; what was recorded so far is kept and marked

run, record and stat end as the program does: with its exit code, or by the same
signal. They exit with 125 instead of 1, 3, 4 and 5.";

/// Returns the exit code for an error.
pub fn code(error: &anyhow::Error, passes_through: bool) -> ExitCode {
    let code = match error.downcast_ref::<UserError>() {
        Some(UserError::Usage(_)) => 2,
        Some(UserError::NotExecutable { .. }) => 126,
        Some(UserError::NotFound { .. }) => 127,
        Some(UserError::Interrupted) => 130,
        _ if passes_through => 125,
        Some(UserError::Input { .. } | UserError::OtherProgram(_) | UserError::UnfitFile(_)) => 3,
        Some(UserError::Missing(_)) => 4,
        Some(UserError::Target(_)) => 5,
        Some(UserError::Slower(_)) => 6,
        Some(UserError::NotApplied(_)) => 7,
        None => 1,
    };
    ExitCode::from(code)
}
