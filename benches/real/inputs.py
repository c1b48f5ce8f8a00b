# SPDX-License-Identifier: MIT OR Apache-2.0
"""Makes the inputs of the real-program benchmark: the same bytes each time, kept in the cache.

    python3 inputs.py DIRECTORY NAME...

Every function named make_NAME writes one input to the given path; an existing file is kept.
"""

import itertools
import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20

WORDS = 60_000


def vocabulary(rng, count=WORDS):
    """Made-up words of 3 to 12 letters; frequent ones first."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1.0 / (rank + 2) for rank in range(len(letters))]
    return ["".join(rng.choices(letters, weights, k=rng.randint(3, 12))) for _ in range(count)]


def text(rng, size):
    """Yields lines of words with Zipf-like frequencies, `size` bytes in all."""
    words = vocabulary(rng)
    weights = [1.0 / (rank + 3) for rank in range(len(words))]
    written = 0
    while written < size:
        picked = rng.choices(words, weights, k=12_000)
        chunk = "\n".join(" ".join(picked[i : i + 12]) for i in range(0, len(picked), 12)) + "\n"
        written += len(chunk)
        yield chunk


def write_text(path, seed, size):
    with open(path, "w") as out:
        for chunk in text(random.Random(seed), size):
            out.write(chunk)


def make_text(path):
    """24 MiB of prose-like text."""
    write_text(path, 1, 24 * MIB)


def make_text_large(path):
    """400 MiB of prose-like text."""
    chunks = list(text(random.Random(1), 40 * MIB))
    with open(path, "w") as out:
        for turn in range(10):
            random.Random(turn).shuffle(chunks)
            out.writelines(chunks)


def make_records(path):
    """20 MiB of fixed-width binary records with slowly changing fields."""
    rng = random.Random(2)
    with open(path, "wb") as out:
        clock = 1_600_000_000_000
        for _ in range(20 * MIB // 32):
            clock += rng.randrange(1, 5000)
            out.write(clock.to_bytes(8, "little"))
            out.write(rng.randrange(1 << 20).to_bytes(4, "little") * 2)
            out.write(rng.randbytes(8) + bytes(8))


def make_source_tar(path):
    """The sources of the crates named in Cargo.lock, first 32 MiB of a sorted archive."""
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--manifest-path", HERE.parents[1] / "Cargo.toml"],
        check=True, stdout=subprocess.PIPE)
    packages = json.loads(metadata.stdout)["packages"]
    directories = sorted(Path(p["manifest_path"]).parent for p in packages if p["source"])
    with open(path, "wb") as out:
        for directory in directories:
            for file in sorted(f for f in directory.rglob("*.rs") if f.is_file()):
                out.write(file.read_bytes())
                if out.tell() > 32 * MIB:
                    break
            if out.tell() > 32 * MIB:
                break
        out.truncate(min(out.tell(), 32 * MIB))


def make_source_tar_xz(path):
    """256 MiB cut and shuffled from the source archive, with repeats far apart, compressed with a 64 MiB dictionary."""
    source = make("source_tar", path.parent).read_bytes()
    rng = random.Random(3)
    pieces = [source[i : i + 256] for i in range(0, len(source), 256)]
    with open(path, "wb") as out:
        compressor = subprocess.Popen(["xz", "--lzma2=preset=2,dict=64MiB", "-T1", "-c"], stdin=subprocess.PIPE, stdout=out)
        for _ in range(8):
            rng.shuffle(pieces)
            compressor.stdin.write(b"".join(pieces))
        compressor.stdin.close()
        if compressor.wait():
            raise SystemExit("xz failed")


def head(path, name, size):
    """The first `size` bytes of another input."""
    with open(make(name, path.parent), "rb") as file, open(path, "wb") as out:
        out.write(file.read(size))


def make_source_5(path):
    head(path, "source_tar", 5 * MIB)


def make_text_3(path):
    head(path, "text", 3 * MIB)


def make_text_6(path):
    head(path, "text", 6 * MIB)


def make_records_4(path):
    head(path, "records", 4 * MIB)


def make_numbers_half(path):
    head(path, "numbers", 31 * 2_500_000)


def make_keys_third(path):
    head(path, "keys", 13 * 2_000_000)


def make_reads_part(path):
    """The first 10,000 reads: four lines each."""
    with open(make("reads", path.parent)) as file, open(path, "w") as out:
        out.writelines(itertools.islice(file, 40_000))


def make_genome_part(path):
    head(path, "genome", 20 * MIB)


def make_numbers(path):
    """5 million lines of random numbers with a payload, for sort."""
    rng = random.Random(4)
    with open(path, "w") as out:
        for _ in range(50):
            out.writelines(f"{rng.getrandbits(40):013d} {rng.getrandbits(60):016x}\n" for _ in range(100_000))


def make_keys(path):
    """6 million keys out of 3 million, for associative arrays."""
    rng = random.Random(5)
    with open(path, "w") as out:
        for _ in range(60):
            out.writelines(f"user-{rng.randrange(3_000_000):07d}\n" for _ in range(100_000))


def make_json(path):
    """A JSON array of 400,000 small objects, one document."""
    rng = random.Random(6)
    words = vocabulary(rng, 2000)
    with open(path, "w") as out:
        out.write("[")
        for number in range(400_000):
            item = {"id": number, "name": rng.choice(words), "tags": rng.choices(words, k=3), "score": rng.randrange(10_000)}
            out.write(("," if number else "") + json.dumps(item))
        out.write("]")


def make_sqlite(path):
    """A database of 4 million rows with a secondary index, about 500 MB."""
    rng = random.Random(7)
    base = sqlite3.connect(path)
    base.executescript("PRAGMA journal_mode=off; PRAGMA synchronous=off; PRAGMA cache_size=-800000;"
                       "CREATE TABLE item(id INTEGER PRIMARY KEY, key INTEGER, body TEXT);")
    filler = "x" * 60
    for start in range(0, 4_000_000, 100_000):
        base.executemany("INSERT INTO item VALUES(?,?,?)",
                         ((i, rng.getrandbits(48), filler + str(i)) for i in range(start, start + 100_000)))
    base.execute("CREATE INDEX by_key ON item(key)")
    base.commit()
    base.close()


def make_genome(path):
    """A random reference of 64 million bases with mutated repeats, FASTA."""
    rng = random.Random(8)
    bases = bytes.maketrans(bytes(range(4)), b"ACGT")
    block = 1 << 20
    with open(path, "wb") as out:
        out.write(b">chr1\n")
        for _ in range(64):
            raw = bytes(b & 3 for b in rng.randbytes(block)).translate(bases)
            for i in range(0, block, 64):
                out.write(raw[i : i + 64] + b"\n")


def make_genome_index(path):
    """bwa's index of the genome (a marker file; the index lies beside it)."""
    genome = make("genome", path.parent)
    subprocess.run(["bwa", "index", genome], check=True, stderr=subprocess.DEVNULL)
    path.write_text("done\n")


