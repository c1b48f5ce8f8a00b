// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios, and bugs to plant: lab/adversary.toml.

use anyhow::Result;
use serde::Deserialize;

use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// A line of shell that prepares each guest.
    pub ready: String,
    /// The same for a patched kernel, after `ready`.
    pub patched: String,
    #[serde(rename = "machine")]
    pub machines: Vec<MachineSpec>,
    #[serde(rename = "scenario")]
    pub scenarios: Vec<Scenario>,
    #[serde(rename = "plant")]
    pub plants: Vec<Plant>,
}

/// A machine that scenarios run on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    pub name: String,
    pub cpus: u32,
    pub memory_mib: u32,
    #[serde(default = "one")]
    pub nodes: u32,
    #[serde(default)]
    pub pti: bool,
    #[serde(default)]
    pub la57: bool,
    /// Size of /dev/pmem0, MiB.
    #[serde(default)]
    pub pmem_mib: u32,
    /// An IOMMU and QEMU's device `edu`.
    #[serde(default)]
    pub iommu: bool,
    /// Part of the short form.
    #[serde(default)]
    pub short: bool,
}

fn one() -> u32 {
    1
}

/// A way to make the kernel drop translations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// A line of shell; `SEED` is replaced by a number.
    pub run: String,
    /// Machines by name.
    pub machines: Vec<String>,
    /// Only for kernels with the patch queue.
    #[serde(default)]
    pub patched: bool,
    /// Part of the short form.
    #[serde(default)]
    pub short: bool,
}

/// Replaced by a number in a scenario's command.
const SEED: &str = "SEED";

impl Scenario {
    /// Its line of shell with that seed.
    pub fn line(&self, seed: u64) -> String {
        self.run.replace(SEED, &seed.to_string())
    }

    /// Number of operations, if it runs mmfuzz: `mmfuzz SEED OPERATIONS [THREADS]`.
    pub fn operations(&self) -> Option<u32> {
        let words: Vec<&str> = self.run.split(' ').collect();
        match words[..] {
            ["mmfuzz", SEED, operations, ..] => operations.parse().ok(),
            _ => None,
        }
    }

    /// The same with some of its operations only.
    pub fn with_only(&self, list: &str) -> Scenario {
        Scenario {
            run: format!("{} --only {list}", self.run),
            ..self.clone()
        }
    }
}

/// A bug, and the scenario that must find it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plant {
    pub name: String,
    /// What is wrong in the kernel.
    pub breaks: String,
    /// Name of a scenario.
    pub scenario: String,
    /// Name of a machine; default: the first one of the scenario.
    pub machine: Option<String>,
    /// What is written to the kernel's file for spoiled flushes while the scenario runs.
    #[serde(default)]
    pub spoil: String,
    /// Additional words of the kernel's command line.
    #[serde(default)]
    pub kernel: String,
    /// A line of shell before the scenario.
    #[serde(default)]
    pub shell: String,
    /// Kernel variants that can have the bug, at least one.
    pub variants: Vec<String>,
    /// Why the model cannot see the bug; empty if it must be found.
    #[serde(default)]
    pub unseen: String,
    #[serde(default)]
    pub short: bool,
}

impl Plan {
    /// Reads lab/adversary.toml and checks the names in it.
    ///
    /// # Errors
    /// [`LabError::Input`] names what is wrong.
    pub fn read(workspace: &Workspace) -> Result<Plan> {
        let path = workspace.adversary();
        let wrong = |why: String| LabError::Input(format!("{}: {why}", path.display()));
        let plan: Plan =
            toml::from_str(&files::read_text(&path)?).map_err(|error| wrong(error.to_string()))?;
        match plan.problem() {
            Some(why) => Err(wrong(why).into()),
            None => Ok(plan),
        }
    }

    fn problem(&self) -> Option<String> {
        if self.machines.is_empty() {
            return Some("no machine".to_owned());
        }
        let of_scenarios = self.scenarios.iter().map(|it| (&it.name, &it.machines[..]));
        let of_plants = self
            .plants
            .iter()
            .map(|it| (&it.name, it.machine.as_slice()));
        let unknown_machine = of_scenarios.chain(of_plants).find_map(|(of, machines)| {
            let unknown = machines.iter().find(|name| self.machine(name).is_none())?;
            Some(format!("{of}: no machine {unknown}"))
        });
        let unknown_scenario = self
            .plants
            .iter()
            .find(|it| self.scenario(&it.scenario).is_none());
        let homeless = self.plants.iter().find(|it| it.variants.is_empty());
        unknown_machine
            .or_else(|| {
                unknown_scenario.map(|it| format!("bug {}: no scenario {}", it.name, it.scenario))
            })
            .or_else(|| homeless.map(|it| format!("bug {}: no variant", it.name)))
    }

