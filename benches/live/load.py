# SPDX-License-Identifier: MIT OR Apache-2.0
"""The load on a key-value server: load.py redis|memcached PORT ACTION [AMOUNT].

fill            stores the values, unless they are there
drive REQUESTS  reads random values, and prints the server's CPU time per request
forever         the same, without an end
probe SECONDS   reads a value every 2 ms, and prints the 99th percentile of the latency in us
"""
import os
import random
import socket
import sys
import time

KEYS, VALUE, BATCH = 100_000, b"x" * 1000, 50


def connect(port):
    link = socket.create_connection(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


class Redis:
    end = b"\r\n"

    def __init__(self, port):
        self.link = connect(port)
        self.answers = self.link.makefile("rb")

    def words(self, *words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def get(self, key):
        return self.words(b"GET", b"key:%d" % key)

    def put(self, key):
        return self.words(b"SET", b"key:%d" % key, VALUE)

    def read(self):
        line = self.answers.readline()
        if line.startswith(b"$") and line != b"$-1\r\n":
            return self.answers.read(int(line[1:]) + 2)
        return line

    def pid(self):
        self.link.sendall(self.words(b"INFO", b"server"))
        lines = self.read().split(b"\r\n")
        return next(int(line.split(b":")[1]) for line in lines if line.startswith(b"process_id"))


class Memcached(Redis):
    def get(self, key):
        return b"get key:%d\r\n" % key

    def put(self, key):
        return b"set key:%d 0 0 %d\r\n%s\r\n" % (key, len(VALUE), VALUE)

    def read(self):
        line = self.answers.readline()
        if line.startswith(b"VALUE"):
            self.answers.read(int(line.split()[3]) + 2)
            self.answers.readline()
        return line

    def pid(self):
        self.link.sendall(b"stats\r\n")
        found = None
        while (line := self.answers.readline()) != b"END\r\n":
            found = int(line.split()[2]) if line.startswith(b"STAT pid") else found
        return found


def cpu_seconds(pid):
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9


def batch(server, requests):
    server.link.sendall(b"".join(requests))
    return [server.read() for _ in requests]


def fill(server):
    if batch(server, [server.get(KEYS - 1)])[0][:1] not in (b"$", b"E"):
        return
    for first in range(0, KEYS, BATCH):
        batch(server, [server.put(key) for key in range(first, first + BATCH)])


def drive(server, requests):
    choose = random.Random(1).randrange
    pid = server.pid()
    before = cpu_seconds(pid)
    for _ in range(0, requests, BATCH):
        batch(server, [server.get(choose(KEYS)) for _ in range(BATCH)])
    print(f"{(cpu_seconds(pid) - before) * 1e6 / requests:.4f} us per unit", flush=True)


def probe(server, seconds):
    choose, taken, end = random.Random(2).randrange, [], time.monotonic() + seconds
    while (begun := time.perf_counter()) and time.monotonic() < end:
        batch(server, [server.get(choose(KEYS))])
        taken.append(time.perf_counter() - begun)
        time.sleep(0.002)
    taken.sort()
    print(f"{taken[len(taken) * 99 // 100] * 1e6:.1f}")


def main():
    kind, port, action = sys.argv[1:4]
    server = {"redis": Redis, "memcached": Memcached}[kind](int(port))
    if action == "fill":
        fill(server)
    elif action == "drive":
        drive(server, int(sys.argv[4]))
    elif action == "probe":
        probe(server, float(sys.argv[4]))
    while action == "forever":
        drive(server, 1_000_000)


if __name__ == "__main__":
    main()
