// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: one file each below lab/scenarios. docs/guide/lab.md has the keys.

mod disk;
mod file;
mod profile;

use std::path::Path;

use anyhow::Result;

use crate::error::LabError;
use crate::files;
use crate::house::House;

pub use disk::{DiskSpec, FileSpec};
pub use file::{Form, JobText, Policy, Scenario, SizeSections, Workloads};
pub use profile::ProfileSpec;

/// What is run of a scenario.
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
    /// The names of all scenarios.
    pub fn names(house: &House) -> Result<Vec<String>> {
        let stem = |file: &std::path::PathBuf| {
            let is_toml = file.extension().is_some_and(|it| it == "toml");
            is_toml.then(|| file.with_extension("").display().to_string())
        };
        Ok(files::below(&house.scenarios)?
            .iter()
            .filter_map(stem)
            .collect())
    }

    /// A scenario by its name, or by the path of a file of the user's own.
    ///
    /// # Errors
    /// [`LabError::Usage`] for a name that none has, [`LabError::Input`] for a file that says
    /// what no scenario can.
    pub fn find(house: &House, name: &str) -> Result<Scenario> {
        let is_path = name.contains('/');
        let path = match is_path {
            true => Path::new(name).to_owned(),
            false => house.scenarios.join(format!("{name}.toml")),
        };
        if !is_path && !path.is_file() {
            let known = Scenario::names(house)?.join(", ");
            return Err(
                LabError::Usage(format!("{name}: no such scenario (known are {known})")).into(),
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
}
