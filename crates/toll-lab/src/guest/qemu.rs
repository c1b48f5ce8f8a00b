// SPDX-License-Identifier: MIT OR Apache-2.0
//! The QEMU command line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Guest, Machine, show};
use crate::child;
use crate::error::LabError;
use crate::files;
use crate::output;
use crate::workspace::Workspace;

/// How a run of QEMU ended.
#[derive(Debug)]
pub enum Ending {
    /// The guest switched itself off.
    Off,
    Failed {
        status: ExitStatus,
        says: String,
    },
    TooLong,
    /// Its console was silent for this time.
    Stalled(Duration),
    /// The guest's init wrote nothing within this time: the guest sleeps, or it is [`BOOT_LIMIT`].
    Silent(Duration),
}

/// Boot time limit: a guest boots in 2 to 30 s, and on a busy host stays below this.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// How long a guest is watched that may have hung at boot.
const BOOT_LOOK: Duration = Duration::from_secs(20);
/// Argument of `-icount`: one instruction is one nanosecond of the guest's clock.
pub const ICOUNT: &str = "shift=0,sleep=off";

/// Files and directories of one boot.
#[derive(Debug)]
pub struct Places<'a> {
    pub initramfs: &'a Path,
    /// The directory shared with the guest as /out.
    pub out: &'a Path,
    pub console: &'a Path,
    /// QEMU's `-plugin` arguments.
    pub plugins: Vec<String>,
}

impl Places<'_> {
    /// Whether the guest's first process has written anything. The console does not show it: there
    /// is none of its output there, and warnings of the kernel come before it.
    pub fn has_begun(&self) -> bool {
        fs::read_dir(self.out).is_ok_and(|mut files| files.next().is_some())
    }
}

/// A suitable emulator: version 10, with full x86-64 system emulation.
#[derive(Debug)]
pub struct Qemu {
    pub program: PathBuf,
    /// Version, as it reports itself.
    pub version: String,
}

impl Qemu {
    /// Finds the system's QEMU, or the one that setup unpacked.
    ///
    /// # Errors
    /// [`LabError::Missing`] if neither is version 10.
    pub fn find(workspace: &Workspace) -> Result<Qemu> {
        let ours = workspace
            .cache
            .parent()
            .unwrap_or(&workspace.cache)
            .join("bin/qemu-system-x86_64");
        [PathBuf::from("qemu-system-x86_64"), ours]
            .into_iter()
            .find_map(|program| {
                let version = version(&program).filter(|version| version.starts_with("10."))?;
                Some(Qemu { program, version })
            })
            .ok_or_else(|| {
                LabError::Missing(
                    "there is no qemu-system-x86_64 10: setup/setup.sh lab brings one".to_owned(),
                )
                .into()
            })
    }

