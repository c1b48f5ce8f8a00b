# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the image, with this machine's podman and a storage of its own: the image alone, and its files in another image, with
# the capabilities of docs/guide/install.md and podman's seccomp filter. POSIX sh, sourced by test.sh.
# shellcheck shell=sh disable=SC2154

test_container() {
	need podman podman
	start "$1" bookworm
	image=localhost/tollfree:$version
	outside load test_podman load --input "$1"
	outside doctor image_has_all
	outside 'COPY --from' add_to_base
	outside tune tune_in_container
	finish
}

# crun refuses a machine with both versions of control groups, so it gets to see version 2 alone.
test_podman() {
	unshare --mount sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec podman "$@"' podman \
		--root "$place/storage" --runroot "$place/run" --storage-driver vfs --cgroup-manager cgroupfs "$@"
}

# contained [OPTION]... IMAGE [ARGUMENT]...: runs an image once. Root may not be allowed to raise limits here, so they are lower
# than podman's.
contained() {
	test_podman run --rm --network none --cgroups disabled --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
		--cap-add SYS_PTRACE --cap-add SYS_NICE "$@"
}

image_has_all() {
	contained "$image" --version | grep -x -F "tollfree $version" && contained "$image" >"$place/doctor" || return 1
	cat "$place/doctor"
	for what in 'preload library' process_madvise ptrace; do
		grep -q -E "^ $what +ok " "$place/doctor" || return 1
	done
}

# Makes an image of the root with the files of tollfree's.
add_to_base() {
	tar --create --directory "$root" . | test_podman import - localhost/base &&
		printf '%s\n' "FROM $image AS tollfree" 'FROM localhost/base' 'COPY --from=tollfree /usr /usr' >"$place/Containerfile" &&
		mkdir -p "$place/context" &&
		test_podman build --network none --file "$place/Containerfile" --tag localhost/both "$place/context"
}

tune_in_container() {
	contained --workdir /work localhost/both sh -c "tollfree tune --within 40s -- $program"
}
