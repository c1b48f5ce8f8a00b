// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU presets of the virtual PMU.

use anyhow::Result;
use toll_model::cost::{CostTable, Measured, TlbGeometry, WalkCost};

use crate::error::LabError;

/// A CPU: the data TLBs that the advisor's simulator models, and the code TLBs.
#[derive(Debug, Clone)]
pub struct Preset {
    pub name: String,
    data: TlbGeometry,
    /// First level for code: 4 KiB and 2 MiB pages, entries and ways.
    code: [(u32, u32); 2],
    /// Clock, GHz.
    ghz: f64,
    /// Cycles of an instruction, of a page-walk step, and of a flush interrupt.
    cycles: [f64; 3],
}

/// Cycles of an instruction, and of an interrupt with entry, flush and return: round numbers, the
/// same for both presets. Modelled time weighs changes in counts against each other; it does not
/// predict run time.
const INSTRUCTION_CYCLES: f64 = 1.0;
const INTERRUPT_CYCLES: f64 = 2000.0;

impl Preset {
    /// Names that [`Preset::find`] accepts.
    pub const NAMES: [&str; 2] = ["skylake", "icelake"];

    /// Finds a preset by name.
    ///
    /// Code TLBs: Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), tables
    /// of TLB parameters: both have 128 entries, 8-way, for 4 KiB pages, and 8 (Skylake) or 16 (Ice
    /// Lake) for 2 MiB pages, fully associative, per thread. AMD's cores are not included: they
    /// have a separate second level for code, which the model lacks. A step of a walk is a load
    /// from the second-level cache: the same manual gives 12 to 14 cycles for both. Clocks are the
    /// base clocks of a Xeon Platinum 8180 and 8380.
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
                    LabError::Usage(format!("{name}: no such preset (expected {known})")).into(),
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

    /// Returns the time of all CPUs together by the constants above, ns. Always a modelled time.
    pub fn modelled_ns(&self, instructions: f64, walk_steps: f64, interrupts: f64) -> f64 {
        let [instruction, step, interrupt] = self.cycles;
        let cycles = instructions * instruction + walk_steps * step + interrupts * interrupt;
        cycles / self.ghz
    }

    /// Returns miss costs by the same constants, for profiles under which programs run: zero on a
    /// second-level hit, one step if the upper tables are in the walker's caches (32 regions), else
    /// two.
    pub fn costs(&self) -> CostTable {
        let step = self.cycles[1] / self.ghz;
        let reach = self.data.reach_4k();
        let points = [(reach / 2, 0.0), (64 << 20, step), (256 << 20, 2.0 * step)];
        let cost = |(footprint, ns): (u64, f64)| WalkCost {
            footprint,
            chains: 1,
            saved_ns: Measured {
                median: ns,
                low: ns,
                high: ns,
            },
        };
        CostTable {
            walk: points.into_iter().map(cost).collect(),
            ..CostTable::default_for(&self.name, "lab", 0, self.data.clone())
        }
    }

    /// Returns the sizes of the TLBs as the virtual PMU's arguments, NAME=ENTRIESxWAYS.
    pub fn tlb_words(&self) -> Vec<String> {
        let [small, large] = self.code;
        let code = [("l1c_4k", small), ("l1c_2m", large)]
            .map(|(name, (entries, ways))| format!("{name}={entries}x{ways}"));
        self.data.plugin_words().into_iter().chain(code).collect()
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
        let saved: Vec<f64> = costs.walk.iter().map(|it| it.saved_ns.median).collect();
        assert_eq!(saved, [0.0, step, 2.0 * step]);
        assert!(costs.to_json().is_ok());
    }
}
