// SPDX-License-Identifier: MIT OR Apache-2.0
//! Namespaces and mounts, as a container's runtime makes them: unshare(1), a shell line that mounts,
//! and this test program, which takes the capabilities away and installs the filter.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use toll_testkit::directory::UNABLE;
use toll_testkit::output::stderr;
use toll_testkit::tool::tollfree;

use crate::can_enter;
use crate::container::{Container, filters};

/// The variables that say which container this program enters: the name of its filter, and the
/// capabilities beyond Docker's default.
const FILTER: &str = "TOLL_FILTER";
const CAPABILITIES: &str = "TOLL_CAPABILITIES";

/// /sys without what the host mounted in it, and the container's own control group.
const SYS: &str = "
    read_only() { mount -o remount,bind,ro $1; }
    mount -t tmpfs tmpfs /sys
    mount -t sysfs sysfs /sys
    group=/sys/fs/cgroup
    case $(cat /proc/self/cgroup) in
    *:memory:*|*,memory:*|*:memory,*)
        mount -t tmpfs tmpfs $group
        group=$group/memory
        mkdir $group
        mount -t cgroup -o memory cgroup $group ;;
    *)
        mount -t cgroup2 cgroup $group ;;
    esac
    read_only $group
    read_only /sys";

/// What a runtime hides (`--security-opt systempaths=unconfined` leaves it), and what it makes
/// read-only.
const HIDE: &str = "
    for file in kcore keys timer_list interrupts; do
        test ! -e /proc/$file || mount --bind /dev/null /proc/$file
    done
    for directory in bus fs irq sys; do
        mount --bind /proc/$directory /proc/$directory
        read_only /proc/$directory
    done";

/// The processes of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processes {
    Own,
    /// `--pid=host`.
    OfHost,
    /// `--pid=container:NAME`, by a process of that container.
    Of(u32),
}

/// A container with namespaces of its own.
#[derive(Debug, Clone)]
pub struct Namespaces {
    pub container: Container,
    /// Whether files of /proc are hidden and read-only.
    pub hides: bool,
    pub processes: Processes,
    /// Lines that mount more.
    pub more: String,
}

impl Namespaces {
    /// `docker run`, with these options `--cap-add`.
    pub fn docker(capabilities: &[&str]) -> Namespaces {
        Namespaces {
            container: Container::docker(capabilities),
            hides: true,
            processes: Processes::Own,
            more: String::new(),
        }
    }

    /// The same with a shell line that mounts more (`-v`).
    pub fn with(mut self, line: &str) -> Namespaces {
        self.more = line.to_owned();
        self
    }

    /// The start of a command in its pid namespace.
    fn unshare(&self) -> Command {
        let mut unshare = Command::new("unshare");
        match self.processes {
            Processes::Own => unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]),
            Processes::OfHost => &mut unshare,
            Processes::Of(pid) => {
                unshare = Command::new("nsenter");
                let target = pid.to_string();
                unshare.args(["--pid", "--target", &target, "unshare", "--mount-proc"])
            }
        };
        unshare
    }

    /// A command in the container. Its first process is `sh -c LINE`, with `$TOLLFREE`.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.unshare();
        command.args(["--mount", "--cgroup", "--ipc", "--uts", "sh", "-c"]);
        let hide = if self.hides { HIDE } else { "" };
        command.arg(format!(
            "( set -e{SYS}{hide}\n{}\n) || exit {UNABLE}\nexec \"$@\"",
            self.more
        ));
        command.arg("sh").arg(env::current_exe().unwrap()).arg(line);
        let capabilities: Vec<&str> = self.container.capabilities.iter().map(|it| &**it).collect();
        command.env(FILTER, &self.container.filter.name);
        command.env(CAPABILITIES, capabilities.join(","));
        command.env("TOLLFREE", tollfree()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a shell line in the container to its end.
    pub fn run(&self, line: &str) -> Output {
        let output = self.command(line).output().unwrap();
        assert_ne!(output.status.code(), Some(UNABLE), "{}", stderr(&output));
        output
    }
}

/// Whether containers can be made here; prints a message if not.
pub fn are_possible() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let output = Namespaces::docker(&[]).command("exit 0").output();
        match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(stderr(&output)),
            Err(error) => Some(format!("unshare: {error}")),
        }
    });
    if let Some(reason) = reason {
        eprintln!("skipped: {reason}");
    }
    can_enter() && reason.is_none()
}

/// Enters the container that the environment names, and becomes the command of this program's
/// argument.
pub fn enter() {
    let Ok(name) = env::var(FILTER) else {
        return;
    };
    let filter = filters().into_iter().find(|filter| filter.name == name);
    let capabilities = env::var(CAPABILITIES).unwrap();
    let capabilities: Vec<&str> = capabilities
        .split(',')
        .filter(|it| !it.is_empty())
        .collect();
    let container = Container::new(&filter.unwrap(), &capabilities);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(env::args().nth(1).unwrap());
    shell.env_remove(FILTER).env_remove(CAPABILITIES);
    panic!("{}", container.confine(&mut shell).exec());
}