def make_reads(path):
    """60,000 reads of 150 bases with errors, from both strands of the genome, FASTQ."""
    rng = random.Random(9)
    genome = make("genome", path.parent).read_bytes().split(b"\n", 1)[1].replace(b"\n", b"")
    flip = bytes.maketrans(b"ACGT", b"TGCA")
    with open(path, "wb") as out:
        for number in range(60_000):
            start = rng.randrange(len(genome) - 150)
            read = bytearray(genome[start : start + 150])
            for _ in range(rng.randrange(5)):
                read[rng.randrange(150)] = rng.choice(b"ACGT")
            if rng.random() < 0.5:
                read = read.translate(flip)[::-1]
            out.write(b"@r%d\n%s\n+\n%s\n" % (number, bytes(read), b"I" * 150))


def cnf(path, seed, variables, clauses):
    """A random 3-SAT instance in DIMACS form."""
    rng = random.Random(seed)
    with open(path, "w") as out:
        out.write(f"p cnf {variables} {clauses}\n")
        for _ in range(clauses):
            picked = rng.sample(range(1, variables + 1), 3)
            out.write(" ".join(str(v if rng.random() < 0.5 else -v) for v in picked) + " 0\n")


def make_sat_large(path):
    """A large random 3-SAT instance: 100,000 variables at ratio 3.9."""
    cnf(path, 10, 100_000, 390_000)


