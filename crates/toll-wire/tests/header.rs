// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C header is kept in the repository, so that the plugins need no Rust to be built.

#[test]
fn the_header_of_the_plugin_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/user/wire.h");
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(
        kept == toll_wire::CHeader.to_string(),
        "run: cargo run -p toll-wire --example header >plugins/user/wire.h"
    );
}
