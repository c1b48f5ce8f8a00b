// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tests that are run: lab/outside.toml.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::files;
use crate::guest::Machine;
use crate::workspace::Workspace;

/// Name of the row for booting and preparing a guest.
pub const SET_UP: &str = "set-up";
/// Default file system of a suite.
const FILE_SYSTEM: &str = "ext4";

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub machine: Machine,
    /// A line of shell that enables the patch queue's mechanisms.
    pub patched: String,
    suite: BTreeMap<SuiteName, Suite>,
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    #[serde(default)]
    pub explained: Vec<Explained>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum SuiteName {
    /// tools/testing/selftests/mm of the kernel
    Mm,
    /// stress-ng's classes memory and vm
    Stress,
    /// Random operations on files under reclaim
    Files,
}

impl SuiteName {
    pub fn name(self) -> &'static str {
        match self {
            SuiteName::Mm => "mm",
            SuiteName::Stress => "stress",
            SuiteName::Files => "files",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Seconds that a test may take.
    within: u64,
    /// Exit statuses of a test that cannot run here.
    pub skipped: Vec<i32>,
    /// Lines of shell: run once in a guest, and before each test.
    ready: String,
    reset: String,
    /// One guest is booted for each.
    #[serde(default = "usual_file_system")]
    file_systems: Vec<String>,
    #[serde(default, rename = "test")]
    tests: Vec<Test>,
    /// The command for tests that are only known by name; `{}` is replaced by the name.
    each: Option<String>,
}

fn usual_file_system() -> Vec<String> {
    vec![FILE_SYSTEM.to_owned()]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Test {
    /// Its program and arguments.
    run: String,
    /// Default: `run`.
    name: Option<String>,
    /// The command, if it is not just `run` in the suite's directory.
    #[serde(rename = "as")]
    instead: Option<String>,
    /// The number of hugetlb pages that it needs.
    #[serde(default)]
    huge: u32,
    before: Option<String>,
    within: Option<u64>,
}

/// Tests that exist but are not run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub suite: SuiteName,
    pub tests: Vec<String>,
    pub reason: String,
}

/// An explained difference from the first kernel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explained {
    pub suite: SuiteName,
    /// A `*` at its end matches anything.
    pub test: String,
    pub variant: String,
    /// A part of the result as it is printed.
    pub says: String,
    pub reason: String,
}

impl Explained {
    pub fn is_of(&self, suite: SuiteName, test: &str, variant: &str, result: &str) -> bool {
        let names = match self.test.strip_suffix('*') {
            Some(begin) => test.starts_with(begin),
            None => test == self.test,
        };
        let matches = names && self.suite == suite && self.variant == variant;
        matches && result.contains(&self.says)
    }
}

/// Tests that share a guest.
#[derive(Debug)]
pub struct Group {
    pub suite: SuiteName,
    pub file_system: String,
    /// A line of shell.
    pub ready: String,
    pub cases: Vec<Case>,
}

/// A test as it is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    /// Names its job.
    pub job: String,
    /// A line of shell that is run before the command.
    before: String,
    command: String,
    pub within: u64,
}

impl Case {
    /// The line of shell, with its time limit multiplied.
    pub fn line(&self, slower: u64) -> String {
        format!(
            "{} exec /bin/within {} {}",
            self.before,
            self.within * slower,
            self.command
        )
    }
}

impl Group {
    /// The row for booting and preparing the guest.
    pub fn set_up_name(&self) -> String {
        format!("{SET_UP}, {}", self.file_system)
    }
}

impl Plan {
    /// # Errors
    /// [`LabError::Input`] if the file is invalid.
    pub fn read(workspace: &Workspace) -> Result<Plan> {
        let path = workspace.outside();
        let text = files::read_text(&path)?;
        Plan::parse(&text)
            .map_err(|why| LabError::Input(format!("{}: {why}", path.display())).into())
    }

    fn parse(text: &str) -> Result<Plan, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// A suite's tests, grouped by guest; `names` are the tests for the suite's `each`.
    pub fn groups(&self, name: SuiteName, names: &[String]) -> Vec<Group> {
        let Some(suite) = self.suite.get(&name) else {
            return Vec::new();
        };
        let several = suite.file_systems.len() > 1;
        let group = |file_system: &String| {
            let prefix = if several {
                format!("{file_system}, ")
            } else {
                String::new()
            };
            let mut cases: Vec<Case> = suite
                .tests
                .iter()
                .map(|test| suite.case(name, &prefix, test))
                .collect();
            let wanted = names.iter().filter(|test| !self.is_left_out(name, test));
            cases.extend(wanted.filter_map(|test| suite.case_of(name, test)));
            Group {
                suite: name,
                file_system: file_system.clone(),
                ready: suite.ready.clone(),
                cases,
            }
        };
        suite.file_systems.iter().map(group).collect()
    }

