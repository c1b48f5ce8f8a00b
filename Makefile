# SPDX-License-Identifier: MIT OR Apache-2.0
# Short names for the scripts that do the work.

PREFIX ?= /usr/local
DESTDIR ?=
cache = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tollfree

.PHONY: help build demo test test-all test-roots bench kernel lab adversary install uninstall clean clean-cache
.PHONY: packages test-packages kernel-deb test-kernel-deb release-files check-reproducible release

help:
	@echo 'make demo | test | test-all | test-roots | bench | kernel | lab | adversary | build | install PREFIX=/usr/local | uninstall | clean | clean-cache'
	@echo '     packages | test-packages | kernel-deb | test-kernel-deb | release-files | check-reproducible | release VERSION=x.y.z'

build:
	cargo build --release --locked
	$(MAKE) -C plugins

demo:
	./demo

test:
	./test

# All tests, including the slow ones (hours): whole kernels compared, all selftests in each kind of guest, and every
# scenario's full form.
test-all: test
	./test scenarios
	target/release/toll-lab equal
	cargo test --release --locked -p toll-lab --test adversary -- --ignored a_random_run_is_reduced
	benches/all.sh bpf-lab
	target/release/toll-lab selftest tollfree --cpus 4
	target/release/toll-lab shell tollfree --config kernel/config/bpf.config -- \
		kernel/tree/tools/testing/selftests/tollfree/econ_bpf.sh "$$(ls $(cache)/lab/tree/*/tollfree/build/selftests/econ)"
	target/release/toll-lab selftest tollfree --cpus 4 --fs xfs
	target/release/toll-lab selftest tollfree --cpus 4 --fs btrfs --la57 --nodes 2
	target/release/toll-lab selftest tollfree --pti
	target/release/toll-lab baseline --output '$(cache)/lab/baseline.md'

# Both commands in new minimal roots of Debian 12 and 13; needs root, and over two hours.
test-roots:
	setup/test-roots.sh

bench:
	benches/all.sh

# Build stock and patched kernels for the lab.
kernel:
	setup/setup.sh lab
	cargo run --release --locked --quiet -p toll-lab -- kernel

# Check kernels against the worst TLB that the architecture allows, and that each planted bug is found (about 40 minutes;
# SHORT=1: four minutes).
adversary: build
	target/release/toll-lab adversary $(if $(SHORT),tollfree --short,vanilla tollfree --seconds 600 --markdown docs/results/adversary.md) --plants

# Debian packages of the kernel with the queue, in target/packages (hours).
kernel-deb:
	packaging/kernel-deb.sh

# What the queue touches, under the configuration of Debian's kernel.
test-kernel-deb:
	packaging/kernel-deb.sh --check

install:
	setup/install.sh install '$(DESTDIR)$(PREFIX)'

uninstall:
	setup/install.sh uninstall '$(DESTDIR)$(PREFIX)'

# The packages of this checkout, in target/packages.
packages:
	packaging/packages.sh

# Install, use and remove each of them in new minimal roots of Debian; needs root.
test-packages:
	packaging/test.sh

# The packages, the source, the bill of materials and the checksums of the last commit, in target/packages.
release-files: packages
	packaging/release-files.sh

# Builds them twice, in different directories, and compares them.
check-reproducible:
	packaging/check-reproducible.sh

# Commits and tags a version, and makes its files in target/releases. With DRY_RUN=1 it shows what it would change.
release:
	packaging/release.sh $(if $(DRY_RUN),--dry-run) '$(VERSION)'

# List the lab's scenarios.
lab:
	cargo run --release --locked --quiet -p toll-lab -- list

clean:
	cargo clean
	$(MAKE) -C plugins clean

# Remove what is outside the working tree: unpacked QEMU, cost tables, inputs and results of the benchmarks.
clean-cache:
	rm -rf '$(cache)'
