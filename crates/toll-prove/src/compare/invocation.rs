// SPDX-License-Identifier: MIT OR Apache-2.0
//! One of two commands that are compared, with its environment.

use std::ffi::{OsStr, OsString};

/// What the shell of a command does first. A shell that waits for a command takes a signal of
/// their group only after the command has ended, so the end and the time of the command are known.
const PREFACE: &str = "trap 'exit 143' TERM INT HUP QUIT; ";

/// A command, and the variables that it gets in addition to ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    command: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    /// The command as a line of the shell.
    line: String,
}

impl Invocation {
    /// A command line of the shell.
    pub fn shell(line: &OsStr) -> Invocation {
        let mut script = OsString::from(PREFACE);
        script.push(line);
        Invocation {
            command: vec!["sh".into(), "-c".into(), script],
            env: Vec::new(),
            line: line.to_string_lossy().into_owned(),
        }
    }

    /// A program and its arguments.
    pub fn program(command: &[OsString]) -> Invocation {
        let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
        Invocation {
            command: command.to_vec(),
            env: Vec::new(),
            line: words.join(" "),
        }
    }

    pub fn with_env(self, env: &[(OsString, OsString)]) -> Invocation {
        Invocation {
            env: env.to_vec(),
            ..self
        }
    }

    pub fn command(&self) -> &[OsString] {
        &self.command
    }

    /// The command as a line of the shell.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// The command with its variables, in one line, as the user would write it.
    pub fn text(&self) -> String {
        let setting = |(name, value): &(OsString, OsString)| {
            format!("{}={}", name.to_string_lossy(), quoted(value))
        };
        let mut words: Vec<String> = self.env.iter().map(setting).collect();
        words.push(self.line.clone());
        visible(&words.join(" "))
    }
}

/// A word of the shell, in quotes where it needs them.
fn quoted(word: &OsStr) -> String {
    const PLAIN: &str = "-_./,:=@%+^";
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Text with its control characters escaped.
pub(super) fn visible(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests;
