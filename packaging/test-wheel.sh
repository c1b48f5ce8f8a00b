# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of a wheel, in virtual environments of a root. POSIX sh, sourced by test.sh.
# shellcheck shell=sh

test_wheel() {
	for debian in bookworm trixie; do
		start "$1" $debian python3-venv
		step venv "python3 -m venv /checks && python3 -m venv /venv"
		step 'twine, auditwheel' "$(check_wheel "/packages/${1##*/}")"
		put_in install "$in_venv pip install --no-index /packages/${1##*/}"
		step files "$in_venv pip check && $in_venv tollfree doctor | grep -F '/venv/bin/../lib/tollfree/libtoll_preload.so'"
		use /venv/bin/tollfree
		take_out uninstall "$in_venv pip uninstall --yes tollfree"
		finish
	done
}

# Python's own cache of compiled modules would count as files that stayed.
in_venv='env PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1'

# Prints the commands that verify the metadata of wheel $1, and that its libraries need no newer glibc than its name promises.
check_wheel() {
	cat <<-COMMANDS
		/checks/bin/pip install --quiet twine==7.0.0 auditwheel==6.8.2 &&
		/checks/bin/twine check --strict $1 &&
		/checks/bin/auditwheel show $1 >/tmp/policy && cat /tmp/policy &&
		minor=\$(sed -n 's/^the following platform tag: "manylinux_2_\([0-9]*\)_x86_64".*/\1/p' /tmp/policy) &&
		test "\$minor" -le 28
	COMMANDS
}
