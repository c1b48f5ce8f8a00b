// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that fit a certain program.

use super::allocators::{GLIBC_HUGE, GLIBC_VARIABLE, has_glibc_tunable};
use super::{Candidate, Change, Rule, Subject, Version, settings, unmeasured};

pub(super) const RULES: &[Rule] = &[
    redis,
    postgres,
    mysql,
    mongodb,
    clickhouse,
    llama,
    qemu,
    firecracker,
    cloud_hypervisor,
];

/// Enables huge pages for redis: it disables them for itself, and its jemalloc requests none.
fn redis(subject: &Subject) -> Option<Candidate> {
    let servers = ["redis-server", "valkey-server"];
    let started = subject.starts(&servers);
    if !started && !subject.is(&servers) && !subject.is(&["redis-check-rdb"]) {
        return None;
    }
    let variable = (
        "MALLOC_CONF".to_owned(),
        subject.joined("MALLOC_CONF", ',', "thp:always"),
    );
    Some(Candidate {
        name: "redis-thp",
        change: "redis keeps huge pages on, and its allocator asks for them".to_owned(),
        how: format!(
            "# redis.conf (snapshots then copy 2 MiB for each written page: check their latency)\n\
             disable-thp no\n\n{}",
            settings(std::slice::from_ref(&variable))
        ),
        variant: started.then(|| Change {
            env: vec![variable.clone()],
            last_arguments: vec!["--disable-thp".into(), "no".into()],
            ..Change::default()
        }),
    })
}

fn postgres(subject: &Subject) -> Option<Candidate> {
    if !subject.is(&["postgres", "postmaster"]) {
        return None;
    }
    let counted = match subject.may_be("postgres", Version(15, 0, 0)) {
        true => {
            "# how many 2 MiB pages (PostgreSQL 15 or newer, server stopped):\n\
             #   postgres -D $PGDATA -C shared_memory_size_in_huge_pages\n"
        }
        false => "# how many 2 MiB pages: shared_buffers / 2 MiB, and a tenth more\n",
    };
    Some(unmeasured(
        "postgres-huge-pages",
        "PostgreSQL's shared memory in reserved huge pages (huge_pages = on)",
        &format!(
            "# postgresql.conf\nhuge_pages = on\n\n{counted}\
             # /etc/sysctl.d/60-postgresql.conf\nvm.nr_hugepages = <that number>\n\n\
             # whether it has them (PostgreSQL 17 or newer): SHOW huge_pages_status;"
        ),
    ))
}

fn mysql(subject: &Subject) -> Option<Candidate> {
    subject.is(&["mysqld", "mariadbd"]).then(|| {
        unmeasured(
            "mysql-large-pages",
            "the buffer pool in reserved huge pages (large_pages)",
            "# my.cnf\n[mysqld]\nlarge_pages = ON\n\n\
             # /etc/sysctl.d/60-mysql.conf; NUMBER: the buffer pool in huge pages of 2 MiB\n\
             vm.nr_hugepages = NUMBER\n\n\
             # systemctl edit NAME.service\n[Service]\nLimitMEMLOCK=infinity",
        )
    })
}

/// MongoDB 8 brings an allocator that is made for huge pages; the one before suffers from them. The
/// official images state their version in the environment.
fn mongodb(subject: &Subject) -> Option<Candidate> {
    if !subject.is(&["mongod", "mongos"]) {
        return None;
    }
    let version = subject.env("MONGO_VERSION");
    let version = version.and_then(|text| text.parse::<Version>().ok());
    let with = "# MongoDB 8.0 or newer, as root before it starts:\n\
        echo always >/sys/kernel/mm/transparent_hugepage/enabled\n\
        echo defer+madvise >/sys/kernel/mm/transparent_hugepage/defrag\n\
        echo 0 >/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none\n\
        sysctl vm.overcommit_memory=1";
    let without = "# MongoDB 7.0 or older (systemd 260 or newer): systemctl edit mongod.service\n\
        [Service]\nMemoryTHP=disable";
    let (change, how) = match version.map(|version| version >= Version(8, 0, 0)) {
        Some(true) => ("MongoDB 8.0 and newer with huge pages", with.to_owned()),
        Some(false) => (
            "MongoDB 7.0 and older without huge pages (MemoryTHP=disable)",
            without.to_owned(),
        ),
        None => (
            "MongoDB 8.0 and newer with huge pages; 7.0 and older without (MemoryTHP=disable)",
            format!("{with}\n\n{without}"),
        ),
    };
    Some(unmeasured("mongodb-thp", change, &how))
}

