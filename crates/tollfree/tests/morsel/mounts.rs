// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounts of our own: full and slow file systems, huge pages.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::pool::Pool;
use toll_testkit::schema;
use toll_testkit::tool::tollfree;

use crate::{Fixture, content};

/// Runs shell commands in a private mount namespace, in a directory with an empty directory `m`;
/// `None` if that is not allowed.
fn with_mounts(fixture: &Fixture, script: &str) -> Option<Output> {
    let try_it = "mount -t tmpfs none m; umount m";
    in_mount_namespace(
        fixture,
        &["--map-root-user"],
        Path::new("m"),
        try_it,
        script,
    )
}

/// Runs shell commands as root in a private mount namespace; `None` if that is not possible.
fn with_root_mounts(fixture: &Fixture, try_it: &str, script: &str) -> Option<Output> {
    in_mount_namespace(fixture, &[], fixture.morsels.path(), try_it, script)
}

/// `try_it` tests whether the script's requirements are met: mounts, a file system.
fn in_mount_namespace(
    fixture: &Fixture,
    options: &[&str],
    morsels: &Path,
    try_it: &str,
    script: &str,
) -> Option<Output> {
    const ALLOWED: &str = "it can be had\n";
    let mut unshare = Command::new("unshare");
    unshare.args(options).args(["--mount", "sh", "-euc"]);
    unshare.arg(format!("mkdir m; {try_it}; echo it can be had\n{script}"));
    unshare
        .env("T", tollfree())
        .env("TOLLFREE_MORSELS", morsels);
    let mut output = unshare.current_dir(&fixture.files).output().ok()?;
    let Some(rest) = output.stdout.strip_prefix(ALLOWED.as_bytes()) else {
        eprintln!("skipped: {try_it}: {output:?}");
        return None;
    };
    output.stdout = rest.to_vec();
    Some(output)
}

#[test]
fn a_full_file_system_is_4_and_nothing_is_left() {
    let fixture = Fixture::new();
    fixture.file("small", &content(1 << 20));
    fixture.file("large", &content(8 << 20));
    let script = "mount -t tmpfs -o size=4M none m\n\
        $T morsel put small >/dev/null; exec 3<m/small\n\
        s=0; $T morsel put large || s=$?\n\
        ls -A m m/.tollfree/0 | wc -l; df --output=used m | tail -n 1; exit $s";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(stderr(&output).contains("no room for 8 MiB"), "{output:?}");
    let left: Vec<String> = stdout(&output)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    // Two headings, an empty line, one name, one record, and the hidden directory.
    assert_eq!(left, ["6", "1024"]);
}

#[test]
fn mount_says_what_it_mounted() {
    let fixture = Fixture::new();
    let script = "$T morsel mount --size 8M; $T morsel mount; $T --json morsel mount\n\
        $T morsel mount --kind hugetlbfs || test $? = 2\n\
        grep huge=always /proc/self/mounts | grep -c 'size=8192k'";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    if stdout(&output).contains("morselfs, ") {
        eprintln!("skipped: this kernel has morselfs");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.contains("tmpfs, 2 MiB pages\n  not morselfs: "),
        "{text}"
    );
    assert!(text.contains("already exists"), "{text}");
    assert!(text.ends_with("\n1\n"), "{text}");
    let json = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
    let report: Value = serde_json::from_str(json).unwrap();
    schema::check("morsel", &report);
    assert_eq!(
        (&report["mounted"], &report["page"]),
        (&false.into(), &(2 << 20).into())
    );
}

/// A directory on tmpfs needs no mount.
#[test]
fn a_missing_directory_in_memory_needs_only_to_be_made() {
    let fixture = Fixture::new();
    fixture.file("file", b"x");
    let script = "mount -t tmpfs none m; $T morsel put file --to m/a/b || exit $?";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("m/a/b: no such directory; `mkdir -p m/a/b` creates one"),
        "{said}"
    );
}

#[test]
fn huge_pages_of_tmpfs_are_counted() {
    let fixture = Fixture::new();
    fixture.file("model", &content(9 << 20));
    let script = "$T morsel mount --kind tmpfs --size 20M >&2; $T morsel put model >&2\n\
        sed -n 's/^ShmemHugePages: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; $T --json morsel stat model";
    let Some(output) = with_mounts(&fixture, script) else {
        return;
    };
    if !stderr(&output).contains("tmpfs, 2 MiB pages") {
        eprintln!("skipped: no huge pages in tmpfs: {output:?}");
        return;
    }
    let text = stdout(&output);
    let (of_machine, report) = text.split_once('\n').unwrap();
    let report: Value = serde_json::from_str(report).unwrap();
    let morsel = &report["morsels"][0];
    let bytes = |name: &str| morsel[name].as_u64().unwrap();
    assert_eq!(
        bytes("huge") + bytes("small"),
        bytes("allocated"),
        "{morsel}"
    );
    assert_eq!(bytes("huge") % (2 << 20), 0, "{morsel}");
    // A machine with fragmented memory may have none free.
    let of_machine: u64 = of_machine.parse().unwrap();
    assert!(bytes("huge") > 0 || of_machine < 2 << 10, "{text}");
}

