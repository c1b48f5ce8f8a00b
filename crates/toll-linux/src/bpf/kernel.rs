// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs and maps in the kernel. All of them are file descriptors: the kernel removes them
//! when this process ends, in whichever way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use aya::maps::{Array, Map, MapData};
use aya::programs::Program;
use aya::{Btf, Ebpf, EbpfLoader};
use toll_model::losses::Missing;

use super::abi::{ALL, FORKS, Key, Mode, Totals};
use super::{Part, Table, calls, refusal};
use crate::Root;

/// Compiled from `bpf/toll.bpf.c` by `make -C plugins bpf`.
static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/toll.bpf.o");
/// One of this number of faults is timed. Timing each of them would slow faults.
const FAULT_SAMPLING: u32 = 16;
/// Room for the sums: for each CPU, and at least.
const ROOM_PER_CPU: usize = 1024;
const LEAST_ROOM: usize = 16_384;

/// A program, the function or tracepoint at which it runs, and where.
struct Hook {
    program: &'static str,
    name: &'static str,
}

const fn hook(program: &'static str, name: &'static str) -> Hook {
    Hook { program, name }
}

const FORK: Hook = hook("forked", "sched_process_fork");

/// The cheapest program that counts shootdowns, where the kernel has its function.
const SENT: Hook = hook("shootdown_sent", "native_flush_tlb_multi");

/// The programs of a part, in the order in which they are attached: an end without its beginning is
/// not seen.
fn hooks(part: Part) -> &'static [Hook] {
    match part {
        Part::Shootdowns => const { &[hook("shootdown", "tlb_flush")] },
        Part::Faults => {
            const {
                &[
                    hook("fault_begin", "handle_mm_fault"),
                    hook("fault_end", "handle_mm_fault"),
                ]
            }
        }
        Part::Reclaim => {
            const {
                &[
                    hook("reclaim_begin", "mm_vmscan_direct_reclaim_begin"),
                    hook("reclaim_end", "mm_vmscan_direct_reclaim_end"),
                    hook("limit_begin", "mm_vmscan_memcg_reclaim_begin"),
                    hook("limit_end", "mm_vmscan_memcg_reclaim_end"),
                ]
            }
        }
        Part::Compaction => {
            const {
                &[
                    hook("compaction_begin", "try_to_compact_pages"),
                    hook("compaction_end", "try_to_compact_pages"),
                ]
            }
        }
    }
}

/// The loaded programs.
#[derive(Debug)]
pub(super) struct Kernel {
    ebpf: Ebpf,
    btf: Option<Btf>,
}

impl Kernel {
    /// Creates the maps. No program runs yet.
    pub(super) fn load(root: &Root, mode: Mode, cgroup: Option<&Path>) -> Result<Kernel, Missing> {
        let refused = |error: &(dyn std::error::Error + 'static)| refusal::of(root, error);
        let btf = Btf::from_sys_fs().map_err(|error| refused(&error))?;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let room = (cpus * ROOM_PER_CPU).max(LEAST_ROOM);
        let mode = mode as u32;
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .set_global("mode", &mode, true)
            .set_global("fault_sampling", &FAULT_SAMPLING, true)
            .set_max_entries("totals", u32::try_from(room).unwrap_or(u32::MAX));
        let ebpf = loader.load(OBJECT).map_err(|error| refused(&error))?;
        let kernel = Kernel {
            ebpf,
            btf: Some(btf),
        };
        kernel.check().map_err(|error| refused(&*error))?;
        if let Some(directory) = cgroup {
            kernel.watch(directory).map_err(|error| refused(&error))?;
        }
        Ok(kernel)
    }

    /// Checks that the maps have the layout of `abi`, which reading them relies on.
    fn check(&self) -> Result<(), Box<dyn std::error::Error>> {
        let expected = [
            ("totals", size_of::<Key>(), size_of::<Totals>()),
            ("followed", size_of::<u32>(), size_of::<u32>()),
        ];
        for (name, key, value) in expected {
            let info = self.data(name)?.info()?;
            if (info.key_size() as usize, info.value_size() as usize) != (key, value) {
                return Err(format!("the map {name} has another layout").into());
            }
        }
        Ok(())
    }

    /// Sets the control group that is counted.
    fn watch(&self, directory: &Path) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let directory = File::open(directory)?;
        calls::update(self.map("cgroup")?, 0u32, directory.as_raw_fd())
    }

    /// Follows processes that are forked from now on, by those that are followed.
    pub(super) fn follow_forks(&mut self, root: &Root) -> Result<(), Missing> {
        self.attach(&FORK)
            .map_err(|error| refusal::of_program(root, &*error))
    }

    /// Runs the programs of a part from now on.
    pub(super) fn start(&mut self, root: &Root, part: Part) -> Result<(), Missing> {
        if part == Part::Shootdowns && self.attach(&SENT).is_ok() {
            return Ok(());
        }
        let started = hooks(part).iter().try_for_each(|hook| self.attach(hook));
        started.map_err(|error| refusal::of_program(root, &*error))
    }

    /// Frees what only loading needs.
    pub(super) fn ready(&mut self) {
        self.btf = None;
    }

    fn attach(&mut self, hook: &Hook) -> Result<(), Box<dyn std::error::Error>> {
        let btf = self
            .btf
            .as_ref()
            .ok_or("the programs are started already")?;
        match self.ebpf.program_mut(hook.program) {
            Some(Program::FEntry(program)) => {
                program.load(hook.name, btf)?;
                program.attach()?;
            }
            Some(Program::FExit(program)) => {
                program.load(hook.name, btf)?;
                program.attach()?;
            }
            Some(Program::BtfTracePoint(program)) => {
                program.load(hook.name, btf)?;
                program.attach()?;
            }
            _ => return Err(format!("the object has no program {}", hook.program).into()),
        }
        Ok(())
    }

    fn map(&self, name: &str) -> io::Result<BorrowedFd<'_>> {
        Ok(self.data(name)?.fd().as_fd())
    }

    fn data(&self, name: &str) -> io::Result<&MapData> {
        match self.ebpf.map(name) {
            Some(Map::HashMap(data) | Map::Unsupported(data)) => Ok(data),
            _ => Err(io::Error::other(format!("the object has no map {name}"))),
        }
    }
}

impl Table for Kernel {
    fn sums(&self) -> io::Result<Vec<(Key, Totals)>> {
        calls::all(self.map("totals")?)
    }

    fn remove(&self, key: Key) {
        if let Ok(map) = self.map("totals") {
            // It may be gone already.
            let _ = calls::delete(map, key);
        }
    }

    fn lost(&self) -> io::Result<u64> {
        let map = self.ebpf.map("lost").ok_or(io::ErrorKind::NotFound)?;
        let lost = Array::<_, u64>::try_from(map).map_err(io::Error::other)?;
        lost.get(&0, 0).map_err(io::Error::other)
    }

    fn followed(&self) -> io::Result<Vec<u32>> {
        let all = calls::all::<u32, u32>(self.map("followed")?)?;
        Ok(all.into_iter().map(|(process, _)| process).collect())
    }

    fn follow(&self, process: u32, with_itself: bool) -> io::Result<()> {
        let state = if with_itself { ALL } else { FORKS };
        calls::update(self.map("followed")?, process, state)
    }

    fn forget(&self, process: u32) {
        if let Ok(map) = self.map("followed") {
            let _ = calls::delete(map, process);
        }
    }
}
