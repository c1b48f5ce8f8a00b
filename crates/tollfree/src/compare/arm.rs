// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arms: the ways of running the program that are compared.

use std::ffi::OsString;
use std::path::PathBuf;

/// One way of running the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// What tables and JSON call it.
    pub name: String,
    pub way: Way,
}

/// What is different in an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// As the user runs it today.
    None,
    /// Huge pages are denied to it (where today's run is huge already).
    Never,
    /// Under a plan.
    Plan(PathBuf),
    /// Under a plan, and no huge page but those that are advised, as on a machine at `madvise`.
    PlanOnly(PathBuf),
    /// Everything huge.
    All,
    /// As today, with one permanent change.
    Change(Change),
}

/// What a permanent change does to the command, so that it can be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Variables, with their whole new value.
    pub env: Vec<(String, String)>,
    /// Arguments that follow the program's name.
    pub first_arguments: Vec<OsString>,
    /// Arguments at the end.
    pub last_arguments: Vec<OsString>,
}

impl Change {
    /// The command line with the change.
    pub fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let (program, rest) = command.split_at(1.min(command.len()));
        [program, &self.first_arguments, rest, &self.last_arguments].concat()
    }
}

impl Arm {
    pub fn none() -> Arm {
        Arm::new("none", Way::None)
    }

    pub fn never() -> Arm {
        Arm::new("never", Way::Never)
    }

    pub fn plan(file: impl Into<PathBuf>) -> Arm {
        Arm::new("plan", Way::Plan(file.into()))
    }

    pub fn plan_only(file: impl Into<PathBuf>) -> Arm {
        Arm::new("plan-only", Way::PlanOnly(file.into()))
    }

    /// A plan without its line of this number.
    pub fn without(line: usize, file: impl Into<PathBuf>) -> Arm {
        Arm::new(&format!("without {line}"), Way::Plan(file.into()))
    }

    pub fn all() -> Arm {
        Arm::new("all", Way::All)
    }

    pub fn change(name: &str, change: Change) -> Arm {
        Arm::new(name, Way::Change(change))
    }

    fn new(name: &str, way: Way) -> Arm {
        Arm {
            name: name.to_owned(),
            way,
        }
    }

    /// Whether the arm can be applied as it is, so that its gain is judged.
    pub fn is_judged(&self) -> bool {
        matches!(self.way, Way::Plan(_) | Way::Change(_))
    }

    /// What the arm is, for people.
    pub fn meaning(&self) -> &'static str {
        match self.way {
            Way::None => "as it is run today",
            Way::Never => "without any huge page",
            Way::Plan(_) => "the plan's regions huge",
            Way::PlanOnly(_) => "the plan's regions huge, and nothing that is not advised",
            Way::All => "everything huge",
            Way::Change(_) => "with this change, without tollfree",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_puts_arguments_where_the_program_reads_them() {
        let change = Change {
            first_arguments: vec!["-XX:+UseTransparentHugePages".into()],
            last_arguments: vec!["end".into()],
            ..Change::default()
        };
        let command: Vec<OsString> = vec!["java".into(), "Main".into()];
        let expected: Vec<OsString> = ["java", "-XX:+UseTransparentHugePages", "Main", "end"]
            .map(Into::into)
            .into();
        assert_eq!(change.command(&command), expected);
    }
}