    /// Boots a guest and waits until it ends, its time limit passes, it sleeps before its first
    /// process has written anything, or its console is silent for too long afterwards.
    pub fn boot(
        &self,
        guest: &Guest<'_>,
        places: &Places<'_>,
        silence: Option<Duration>,
    ) -> Result<Ending> {
        let errors = guest.directory.join("qemu.err");
        let mut child = Running(
            self.command(guest, places)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(&errors).with_context(|| errors.display().to_string())?)
                .spawn()
                .with_context(|| self.program.display().to_string())?,
        );
        let name = guest
            .directory
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let bar = output::progress(&format!("{name}: booting"));
        let began = Instant::now();
        let (mut spoke, mut length) = (began, 0);
        let mut look = Look::at(&child.0);
        while began.elapsed() < guest.limit {
            if let Some(status) = child.0.try_wait()? {
                let says = files::read(&errors)?.unwrap_or_default();
                let says = String::from_utf8_lossy(&says).into_owned();
                return Ok(match status.success() {
                    true => Ending::Off,
                    false => Ending::Failed { status, says },
                });
            }
            if !bar.is_hidden() {
                show(&bar, &name, places.console);
            }
            let now = fs::metadata(places.console).map_or(0, |it| it.len());
            if now != length {
                (spoke, length) = (Instant::now(), now);
            }
            if look.began.elapsed() > BOOT_LOOK {
                let now = Look::at(&child.0);
                let is_over = now.sleeps_since(&look) || began.elapsed() > BOOT_LIMIT;
                if is_over && !places.has_begun() {
                    return Ok(Ending::Silent(began.elapsed()));
                }
                look = now;
            }
            let too_long = silence.filter(|it| spoke.elapsed() > *it);
            if let Some(silence) = too_long.filter(|_| places.has_begun()) {
                return Ok(Ending::Stalled(silence));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(Ending::TooLong)
    }

    fn command(&self, guest: &Guest<'_>, places: &Places<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-display", "none", "-monitor", "none"])
            .args(machine(&guest.machine, guest.pmem))
            .arg("-kernel")
            .arg(guest.image)
            .arg("-initrd")
            .arg(places.initramfs)
            .args(["-append", &kernel_words(guest)])
            .args(["-serial", &format!("file:{}", places.console.display())])
            .args(["-device", "virtio-9p-pci,fsdev=out,mount_tag=out", "-fsdev"])
            .arg(format!(
                "local,id=out,security_model=none,path={}",
                places.out.display()
            ));
        for (number, disk) in guest.disks.iter().enumerate() {
            command.args(disk_words(number, disk));
        }
        for plugin in &places.plugins {
            command.args(["-plugin", plugin]);
        }
        child::end_with_us(&mut command, libc::SIGKILL);
        command
    }
}

/// A look at what a process does.
struct Look {
    began: Instant,
    /// Time of its threads on a CPU or in wait for one; `None` where the kernel does not tell.
    busy: Option<Duration>,
}

impl Look {
    fn at(child: &Child) -> Look {
        Look {
            began: Instant::now(),
            busy: busy(child.id()).ok(),
        }
    }

    /// Whether it has slept for more than nine tenths of the time since an earlier look. A guest
    /// that boots computes all the time.
    fn sleeps_since(&self, earlier: &Look) -> bool {
        let (Some(before), Some(now)) = (earlier.busy, self.busy) else {
            return false;
        };
        now.saturating_sub(before) < (self.began - earlier.began) / 10
    }
}

fn busy(pid: u32) -> Result<Duration> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        for number in text.split_whitespace().take(2) {
            sum += number.parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(sum))
}

/// Builds the kernel command line.
fn kernel_words(guest: &Guest<'_>) -> String {
    let mut words = vec![
        "console=ttyS0 nokaslr panic=-1 oops=panic quiet loglevel=4",
        // A scenario makes those that it uses.
        "null_blk.nr_devices=0",
    ];
    if guest.machine.pti {
        words.push("pti=on");
    }
    if guest.machine.pcid {
        words.push("toll_lab_pcid");
    }
    words.extend(guest.append);
    words.join(" ")
}

