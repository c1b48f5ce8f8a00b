// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: one file each below lab/scenarios. docs/guide/lab.md documents the keys.

mod condition;
mod disk;
mod file;
mod goal;
mod metric;
mod name;
mod problem;
mod profile;

use std::path::Path;

use anyhow::Result;

use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

pub use condition::{Condition, Limit};
pub use disk::{DiskSpec, FileSpec};
pub use file::{Form, JobText, Policy, Scenario, SizeSections, Workloads};
pub use goal::{
    Bound, Column, Goal, Over, Policies, Quantity, Row, Side, Subject, TableSpec, Verdict, captured,
};
pub use metric::{Metric, Name};
pub use profile::ProfileSpec;

/// The form of a scenario to run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    Short,
    Full,
}

impl Size {
    pub fn name(self) -> &'static str {
        match self {
            Size::Short => "short",
            Size::Full => "full",
        }
    }
}

impl Scenario {
    /// Lists the names of all scenarios.
    fn names(workspace: &Workspace) -> Result<Vec<String>> {
        let stem = |file: &std::path::PathBuf| {
            let is_toml = file.extension().is_some_and(|it| it == "toml");
            is_toml.then(|| file.with_extension("").display().to_string())
        };
        Ok(files::below(&workspace.scenarios)?
            .iter()
            .filter_map(stem)
            .collect())
    }

    /// Reads all scenarios.
    ///
    /// # Errors
    /// [`LabError::Input`] for an invalid file.
    pub fn all(workspace: &Workspace) -> Result<Vec<Scenario>> {
        let names = Scenario::names(workspace)?;
        names
            .iter()
            .map(|name| Scenario::find(workspace, name))
            .collect()
    }

    /// Finds a scenario by name, or by the path of a user's own file.
    ///
    /// # Errors
    /// [`LabError::Usage`] for an unknown name, [`LabError::Input`] for an invalid file.
    pub fn find(workspace: &Workspace, name: &str) -> Result<Scenario> {
        let is_path = name.contains('/');
        let path = match is_path {
            true => Path::new(name).to_owned(),
            false => workspace.scenarios.join(format!("{name}.toml")),
        };
        if !is_path && !path.is_file() {
            let known = Scenario::names(workspace)?.join(", ");
            return Err(
                LabError::Usage(format!("{name}: no such scenario (expected {known})")).into(),
            );
        }
        let text = files::read_text(&path)?;
        Scenario::parse(&text)
            .map_err(|why| LabError::Input(format!("{}: {why}", path.display())).into())
            .map(|scenario| Scenario {
                name: path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                ..scenario
            })
    }

    /// Parses a scenario file.
    ///
    /// # Errors
    /// A description of the problem, with the line if it is known.
    fn parse(text: &str) -> Result<Scenario, String> {
        let mut scenario: Scenario = toml::from_str(text).map_err(|error| error.to_string())?;
        text.clone_into(&mut scenario.text);
        match scenario.problem() {
            Some(problem) => Err(problem),
            None => Ok(scenario),
        }
    }
}
