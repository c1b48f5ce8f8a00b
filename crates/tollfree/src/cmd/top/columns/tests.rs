// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn line(figures: &Figures) -> Line<'_> {
    Line {
        id: "4711".to_owned(),
        name: "server".to_owned(),
        cgroup: None,
        resident: Some(3 << 20),
        figures,
    }
}

#[test]
fn cells_are_shares_and_rates() {
    let figures = Figures {
        cpu_ns: Some(1.5e9),
        loss_ns: Some(3e8),
        loss_interval_ns: Some([1e8, 1.2e9]),
        loss_share: Some(0.2),
        faults: Some(25_000.0),
        ..Figures::default()
    };
    let cells = [Id, Lost, Bounds, Cpu, Share, Faults, Huge, Memory];
    let cells = cells.map(|column| column.cell(&line(&figures), 2.0));
    let expected = [
        "4711", "15.0", "5.0-60.0", "75.0", "20.0", "12500", "-", "3 MiB",
    ];
    assert_eq!(cells, expected);
}

#[test]
fn numbers_stay_short() {
    let numbers = [0.0, 0.26, 9.96, 99_999.4, 123_456.0, 12e6, 9_999.6e6];
    let expected = ["0", "0.3", "10", "99999", "123k", "12M", "10G"];
    assert_eq!(numbers.map(short), expected);
    assert_eq!(
        [99.94, 99.96, 1234.4].map(percentage),
        ["99.9", "100", "1234"]
    );
}

#[test]
fn a_narrow_terminal_keeps_what_matters() {
    let figures = Figures::default();
    let lines = [line(&figures)];
    assert_eq!(fitting(&lines, 40), [Id, Lost, Cpu, Faults]);
    assert_eq!(fitting(&lines, 10), []);
    let wide = fitting(&lines, 200);
    assert!(wide.contains(&Memory) && !wide.contains(&Sent), "{wide:?}");
    let sent = Figures {
        shootdowns_sent: Some(0.0),
        ..figures
    };
    assert!(fitting(&[line(&sent)], 200).contains(&Sent));
}