/// QEMU options for CPU, memory and nodes.
fn machine(machine: &Machine, pmem: Option<&Path>) -> Vec<String> {
    let has_nodes = machine.nodes > 1 || machine.slow_mib > 0;
    let option = |is: bool, text: &str| if is { text.to_owned() } else { String::new() };
    let board = format!(
        "q35{}{}",
        option(machine.slow_mib > 0, ",hmat=on"),
        option(machine.pmem_mib > 0, ",nvdimm=on")
    );
    let la57 = if machine.la57 { "on" } else { "off" };
    let accelerator = match machine.icount {
        true => "tcg,thread=single",
        false => "tcg,thread=multi",
    };
    // CPUs of one socket share a cache; each node is a socket of its own.
    let has_sockets = machine.nodes > 1 && machine.cpus % machine.nodes == 0;
    let sockets = option(has_sockets, &format!(",sockets={}", machine.nodes));
    let cpus = format!("{}{sockets}", machine.cpus);
    let total = machine.memory_mib + machine.slow_mib;
    let memory = match machine.pmem_mib {
        0 => format!("{total}M"),
        pmem => format!("{total}M,slots=1,maxmem={}M", total + pmem),
    };
    let mut words: Vec<String> = [
        ["-machine", &board],
        ["-accel", accelerator],
        // TCG runs string instructions one step at a time: without ERMS and FSRM the kernel clears
        // and copies pages with eight-byte steps, not one-byte steps.
        ["-cpu", &format!("max,la57={la57},erms=off,fsrm=off")],
        ["-smp", &cpus],
        ["-m", &memory],
    ]
    .concat()
    .into_iter()
    .map(str::to_owned)
    .collect();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if machine.icount {
        add("-icount", ICOUNT.to_owned());
    }
    if machine.turns_us > 0 {
        // One thread runs each CPU until the next timer of any device, divided by the number of
        // CPUs. A filter that buffers packets sets a timer again and again, without the guest.
        let interval = machine.turns_us;
        add("-netdev", "hubport,id=turns,hubid=0".to_owned());
        add(
            "-object",
            format!("filter-buffer,id=buffer,netdev=turns,interval={interval}"),
        );
    }
    if machine.iommu {
        // The devices behind an IOMMU come after it. Other devices of the lab bypass it.
        add(
            "-device",
            "intel-iommu,x-scalable-mode=on,x-flts=on,intremap=on".to_owned(),
        );
        add("-device", format!("edu,dma_mask={}", u64::MAX));
    }
    if has_nodes {
        for (name, value) in nodes(machine) {
            add(name, value);
        }
    }
    if machine.pmem_mib > 0 {
        let size = machine.pmem_mib;
        let kind = match pmem {
            Some(file) => format!("memory-backend-file,share=on,mem-path={}", file.display()),
            // What the guest does not touch needs no memory of the host.
            None => "memory-backend-ram,reserve=off".to_owned(),
        };
        add("-object", format!("{kind},id=pmem,size={size}M"));
        add("-device", "nvdimm,memdev=pmem".to_owned());
    }
    words
}

/// QEMU options for the nodes of a multi-node machine.
fn nodes(machine: &Machine) -> Vec<(&'static str, String)> {
    let mut words = Vec::new();
    let mut node = |id: u32, mib: u32, rest: String| {
        words.push((
            "-object",
            format!("memory-backend-ram,id=node{id},size={mib}M"),
        ));
        words.push(("-numa", format!("node,nodeid={id},memdev=node{id}{rest}")));
    };
    let per_node = machine.cpus / machine.nodes;
    for id in 0..machine.nodes {
        let (first, next) = (id * per_node, (id + 1) * per_node);
        let last = if id + 1 == machine.nodes {
            machine.cpus - 1
        } else {
            next - 1
        };
        node(
            id,
            machine.memory_mib / machine.nodes,
            format!(",cpus={first}-{last}"),
        );
    }
    if machine.slow_mib > 0 {
        node(machine.nodes, machine.slow_mib, ",initiator=0".to_owned());
        // Reported distances that make the kernel create a separate memory tier: five times the
        // latency and a fifth of the bandwidth. Accesses in the guest are not slower.
        for initiator in 0..machine.nodes {
            for target in 0..=machine.nodes {
                let (latency, bandwidth) = match target == machine.nodes {
                    true => (400, "10G"),
                    false => (80, "50G"),
                };
                let of = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
                words.push((
                    "-numa",
                    format!("{of},data-type=access-latency,latency={latency}"),
                ));
                words.push((
                    "-numa",
                    format!("{of},data-type=access-bandwidth,bandwidth={bandwidth}"),
                ));
            }
        }
    }
    words
}

