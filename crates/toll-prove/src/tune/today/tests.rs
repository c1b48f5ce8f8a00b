// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const MIB: u64 = 1 << 20;
const HOST: Host = Host {
    mode: Some(Mode::Always),
    inherits_off: false,
    can_limit: true,
};

fn look(huge: u64, anonymous: u64) -> Observation {
    Observation {
        huge: huge * MIB,
        anonymous: anonymous * MIB,
        ..Observation::default()
    }
}

fn interval(median: f64) -> Option<Interval> {
    Some(Interval {
        median,
        low: median - 0.01,
        high: median + 0.01,
    })
}

#[test]
fn the_state_is_one_line() {
    let text = |look: &Observation, host: &Host| Today::new(look, host).text();
    assert_eq!(
        text(&look(510, 513), &HOST),
        "already huge-page-backed: 99 % (510 MiB of 513 MiB; THP always)"
    );
    let madvise = Host {
        mode: Some(Mode::Madvise),
        ..HOST
    };
    assert_eq!(
        text(&look(0, 460), &madvise),
        "huge-page-backed: 0 % (0 B of 460 MiB; THP madvise)"
    );
    let never = Host {
        mode: Some(Mode::Never),
        ..HOST
    };
    assert!(text(&look(0, 460), &never).contains("disabled on this machine"));
    let off = Observation {
        switched_off: true,
        ..look(0, 460)
    };
    assert!(text(&off, &madvise).contains("the program disables them"));
    let inherits = Host {
        inherits_off: true,
        ..madvise
    };
    assert!(text(&off, &inherits).contains("tollfree was started with them"));
}

#[test]
fn the_answer_names_gain_memory_and_what_the_plan_alone_would_do() {
    let mut today = Today::new(&look(510, 513), &HOST);
    (today.gain, today.memory_cost) = (interval(1.48), Some(12 << 20));
    (today.plan_only, today.plan_only_memory_cost) = (interval(1.45), Some(0));
    let text = today.answer(Some(400 << 20), &HOST);
    for part in [
        "99 %",
        "faster now: 1.480 (1.470 to 1.490) times as fast as without any, for 12 MiB more memory",
        "at madvise, the plan's 400 MiB alone would make it 1.450",
        "for no more memory",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let tail = |p99: f64, longest| Tail {
        faults: 512,
        p99,
        longest,
    };
    today.take_tails(Tails {
        small: Some(tail(900.0, 40_000.0)),
        huge: Some(tail(180_000.0, 4_000_000.0)),
    });
    let text = today.answer(Some(400 << 20), &HOST);
    let expected = "12 MiB more memory. The first touch of a huge page takes 180 us for 99 of 100 and \
         4 ms for the longest of 512 on this machine; of a 4 KiB page 900 ns for 99 of 100 and \
         40 us for the longest of 512. On a machine at madvise";
    assert!(text.contains(expected), "{text}");
    today.gain = interval(0.9);
    assert!(today.answer(None, &HOST).contains("SLOWER now"));
    let old = Host {
        can_limit: false,
        ..HOST
    };
    today.plan_only = None;
    assert!(today.answer(None, &old).contains("Linux 6.18"));
}
