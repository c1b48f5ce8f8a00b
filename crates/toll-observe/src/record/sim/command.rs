// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines the program to simulate: execve leaves the simulator, so scripts, `sh -c PROG` and
//! `env PROG` have to be resolved beforehand.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use toll_act::error::UserError;
use toll_act::search::find_program;

/// A command that begins with an ELF file, and the environment that its wrappers would set.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Simulated {
    pub command: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// The resolved program, as text.
    pub note: Option<String>,
}

/// Maximum number of wrappers and interpreter lines.
const DEPTH: usize = 8;

/// Resolves scripts and wrappers that only execute another program.
///
/// # Errors
/// As [`find_program`].
pub fn unwrap(command: &[OsString]) -> Result<Simulated, UserError> {
    let mut simulated = Simulated {
        command: command.to_vec(),
        ..Simulated::default()
    };
    for _ in 0..DEPTH {
        let program = find_program(&simulated.command[0])?;
        let inner = script(&program, &simulated.command)
            .or_else(|| shell(&simulated.command))
            .or_else(|| env(&mut simulated.env, &simulated.command));
        match inner {
            Some(inner) => simulated.command = inner,
            None => break,
        }
    }
    if simulated.command != command {
        let name = simulated.command[0].to_string_lossy();
        simulated.note = Some(format!("the simulated program is {name}"));
    }
    Ok(simulated)
}

/// The command of a script's interpreter line, as execve(2) builds it.
fn script(path: &Path, command: &[OsString]) -> Option<Vec<OsString>> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(256)
        .read_to_end(&mut head)
        .ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line
        .iter()
        .position(|b| b" \t".contains(b))
        .unwrap_or(line.len());
    let (interpreter, argument) = (&line[..end], line[end..].trim_ascii());
    if interpreter.is_empty() {
        return None;
    }
    let mut inner = vec![OsString::from_vec(interpreter.to_vec())];
    if !argument.is_empty() {
        inner.push(OsString::from_vec(argument.to_vec()));
    }
    inner.push(path.into());
    inner.extend_from_slice(&command[1..]);
    Some(inner)
}

/// The program in `sh -c 'PROG ARG...'` if the text consists of words only: a shell would replace
/// itself by it.
fn shell(command: &[OsString]) -> Option<Vec<OsString>> {
    const SHELLS: [&str; 3] = ["sh", "dash", "bash"];
    let name = Path::new(&command[0]).file_name()?.to_str()?;
    let [_, option, text] = command else {
        return None;
    };
    if !SHELLS.contains(&name) || option != "-c" {
        return None;
    }
    let text = text.to_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./,:+@%- ".contains(c);
    if !text.chars().all(plain) {
        return None;
    }
    let mut words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    if words.first()? == "exec" {
        words.remove(0);
    }
    // A word that is also a builtin (echo, test), or not found, is left to the shell.
    const BUILTIN: [&str; 14] = [
        "echo", "test", "printf", "cd", "true", "false", "kill", "pwd", "read", "set", "time",
        "ulimit", "wait", "exit",
    ];
    let first = words.first()?.to_str()?;
    (!BUILTIN.contains(&first) && find_program(first.as_ref()).is_ok()).then_some(words)
}

/// The program in `env [NAME=VALUE]... PROG ARG...`, and in `env -S` of interpreter lines.
fn env(set: &mut Vec<(OsString, OsString)>, command: &[OsString]) -> Option<Vec<OsString>> {
    if Path::new(&command[0]).file_name()? != "env" {
        return None;
    }
    let mut words = command[1..].to_vec();
    if let Some(text) = words.first()?.as_bytes().strip_prefix(b"-S") {
        let text = std::str::from_utf8(text).ok()?.trim().to_owned();
        if text.contains(['"', '\'', '\\', '$']) {
            return None;
        }
        words.splice(..1, text.split_whitespace().map(OsString::from));
    }
    let settings = words.iter().map_while(|word| setting(word)).count();
    let inner = words.split_off(settings);
    if inner.first()?.as_bytes().starts_with(b"-") {
        return None;
    }
    set.extend(words.iter().filter_map(|word| setting(word)));
    Some(inner)
}

/// Splits NAME=VALUE.
fn setting(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|b| *b == b'=').filter(|at| *at > 0)?;
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some((part(&bytes[..at]), part(&bytes[at + 1..])))
}

#[cfg(test)]
mod tests;
