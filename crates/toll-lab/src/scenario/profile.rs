// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles under which a scenario's programs run: recorded on the host, with a different input.

use serde::Deserialize;

use super::name::bad_name;

/// A `[[profile]]` table of a scenario.
#[derive(Debug, Clone, Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    pub name: String,
    /// Line for the host's shell that creates the input in the program's working directory.
    pub input: Option<String>,
    /// Program and arguments, separated by blanks: from lab/guest, or a host command.
    pub run: String,
    /// Duration of the run in a guest with an instruction-count clock (`tollfree plan --baseline`).
    pub baseline: String,
    /// Line for the host's shell that puts load on a server; after it ends the server has a minute
    /// to end too.
    pub load: Option<String>,
}

impl ProfileSpec {
    /// Returns what is invalid about the profile, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let is_empty = self.run.split_whitespace().next().is_none();
        let empty = || format!("profile {}: run: no program", self.name);
        bad_name(&self.name).or_else(|| is_empty.then(empty))
    }
}

/// Lists the profiles that a job's line names (`with NAME COMMAND`).
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
