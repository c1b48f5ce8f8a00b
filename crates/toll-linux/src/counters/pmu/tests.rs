// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_testkit::Directory;

use super::*;

/// Encodings as `perf stat -e cpu/event=E,umask=U,cmask=C/` writes them.
#[test]
fn each_cpu_has_its_codes() {
    let walks = |cpu| codes(&cpu).walk_cycles;
    let skylake = walks(Cpu::Intel { model: 0x55 });
    assert_eq!(skylake, Ok(vec![0x0100_1008, 0x0100_1049, 0x0100_1085]));
    let haswell = walks(Cpu::Intel { model: 0x3f });
    assert_eq!(
        haswell,
        Ok(vec![0x1008, 0x1049, 0x1085]),
        "durations need no counter mask"
    );
    let sapphire_rapids = codes(&Cpu::Intel { model: 0x8f });
    assert_eq!(
        sapphire_rapids.walk_cycles,
        Ok(vec![0x0100_1012, 0x0100_1013, 0x0100_1011])
    );
    assert_eq!(sapphire_rapids.data_misses, Some(vec![0x0e12, 0x0e13]));
    assert_eq!(sapphire_rapids.instruction_misses, Some(vec![0x0e11]));
    let zen = codes(&Cpu::Amd { family: 0x19 });
    assert!(zen.walk_cycles.is_err());
    assert_eq!(zen.data_misses, Some(vec![0xf045]));
    let arm = codes(&Cpu::Arm);
    assert_eq!(arm.walk_cycles, Ok(vec![0x8128, 0x8129]));
    assert_eq!(
        (arm.data_misses, arm.instruction_misses),
        (Some(vec![0x34]), Some(vec![0x35]))
    );
    for unknown in [
        Cpu::Intel { model: 0xff },
        Cpu::Amd { family: 0x15 },
        Cpu::Other,
    ] {
        let codes = codes(&unknown);
        assert!(
            codes.walk_cycles.is_err() && codes.data_misses.is_none(),
            "{unknown:?}"
        );
    }
}

fn machine(cpuinfo: &str, pmu: &str) -> Directory {
    let device = format!("sys/bus/event_source/devices/{pmu}/type");
    Directory::with(&[("proc/cpuinfo", cpuinfo), (&device, "4\n")])
}

#[test]
fn cpus_are_recognized_by_their_own_fields() {
    let cpu = |text| Cpu::read(&Root::at(machine(text, "cpu").as_path()));
    let intel = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: x\n";
    assert_eq!(cpu(intel), Cpu::Intel { model: 143 });
    let amd = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n";
    assert_eq!(cpu(amd), Cpu::Amd { family: 25 });
    assert_eq!(cpu("processor\t: 0\nCPU implementer\t: 0x41\n"), Cpu::Arm);
    assert_eq!(cpu(""), Cpu::Other);
}

#[test]
fn raw_events_have_the_type_of_the_pmu() {
    let intel = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 151\n";
    for pmu in ["cpu", "cpu_core"] {
        let events = events(&Root::at(machine(intel, pmu).as_path()));
        assert_eq!(
            events.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            NAMES
        );
        let walks = events[2].1.as_ref().unwrap();
        assert_eq!(
            (walks.len(), walks[0].kind, walks[0].config),
            (3, 4, 0x0100_1012)
        );
        assert_eq!(events[0].1.as_ref().unwrap()[0].kind, HARDWARE);
    }
    let other = events(&Root::at(machine("", "cpu").as_path()));
    assert!(other[2].1.is_err(), "no table");
    let generic = other[3].1.as_ref().unwrap();
    assert_eq!(
        (generic[0].kind, generic[0].config),
        (HARDWARE_CACHE, 0x1_0003)
    );
}

#[test]
fn a_machine_without_a_pmu_says_so() {
    let guest = machine("flags : fpu hypervisor\n", "software");
    for (_, events) in events(&Root::at(guest.as_path())) {
        let missing = events.unwrap_err();
        assert!(missing.reason.contains("virtual machine"), "{missing:?}");
    }
}
