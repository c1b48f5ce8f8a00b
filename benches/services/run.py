#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Observes real services under load, and alternates their page sizes:

    benches/services/run.py [--within TIME] [--for TIME] [SERVICE]...

For each service: `tollfree stat -p`, `tollfree why` and `tollfree tune --pid` on the running process. Prints a table, and
then for each service what the three printed. tune restores the memory of each.
Status: 0 each service was measured, 1 one was not, 3 none could be.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOLLFREE = os.environ.get("TOLLFREE") or str(ROOT / "target" / "release" / "tollfree")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tollfree"
LIVE = HERE.parent / "live"
PORT = 17380
NOBODY = 65534
PATIENCE = 120
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def python():
    """The interpreter with numpy, made by benches/all.sh; else this one."""
    made = CACHE / "bench" / "venv" / "bin" / "python"
    return os.environ.get("PYTHON") or str(made if made.exists() else sys.executable)


def run(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **more).stdout


def is_there(need):
    """A command, or with python:MODULE a module of the interpreter."""
    if not need.startswith("python:"):
        return bool(shutil.which(need))
    return subprocess.run([python(), "-c", "import " + need.removeprefix("python:")], **QUIET).returncode == 0


def wait_for(what, done):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, IndexError, subprocess.CalledProcessError):
            if found := done():
                return found
        time.sleep(0.2)
    raise RuntimeError(f"{what}: not ready after {PATIENCE} s")


