// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real CPUs that the virtual PMU can be.

use std::path::{Path, PathBuf};

use anyhow::Result;
use toll_model::cost::{CostTable, Measured, TlbGeometry, WalkPrice};

use crate::error::LabError;
use crate::guest::Machine;
use crate::house::House;

/// A CPU: its data side as the advisor's simulator has it, and its code side.
#[derive(Debug, Clone)]
pub struct Preset {
    pub name: String,
    data: TlbGeometry,
    /// First level for code: 4 KiB and 2 MiB pages, entries and ways.
    code: [(u32, u32); 2],
    /// Clock, GHz.
    ghz: f64,
    /// Cycles of an instruction, a step of a page walk, and an interrupt that flushes.
    cycles: [f64; 3],
}

/// What an instruction takes, and an interrupt with its entry, its flush and its return: round
/// numbers, the same for both presets. Modelled time says how a change of counts weighs, not
/// how long anything takes.
const INSTRUCTION_CYCLES: f64 = 1.0;
const INTERRUPT_CYCLES: f64 = 2000.0;

impl Preset {
    /// The names that [`Preset::find`] knows.
    pub const NAMES: [&str; 2] = ["skylake", "icelake"];

    /// A preset by name.
    ///
    /// Code sides: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966),
    /// tables of TLB parameters: both have 128 entries, 8-way, for 4 KiB pages, and 8 (Skylake)
    /// or 16 (Ice Lake) for 2 MiB pages, fully associative, a thread. AMD's cores are not here:
    /// they have a second level for code apart from that for data, which the model has not.
    /// A step of a walk is a load from the second-level cache: the same manual gives 12 to 14
    /// cycles for both. Clocks are the base clocks of a Xeon Platinum 8180 and 8380.
    ///
    /// # Errors
    /// [`LabError::Usage`] for a name not in [`Preset::NAMES`].
    pub fn find(name: &str) -> Result<Preset> {
        let (code, ghz) = match name {
            "skylake" => ([(128, 8), (8, 8)], 2.5),
            "icelake" => ([(128, 8), (16, 16)], 2.3),
            _ => {
                let known = Preset::NAMES.join(", ");
                return Err(
                    LabError::Usage(format!("{name}: no such preset (known are {known})")).into(),
                );
            }
        };
        Ok(Preset {
            name: name.to_owned(),
            data: TlbGeometry::preset(name).expect("the model knows more"),
            code,
            ghz,
            cycles: [INSTRUCTION_CYCLES, 14.0, INTERRUPT_CYCLES],
        })
    }

    /// Time of all CPUs together by the constants above, ns. Only ever a modelled time.
    pub fn modelled_ns(&self, instructions: f64, walk_steps: f64, interrupts: f64) -> f64 {
        let [instruction, step, interrupt] = self.cycles;
        let cycles = instructions * instruction + walk_steps * step + interrupts * interrupt;
        cycles / self.ghz
    }

    /// What a miss costs by the same constants, for profiles that programs run under: nothing
    /// where the second level has the page, a step where the upper tables are in the walker's caches
    /// (32 regions), else two.
    pub fn costs(&self) -> CostTable {
        let step = self.cycles[1] / self.ghz;
        let reach = self.data.reach_4k();
        let points = [(reach / 2, 0.0), (64 << 20, step), (256 << 20, 2.0 * step)];
        let price = |(footprint, ns): (u64, f64)| WalkPrice {
            footprint,
            chains: 1,
            saved_ns: Measured {
                median: ns,
                low: ns,
                high: ns,
            },
        };
        CostTable {
            walk: points.into_iter().map(price).collect(),
            ..CostTable::default_for(&self.name, "lab", 0, self.data.clone())
        }
    }

    /// QEMU's `-plugin` argument for a machine; counts go to files in `out`.
    ///
    /// # Errors
    /// [`LabError::Missing`] if the plugin is not built.
    pub fn plugin(&self, house: &House, machine: &Machine, out: &Path) -> Result<String> {
        let library = self.library(house)?;
        let [small, large] = self.code;
        let code = [("l1c_4k", small), ("l1c_2m", large)]
            .map(|(name, (entries, ways))| format!("{name}={entries}x{ways}"));
        let one_thread = machine.icount && machine.cpus > 1;
        let words: Vec<String> = [
            library.display().to_string(),
            format!("out={}", out.display()),
        ]
        .into_iter()
        .chain(one_thread.then(|| "one_thread=on".to_owned()))
        .chain(self.data.plugin_words())
        .chain(code)
        .collect();
        Ok(words.join(","))
    }

    /// The plugin that is the virtual PMU.
    ///
    /// # Errors
    /// [`LabError::Missing`] if it is not built.
    pub fn library(&self, house: &House) -> Result<PathBuf> {
        house.plugin("libtoll_system.so")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_costs_what_the_model_says() {
        let preset = Preset::find("skylake").unwrap();
        let costs = preset.costs();
        let step = preset.modelled_ns(0.0, 1.0, 0.0);
        let prices: Vec<f64> = costs.walk.iter().map(|it| it.saved_ns.median).collect();
        assert_eq!(prices, [0.0, step, 2.0 * step]);
        assert!(costs.to_json().is_ok());
    }
}
