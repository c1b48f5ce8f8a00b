// SPDX-License-Identifier: MIT OR Apache-2.0
//! Permanent changes that a maintainer can deploy to keep the gain without tollfree.
//!
//! Candidates are derived from the program's allocator, runtime and name. Each can be measured as a
//! variant of its own; the others are reported as not measured.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};
use toll_model::plan::{Plan, Verdict};
use toll_model::site::{Site, SiteKind};
use toll_model::stats::Interval;

/// Properties of a program, found while it ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Base name of the process with the most memory (`python3.11`, `redis-server`).
    pub program: String,
    /// Base names of its mapped libraries.
    pub libraries: Vec<String>,
    /// The allocator's configuration variable, if jemalloc is linked statically.
    pub jemalloc_variable: Option<String>,
}

/// A change, before it is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Name of its variant.
    pub name: &'static str,
    /// Description of the change.
    pub change: String,
    /// What to paste, and where.
    pub how: String,
    /// How to measure it; `None` if that would change the machine (a reserved pool, a rebuild).
    pub variant: Option<Change>,
}

/// How a permanent change modifies the command, so that it can be measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Environment variables with their whole new value.
    pub env: Vec<(String, String)>,
    /// Arguments after the program's name.
    pub first_arguments: Vec<OsString>,
    /// Arguments at the end.
    pub last_arguments: Vec<OsString>,
}

impl Change {
    /// Returns the command line with the change.
    pub fn command(&self, command: &[OsString]) -> Vec<OsString> {
        let (program, rest) = command.split_at(1.min(command.len()));
        [program, &self.first_arguments, rest, &self.last_arguments].concat()
    }
}

/// A change with its measured speed-up, as `tune --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Permanent {
    pub change: String,
    pub how: String,
    /// Speed-up of exactly this change; absent: not measured.
    pub measured: Option<Interval>,
    /// `measured` or `not measured`.
    pub state: String,
}

impl Candidate {
    /// Adds the speed-up of its variant, if it ran.
    pub fn with(&self, measured: Option<Interval>) -> Permanent {
        Permanent {
            change: self.change.clone(),
            how: self.how.clone(),
            measured,
            state: if measured.is_some() {
                "measured"
            } else {
                "not measured"
            }
            .to_owned(),
        }
    }
}

impl Traits {
    fn uses(&self, prefix: &str) -> bool {
        self.libraries
            .iter()
            .any(|library| library.starts_with(prefix))
    }

    fn is(&self, name: &str) -> bool {
        self.program == name
    }
}

/// Returns the changes that fit a program, the most specific first. `env` looks up the program's
/// environment; `command` is its command line.
pub fn candidates(
    traits: &Traits,
    command: &[OsString],
    env: &dyn Fn(&str) -> Option<String>,
) -> Vec<Candidate> {
    let all = [
        redis(traits, command, env),
        postgres(traits),
        jvm(traits, command),
        numpy(traits, env),
        jemalloc(traits, env),
        glibc(traits, env),
    ];
    all.into_iter().flatten().collect()
}

/// For each allocation that the plan makes huge: the call to add to the source.
pub fn in_source(plan: &Plan) -> Vec<Candidate> {
    let planned = |site: &&Site| {
        let huge = |r: &toll_model::plan::Region| r.site == site.id && r.verdict == Verdict::Huge;
        plan.regions.iter().any(huge)
    };
    plan.sites
        .iter()
        .filter(planned)
        .filter_map(madvise_at)
        .collect()
}

fn madvise_at(site: &Site) -> Option<Candidate> {
    let SiteKind::Alloc { frames, .. } = &site.kind else {
        return None;
    };
    let frame = frames
        .iter()
        .find(|f| f.symbol.is_some())
        .or(frames.first())?;
    let symbol = frame
        .symbol
        .clone()
        .unwrap_or_else(|| format!("offset {:#x}", frame.offset));
    let place = match &frame.source {
        Some(source) => format!("{symbol} ({source})"),
        None => format!("{symbol} of {}", frame.path),
    };
    Some(Candidate {
        name: "madvise",
        change: format!("madvise(MADV_HUGEPAGE) on the block allocated in {place}"),
        how: format!(
            "/* in {place}, after the allocation and before its first use; block, length: the allocation */\n\
             #include <sys/mman.h>\n\
             size_t huge = 2 << 20;\n\
             uintptr_t first = ((uintptr_t)block + huge - 1) & ~(huge - 1);\n\
             uintptr_t last = ((uintptr_t)block + length) & ~(huge - 1);\n\
             if (first < last)\n    madvise((void *)first, last - first, MADV_HUGEPAGE);"
        ),
        variant: None,
    })
}

/// The variant with glibc's malloc tunable.
pub const GLIBC: &str = "glibc-tunable";