/// Two versions within one second, of the same size, that differ between the sampled blocks.
#[test]
fn file_systems_that_count_seconds_are_waited_for() {
    let fixture = Fixture::new();
    let try_it = "truncate -s 8M disk; mkfs.ext4 -q -I 128 disk 2>/dev/null; mount -o loop disk m";
    let script = "head -c 1M /dev/zero >m/model; $T morsel put m/model >&2\n\
        printf 1 | dd of=m/model bs=1 seek=110000 conv=notrunc 2>/dev/null\n\
        $T morsel put m/model >&2; cmp m/model $TOLLFREE_MORSELS/model; umount m";
    let Some(output) = with_root_mounts(&fixture, try_it, script) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
}

/// Maps a file with its own memory directly before and after it, and unmaps them in calls that span
/// two of them; the unmapped memory must be gone, and the rest intact. Exit status 0, and the sum
/// of the bytes.
const NEIGHBOURS: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#define PAGE 4096ul
#define HUGE (2ul << 20)
static int fd;
static long size;
static char *around(char **before, char **behind) {
    /* An address with room for all of them. */
    char *room = mmap(NULL, 16 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *wish = (char *)(((unsigned long)room + 2 * HUGE) & -HUGE);
    munmap(room, 16 * HUGE);
    char *p = mmap(wish, size, PROT_READ, MAP_PRIVATE, fd, 0);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    char *end = (char *)(((unsigned long)p + size + HUGE - 1) & -HUGE);
    *before = p - 8 * PAGE;
    *behind = end;
    if (mmap(*before, 8 * PAGE, PROT_READ, flags, -1, 0) != *before ||
        mmap(*behind, 8 * PAGE, PROT_READ, flags, -1, 0) != *behind)
        exit(7);
    return p;
}
static void expect(char *address, int there) {
    unsigned char in;
    if ((mincore(address, PAGE, &in) == 0) != there)
        exit(there ? 6 : 5);
}
int main(int argc, char **argv) {
    struct stat is;
    char *before, *behind, *p;
    unsigned long sum = 0;
    fd = open(argv[1], O_RDONLY);
    if (fd < 0 || fstat(fd, &is) < 0)
        return 9;
    size = is.st_size;
    p = around(&before, &behind);
    for (long at = 0; at < size; at++)
        sum = sum * 31 + (unsigned char)p[at];
    printf("%lu\n", sum);
    /* The file and the memory before it. */
    if (munmap(before + 4 * PAGE, p + size - before - 4 * PAGE))
        return 1;
    expect(before, 1);
    expect(before + 4 * PAGE, 0);
    expect(p, 0);
    expect(p + size - PAGE, 0);
    expect(behind, 1);
    munmap(before, 4 * PAGE);
    munmap(behind, 8 * PAGE);
    /* Its second half and the memory after it, then the rest of all. */
    p = around(&before, &behind);
    if (munmap(p + HUGE, behind + 4 * PAGE - (p + HUGE)))
        return 2;
    expect(p, 1);
    expect(p + HUGE, 0);
    expect(behind, 0);
    expect(behind + 4 * PAGE, 1);
    if (munmap(before, behind + 8 * PAGE - before))
        return 3;
    expect(before, 0);
    expect(p, 0);
    expect(behind + 4 * PAGE, 0);
    return 0;
}
"#;

#[test]
fn huge_pages_of_a_pool_are_unmapped_with_their_neighbours() {
    let fixture = Fixture::new();
    let Some(_pool) = Pool::reserve(4) else {
        eprintln!("skipped: no pool of huge pages here");
        return;
    };
    if !fixture.compile("neighbours", NEIGHBOURS, &[]) {
        return;
    }
    let model = fixture.file("model", &content(3 << 20));
    let plain = Command::new(fixture.path("neighbours"))
        .arg(&model)
        .output();
    let plain = plain.unwrap();
    assert_eq!(plain.status.code(), Some(0), "{plain:?}");
    let try_it = "mount -t hugetlbfs -o pagesize=2M none m";
    let script = "$T run --morsel model --morsels m --summary s.json -- ./neighbours model";
    let Some(output) = with_root_mounts(&fixture, try_it, script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, plain.stdout);
    let summary = fixture.summary();
    let morsel = &summary["morsels"][0];
    assert_eq!(
        (&morsel["kind"], &morsel["mappings"]),
        (&"hugetlbfs".into(), &2.into()),
        "{output:?}"
    );
}
