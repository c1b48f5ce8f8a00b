// SPDX-License-Identifier: MIT OR Apache-2.0
//! Format of a scenario file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Size;
use super::disk::DiskSpec;
use super::profile::ProfileSpec;
use crate::guest::Machine;
use crate::results::Condition;

/// An experiment: programs, a machine, and the policies to compare.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// File name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Text of the file.
    #[serde(skip)]
    pub text: String,
    /// One-line description.
    pub description: String,
    /// The real situation that the scenario stands for.
    pub stands_for: String,
    /// What would be a failure.
    pub failure: String,
    /// Conditions on the section `main` of every run; if one fails, the scenario did not exercise
    /// what it stands for.
    #[serde(default)]
    pub require: Vec<Condition>,
    /// Counters that changes are judged by.
    #[serde(default = "usual_judges")]
    pub judged_by: Vec<String>,
    /// First touch of memory: by which program, by reading or writing, on which node.
    pub first_touch: String,
    /// Programs of lab/guest.
    #[serde(default)]
    pub guest: Vec<String>,
    /// Host commands that are copied into the guest.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Default variants of `toll-lab run`.
    #[serde(default = "stock")]
    pub variants: Vec<String>,
    /// Also count the kernel's cache lines that several CPUs write.
    #[serde(default)]
    pub lines: bool,
    /// Sections that measure cost by size.
    pub sizes: Option<SizeSections>,
    /// The policy that sets the rank of the tail fault in a section, by its number of page faults.
    pub tail: Option<String>,
    /// Policies under which the workloads are compared.
    pub workloads: Option<Workloads>,
    /// Profiles of its programs.
    #[serde(default, rename = "profile")]
    pub profiles: Vec<ProfileSpec>,
    pub machine: Machine,
    #[serde(default, rename = "disk")]
    pub disks: Vec<DiskSpec>,
    /// At least one policy; the first is the default.
    #[serde(default = "only_policy", rename = "policy")]
    pub policies: Vec<Policy>,
    pub short: Form,
    pub full: Form,
}

/// Sections `NAME-SIZE` that measure the cost of mapping SIZE, by what is mapped.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeSections {
    /// Reference kind.
    pub base: String,
    pub hugetlb: String,
    pub morsel: String,
}

/// Sections `STATE-NAME`, each a workload with memory in that state; `whole` is unfragmented.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workloads {
    /// The policy that is compared with the best of the others.
    pub ours: String,
    pub stock: Vec<String>,
}

/// A configuration of the guest's kernel, for comparison with others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub name: String,
    /// Variants that the policy applies to; empty: all.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Whether programs run with their profiles.
    #[serde(default = "yes")]
    pub profiles: bool,
    /// Words for the kernel command line.
    #[serde(default)]
    pub kernel: Vec<String>,
    /// Files below /sys and /proc/sys, and the values written to them before anything runs.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

impl Policy {
    /// Whether the policy applies to a variant.
    pub fn is_for(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|it| it == variant)
    }
}

fn yes() -> bool {
    true
}

fn only_policy() -> Vec<Policy> {
    vec![Policy {
        name: "default".to_owned(),
        variants: Vec::new(),
        profiles: true,
        kernel: Vec::new(),
        set: BTreeMap::new(),
    }]
}

/// One form of the scenario: short or full.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// Time limit of a guest in seconds, booting included.
    pub within: u64,
    /// Default number of runs of each variant and policy.
    #[serde(default = "one")]
    pub runs: u32,
    /// Replaces the scenario's value.
    pub machine: Option<Machine>,
    /// Replaces the scenario's value.
    #[serde(default, rename = "disk")]
    pub disks: Vec<DiskSpec>,
    #[serde(rename = "job")]
    pub jobs: Vec<JobText>,
}

fn stock() -> Vec<String> {
    vec!["vanilla".to_owned()]
}

fn usual_judges() -> Vec<String> {
    let names = ["walks", "page_faults", "instructions_kernel"];
    names.map(str::to_owned).to_vec()
}