fn glibc(traits: &Traits, env: &dyn Fn(&str) -> Option<String>) -> Option<Candidate> {
    let others = ["libjemalloc", "libtcmalloc", "libmimalloc", "libjvm"];
    let other = others.iter().any(|name| traits.uses(name)) || traits.jemalloc_variable.is_some();
    if !traits.uses("libc.so.6") || other {
        return None;
    }
    let variable = "GLIBC_TUNABLES";
    let value = joined(env(variable), ':', "glibc.malloc.hugetlb=1");
    Some(by_variable(
        GLIBC,
        "glibc's malloc advises its memory (glibc 2.35 or newer)",
        variable,
        value,
    ))
}

fn jemalloc(traits: &Traits, env: &dyn Fn(&str) -> Option<String>) -> Option<Candidate> {
    let linked = traits.uses("libjemalloc").then(|| "MALLOC_CONF".to_owned());
    let variable = traits.jemalloc_variable.clone().or(linked)?;
    let value = joined(env(&variable), ',', "thp:always");
    Some(by_variable(
        "jemalloc-thp",
        "jemalloc advises its memory",
        &variable,
        value,
    ))
}

fn numpy(traits: &Traits, env: &dyn Fn(&str) -> Option<String>) -> Option<Candidate> {
    let variable = "NUMPY_MADVISE_HUGEPAGE";
    // numpy advises large arrays unless this is disabled.
    let off = env(variable).is_some_and(|value| value == "0");
    (traits.uses("_multiarray_umath") && off).then(|| {
        by_variable(
            "numpy-advises",
            "numpy advises large arrays again",
            variable,
            "1".to_owned(),
        )
    })
}

fn jvm(traits: &Traits, command: &[OsString]) -> Option<Candidate> {
    if !traits.uses("libjvm.so") {
        return None;
    }
    let flag = "-XX:+UseTransparentHugePages";
    let started_as_java = command
        .first()
        .is_some_and(|program| base_name(program) == "java");
    Some(Candidate {
        name: "jvm-thp",
        change: "the JVM advises its heap".to_owned(),
        how: format!(
            "# on the command line, before the class or -jar:\njava {flag} ...\n\n{}",
            settings("JAVA_TOOL_OPTIONS", flag)
        ),
        // With the variable, the JVM prints a message on stderr, and the output would differ.
        variant: started_as_java.then(|| Change {
            first_arguments: vec![flag.into()],
            ..Change::default()
        }),
    })
}

fn postgres(traits: &Traits) -> Option<Candidate> {
    (traits.is("postgres") || traits.is("postmaster")).then(|| Candidate {
        name: "postgres-huge-pages",
        change: "PostgreSQL's shared memory in reserved huge pages (huge_pages = on)".to_owned(),
        how: "# postgresql.conf\nhuge_pages = on\n\n\
              # how many 2 MiB pages (PostgreSQL 15 or newer, server stopped):\n\
              #   postgres -D $PGDATA -C shared_memory_size_in_huge_pages\n\
              # /etc/sysctl.d/60-postgresql.conf\nvm.nr_hugepages = <that number>"
            .to_owned(),
        // Needs memory that root has reserved.
        variant: None,
    })
}

/// Enables huge pages for redis: it disables them for itself, and its jemalloc requests none.
fn redis(
    traits: &Traits,
    command: &[OsString],
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<Candidate> {
    let started = command
        .first()
        .is_some_and(|program| base_name(program) == "redis-server");
    if !traits.is("redis-server") && !traits.is("redis-check-rdb") && !started {
        return None;
    }
    let value = joined(env("MALLOC_CONF"), ',', "thp:always");
    Some(Candidate {
        name: "redis-thp",
        change: "redis keeps huge pages on, and its allocator asks for them".to_owned(),
        how: format!(
            "# redis.conf (snapshots then copy 2 MiB for each written page: check their latency)\n\
             disable-thp no\n\n{}",
            settings("MALLOC_CONF", &value)
        ),
        variant: started.then(|| Change {
            env: vec![("MALLOC_CONF".to_owned(), value.clone())],
            last_arguments: vec!["--disable-thp".into(), "no".into()],
            ..Change::default()
        }),
    })
}

fn by_variable(name: &'static str, what: &str, variable: &str, value: String) -> Candidate {
    Candidate {
        name,
        change: format!("{what}: {variable}={value}"),
        how: settings(variable, &value),
        variant: Some(Change {
            env: vec![(variable.to_owned(), value)],
            ..Change::default()
        }),
    }
}

/// A variable setting for a shell, a systemd service, and a container.
fn settings(variable: &str, value: &str) -> String {
    format!(
        "# in a shell or start script:\nexport {variable}='{value}'\n\n\
         # for a systemd service: systemctl edit NAME.service\n[Service]\nEnvironment=\"{variable}={value}\"\n\n\
         # for a container: docker run -e {variable}='{value}' ..., or in its YAML:\n\
         env:\n  - name: {variable}\n    value: \"{value}\""
    )
}

/// Appends a value to those that a variable already has.
fn joined(before: Option<String>, separator: char, value: &str) -> String {
    match before.filter(|text| !text.is_empty()) {
        Some(before) => format!("{before}{separator}{value}"),
        None => value.to_owned(),
    }
}

fn base_name(path: &std::ffi::OsStr) -> String {
    let name = std::path::Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
