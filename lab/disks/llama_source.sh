# SPDX-License-Identifier: MIT OR Apache-2.0
# The source of llama.cpp, which comes with the Python package llama-cpp-python (its version is pinned), and the package
# that writes models. Sourced: sets $llama_version.
# shellcheck shell=sh disable=SC2034
llama_version=0.3.16

# Unpacks the source into a directory, sets $llama_source: unpack_llama PYTHON DIRECTORY
unpack_llama() {
	"$1" -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest "$2" "llama-cpp-python==$llama_version" >&2
	tar -C "$2" -xf "$2/llama_cpp_python-$llama_version.tar.gz"
	llama_source=$2/llama_cpp_python-$llama_version/vendor/llama.cpp
}

# Installs the package gguf, unless it is there: install_gguf PYTHON
install_gguf() {
	"$1" -c 'import gguf' 2>/dev/null || "$1" -m pip install --quiet gguf==0.17.1 >&2
}