@contextlib.contextmanager
def control_group():
    """A control group for all services and this process, where it may be made."""
    roots = [root for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")) if (root / "cgroup.procs").exists()]
    if not roots or os.getuid() != 0:
        yield
        return
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    before = next(path for _, names, path in lines if "memory" in names.split(",") or not names)
    group = roots[0] / "tollfree-services"
    group.mkdir(exist_ok=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (roots[0] / before.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))
        group.rmdir()


class Service:
    """Processes that are ended with the service."""

    #: The commands without which it is skipped.
    needs = ()

    def __init__(self, place):
        self.place = place
        self.children = []

    def start(self, *command, **more):
        child = subprocess.Popen([str(word) for word in command], cwd=self.place, start_new_session=True, **QUIET, **more)
        self.children.append(child)
        return child.pid

    def begin(self):
        """Starts it under its load. Returns the id of the process that does the work, and tune's options."""
        raise NotImplementedError

    def end(self):
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


class Job(Service):
    """A program that writes its id to LOG, and a line for each piece of work."""

    def prepare(self):
        raise NotImplementedError

    def begin(self):
        self.start(*self.prepare(), "log")
        log = self.place / "log"
        pid = wait_for("job", lambda: int(log.read_text().splitlines()[0]))
        return pid, ["--count-lines", "log"]


class Java(Job):
    """A service on the JVM: look-ups in a HashMap, 1 GiB of heap"""

    needs = ("java", "javac")

    def prepare(self):
        run("javac", "-d", self.place, HERE / "Cache.java")
        return ["java", "-Xms1g", "-Xmx1g", "-XX:+UseSerialGC", "-cp", self.place, "Cache"]


class Go(Job):
    """A service in Go: look-ups in a map"""

    needs = ("go",)

    def prepare(self):
        environment = {**os.environ, "GOCACHE": str(self.place / "go"), "GOFLAGS": "-mod=mod"}
        run("go", "build", "-o", self.place / "cache", HERE / "cache.go", env=environment, cwd=self.place)
        return [self.place / "cache"]


class Numpy(Job):
    """A job of numpy: random elements of an array of 256 MiB"""

    needs = ("python:numpy",)

    def prepare(self):
        return ["env", "NUMPY_MADVISE_HUGEPAGE=0", python(), LIVE / "job.py", "gather"]


class KeyValue(Service):
    """A key-value server under the load of benches/live/load.py."""

    kind = ""

    def command(self):
        raise NotImplementedError

    def options(self):
        return []

    def begin(self):
        pid = self.start(*self.command())
        load = [python(), LIVE / "load.py", self.kind, PORT]
        wait_for(self.kind, lambda: run(*load, "fill") or True)
        self.start(*load, "forever")
        return pid, self.options()


class Redis(KeyValue):
    """redis as it comes; where THP is `always`, it forbids huge pages to itself by prctl"""

    kind = "redis"
    needs = ("redis-server", "redis-cli")

    def command(self):
        return ["redis-server", "--port", PORT, "--save", "", "--daemonize", "no"]

    def options(self):
        count = f"redis-cli -p {PORT} info stats | sed -n 's/^total_commands_processed:\\([0-9]*\\).*/\\1/p'"
        return ["--metric-command", count]


class Memcached(KeyValue):
    """memcached with 600 MiB and one thread"""

    kind = "memcached"
    needs = ("memcached",)

    def command(self):
        return ["memcached", "-u", "nobody", "-m", "600", "-t", "1", "-p", PORT]


class Llama(Service):
    """llama.cpp's server with a model of 512 MiB and random weights, which it reads into its own memory (--no-mmap)"""

    needs = ("cmake", "g++", "curl")
    model_mib = 512

    def begin(self):
        made = CACHE / "bench" / "llama"
        run(HERE / "llama.sh", python(), made, self.model_mib)
        pid = self.start(made / "llama-server", "-m", made / "model.gguf", "--no-mmap", "--no-warmup", "--metrics",
                         "--no-webui", "-t", 1, "-c", 512, "--host", "127.0.0.1", "--port", PORT)
        address = f"http://127.0.0.1:{PORT}"
        # It answers with an error while it reads the model.
        wait_for("llama.cpp", lambda: run("curl", "-fs", f"{address}/health"))
        self.start(python(), HERE / "complete.py", PORT)
        count = f"curl -s {address}/metrics | sed -n 's/^llamacpp:tokens_predicted_total //p'"
        return pid, ["--metric-command", count]


class Postgres(Service):
    """PostgreSQL with 512 MiB of shared buffers, huge_pages off, under pgbench -S"""

    needs = ("pgbench", "psql", "setpriv")
    huge = "off"

    def begin(self):
        binaries = max(Path("/usr/lib/postgresql").glob("*/bin"))
        data, as_nobody = self.place / "data", self.as_nobody()
        run(*as_nobody, binaries / "initdb", "-D", data, "-A", "trust", "-U", "postgres")
        server = [binaries / "postgres", "-D", data, "-p", PORT, "-k", self.place, "-c", "shared_buffers=512MB",
                  "-c", f"huge_pages={self.huge}", "-c", "listen_addresses="]
        self.start(*as_nobody, *server)
        place = ["-h", self.place, "-p", PORT, "-U", "postgres"]
        count = "select xact_commit from pg_stat_database where datname = 'postgres'"
        wait_for("postgres", lambda: run("psql", *place, "-Atc", count))
        run("pgbench", *place, "-i", "-q", "-s", 25, "postgres")
        self.start("pgbench", *place, "-S", "-n", "-c", 1, "-T", 100_000, "postgres")
        line = " ".join(map(str, ["psql", *place, "-Atc"])) + f' "{count}"'
        who = "select pid from pg_stat_activity where application_name = 'pgbench' and query like 'SELECT%'"
        backend = wait_for("pgbench", lambda: int(run("psql", *place, "-Atc", who)))
        return backend, ["--metric-command", line]

    def as_nobody(self):
        """It refuses to run as root."""
        if os.getuid() != 0:
            return []
        self.place.chmod(0o755)
        os.chown(self.place, NOBODY, NOBODY)
        return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]


class PostgresTry(Postgres):
    """The same with huge_pages = try and enough reserved pages"""

    pages = 320

    def begin(self):
        self.pool = Path("/proc/sys/vm/nr_hugepages")
        self.before = self.pool.read_text()
        self.pool.write_text(str(int(self.before) + self.pages))
        self.huge = "try"
        return super().begin()

    def end(self):
        super().end()
        if hasattr(self, "before"):
            self.pool.write_text(self.before)


