// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_ledger_has_a_line_for_each_model() {
    let ledger = Ledger::parse("mode default\nhuge 12 10 2200000 50000000 130\nlarge 0 0 0 0 0\n");
    let ledger = ledger.unwrap();
    assert_eq!(ledger.mode, "default");
    assert_eq!(ledger.accounts.len(), 2);
    assert_eq!(ledger.accounts[0].approved, 10);
    assert_eq!(ledger.accounts[0].refused_ns, 130);
    assert_eq!(Ledger::parse(""), None);
}

#[test]
fn an_account_has_all_of_its_lines() {
    let text = "asked 12\napproved 10\ncost_ns 2200000\nbenefit_ns 50000000\nrefused_ns 130\n";
    let account = account_file("huge", text).unwrap();
    assert_eq!(
        (account.asked, account.approved, account.refused_ns),
        (12, 10, 130)
    );
    for other in [
        "",
        "asked 12\ngone 10\n",
        "node 0 refused_ns 5 blocks_made 2\n",
    ] {
        assert_eq!(account_file("huge", other), None, "{other}");
    }
}

#[test]
fn models_are_in_the_order_of_the_ledger() {
    assert!(place("huge") < place("pool"));
    assert!(place("pool") < place("swap"));
    assert!(place("swap") < place("a later one"));
}
