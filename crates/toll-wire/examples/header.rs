// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints the C header of the simulator's plugin, plugins/user/wire.h.

fn main() {
    print!("{}", toll_wire::CHeader);
}
