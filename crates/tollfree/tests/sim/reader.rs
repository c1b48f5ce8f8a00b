// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs guests in the simulator, and reads the recording: written from the headers' descriptions,
//! independent of the program's own reader.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Once, OnceLock};

use toll_linux::calibrate::cache_directory;
use toll_observe::record::Simulator;
use toll_testkit::compiler::compile;

/// Sums the counts of a guest's page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    pub accesses: u64,
    pub l2_hits: u64,
    pub walks: u64,
    pub walks_huge: u64,
    pub reuse_sum: u64,
    pub reuse_count: u32,
    pub dependent: u32,
    pub independent: u32,
    pub flags: u32,
    pub l2_spared: u64,
}

#[derive(Debug)]
pub struct Block {
    pub kind: u32,
    /// By address.
    pub pages: BTreeMap<u64, Page>,
}

impl Block {
    pub fn sum(&self, of: impl Fn(&Page) -> u64) -> u64 {
        self.pages.values().map(of).sum()
    }
}

#[derive(Debug)]
pub struct Recording {
    pub flags: u32,
    pub seen: u64,
    pub counted: u64,
    pub threads: u32,
    pub forks: u32,
    pub execs: u32,
    pub exec_path: String,
    pub blocks: Vec<Block>,
}

impl Recording {
    /// The anonymous block with the most accesses.
    pub fn main_block(&self) -> &Block {
        let anonymous = self.blocks.iter().filter(|b| b.kind == 2);
        anonymous
            .max_by_key(|b| b.sum(|p| p.accesses))
            .expect("one")
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn text_at(bytes: &[u8], at: usize) -> String {
    let text = &bytes[at..];
    let end = text.iter().position(|b| *b == 0).unwrap();
    String::from_utf8(text[..end].to_vec()).unwrap()
}

fn read(path: &Path) -> Recording {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path).unwrap();
    let part = |at: u64, length: u64| {
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, at).unwrap();
        bytes
    };
    let header = part(0, 4096);
    assert_eq!(&header[..8], b"TOLLSIM1");
    let blocks_max = u64_at(&header, 24);
    let count = u64_at(&header, 40);
    let blocks = (0..count).map(|index| {
        let bytes = part(4096 + index * 256, 256);
        let (address, length) = (u64_at(&bytes, 16), u64_at(&bytes, 24));
        let first = u64_at(&bytes, 32);
        let at = 4096 + blocks_max * 256 + first * 64;
        // A heap's block is long and mostly unused.
        let pages = part(at, length.min(1 << 28) / 64);
        let pages = pages.chunks_exact(64).enumerate().map(|(index, bytes)| {
            let page = Page {
                accesses: u64_at(bytes, 0),
                l2_hits: u64_at(bytes, 8),
                walks: u64_at(bytes, 16),
                walks_huge: u64_at(bytes, 24),
                reuse_sum: u64_at(bytes, 32),
                reuse_count: u32_at(bytes, 40),
                dependent: u32_at(bytes, 44),
                independent: u32_at(bytes, 48),
                flags: u32_at(bytes, 52),
                l2_spared: u64_at(bytes, 56),
            };
            (address + index as u64 * 4096, page)
        });
        Block {
            kind: u32_at(&bytes, 0),
            pages: pages.filter(|(_, page)| *page != Page::default()).collect(),
        }
    });
    Recording {
        flags: u32_at(&header, 20),
        seen: u64_at(&header, 56),
        counted: u64_at(&header, 64),
        threads: u32_at(&header, 124),
        forks: u32_at(&header, 128),
        execs: u32_at(&header, 132),
        exec_path: text_at(&header, 136),
        blocks: blocks.collect(),
    }
}

pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the plugins if necessary.
fn make_plugins() {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        let directory = checkout().join("plugins");
        let made = Command::new("make").arg("-sC").arg(&directory).status();
        assert!(made.expect("make").success());
    });
}

/// The QEMU that tollfree uses.
fn simulator() -> &'static Simulator {
    static FOUND: OnceLock<Simulator> = OnceLock::new();
    FOUND.get_or_init(|| {
        make_plugins();
        Simulator::find().expect("qemu-x86_64 (the setup installs it)")
    })
}

/// The QEMUs with plugins in `TOLLFREE_LIBDIR`, `PATH` and the cache: one for each version and plugin.
pub fn simulators() -> Vec<Simulator> {
    make_plugins();
    let cache = cache_directory().map(|cache| cache.join("bin"));
    let mut found: Vec<Simulator> = Vec::new();
    for directory in ["TOLLFREE_LIBDIR", "PATH"]
        .iter()
        .filter_map(std::env::var_os)
        .flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>())
        .chain(cache)
    {
        let qemu = directory.join("qemu-x86_64");
        match qemu.is_file().then(|| Simulator::of(qemu)) {
            Some(Ok(simulator)) if !found.iter().any(|it| same(it, &simulator)) => {
                found.push(simulator);
            }
            Some(Err(error)) => eprintln!("{error}"),
            _ => {}
        }
    }
    found
}

fn same(a: &Simulator, b: &Simulator) -> bool {
    a.version == b.version && a.plugin == b.plugin
}

/// A guest program, built once per name and flags.
pub fn guest(directory: &Path, name: &str) -> PathBuf {
    let source = checkout().join(format!("crates/tollfree/tests/data/sim/{name}.c"));
    let program = directory.join(name);
    assert!(compile(&source, &program, &["-O2", "-g", "-pthread"]));
    program
}

/// A TLB small enough to compute counts by hand.
pub const SMALL: &str = "l1_4k=16x4,l1_2m=8x4,l1_1g=4x4,l2_4k=256x4,l2_2m=256x4,l2_1g=4x4,l2_shared=1,pde=4x4,pdpte=4x4";

/// A completed simulation.
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub recording: Recording,
}

/// Runs a guest with the plugin's arguments.
pub fn simulate(directory: &Path, arguments: &str, command: &[&str]) -> Run {
    simulate_by(simulator(), directory, arguments, command)
}

pub fn simulate_by(
    simulator: &Simulator,
    directory: &Path,
    arguments: &str,
    command: &[&str],
) -> Run {
    let path = directory.join(format!(
        "recording-{}",
        std::thread::current()
            .name()
            .unwrap_or("x")
            .replace("::", "-")
    ));
    std::fs::write(&path, b"").unwrap();
    let plugin = simulator.plugin.display();
    let option = format!("{plugin},out={},{arguments}", path.display());
    let output = Command::new(&simulator.qemu)
        .args(["-plugin", &option])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let recording = read(&path);
    std::fs::remove_file(&path).unwrap();
    Run {
        status: output.status,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        recording,
    }
}