    /// The plan for one line of shell, on the first machine.
    pub fn of_line(mut self, line: &str) -> Plan {
        self.machines.truncate(1);
        self.plants.clear();
        self.scenarios = vec![Scenario {
            name: "run".to_owned(),
            run: line.to_owned(),
            machines: vec![self.machines[0].name.clone()],
            patched: false,
            short: true,
        }];
        self
    }

    /// The machine and the scenario of a bug; the names were checked.
    pub fn place(&self, plant: &Plant) -> (&MachineSpec, &Scenario) {
        let scenario = self.scenario(&plant.scenario).expect("a known scenario");
        let name = plant.machine.as_ref().unwrap_or(&scenario.machines[0]);
        (self.machine(name).expect("a known machine"), scenario)
    }

    pub fn machine(&self, name: &str) -> Option<&MachineSpec> {
        self.machines.iter().find(|it| it.name == name)
    }

    pub fn scenario(&self, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|it| it.name == name)
    }

    /// Checks names of the command line.
    ///
    /// # Errors
    /// [`LabError::Usage`] names an unknown one, and lists those that there are.
    pub fn check_names(&self, scenarios: &[String], plants: &[String]) -> Result<()> {
        let known: Vec<&str> = self.scenarios.iter().map(|it| it.name.as_str()).collect();
        check("scenario", scenarios, &known)?;
        let known: Vec<&str> = self.plants.iter().map(|it| it.name.as_str()).collect();
        check("bug", plants, &known)
    }
}

fn check(what: &str, asked: &[String], known: &[&str]) -> Result<()> {
    match asked.iter().find(|it| !known.contains(&it.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let known = known.join(", ");
            let why = format!("{unknown}: no such {what} (expected one of {known})");
            Err(LabError::Usage(why).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        ready = "true"
        patched = "true"
        machine = [{ name = "plain", cpus = 2, memory_mib = 512 }]
        scenario = [{ name = "munmap", run = "stale munmap", machines = ["plain"] }]
        plant = [{ name = "m", breaks = "b", scenario = "munmap", variants = ["vanilla"] }]
    "#;

    fn problem(from: &str, to: &str) -> Option<String> {
        let plan: Plan = toml::from_str(&TEXT.replace(from, to)).unwrap();
        plan.problem()
    }

    #[test]
    fn names_must_exist() {
        assert_eq!(problem("", ""), None);
        let machine = problem(r#"["plain"]"#, r#"["big"]"#).unwrap();
        assert_eq!(machine, "munmap: no machine big");
        let scenario = problem(r#"scenario = "munmap""#, r#"scenario = "fork""#).unwrap();
        assert_eq!(scenario, "bug m: no scenario fork");
        let variant = problem(r#"["vanilla"]"#, "[]").unwrap();
        assert_eq!(variant, "bug m: no variant");
    }

    #[test]
    fn a_line_of_ones_own_replaces_the_scenarios() {
        let plan: Plan = toml::from_str(TEXT).unwrap();
        let plan = plan.of_line("repro SEED");
        assert_eq!(plan.scenarios.len(), 1);
        assert_eq!(plan.scenarios[0].line(3), "repro 3");
        assert_eq!(plan.scenarios[0].machines, ["plain"]);
        assert!(plan.plants.is_empty());
        assert_eq!(plan.problem(), None);
    }

    #[test]
    fn only_mmfuzz_has_operations() {
        let plan: Plan = toml::from_str(TEXT).unwrap();
        let mut scenario = plan.scenarios[0].clone();
        assert_eq!(scenario.operations(), None);
        scenario.run = "mmfuzz SEED 4000 3".to_owned();
        assert_eq!(scenario.operations(), Some(4000));
        let line = scenario.with_only("3-5,9").line(7);
        assert_eq!(line, "mmfuzz 7 4000 3 --only 3-5,9");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let plan: Plan = toml::from_str(TEXT).unwrap();
        let error = plan.check_names(&["x".to_owned()], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x: no such scenario (expected one of munmap)"
        );
        assert!(plan.check_names(&[], &["m".to_owned()]).is_ok());
    }
}