fn one() -> u32 {
    1
}

/// A `[[job]]` table of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobText {
    pub name: String,
    /// Required file system: the job is left out on kernels without it.
    pub needs: Option<String>,
    /// Command line for the guest's shell.
    pub run: String,
}

impl JobText {
    /// Returns the command line for the guest's shell.
    pub fn line(&self) -> String {
        match &self.needs {
            Some(name) => format!("grep -qw {name} /proc/filesystems || exit 0; {}", self.run),
            None => self.run.clone(),
        }
    }
}

impl Scenario {
    /// Parses a scenario file.
    ///
    /// # Errors
    /// A description of the problem, with the line if it is known.
    pub(super) fn parse(text: &str) -> Result<Scenario, String> {
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| error.to_string())?;
        text.clone_into(&mut scenario.text);
        match scenario.problem() {
            Some(problem) => Err(problem),
            None => Ok(scenario),
        }
    }

    pub fn form(&self, size: Size) -> &Form {
        match size {
            Size::Short => &self.short,
            Size::Full => &self.full,
        }
    }

    pub fn machine(&self, size: Size) -> Machine {
        self.form(size).machine.unwrap_or(self.machine)
    }

    pub fn disks(&self, size: Size) -> &[DiskSpec] {
        match self.form(size).disks.as_slice() {
            [] => &self.disks,
            own => own,
        }
    }

    /// Lists the profiles that the jobs of a form name, in the scenario's order.
    pub fn profiles(&self, size: Size) -> Vec<&ProfileSpec> {
        let named: Vec<&str> = self.named_profiles(size).collect();
        let is_named = |profile: &&ProfileSpec| named.contains(&profile.name.as_str());
        self.profiles.iter().filter(is_named).collect()
    }

    fn named_profiles(&self, size: Size) -> impl Iterator<Item = &str> {
        self.form(size)
            .jobs
            .iter()
            .flat_map(|job| super::profile::named(&job.run))
    }

    /// Returns the first line of the file that contains these words.
    pub fn line_of(&self, words: &str) -> usize {
        let line = self.text.lines().position(|line| line.contains(words));
        line.map_or(0, |line| line + 1)
    }

    fn problem(&self) -> Option<String> {
        let names = |names: Vec<&String>| names.into_iter().find_map(|name| bad_name(name));
        let policies = self.policies.iter().map(|it| &it.name).collect();
        if self.policies.is_empty() {
            return Some("policy: at least one is required".to_owned());
        }
        if self.judged_by.is_empty() {
            return Some("judged_by: at least one is required".to_owned());
        }
        if self.variants.is_empty() {
            return Some("variants: at least one is required".to_owned());
        }
        names(policies)
            .or_else(|| twice("judged_by", self.judged_by.iter().map(String::as_str)))
            .or_else(|| twice("variants", self.variants.iter().map(String::as_str)))
            .or_else(|| twice("policy", self.policies.iter().map(|it| it.name.as_str())))
            .or_else(|| self.unknown_policy())
            .or_else(|| self.profiles.iter().find_map(ProfileSpec::problem))
            .or_else(|| twice("profile", self.profiles.iter().map(|it| it.name.as_str())))
            .or_else(|| self.problem_of(Size::Short))
            .or_else(|| self.problem_of(Size::Full))
    }

    /// Checks that `tail` and `workloads` name policies.
    fn unknown_policy(&self) -> Option<String> {
        let tail = self.tail.iter().map(|name| ("tail", name));
        let workloads = self.workloads.iter().flat_map(|it| {
            let all = std::iter::once(&it.ours).chain(&it.stock);
            all.map(|name| ("workloads", name))
        });
        let is_known = |name: &String| self.policies.iter().any(|it| it.name == *name);
        let found = tail.chain(workloads).find(|(_, name)| !is_known(name));
        let unknown = found.map(|(key, name)| format!("{key}: {name}: is not one of its policies"));
        let is_alone = self
            .workloads
            .as_ref()
            .is_some_and(|it| it.stock.is_empty());
        unknown.or_else(|| is_alone.then(|| "workloads: stock: one is required".to_owned()))
    }

    fn unknown_profile(&self, size: Size) -> Option<String> {
        let is_known = |name: &&str| self.profiles.iter().any(|it| it.name == **name);
        let name = self.named_profiles(size).find(|name| !is_known(name))?;
        let line = self.line_of(&format!("with {name} "));
        Some(format!("line {line}: with {name}: no such profile"))
    }

    fn problem_of(&self, size: Size) -> Option<String> {
        let form = self.form(size);
        let in_form = |problem: String| format!("{}: {problem}", size.name());
        if form.jobs.is_empty() {
            return Some(in_form("job: at least one is required".to_owned()));
        }
        if form.runs == 0 || form.within == 0 {
            return Some(in_form("runs and within must be at least 1".to_owned()));
        }
        let jobs = || form.jobs.iter().map(|job| job.name.as_str());
        jobs()
            .chain(form.jobs.iter().filter_map(|job| job.needs.as_deref()))
            .find_map(bad_name)
            .or_else(|| twice("job", jobs()))
            .or_else(|| self.unknown_profile(size))
            .or_else(|| self.machine(size).problem())
            .or_else(|| {
                let is_one_thread = self.lines && self.machine(size).icount;
                is_one_thread.then(|| "lines: requires CPUs that run in parallel".to_owned())
            })
            .or_else(|| self.disks(size).iter().find_map(DiskSpec::problem))
            .map(in_form)
    }
}

