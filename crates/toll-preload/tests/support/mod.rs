// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by the tests: the library, target programs, recorded events, plans.
#![allow(dead_code)]

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;
use toll_linux::events::{EventFile, ModuleInfo};
use toll_model::wire::{
    ACTIONS_MAGIC, ANY, ActionsHeader, Event, EventKind, FrameMatch, Interval, MAX_FRAMES,
    MODULE_PATH, Module, Rule,
};

pub const MIB: u64 = 1 << 20;
pub const REGION: u64 = toll_model::REGION;

/// The library as it is shipped.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let directory = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
        let target = directory.unwrap_or_else(std::env::temp_dir).join("preload");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "-p", "toll-preload"])
            .arg("--target-dir")
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo starts").success());
        target.join("release/libtoll_preload.so")
    })
}

/// A directory for one test, with its compiled programs.
pub struct Fixture {
    pub directory: TempDir,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles `tests/data/SOURCE` with further arguments; `to` names the result.
    pub fn compile(&self, source: &str, to: &str, arguments: &[&str]) -> PathBuf {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
        let result = self.path(to);
        let status = Command::new(compiler)
            .args(["-O1", "-g", "-fno-builtin", "-pthread", "-o"])
            .arg(&result)
            .arg(data.join(source))
            .args(arguments)
            .status();
        assert!(status.expect("a C compiler").success(), "{source}");
        result
    }

    pub fn program(&self, source: &str) -> PathBuf {
        let name = source.split('.').next().unwrap();
        self.compile(source, name, &[])
    }
}

/// A run of a target program.
pub struct Run {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
}