def make_sat_hard(path):
    """A small, hard random 3-SAT instance at the threshold."""
    cnf(path, 11, 245, 1_045)


def make_c_file(path):
    """A C file of 250 functions of ordinary loops and branches."""
    rng = random.Random(12)
    with open(path, "w") as out:
        out.write("/* generated */\n")
        for number in range(250):
            shift, step, limit = rng.randrange(1, 20), rng.randrange(1, 9), rng.randrange(10, 200)
            callee = f"f{rng.randrange(number)}(x ^ i, y)" if number else "1"
            out.write(f"unsigned f{number}(unsigned x, unsigned y)\n{{\n\tunsigned s = {number}u, a[16] = {{0}};\n"
                      f"\tfor (unsigned i = 0; i < {limit}; i += {step}) {{\n\t\ta[i & 15] += x * i + (y >> {shift});\n"
                      f"\t\tif (a[(i + 3) & 15] > s)\n\t\t\ts += a[i & 15] ^ (x << {shift});\n\t\telse\n\t\t\ts -= {callee};\n"
                      f"\t}}\n\tswitch (s % 7) {{\n"
                      + "".join(f"\tcase {c}: return s * {rng.randrange(3, 99)}u + a[{c}];\n" for c in range(6))
                      + "\t}\n\treturn s;\n}\n\n")


def make_redis_rdb(path):
    """A redis database of 5 million keys of 100 bytes, named as redis-benchmark names them."""
    port = "7391"
    server = subprocess.Popen(["redis-server", "--port", port, "--save", "", "--dir", path.parent, "--dbfilename", path.name],
                              stdout=subprocess.DEVNULL)
    try:
        client = ["redis-cli", "-p", port]
        while subprocess.run(client + ["ping"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            pass
        feed = subprocess.Popen(client + ["--pipe"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        value = b"v" * 100
        for start in range(0, 5_000_000, 50_000):
            feed.stdin.write(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$100\r\n%s\r\n" % (i, value)
                                      for i in range(start, start + 50_000)))
        feed.stdin.close()
        if feed.wait():
            raise SystemExit("redis-cli failed")
        subprocess.run(client + ["save"], check=True, stdout=subprocess.DEVNULL)
    finally:
        server.terminate()
        server.wait()


def compiled(path, compiler, source, *options):
    subprocess.run([compiler, "-O2", "-g", *options, HERE / "programs" / source, "-o", path], check=True)


def make_chase_map(path):
    """std::map look-ups (a program)."""
    compiled(path, "g++", "chase_map.cpp")


def make_chase_hash(path):
    """std::unordered_map look-ups (a program)."""
    compiled(path, "g++", "chase_hash.cpp")


def make_java_classes(path):
    """HashMap look-ups in Java (a directory of classes)."""
    path.mkdir(exist_ok=True)
    subprocess.run(["javac", "-d", path, HERE / "programs" / "MapChase.java"], check=True)


def make(name, directory):
    """The path of input `name`, made now if it is not there; damage by an interruption is impossible (rename at the end)."""
    path = Path(directory) / name
    if not path.exists():
        print(f"making input {name}", file=sys.stderr, flush=True)
        part = path.with_name(name + ".part")
        if part.is_file():
            part.unlink()
        # An index lies beside the file that it indexes, so its marker is made in place.
        globals()["make_" + name](part)
        os.rename(part, path)
    return path


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    for wanted in sys.argv[2:]:
        make(wanted, sys.argv[1])
