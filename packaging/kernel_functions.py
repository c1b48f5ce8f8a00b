#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the functions of a kernel, from the BTF section of its vmlinux: kernel_functions.py VMLINUX

Debian's packages have no System.map. The format: Documentation/bpf/btf.rst in Linux."""
import struct
import sys

MAGIC = 0xEB9F
FUNC = 12
# Bytes after a type, by kind: fixed, and for each of its members.
FIXED = {1: 4, 3: 12, 14: 4, 17: 4}
MEMBER = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}


def section(elf, wanted):
    """Returns the content of a section of a 64-bit little-endian ELF file."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF file of 64 bits")
    offset, = struct.unpack_from("<Q", elf, 40)
    size, number, names = struct.unpack_from("<3H", elf, 58)
    headers = [struct.unpack_from("<2I4Q", elf, offset + i * size) for i in range(number)]
    table = headers[names]
    for name, _, _, _, begin, length in headers:
        start = table[4] + name
        if elf[start:elf.index(b"\0", start)] == wanted:
            return elf[begin:begin + length]
    raise ValueError(f"no section {wanted.decode()}")


def functions(btf):
    """Yields the names of the functions."""
    magic, _, _, header, types, length, strings, _ = struct.unpack_from("<HBB5I", btf, 0)
    if magic != MAGIC:
        raise ValueError("the section .BTF has another format")
    at, end, strings = header + types, header + types + length, header + strings
    while at < end:
        name, info, _ = struct.unpack_from("<3I", btf, at)
        kind, members = info >> 24 & 31, info & 0xFFFF
        if kind == FUNC:
            start = strings + name
            yield btf[start:btf.index(b"\0", start)].decode()
        at += 12 + FIXED.get(kind, 0) + members * MEMBER.get(kind, 0)


def main():
    try:
        with open(sys.argv[1], "rb") as file:
            content = section(file.read(), b".BTF")
        for name in functions(content):
            print(name)
    except (OSError, ValueError, struct.error) as error:
        sys.exit(f"{sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
