// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab list`: lists the scenarios.

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::json;

use crate::output;
use crate::scenario::Scenario;
use crate::workspace::Workspace;

/// List the scenarios
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Also list those that only reports and their own users need
    #[arg(long)]
    all: bool,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let mut scenarios = Scenario::all(&workspace)?;
    scenarios.retain(|scenario| args.all || scenario.listed);
    if args.json {
        let one = |scenario: &Scenario| {
            let policies: Vec<&str> = scenario
                .policies
                .iter()
                .map(|policy| policy.name.as_str())
                .collect();
            json!({
                "name": scenario.name,
                "description": scenario.description,
                "stands_for": scenario.stands_for,
                "failure": scenario.failure,
                "first_touch": scenario.first_touch,
                "policies": policies,
                "subject": scenario.subject,
                "listed": scenario.listed,
            })
        };
        return output::json(&scenarios.iter().map(one).collect::<Vec<_>>());
    }
    for scenario in scenarios {
        println!("{:24} {}", scenario.name, scenario.description);
    }
    Ok(())
}