fn disk_words(number: usize, image: &Path) -> [String; 4] {
    [
        "-drive".to_owned(),
        format!(
            "file={},format=raw,if=none,id=disk{number},snapshot=on",
            image.display()
        ),
        "-device".to_owned(),
        format!("virtio-blk-pci,drive=disk{number}"),
    ]
}

/// Parses the version in the output of `--version`.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program)
        .arg("--version")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next()?.split("version ").nth(1)?;
    Some(version.split_whitespace().next()?.to_owned())
}

/// A QEMU process that is killed when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_sleeps_is_told_from_one_that_computes() {
        let sleeps = |line: &str| {
            let child = Command::new("sh").args(["-c", line]).spawn().unwrap();
            let child = Running(child);
            sleep(Duration::from_millis(100));
            let before = Look::at(&child.0);
            sleep(Duration::from_millis(400));
            Look::at(&child.0).sleeps_since(&before)
        };
        assert!(sleeps("exec sleep 60"));
        assert!(!sleeps("while :; do :; done"));
    }

    #[test]
    fn a_plain_machine_has_no_nodes() {
        let words = machine(&Machine::plain(2, 512), None).join(" ");
        assert_eq!(
            words,
            "-machine q35 -accel tcg,thread=multi -cpu max,la57=off,erms=off,fsrm=off -smp 2 -m 512M"
        );
    }

    #[test]
    fn nodes_share_the_cpus_and_a_slow_one_has_none() {
        let words = machine(
            &Machine {
                nodes: 2,
                slow_mib: 256,
                ..Machine::plain(3, 1024)
            },
            None,
        )
        .join(" ");
        for part in [
            "q35,hmat=on",
            "-m 1280M",
            "node,nodeid=0,memdev=node0,cpus=0-0",
            "node,nodeid=1,memdev=node1,cpus=1-2",
            "node,nodeid=2,memdev=node2,initiator=0",
            "target=2,hierarchy=memory,data-type=access-latency,latency=400",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    #[test]
    fn persistent_memory_and_instruction_counts_are_asked_for() {
        let words = machine(
            &Machine {
                pmem_mib: 64,
                icount: true,
                ..Machine::plain(1, 512)
            },
            None,
        )
        .join(" ");
        assert!(words.contains("q35,nvdimm=on"), "{words}");
        assert!(words.contains("-m 512M,slots=1,maxmem=576M"), "{words}");
        assert!(words.contains("tcg,thread=single"), "{words}");
        assert!(words.contains("-icount shift=0,sleep=off"), "{words}");
    }

    #[test]
    fn turns_are_limited_by_a_timer() {
        let machine_with = |turns_us| Machine {
            icount: true,
            turns_us,
            ..Machine::plain(2, 512)
        };
        let words = machine(&machine_with(50), None).join(" ");
        assert!(
            words.contains("filter-buffer,id=buffer,netdev=turns,interval=50"),
            "{words}"
        );
        let words = machine(&machine_with(0), None).join(" ");
        assert!(!words.contains("filter-buffer"), "{words}");
    }

    #[test]
    fn an_iommu_comes_before_its_device() {
        let iommu = Machine {
            iommu: true,
            ..Machine::plain(1, 512)
        };
        let words = machine(&iommu, None).join(" ");
        let place = |text: &str| words.find(text).expect(text);
        assert!(place("-device intel-iommu,x-scalable-mode=on,x-flts=on") < place("-device edu"));
    }

    #[test]
    fn warnings_of_the_kernel_are_no_sign_of_the_first_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let (out, console) = (path("out"), path("console"));
        let places = Places {
            initramfs: &path("initramfs"),
            out: &out,
            console: &console,
            plugins: Vec::new(),
        };
        files::write(
            &console,
            b"[1.17] mtrr: your CPUs had inconsistent settings\n",
        )
        .unwrap();
        assert!(!places.has_begun());
        fs::create_dir(&out).unwrap();
        assert!(!places.has_begun());
        files::write(&out.join("ready.out"), b"").unwrap();
        assert!(places.has_begun());
    }
}
