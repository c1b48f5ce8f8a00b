// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: CPU, kernel, memory.

use toll_linux::sys::{self, FreePageReporting, Mode, Thp};
use toll_linux::{Root, cpu};
use toll_model::REGION;
use toll_model::units::format_size;

use super::Check;

const GIB: u64 = 1 << 30;

pub(super) fn checks(root: &Root) -> Vec<Check> {
    vec![
        kernel(root),
        tlb(root),
        memory(root),
        limits(root),
        thp(root),
        free_regions(root),
        reporting(root),
        hugetlb(root),
        patched(root),
    ]
}

fn kernel(root: &Root) -> Check {
    const NAME: &str = "kernel";
    let release = sys::kernel_release(root);
    match sys::kernel_version(root) {
        Some(version) if version >= (6, 1) => Check::ok(NAME, format!("Linux {release}")),
        Some(_) => Check::partial(
            NAME,
            format!("Linux {release}: no MADV_COLLAPSE"),
            "Linux 6.1 or later",
        ),
        None => Check::missing(NAME, "the version cannot be read", "mount /proc"),
    }
}

fn tlb(root: &Root) -> Check {
    const NAME: &str = "CPU and TLB";
    let model = cpu::model(root);
    if !root.is_system() {
        return Check::ok(NAME, model);
    }
    let tlb = cpu::tlb_geometry();
    let source = match tlb.name.as_str() {
        "cpuid" => "by CPUID".to_owned(),
        preset => format!("preset {preset}: no plausible values from CPUID"),
    };
    let reach = format_size(tlb.reach_4k());
    Check::ok(
        NAME,
        format!("{model}; 4 KiB pages reach {reach} ({source})"),
    )
}

fn memory(root: &Root) -> Check {
    const NAME: &str = "memory";
    let Ok(info) = sys::meminfo(root) else {
        return Check::missing(NAME, "/proc/meminfo cannot be read", "mount /proc");
    };
    let [total, available] = [info.total, info.available].map(format_size);
    let detail = format!("{total}, {available} available");
    match info.total {
        total if total >= 4 * GIB => Check::ok(NAME, detail),
        _ => Check::partial(
            NAME,
            format!(
                "{detail}: costs of large footprints are extrapolated, and huge pages may not pay"
            ),
            "a machine with more memory, if the program uses it",
        ),
    }
}

fn limits(root: &Root) -> Check {
    const NAME: &str = "container limits";
    let maps = sys::max_map_count(root);
    let mappings = format!("{maps} mappings per process");
    match sys::memory_limit(root) {
        Some(limit) => Check::partial(
            NAME,
            format!("memory limit {}; {mappings}", format_size(limit)),
            "raise the control group's memory limit, if the program needs more",
        ),
        None => Check::ok(NAME, format!("no memory limit; {mappings}")),
    }
}

fn thp(root: &Root) -> Check {
    const NAME: &str = "transparent huge pages";
    const FIX: &str = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    let Some(thp) = Thp::read(root) else {
        return Check::missing(
            NAME,
            "not in this kernel",
            "a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        );
    };
    let mode = thp.region_mode();
    let shared = thp.shmem.as_ref();
    let shared = shared.map_or(String::new(), |setting| {
        format!("; shared memory: {setting}")
    });
    let detail = format!(
        "{mode}, defrag {}{}{shared}",
        thp.defrag,
        smaller_sizes(&thp)
    );
    match mode {
        Mode::Never => Check::partial(
            NAME,
            format!("{detail}: page faults give no huge pages here, only collapsing does"),
            FIX,
        ),
        _ => Check::ok(NAME, detail),
    }
}

/// The sizes below 2 MiB that are enabled.
fn smaller_sizes(thp: &Thp) -> String {
    let on = |(size, mode): &&(u64, Mode)| {
        let inherited = *mode == Mode::Inherit && thp.mode != Mode::Never;
        *size < thp.huge_page && (inherited || matches!(mode, Mode::Always | Mode::Madvise))
    };
    let sizes: Vec<String> = thp
        .sizes
        .iter()
        .filter(on)
        .map(|(size, _)| format_size(*size))
        .collect();
    match (thp.sizes.is_empty(), sizes.is_empty()) {
        (true, _) => String::new(),
        (false, true) => "; no smaller sizes in use".to_owned(),
        (false, false) => format!("; also {}", sizes.join(", ")),
    }
}

fn free_regions(root: &Root) -> Check {
    const NAME: &str = "free 2 MiB blocks";
    let (Some(regions), Ok(info)) = (sys::buddyinfo_free_regions(root), sys::meminfo(root)) else {
        return Check::partial(
            NAME,
            "/proc/buddyinfo cannot be read: fragmentation unknown",
            "run where /proc is complete",
        );
    };
    let share = (regions * REGION) as f64 / info.free.max(1) as f64;
    let detail = format!(
        "{regions} ({}, {:.0} % of the free memory)",
        format_size(regions * REGION),
        100.0 * share.min(1.0)
    );
    match share {
        share if share >= 0.5 => Check::ok(NAME, detail),
        _ => Check::partial(
            NAME,
            format!("{detail}: memory is fragmented"),
            "as root: echo 1 > /proc/sys/vm/compact_memory",
        ),
    }
}

fn reporting(root: &Root) -> Check {
    const NAME: &str = "free-page reporting";
    match sys::free_page_reporting(root) {
        FreePageReporting::On { order } => {
            let least = order
                .filter(|order| *order < 20)
                .map(|order| format_size(4096 << order));
            let blocks = least.map_or(String::new(), |size| format!(" of {size} and more"));
            Check::partial(
                NAME,
                format!(
                    "on: idle blocks{blocks} go back to the host, and their next use costs many times more"
                ),
                "keep memory in use from the start, or disable it on the host",
            )
        }
        FreePageReporting::Off => Check::ok(NAME, "off"),
        FreePageReporting::NoBalloon => Check::ok(NAME, "off: no balloon device"),
    }
}

fn hugetlb(root: &Root) -> Check {
    const NAME: &str = "hugetlb pools";
    const FIX: &str = "only for --hugetlb; as root: sysctl vm.nr_hugepages=N";
    let pools = sys::hugetlb(root);
    let text = |pool: &sys::Hugetlb| {
        format!(
            "{} of {} pages of {} free",
            pool.free,
            pool.total,
            format_size(pool.page)
        )
    };
    let detail = pools.iter().map(text).collect::<Vec<_>>().join("; ");
    match pools.iter().any(|pool| pool.free + pool.overcommit > 0) {
        true => Check::ok(NAME, detail),
        false if pools.is_empty() => Check::missing(NAME, "this kernel has none", FIX),
        false => Check::missing(NAME, detail, FIX),
    }
}

/// The mechanisms of tollfree's kernel patches.
fn patched(root: &Root) -> Check {
    const NAME: &str = "tollfree kernel";
    let mut features: Vec<&str> = ["luf", "econ"]
        .into_iter()
        .filter(|feature| root.path(format!("/sys/kernel/mm/{feature}")).exists())
        .collect();
    let filesystems = root.read("/proc/filesystems").unwrap_or_default();
    if filesystems
        .lines()
        .any(|line| line.trim_start_matches("nodev").trim() == "morselfs")
    {
        features.push("morselfs");
    }
    match features.len() {
        0 => Check::missing(
            NAME,
            "a stock kernel",
            "not needed: all of the above works on stock kernels",
        ),
        3 => Check::ok(NAME, features.join(", ")),
        _ => Check::partial(
            NAME,
            features.join(", "),
            "enable the others when building the kernel",
        ),
    }
}