impl Run {
    pub fn new(program: &Path) -> Run {
        Run {
            program: program.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Run {
        let arguments = arguments.into_iter();
        self.arguments
            .extend(arguments.map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// Preloads another library before the one under test.
    pub fn before(mut self, library: &Path) -> Run {
        self.before.push(library.to_owned());
        self
    }

    /// Preloads another library after the one under test.
    pub fn after(mut self, library: &Path) -> Run {
        self.after.push(library.to_owned());
        self
    }

    fn command(&self, ours: bool) -> Command {
        let mut preload = Vec::new();
        preload.extend(self.before.iter().map(PathBuf::as_path));
        if ours {
            preload.push(library());
        }
        preload.extend(self.after.iter().map(PathBuf::as_path));
        let preload: Vec<_> = preload.iter().map(|path| path.to_str().unwrap()).collect();
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_remove("TOLLFREE_SIM")
            .env("LD_PRELOAD", preload.join(":"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs without the library.
    pub fn plain(&self) -> Output {
        self.command(false).output().unwrap()
    }

    /// Runs with the library and these files.
    pub fn with(&self, actions: Option<&Path>, events: Option<&Path>) -> Output {
        let mut command = self.command(true);
        if let Some(actions) = actions {
            command.env("TOLLFREE_ACTIONS", actions);
        }
        if let Some(events) = events {
            command.env("TOLLFREE_EVENTS", events);
        }
        command.output().unwrap()
    }

    /// Runs with the library; checks that the output equals that of a plain run.
    pub fn same(&self, actions: Option<&Path>, events: Option<&Path>) -> Output {
        let plain = self.plain();
        let output = self.with(actions, events);
        assert_eq!(plain.status, output.status, "{output:?}");
        assert_eq!(text(&plain.stdout), text(&output.stdout));
        assert_eq!(text(&plain.stderr), text(&output.stderr));
        output
    }

    /// Records the events of a run; its output must equal that of a plain one.
    pub fn record(&self) -> Recorded {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events");
        EventFile::create(&path, 100_000).unwrap();
        self.same(None, Some(&path));
        Recorded::read(&path)
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Content of an event file.
pub struct Recorded {
    pub events: Vec<Event>,
    pub modules: Vec<ModuleInfo>,
    pub lost: u32,
}

impl Recorded {
    pub fn read(path: &Path) -> Recorded {
        let file = EventFile::open(path).unwrap();
        Recorded {
            events: file.events(),
            modules: file.modules(),
            lost: file.lost(),
        }
    }

    pub fn of(&self, kind: EventKind) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.kind == kind as u32)
    }

    /// Returns created blocks and mappings, in order.
    pub fn made(&self) -> impl Iterator<Item = &Event> {
        let kinds = [EventKind::Malloc as u32, EventKind::Mmap as u32];
        let events = self.events.iter();
        events.filter(move |event| kinds.contains(&event.kind))
    }

    /// Returns blocks and mappings of exactly this length.
    pub fn with_length(&self, length: u64) -> Vec<&Event> {
        let made = self.made();
        made.filter(|event| event.length == length).collect()
    }

    /// What names an event in any run: frames, class, ordinal, thread.
    pub fn name(&self, event: &Event) -> String {
        let frames: Vec<_> = (0..event.frames_used as usize)
            .map(|frame| {
                let module = &self.modules[event.frame_module[frame] as usize];
                format!("{}+{:#x}", module.id, event.frame_offset[frame])
            })
            .collect();
        format!(
            "{} 2^{} #{} thread {}",
            frames.join(" "),
            event.length.ilog2(),
            event.ordinal,
            event.thread
        )
    }

    /// Returns the names of all blocks, sorted.
    pub fn names(&self) -> Vec<String> {
        self.names_from(0)
    }

    /// Returns the names of all blocks of at least `length` bytes, sorted.
    pub fn names_from(&self, length: u64) -> Vec<String> {
        let mut names: Vec<_> = self
            .made()
            .filter(|event| event.length >= length)
            .map(|event| self.name(event))
            .collect();
        names.sort();
        names
    }

    /// Returns the function of an event's first frame and the name of its file.
    pub fn first_function(&self, event: &Event) -> String {
        let mut symbolizer = toll_linux::symbols::Symbolizer::new();
        let module = &self.modules[event.frame_module[0] as usize];
        let symbol = symbolizer.symbolize(Path::new(&module.path), event.frame_offset[0]);
        symbol.name.unwrap_or_default()
    }
}

/// Builder of an action file.
#[derive(Default)]
pub struct Actions {
    pub modules: Vec<Module>,
    pub rules: Vec<Rule>,
    pub intervals: Vec<Interval>,
    pub addresses: Vec<(u64, u64)>,
    pub flags: u32,
}

impl Actions {
    pub fn all() -> Actions {
        Actions {
            flags: toll_model::wire::flags::ALL,
            ..Actions::default()
        }
    }

    /// Adds a rule for exactly this event of a recorded run.
    pub fn exact(&mut self, run: &Recorded, event: &Event, intervals: &[(u64, u64)]) -> &mut Rule {
        let frames: [FrameMatch; MAX_FRAMES] = std::array::from_fn(|frame| {
            let used = frame < event.frames_used as usize;
            let module = event.frame_module[frame];
            FrameMatch {
                module: if used {
                    self.module(&run.modules[module as usize])
                } else {
                    ANY
                },
                _pad: 0,
                low: event.frame_offset[frame],
                high: event.frame_offset[frame],
            }
        });
        let first = self.intervals.len() as u32;
        self.intervals
            .extend(intervals.iter().map(|&(start, end)| Interval {
                start,
                end,
                advice: 1,
                _pad: 0,
            }));
        let class = event.length.ilog2();
        self.rules.push(Rule {
            frames,
            frames_used: event.frames_used,
            ordinal: event.ordinal,
            thread: event.thread,
            _pad: 0,
            length_low: 1 << class,
            length_high: (2 << class) - 1,
            first,
            count: intervals.len() as u32,
        });
        self.rules.last_mut().unwrap()
    }

    /// Adds a rule for all events of at least `low` bytes, from any site.
    pub fn any(&mut self, low: u64, intervals: &[(u64, u64)]) {
        let first = self.intervals.len() as u32;
        self.intervals
            .extend(intervals.iter().map(|&(start, end)| Interval {
                start,
                end,
                advice: 1,
                _pad: 0,
            }));
        let nowhere = FrameMatch {
            module: ANY,
            _pad: 0,
            low: 0,
            high: 0,
        };
        self.rules.push(Rule {
            frames: [nowhere; MAX_FRAMES],
            frames_used: 0,
            ordinal: ANY,
            thread: ANY,
            _pad: 0,
            length_low: low,
            length_high: u64::MAX,
            first,
            count: intervals.len() as u32,
        });
    }

    fn module(&mut self, info: &ModuleInfo) -> u32 {
        let mut module = Module {
            id_len: 0,
            id: [0; 32],
            path: [0; MODULE_PATH],
        };
        if !info.id.starts_with("path:") {
            module.id_len = (info.id.len() / 2) as u32;
            for (index, byte) in module.id.iter_mut().take(info.id.len() / 2).enumerate() {
                *byte = u8::from_str_radix(&info.id[2 * index..2 * index + 2], 16).unwrap();
            }
        }
        module.path[..info.path.len()].copy_from_slice(info.path.as_bytes());
        let same = |other: &Module| other.id == module.id && other.path == module.path;
        if let Some(found) = self.modules.iter().position(same) {
            return found as u32;
        }
        self.modules.push(module);
        self.modules.len() as u32 - 1
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let header = ActionsHeader {
            magic: ACTIONS_MAGIC,
            modules: self.modules.len() as u32,
            rules: self.rules.len() as u32,
            intervals: self.intervals.len() as u32,
            flags: self.flags,
            addresses: self.addresses.len() as u32,
            _pad: 0,
        };
        let mut bytes = raw(std::slice::from_ref(&header));
        bytes.extend(raw(&self.modules));
        bytes.extend(raw(&self.rules));
        bytes.extend(raw(&self.intervals));
        bytes.extend(raw(&self.addresses));
        bytes
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.to_bytes()).unwrap();
    }
}

/// Returns the bytes of plain structures without padding.
fn raw<T>(items: &[T]) -> Vec<u8> {
    // SAFETY: the wire structures are integers without padding.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }.to_vec()
}

/// Returns the system calls of a program from its first instruction to its end, by number, and its
/// page faults. Only the main thread is traced.
#[allow(clippy::zombie_processes)] // wait4 waits
pub fn system_calls(mut command: Command) -> (Vec<i64>, i64) {
    use std::os::unix::process::CommandExt;
    // SAFETY: the child only requests to be traced before it runs the program.
    let command = unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let pid = command.spawn().expect("a traced program").id() as libc::pid_t;
    let mut calls = Vec::new();
    let mut enters = false;
    loop {
        // SAFETY: the child is ours; the result pointers are valid.
        let (status, usage) = unsafe {
            let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
            assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
            (status, usage)
        };
        if !libc::WIFSTOPPED(status) {
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
            return (calls, usage.ru_minflt);
        }
        let mut signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP | 0x80 {
            enters = !enters;
            if enters {
                calls.push(call_number(pid));
            }
            signal = 0;
        } else if signal == libc::SIGTRAP {
            // The stop after exec.
            let options = libc::PTRACE_O_TRACESYSGOOD;
            // SAFETY: the child is stopped.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
            signal = 0;
        }
        // SAFETY: the child is stopped.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal) };
    }
}

/// Returns the number of the system call that a stopped process is in.
fn call_number(pid: libc::pid_t) -> i64 {
    // SAFETY: zeros are a valid result to overwrite; the child is stopped.
    let registers = unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers);
        registers
    };
    registers.orig_rax as i64
}

/// Whether this machine provides huge pages on request.
pub fn has_huge_pages() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|text| !text.contains("[never]"))
}