/// Checks names that are used as file names.
pub(super) fn bad_name(name: &str) -> Option<String> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !name.is_empty() && name.len() < 64 && name.chars().all(is_fine);
    (!is_name).then(|| format!("{name:?}: expected lower case, digits and dashes"))
}

fn twice<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Some(format!("{what} {name}: is defined twice"));
        }
        seen.push(name);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
description = "d"
stands_for = "s"
failure = "f"
first_touch = "t"
guest = ["stride"]
[machine]
cpus = 2
memory_mib = 512
[[policy]]
name = "never"
set = { "/sys/kernel/mm/transparent_hugepage/enabled" = "never" }
[short]
within = 20
[[short.job]]
name = "main"
run = "stride main 512 4k read 10"
[full]
within = 1200
runs = 5
machine = { cpus = 4, memory_mib = 1024, icount = true }
[[full.job]]
name = "main"
run = "stride main 512 4k read 1000"
"#;

    fn problem(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        Scenario::parse(&GOOD.replacen(from, to, 1)).unwrap_err()
    }

    #[test]
    fn forms_may_have_a_machine_of_their_own() {
        let scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!(scenario.machine(Size::Short), Machine::plain(2, 512));
        assert!(scenario.machine(Size::Full).icount);
        assert_eq!(scenario.form(Size::Short).runs, 1);
        assert_eq!(scenario.form(Size::Full).runs, 5);
    }

    #[test]
    fn without_policies_there_is_the_default() {
        let text: String = GOOD
            .lines()
            .filter(|line| !line.contains("policy") && !line.contains("never"))
            .map(|line| format!("{line}\n"))
            .collect();
        let scenario = Scenario::parse(&text).unwrap();
        assert_eq!(scenario.policies[0].name, "default");
    }

    #[test]
    fn a_job_may_need_a_file_system() {
        let needing = GOOD.replacen(
            "name = \"main\"",
            "name = \"main\"\nneeds = \"morselfs\"",
            1,
        );
        let scenario = Scenario::parse(&needing).unwrap();
        assert_eq!(
            scenario.short.jobs[0].line(),
            "grep -qw morselfs /proc/filesystems || exit 0; stride main 512 4k read 10"
        );
        assert!(scenario.full.jobs[0].line().starts_with("stride"));
    }

    #[test]
    fn without_variants_it_is_the_stock_kernels() {
        assert_eq!(Scenario::parse(GOOD).unwrap().variants, ["vanilla"]);
        let both = GOOD.replacen("guest", "variants = [\"vanilla\", \"tollfree\"]\nguest", 1);
        assert_eq!(Scenario::parse(&both).unwrap().variants.len(), 2);
    }

    #[test]
    fn a_policy_may_be_for_some_variants() {
        let bound = GOOD.replacen(
            "name = \"never\"",
            "name = \"never\"\nvariants = [\"vanilla\"]",
            1,
        );
        let scenario = Scenario::parse(&bound).unwrap();
        assert!(scenario.policies[0].is_for("vanilla"));
        assert!(!scenario.policies[0].is_for("tollfree"));
        let free = Scenario::parse(GOOD).unwrap();
        assert!(free.policies[0].is_for("tollfree"));
        assert!(free.policies[0].profiles);
    }

    const PROFILES: &str = r#"