    pub fn skipped(&self, name: SuiteName) -> &[i32] {
        self.suite.get(&name).map_or(&[], |suite| &suite.skipped)
    }

    pub fn is_left_out(&self, suite: SuiteName, test: &str) -> bool {
        let mut of_suite = self.left_out.iter().filter(|it| it.suite == suite);
        of_suite.any(|it| it.tests.iter().any(|name| name == test))
    }
}

impl Suite {
    fn case(&self, suite: SuiteName, prefix: &str, test: &Test) -> Case {
        let directory = if suite == SuiteName::Mm { "." } else { "/bin" };
        let command = format!("{directory}/{}", test.run);
        let mut before = self.before();
        if test.huge > 0 {
            before += &format!(" echo {} > /proc/sys/vm/nr_hugepages;", test.huge);
        }
        if let Some(line) = &test.before {
            before += &format!(" {line};");
        }
        let name = format!("{prefix}{}", test.name.as_ref().unwrap_or(&test.run));
        Case {
            job: job(suite, &name),
            name,
            before,
            command: test.instead.clone().unwrap_or(command),
            within: test.within.unwrap_or(self.within),
        }
    }

    fn case_of(&self, suite: SuiteName, name: &str) -> Option<Case> {
        let each = self.each.as_ref()?;
        Some(Case {
            name: name.to_owned(),
            job: job(suite, name),
            before: self.before(),
            command: format!("/bin/{}", each.replace("{}", name)),
            within: self.within,
        })
    }

    /// Undoes what the previous test left behind; errors are ignored.
    fn before(&self) -> String {
        format!("{{ {}; }} > /dev/null 2>&1 || true;", self.reset)
    }
}

/// A name of letters, digits and `-`.
fn job(suite: SuiteName, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    format!("{}-{name}", suite.name())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn plan() -> Plan {
        Plan::read(&Workspace::find().unwrap()).unwrap()
    }

    #[test]
    fn every_test_has_a_job_of_its_own() {
        let plan = plan();
        let names = ["vm".to_owned(), "vm-rw".to_owned()];
        let mut jobs = BTreeSet::new();
        let mut count = 0;
        for suite in [SuiteName::Mm, SuiteName::Stress, SuiteName::Files] {
            let names = if suite == SuiteName::Stress {
                &names[..]
            } else {
                &[]
            };
            for group in plan.groups(suite, names) {
                count += group.cases.len();
                jobs.extend(group.cases.into_iter().map(|case| case.job));
            }
        }
        assert!(count > 60);
        assert_eq!(jobs.len(), count);
    }

    #[test]
    fn what_is_left_out_is_not_run() {
        let text = "patched = 'true'\nmachine = { cpus = 1, memory_mib = 256 }\n\
            [suite.stress]\nwithin = 9\nskipped = [3]\nready = 'true'\nreset = 'true'\neach = 'x --{} 1'\n\
            [[left_out]]\nsuite = 'stress'\ntests = ['b']\nreason = 'slow'\n";
        let plan = Plan::parse(text).unwrap();
        let groups = plan.groups(SuiteName::Stress, &["a".to_owned(), "b".to_owned()]);
        let [case] = &groups[0].cases[..] else {
            panic!("{groups:?}")
        };
        assert_eq!((case.name.as_str(), case.job.as_str()), ("a", "stress-a"));
        assert_eq!(
            case.line(3),
            "{ true; } > /dev/null 2>&1 || true; exec /bin/within 27 /bin/x --a 1"
        );
        assert!(plan.groups(SuiteName::Mm, &[]).is_empty());
        assert!(Plan::parse("machine = 1").is_err());
    }

    #[test]
    fn huge_pages_are_there_before_the_test() {
        let groups = plan().groups(SuiteName::Mm, &[]);
        let case = |name: &str| groups[0].cases.iter().find(|case| case.name == name);
        let line = case("map_hugetlb").unwrap().line(1);
        assert!(
            line.ends_with(
                "; echo 128 > /proc/sys/vm/nr_hugepages; exec /bin/within 60 ./map_hugetlb"
            ),
            "{line}"
        );
        assert_eq!(groups[0].file_system, "ext4");
        let files = plan().groups(SuiteName::Files, &[]);
        assert!(files[1].cases[0].name.starts_with("xfs, "));
    }

    #[test]
    fn an_explanation_is_of_one_result() {
        let explained = Explained {
            suite: SuiteName::Mm,
            test: "khugepaged*".to_owned(),
            variant: "tollfree".to_owned(),
            says: "FAILED".to_owned(),
            reason: String::new(),
        };
        let is = |test, variant, says| explained.is_of(SuiteName::Mm, test, variant, says);
        assert!(is("khugepaged -s 2", "tollfree", "FAILED: a"));
        assert!(!is("khugepaged -s 2", "tollfree", "TIME OVER"));
        assert!(!is("khugepaged", "tollfree-debug", "FAILED"));
        assert!(!is("cow", "tollfree", "FAILED"));
    }
}