SERVICES = {
    "postgres-off": Postgres,
    "postgres-try": PostgresTry,
    "redis": Redis,
    "memcached": Memcached,
    "java": Java,
    "go": Go,
    "numpy": Numpy,
    "llama": Llama,
}


def tollfree(place, *arguments, text=False):
    """The answer as JSON, or as text of 100 columns."""
    command = [TOLLFREE, *([] if text else ["--json"]), *map(str, arguments)]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    # stat prints its table to stderr.
    return (done.stdout + done.stderr) if text else json.loads(done.stdout)


def measure(service, options):
    """What the three commands said."""
    pid, more = service.begin()
    time.sleep(5)
    place = service.place
    stat = ["stat", "-p", pid, "--for", options.time]
    # Both count the same time: the table and the text agree.
    with ThreadPoolExecutor() as pool:
        text = pool.submit(tollfree, place, *stat, text=True)
        counted = tollfree(place, *stat)
    return {
        "stat": counted,
        "stat text": text.result(),
        "why": tollfree(place, "why", pid),
        "why text": tollfree(place, "why", pid, text=True),
        "tune": tollfree(place, "tune", "--pid", pid, "--within", options.within, "--force", "-o", "out", *more),
    }


def ratio(interval):
    return f"{interval['median']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})" if interval else "-"


def percent(part, whole):
    return f"{part / whole:.1%}" if whole else "-"


def row(name, said):
    stat, why, tune = said["stat"], said["why"], said["tune"]
    largest = max(why["bill"], key=lambda part: part["bytes"], default=None)
    live = tune.get("live") or {}
    cells = [
        name,
        f"{why['resident_bytes'] >> 20} MiB",
        percent(why["huge_bytes"], why["resident_bytes"]),
        largest["title"] if largest else "-",
        percent(stat["loss_ns"], stat["cpu_ns"]),
        ratio(tune.get("speedup_all")),
        ratio(live.get("speedup_from_before")),
        tune["advice"],
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = ["service", "resident", "huge", "the largest part", "CPU time lost, estimated", "alternating", "as it was", "advice"]


def block(text):
    return "```\n" + text.strip("\n") + "\n```\n"


def details(name, said):
    """What a reader would see on the terminal, shortened."""
    reason = said["tune"].get("reason", "")
    why = said["why text"].split("\nthe largest of ")[0]
    return "\n".join([f"## {name}", "", SERVICES[name].__doc__.strip() + ".", "", block(said["stat text"]), block(why),
                      f"`tune --pid`: {reason}.", ""])


def one(name, options, directory):
    service = SERVICES[name](Path(directory) / name)
    service.place.mkdir()
    try:
        return measure(service, options)
    finally:
        service.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", default="2m", help="limit of tune (default 2m)")
    parser.add_argument("--for", dest="time", default="10s", help="time of stat (default 10s)")
    parser.add_argument("service", nargs="*", help="default: all: " + " ".join(SERVICES))
    options = parser.parse_args()
    wanted = options.service or list(SERVICES)
    if unknown := [name for name in wanted if name not in SERVICES]:
        parser.error(f"no such service: {unknown[0]}")
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    found, failed, notes = {}, 0, []
    with control_group(), tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        for name in wanted:
            missing = [need for need in SERVICES[name].needs if not is_there(need)]
            if missing:
                notes.append(f"{name} was skipped: {missing[0]} is not installed.")
                continue
            try:
                found[name] = one(name, options, directory)
                print(row(name, found[name]), flush=True)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                failed += 1
                notes.append(f"{name} was not measured: {getattr(error, 'stderr', None) or error}")
    print("\n" + "\n".join([*notes, ""]))
    for name, said in found.items():
        print(details(name, said))
    if not found:
        return 3
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
