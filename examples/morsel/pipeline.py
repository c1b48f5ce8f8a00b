#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The pipeline of pipeline.c in Python: packets of any size, handed from process to process by descriptor.

    ./pipeline.py [PACKETS [SIZE...]]

TOLLFREE_MORSELS names a directory on morselfs, if there is one.
"""

import fcntl
import mmap
import os
import socket
import struct
import sys
import time
import zlib

HUGE = 2 << 20
# F_ADD_SEALS and its seals are in the module fcntl from Python 3.8 on.
SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def round_up(size, page):
    return (size + page - 1) // page * page


def open_file(directory):
    """A file without a name, where files can be sealed."""
    fd = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        if fcntl.fcntl(fd, fcntl.F_GET_SEALS) == 0:
            return fd
    except OSError:
        pass
    os.close(fd)
    raise OSError("files cannot be sealed there")


def create(size):
    """A morsel: its descriptor, its memory, and where that comes from."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    directory = os.environ.get("TOLLFREE_MORSELS")
    ways = []
    if directory:
        ways.append(("morselfs", lambda: open_file(directory), mmap.PAGESIZE))
    if size >= HUGE:
        ways.append(("hugetlb memfd", lambda: os.memfd_create("morsel", flags | os.MFD_HUGETLB), HUGE))
    ways.append(("memfd", lambda: os.memfd_create("morsel", flags), mmap.PAGESIZE))
    for name, way, page in ways:
        try:
            fd = way()
        except OSError:
            continue
        length = round_up(size, page)
        try:
            os.ftruncate(fd, length if page == HUGE else size)
            return fd, mmap.mmap(fd, length if page == HUGE else size), name
        except OSError:
            os.close(fd)
    raise OSError(f"no memory for {size} bytes")


def consume(sock):
    while True:
        message, fds, _, _ = socket.recv_fds(sock, 8, 1)
        if not message:
            return
        (size,) = struct.unpack("<Q", message)
        seals = fcntl.fcntl(fds[0], fcntl.F_GET_SEALS)
        if seals & fcntl.F_SEAL_WRITE == 0 or os.fstat(fds[0]).st_size < size:
            sys.exit("the packet is not sealed")
        with mmap.mmap(fds[0], os.fstat(fds[0]).st_size, prot=mmap.PROT_READ) as packet:
            with memoryview(packet) as view, view[:size] as content:
                checksum = zlib.crc32(content)
        os.close(fds[0])
        sock.sendall(struct.pack("<I", checksum))


def produce(sock, size, packets):
    waited = 0.0
    for number in range(packets):
        fd, memory, way = create(size)
        content = number.to_bytes(8, "little") * (size // 8 + 1)
        memory[:size] = content[:size]
        checksum = zlib.crc32(content[:size])
        # A writable mapping would keep it from being sealed.
        memory.close()
        begun = time.perf_counter()
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        socket.send_fds(sock, [struct.pack("<Q", size)], [fd])
        os.close(fd)
        (answer,) = struct.unpack("<I", sock.recv(4, socket.MSG_WAITALL))
        waited += time.perf_counter() - begun
        if answer != checksum:
            sys.exit(f"packet {number}: checksum {answer:#x}, not {checksum:#x}")
    print(f"{packets} packets of {size} bytes ({way}): {waited / packets * 1e6:.1f} us each from seal to answer", flush=True)


def main():
    packets = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    sizes = [int(size, 0) for size in sys.argv[2:]] or [4096, 1 << 20, 16 << 20]
    ours, theirs = socket.socketpair()
    consumer = os.fork()
    if consumer == 0:
        ours.close()
        consume(theirs)
        os._exit(0)
    theirs.close()
    for size in sizes:
        produce(ours, size, packets)
    ours.close()
    _, status = os.waitpid(consumer, 0)
    sys.exit(1 if status else 0)


if __name__ == "__main__":
    main()
