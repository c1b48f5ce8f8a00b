// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles that a scenario's programs run under: recorded on the host, of another input.

use serde::Deserialize;

use super::file::bad_name;

/// How one is recorded.
#[derive(Debug, Clone, Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    pub name: String,
    /// A line for the host's shell, which makes the input in the folder where the program runs.
    pub input: Option<String>,
    /// The program and its arguments, separated by blanks: of lab/guest, or a command of the host.
    pub run: String,
    /// How long that run takes in a guest, whose clock counts instructions (`tollfree plan --baseline`).
    pub baseline: String,
    /// A line for the host's shell, which gives a server something to do; when it ends the server
    /// has a minute to do so too.
    pub load: Option<String>,
}

impl ProfileSpec {
    /// What no profile can be, in words.
    pub(super) fn problem(&self) -> Option<String> {
        let is_empty = self.run.split_whitespace().next().is_none();
        let empty = || format!("profile {}: run: there is no program", self.name);
        bad_name(&self.name).or_else(|| is_empty.then(empty))
    }
}

/// The profiles that a job's line names (`with NAME COMMAND`).
pub(super) fn named(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split([' ', '\'', '"', ';', '(']);
    let next = words.clone().skip(1);
    words
        .zip(next)
        .filter_map(|(word, next)| (word == "with").then_some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_profiles_behind_with() {
        let line = "section a sh -c 'with redis redis-server & with hog hog 1M'; (with x y)";
        let found: Vec<&str> = named(line).collect();
        assert_eq!(found, ["redis", "hog", "x"]);
        assert_eq!(named("section with-x y").count(), 0);
    }
}
