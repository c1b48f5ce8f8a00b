// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the hierarchies of control groups are mounted, of `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::Root;

/// Mount points of the hierarchies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Version 2.
    pub unified: Vec<PathBuf>,
    /// Version 1: memory, CPU time, perf events.
    pub memory: Vec<PathBuf>,
    pub cpu: Option<PathBuf>,
    pub perf: Option<PathBuf>,
}

/// Reads the mount points; the usual ones if the file cannot be read.
pub(super) fn mounts(root: &Root) -> Mounts {
    match std::fs::read(root.path("/proc/self/mountinfo")) {
        Ok(text) => parse(&text),
        Err(_) => Mounts {
            unified: vec!["/sys/fs/cgroup".into(), "/sys/fs/cgroup/unified".into()],
            memory: vec!["/sys/fs/cgroup/memory".into()],
            cpu: Some("/sys/fs/cgroup/cpuacct".into()),
            perf: Some("/sys/fs/cgroup/perf_event".into()),
        },
    }
}

fn parse(text: &[u8]) -> Mounts {
    let mut mounts = Mounts::default();
    for line in text.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        // Optional fields end with a dash: proc_pid_mountinfo(5).
        let Some(dash) = fields.iter().position(|field| *field == b"-") else {
            continue;
        };
        let (Some(point), Some(kind)) = (fields.get(4), fields.get(dash + 1)) else {
            continue;
        };
        let point = PathBuf::from(OsString::from_vec(unescaped(point)));
        let options = fields.get(dash + 3).copied().unwrap_or_default();
        let has = |controller: &[u8]| {
            options
                .split(|byte| *byte == b',')
                .any(|it| it == controller)
        };
        match *kind {
            b"cgroup2" => mounts.unified.push(point),
            b"cgroup" => {
                if has(b"cpuacct") {
                    mounts.cpu = Some(point.clone());
                }
                if has(b"perf_event") {
                    mounts.perf = Some(point.clone());
                }
                if has(b"memory") {
                    mounts.memory.push(point);
                }
            }
            _ => {}
        }
    }
    mounts
}

/// Replaces the kernel's escapes: white space and backslashes are three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let digits = text.get(at + 1..at + 4).unwrap_or_default();
        let octal = std::str::from_utf8(digits).ok();
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(escaped) if *byte == b'\\' && digits.len() == 3 => {
                out.push(escaped);
                at += 4;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_type_and_options() {
        let text = b"30 1 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/memory rw master:1 shared:5 - cgroup cgroup rw,memory\n\
            32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            34 30 0:30 /\\040memory /srv/not\\040one rw - ext4 /dev/memory rw,memory\n\
            35 30 0:31 / /mnt/my\\040groups\\134x\\012 rw - cgroup2 none rw\n\
            nonsense\n";
        let mounts = parse(text);
        let unified = ["/sys/fs/cgroup/unified", "/mnt/my groups\\x\n"];
        assert_eq!(mounts.unified, unified.map(PathBuf::from));
        assert_eq!(mounts.memory, [PathBuf::from("/sys/fs/cgroup/memory")]);
        assert_eq!(mounts.cpu, Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(mounts.perf, None);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescaped(br"a\04"), br"a\04");
        assert_eq!(unescaped(br"\999\"), br"\999\");
    }
}
