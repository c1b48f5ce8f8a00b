// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mock machine with given times.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::{Candidate, Change};
use toll_linux::calibrate::{Tail, Tails};
use toll_linux::sys::Mode;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::cost::CostTable;
use toll_model::estimate;
use toll_model::plan::Plan;
use toll_model::profile::{Profile, Program, Source};
use toll_model::site::{Level, SiteKind};
use toll_observe::observation::Observation;

use crate::compare::mock::Mock;
use crate::compare::schedule::Executor;
use crate::tune::budget::Step;
use crate::tune::decide::tune;
use crate::tune::experiment::{Experiment, Under};
use crate::tune::findings::Results;
use crate::tune::kinds::Machine;
use crate::tune::today::Host;
pub const MIB: u64 = 1 << 20;

/// Seconds of the runs of each variant, by its name.
pub type Times<'a> = &'a [(&'a str, &'a [f64])];

/// A plan with a gain, and the same for everything huge.
pub const GAIN: Times<'static> = &[
    ("none", &[2.0, 2.01]),
    ("plan", &[1.5, 1.51]),
    ("all", &[1.5, 1.51]),
];

/// A mock machine with given times.
pub struct MockExperiment {
    pub mock: Mock,
    pub look: Observation,
    /// The status of the first run, if it ended in time.
    pub ended: Option<i32>,
    pub candidates: Vec<Candidate>,
    pub profile: Option<Profile>,
    pub steps: Vec<Step>,
    pub kept: usize,
    pub warm: bool,
    pub costs: CostTable,
    /// Seconds of calibration and of a recording, if there is time.
    pub slow: [f64; 2],
    /// The step at which Ctrl-C is simulated.
    pub interrupt: Option<Step>,
    pub under_plan: usize,
    pub under_never: usize,
    pub host: Host,
    pub allowed_growth: f64,
    /// How often the tails of faults were measured.
    pub tails: usize,
    pub pages: Machine,
}

impl MockExperiment {
    pub fn new(times: Times) -> MockExperiment {
        MockExperiment {
            mock: Mock::new(times),
            look: Observation {
                windows: 3,
                working_set: 256 * MIB,
                anonymous: 256 * MIB,
                ..Observation::default()
            },
            ended: Some(0),
            candidates: Vec::new(),
            profile: Some(profile()),
            steps: Vec::new(),
            kept: 0,
            warm: false,
            slow: [f64::MAX; 2],
            costs: toll_linux::calibrate::default_costs(),
            interrupt: None,
            under_plan: 0,
            under_never: 0,
            host: Host {
                mode: Some(Mode::Madvise),
                inherits_off: false,
                can_limit: true,
            },
            allowed_growth: 25.0,
            tails: 0,
            pages: Machine::default(),
        }
    }

    /// With a permanent change that can be measured.
    pub fn with_change(times: Times, name: &'static str) -> MockExperiment {
        MockExperiment {
            candidates: vec![candidate(name)],
            ..MockExperiment::new(times)
        }
    }

    pub fn tune(&mut self, seconds: u64) -> Results {
        tune(self, "x", Duration::from_secs(seconds)).unwrap()
    }
}

impl Experiment for MockExperiment {
    fn executor(&mut self) -> &mut dyn Executor {
        &mut self.mock
    }
    fn look(&mut self, _until: Duration) -> Result<(Observation, Option<i32>)> {
        self.mock.clock += 1.0;
        Ok((self.look.clone(), self.ended))
    }
    fn reach(&self) -> u64 {
        12 * MIB
    }
    fn candidates(&self, _look: &Observation) -> Vec<Candidate> {
        self.candidates.clone()
    }
    fn costs(&mut self, within: Duration) -> Result<CostTable> {
        self.mock.clock += within.as_secs_f64().min(self.slow[0]);
        Ok(self.costs.clone())
    }
    fn record(&mut self, limit: Duration, _: Option<f64>, under: Under<'_>) -> Result<Profile> {
        self.mock.clock += limit.as_secs_f64().min(self.slow[1]);
        self.under_plan += usize::from(matches!(under, Under::Plan(_)));
        self.under_never += usize::from(matches!(under, Under::Never));
        self.profile
            .clone()
            .ok_or_else(|| anyhow::anyhow!("no recorder"))
    }
    fn pages(&self) -> Machine {
        self.pages.clone()
    }
    fn plan_file(&mut self, name: &str, _plan: &Plan) -> Result<PathBuf> {
        Ok(name.into())
    }
    fn estimate_options(&self) -> estimate::Options {
        estimate::Options {
            warm: self.warm,
            ..estimate::Options::default()
        }
    }
    fn announce(&mut self, step: Step, _allowance: Duration) {
        self.steps.push(step);
        if self.interrupt == Some(step) {
            self.mock.interrupt_after = 0;
        }
    }
    fn keep(&mut self, _results: &Results) -> Result<()> {
        self.kept += 1;
        Ok(())
    }
    fn interrupted(&self) -> bool {
        self.interrupt
            .is_some_and(|step| self.steps.contains(&step))
    }
    fn host(&self) -> Host {
        self.host
    }
    fn any_output(&self) -> bool {
        false
    }
    fn allowed_growth(&self) -> f64 {
        self.allowed_growth
    }
    fn fault_tails(&mut self, _within: Duration) -> Tails {
        self.tails += 1;
        Tails {
            small: None,
            huge: Some(Tail {
                faults: 512,
                p99: 180_000.0,
                longest: 4_000_000.0,
            }),
        }
    }
}

/// Pointer chasing over 256 MiB of one mapping.
pub fn profile() -> Profile {
    let mut builder = ProfileBuilder::default();
    let site = builder.site(SiteKind::Heap, 256 * MIB, 0, Level::Exact);
    let meta = Meta {
        source: Source::Sim,
        source_detail: "a test".to_owned(),
        program: Program::default(),
        command: Vec::new(),
        complete: true,
        sampled: 1.0,
        observations: 1_000_000,
        instructions: None,
        native_ns: None,
        footprint: None,
        warnings: Vec::new(),
    };
    for page in 0..256 * MIB / 4096 {
        let counts = Counts {
            accesses: 4000.0,
            misses: 3000.0,
            misses_huge: Some(30.0),
            l2_spared: 0.0,
            reuse_log2: Some(28.0),
            dependent: Some(1.0),
            huge: false,
        };
        builder.count(site, page * 4096, &counts);
    }
    builder.finish(meta)
}

pub fn candidate(name: &'static str) -> Candidate {
    Candidate {
        name,
        change: format!("set {name}"),
        how: "export A=1".to_owned(),
        variant: Some(Change {
            env: vec![("A".into(), "1".into())],
            ..Change::default()
        }),
    }
}