fn clickhouse(subject: &Subject) -> Option<Candidate> {
    subject.traits.program.starts_with("clickhouse").then(|| {
        unmeasured(
            "clickhouse-text",
            "ClickHouse's machine code in huge pages (remap_executable)",
            "# config.d/remap.xml; experimental\n\
             <clickhouse><remap_executable>true</remap_executable></clickhouse>",
        )
    })
}

/// Weights in a file mapping cannot be huge on most file systems; on the heap they can.
fn llama(subject: &Subject) -> Option<Candidate> {
    let program = &subject.traits.program;
    let fits = program.starts_with("llama-") && has_glibc_tunable(subject);
    if !fits || subject.command.iter().any(|word| word == "--no-mmap") {
        return None;
    }
    let options: &[&str] = match program.as_str() {
        "llama-bench" => &["-mmp", "0"],
        _ => &["--no-mmap"],
    };
    let variable = (
        GLIBC_VARIABLE.to_owned(),
        subject.joined(GLIBC_VARIABLE, ':', GLIBC_HUGE),
    );
    let options_text = options.join(" ");
    Some(Candidate {
        name: "llama-no-mmap",
        change: format!("the weights on glibc's heap, which advises its memory: {options_text}"),
        how: format!(
            "# at the end of the command line (each process then has a copy; --mlock keeps it in \
             memory):\n{program} ... {options_text}\n\n{}",
            settings(std::slice::from_ref(&variable))
        ),
        variant: subject.starts(&[program]).then(|| Change {
            env: vec![variable.clone()],
            last_arguments: options.iter().map(Into::into).collect(),
            ..Change::default()
        }),
    })
}

/// QEMU advises the memory of its guests. What can still help is a reserved pool.
fn qemu(subject: &Subject) -> Option<Candidate> {
    subject.traits.program.starts_with("qemu-system-").then(|| {
        guest(
            "qemu-hugetlb",
            "",
            "# on the command line; SIZE: as in -m\n\
             -object memory-backend-memfd,id=ram,size=SIZE,hugetlb=on,prealloc=on \\\n\
             -machine ...,memory-backend=ram\n\n\
             # in the guest: transparent_hugepage=always, if its programs advise nothing",
        )
    })
}

fn firecracker(subject: &Subject) -> Option<Candidate> {
    subject.is(&["firecracker"]).then(|| {
        guest(
            "firecracker-hugetlb",
            " (Firecracker 1.7 or newer)",
            "# PUT /machine-config\n{ ..., \"huge_pages\": \"2M\" }",
        )
    })
}

fn cloud_hypervisor(subject: &Subject) -> Option<Candidate> {
    subject.is(&["cloud-hypervisor"]).then(|| {
        guest(
            "cloud-hypervisor-hugetlb",
            "",
            "# on the command line; SIZE: the guest's memory\n\
             --memory size=SIZE,hugepages=on,hugepage_size=2M",
        )
    })
}

/// A virtual machine in a reserved pool, for these versions of its monitor.
fn guest(name: &'static str, versions: &str, how: &str) -> Candidate {
    unmeasured(
        name,
        &format!("the guest's memory in reserved huge pages{versions}"),
        &format!(
            "# as root; NUMBER: the guest's memory in huge pages of 2 MiB\n\
             sysctl vm.nr_hugepages=NUMBER\n\n{how}"
        ),
    )
}
