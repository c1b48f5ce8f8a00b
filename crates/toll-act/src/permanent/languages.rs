// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that fit the runtime of a language.

use super::allocators::{GLIBC_HUGE, GLIBC_VARIABLE, has_glibc_tunable};
use super::{
    Candidate, Change, Rule, Subject, Version, by_variable, by_variables, settings, unmeasured,
};

pub(super) const RULES: &[Rule] = &[
    hotspot, openj9, numpy, pytorch, pymalloc, python, go, node, dotnet,
];

fn hotspot(subject: &Subject) -> Option<Candidate> {
    if !subject.uses("libjvm.so") || subject.uses("libj9vm") {
        return None;
    }
    let flag = "-XX:+UseTransparentHugePages";
    let variable = ("JAVA_TOOL_OPTIONS".to_owned(), flag.to_owned());
    Some(Candidate {
        name: "jvm-thp",
        change: "the JVM advises its heap".to_owned(),
        how: format!(
            "# on the command line, before the class or -jar:\njava {flag} ...\n\n{}",
            settings(&[variable])
        ),
        // With the variable, the JVM prints a message on stderr, and the output would differ.
        variant: subject.starts(&["java"]).then(|| first(&[flag])),
    })
}

/// OpenJ9 advises its heap unless an option disables it. Of several, the last one counts.
fn openj9(subject: &Subject) -> Option<Candidate> {
    let option = "-XX:-TransparentHugePage";
    let is_off = subject.command.iter().any(|word| word == option);
    (subject.uses("libj9vm") && is_off).then(|| {
        unmeasured(
            "openj9-thp",
            "OpenJ9 advises its heap again",
            &format!("# on the command line, remove:\n{option}"),
        )
    })
}

fn numpy(subject: &Subject) -> Option<Candidate> {
    let variable = "NUMPY_MADVISE_HUGEPAGE";
    // numpy advises large arrays unless this is disabled.
    let off = subject.env(variable).is_some_and(|value| value == "0");
    (subject.uses("_multiarray_umath") && off).then(|| {
        by_variable(
            "numpy-advises",
            "numpy advises large arrays again",
            variable,
            "1".to_owned(),
        )
    })
}

fn pytorch(subject: &Subject) -> Option<Candidate> {
    let variable = "THP_MEM_ALLOC_ENABLE";
    let is_set = subject.env(variable).is_some();
    let fits = subject.uses("libtorch_cpu") && subject.may_be("pytorch", Version(2, 2, 0));
    (fits && !is_set).then(|| {
        by_variable(
            "pytorch-thp",
            "PyTorch advises tensors of 2 MiB and more (PyTorch 2.2 or newer)",
            variable,
            "1".to_owned(),
        )
    })
}

fn is_python(subject: &Subject) -> bool {
    subject.traits.program.starts_with("python3")
}

/// CPython's own arenas in huge pages: only newer versions can, and only from a reserved pool.
fn pymalloc(subject: &Subject) -> Option<Candidate> {
    let known = subject.version("cpython");
    (is_python(subject) && known >= Some(Version(3, 15, 0))).then(|| {
        unmeasured(
            "python-pymalloc",
            "CPython's small objects in reserved huge pages",
            "# build: ./configure --with-pymalloc-hugepages\n\n\
             # as root; NUMBER: the memory of small objects in huge pages of 2 MiB. A child that\n\
             # writes to them while the pool is exhausted is killed by SIGBUS.\n\
             sysctl vm.nr_hugepages=NUMBER\n\n\
             # in a shell or start script:\nexport PYTHON_PYMALLOC_HUGEPAGES=1",
        )
    })
}

/// CPython's arenas are mappings of 1 MiB or less, which nothing advises. glibc's heap can be.
fn python(subject: &Subject) -> Option<Candidate> {
    let chosen = subject.env("PYTHONMALLOC").is_some();
    (is_python(subject) && has_glibc_tunable(subject) && !chosen).then(|| {
        let tunables = subject.joined(GLIBC_VARIABLE, ':', GLIBC_HUGE);
        by_variables(
            "python-malloc",
            "CPython's small objects on glibc's heap, which advises its memory",
            vec![
                ("PYTHONMALLOC".to_owned(), "malloc".to_owned()),
                (GLIBC_VARIABLE.to_owned(), tunables),
            ],
        )
    })
}

/// Go advises nothing since 1.21.1; before, it changed between both kinds of advice.
fn go(subject: &Subject) -> Option<Candidate> {
    let version = subject.version("go")?;
    (version >= Version(1, 21, 1)).then(|| {
        unmeasured(
            "go-always",
            "Go's heap gets huge pages where the machine's setting is `always` (Go has no option \
             for it)",
            "# as root, for the machine:\n\
             echo always >/sys/kernel/mm/transparent_hugepage/enabled\n\
             # with this, khugepaged does not enlarge sparsely used heaps:\n\
             echo 0 >/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none\n\n\
             # for services that are to stay at `madvise` (systemd 260, Linux 6.18):\n\
             # systemctl edit NAME.service\n[Service]\nMemoryTHP=madvise\n\n\
             # for Go programs that are to stay without (Go 1.21.6 or newer):\n\
             export GODEBUG=disablethp=1",
        )
    })
}

/// Node moves its own machine code to huge pages; its heap is not affected.
fn node(subject: &Subject) -> Option<Candidate> {
    if !subject.is(&["node", "nodejs"]) {
        return None;
    }
    let option = "--use-largepages=silent";
    let variable = (
        "NODE_OPTIONS".to_owned(),
        subject.joined("NODE_OPTIONS", ' ', option),
    );
    Some(Candidate {
        name: "node-text",
        change: format!("Node's machine code in huge pages: {option}"),
        how: format!(
            "# on the command line:\nnode {option} ...\n\n{}",
            settings(&[variable])
        ),
        variant: subject
            .starts(&["node", "nodejs"])
            .then(|| first(&[option])),
    })
}

fn dotnet(subject: &Subject) -> Option<Candidate> {
    subject.uses("libcoreclr.so").then(|| {
        unmeasured(
            "dotnet-large",
            "the .NET heap in reserved huge pages (.NET 5 or newer)",
            "# as root; NUMBER: the limit below in huge pages of 2 MiB\n\
             sysctl vm.nr_hugepages=NUMBER\n\n\
             # in a shell or start script; LIMIT: the heap's largest size in bytes, hexadecimal\n\
             export DOTNET_GCLargePages=1\nexport DOTNET_GCHeapHardLimit=LIMIT",
        )
    })
}

/// Options directly after the program's name.
fn first(options: &[&str]) -> Change {
    Change {
        first_arguments: options.iter().map(Into::into).collect(),
        ..Change::default()
    }
}