[[profile]]
name = "small"
run = "stride main 8 4k read 10"
baseline = "1s"
[[profile]]
name = "large"
input = "gen text 1M text"
run = "stride main 64 4k read 10"
baseline = "1s"
load = "sleep 1"
"#;

    #[test]
    fn profiles_are_those_that_a_form_names() {
        let text = GOOD.replacen("\"stride main 512", "\"with small stride main 512", 1);
        let scenario = Scenario::parse(&(text + PROFILES)).unwrap();
        let names = |size| -> Vec<String> {
            let of = scenario.profiles(size).into_iter();
            of.map(|it| it.name.clone()).collect()
        };
        assert_eq!(names(Size::Short), ["small"]);
        assert!(names(Size::Full).is_empty());
        assert_eq!(scenario.line_of("with small "), 17);
    }

    #[test]
    fn what_is_named_must_be_there() {
        let of = |text: String| Scenario::parse(&text).unwrap_err();
        let with = GOOD.replacen("\"stride main 512", "\"with none stride main 512", 1);
        let why = of(with + PROFILES);
        assert_eq!(why, "short: line 17: with none: no such profile");
        let twice = of(GOOD.to_owned()
            + PROFILES
            + "[[profile]]\nname = \"small\"\nrun = \"x\"\nbaseline = \"1s\"\n");
        assert!(twice.contains("profile small: is defined twice"), "{twice}");
        let empty =
            of(GOOD.to_owned() + "[[profile]]\nname = \"none\"\nrun = \"\"\nbaseline = \"1s\"\n");
        assert!(empty.contains("profile none: run"), "{empty}");
        assert!(problem("guest", "tail = \"econ\"\nguest").contains("tail: econ"));
        let workloads = "workloads = { ours = \"never\", stock = [\"x\"] }\nguest";
        assert!(problem("guest", workloads).contains("workloads: x"));
        let alone = "workloads = { ours = \"never\", stock = [] }\nguest";
        assert!(problem("guest", alone).contains("stock: one is required"));
    }

    #[test]
    fn what_no_scenario_can_say_is_named() {
        assert!(problem("runs = 5", "rnus = 5").contains("rnus"));
        assert!(problem("cpus = 2", "cpus = 20").contains("20 CPUs"));
        assert!(problem("name = \"never\"", "name = \"Ne ver\"").contains("Ne ver"));
        assert!(problem("within = 20", "within = 0").contains("short"));
        assert!(problem("failure = \"f\"\n", "").contains("failure"));
        assert!(problem("guest", "variants = []\nguest").contains("variants"));
        let twice = "variants = [\"a\", \"a\"]\nguest";
        assert!(problem("guest", twice).contains("variants a: is defined twice"));
        assert!(problem("guest", "lines = true\nguest").contains("full: lines"));
        let needs = "needs = \"; reboot\"\nrun = \"stride";
        assert!(problem("run = \"stride", needs).contains("; reboot"));
        assert!(problem("guest", "sizes = { base = \"a\" }\nguest").contains("hugetlb"));
        let two = "[[short.job]]\nname = \"main\"\nrun = \"x\"\n[full]";
        assert!(problem("[full]", two).contains("job main: is defined twice"));
    }
}
