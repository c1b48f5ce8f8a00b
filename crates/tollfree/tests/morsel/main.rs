// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree morsel` and `tollfree run --morsel`, on tmpfs, which every Linux has, and on mounts of
//! our own where allowed.

mod images;
mod mounts;
mod serving;
mod store;
mod users;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use toll_testkit::compiler::compile_where_possible;
use toll_testkit::machine::is_root;
use toll_testkit::tool::library;
use toll_testkit::{Directory, schema};

/// Maps files, and prints for each whether it is a morsel, and the sum of its bytes.
/// Options before a file: w maps it writable, o opens it for writing; p unmaps a part first.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static const char *which(unsigned long address) {
    static char line[8192];
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long from, to;
    const char *found = "nothing";
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= address && address < to) {
            found = strstr(line, "/dev/shm/") || strstr(line, "/morsels/") ? "morsel" : "file";
            break;
        }
    fclose(maps);
    return found;
}
int main(int argc, char **argv) {
    int status = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        int writable = strchr(argv[i], 'w') != NULL, rw = strchr(argv[i], 'o') != NULL;
        int fd = open(argv[i + 1], writable || rw ? O_RDWR : O_RDONLY);
        struct stat is;
        if (fd < 0 || fstat(fd, &is) < 0)
            return 9;
        int protection = PROT_READ | (writable ? PROT_WRITE : 0);
        int kind = strchr(argv[i], 'v') ? MAP_PRIVATE : MAP_SHARED;
        unsigned char *p = mmap(NULL, is.st_size, protection, kind, fd, 0);
        if (p == MAP_FAILED)
            return 8;
        close(fd);
        unsigned long sum = 0;
        for (long at = 0; at < is.st_size; at++)
            sum = sum * 31 + p[at];
        printf("%s %lu\n", which((unsigned long)p), sum);
        if (strchr(argv[i], 'p') && munmap(p, 4096) != 0)
            return 7;
        status |= munmap(p + (strchr(argv[i], 'p') ? 4096 : 0), is.st_size - (strchr(argv[i], 'p') ? 4096 : 0));
    }
    return status ? 6 : 3;
}
"#;

/// A directory of morsels, and a directory with files and a program.
struct Fixture {
    morsels: TempDir,
    files: Directory,
}

impl Fixture {
    fn new() -> Fixture {
        library();
        Fixture {
            morsels: tempfile::tempdir_in("/dev/shm").unwrap(),
            files: Directory::empty(),
        }
    }

    /// With the program `maps`; `None` without a C compiler.
    fn with_program() -> Option<Fixture> {
        let fixture = Fixture::new();
        fixture.compile("maps", PROGRAM, &[]).then_some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.files.write(name, content);
        path.into_os_string().into_string().unwrap()
    }

    /// Compiles a program; false without a C compiler.
    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> bool {
        let file = self.files.write(format!("{name}.c"), source);
        let options = [&["-O1"], flags].concat();
        compile_where_possible(&file, &self.path(name), &options)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.files.tollfree(arguments);
        command.env("TOLLFREE_MORSELS", self.morsels.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The JSON document of a successful command.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["morsel", "--json"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let document = serde_json::from_slice(&output.stdout).unwrap();
        schema::check("morsel", &document);
        document
    }

    /// The summary of a run, which keeps to its schema.
    fn summary(&self) -> Value {
        let summary = self.files.json("s.json");
        schema::check("run", &summary);
        summary
    }

    /// The directory of our own records, created if it does not exist.
    fn records(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw().to_string();
        let records = self.morsels.path().join(".tollfree").join(user);
        fs::create_dir_all(&records).unwrap();
        fs::set_permissions(&records, fs::Permissions::from_mode(0o700)).unwrap();
        records
    }

    /// The names of the morsels.
    fn names(&self) -> Vec<String> {
        let list = self.json(&["ls"]);
        let name = |morsel: &Value| morsel["name"].as_str().unwrap().to_owned();
        list["morsels"]
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect()
    }
}

fn content(size: usize) -> Vec<u8> {
    (0..size as u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// A command of an unprivileged user; only root can run one.
fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups"]);
    command.arg(program);
    command
}

/// Whether [`as_nobody`] works here; prints a message if not.
fn has_nobody() -> bool {
    let output = as_nobody(Path::new("true")).output();
    let has = is_root() && output.is_ok_and(|it| it.status.success());
    if !has {
        eprintln!("skipped: not root, or no setpriv");
    }
    has
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
