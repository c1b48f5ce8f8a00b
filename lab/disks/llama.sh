#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fills a directory with llama.cpp's `llama-simple`, static, and models of random weights:
#     llama.sh DIRECTORY COUNT MIB
# The source comes with the Python package llama-cpp-python (its version is pinned); the build is kept.
# TOLL_LAB_CACHE is the directory of the lab's cache; needs cmake and g++.
set -eu
directory=$1 count=$2 mib=$3
here=$(dirname "$0")
version=0.3.16
venv=$TOLL_LAB_CACHE/venv
work=$TOLL_LAB_CACHE/llama-$version

for tool in cmake g++; do
	command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2; exit 1; }
done
if [ ! -x "$work/llama-simple" ]; then
	rm -rf "$work"
	mkdir -p "$work"
	"$venv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python --dest "$work" "llama-cpp-python==$version" >&2
	tar -C "$work" -xf "$work/llama_cpp_python-$version.tar.gz"
	# Build for AVX2: the emulated CPU has it, and without it a token takes twenty times as long.
	cmake -S "$work/llama_cpp_python-$version/vendor/llama.cpp" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
		-DBUILD_SHARED_LIBS=OFF -DCMAKE_EXE_LINKER_FLAGS=-static -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF \
		-DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_EXAMPLES=ON >&2
	cmake --build "$work/build" --target llama-simple --parallel "$(nproc)" >&2
	cp "$work/build/bin/llama-simple" "$work/llama-simple"
fi
"$venv/bin/python" -c 'import gguf' 2>/dev/null || "$venv/bin/pip" install --quiet gguf==0.17.1 >&2
cp "$work/llama-simple" "$directory/"
number=0
while [ "$number" -lt "$count" ]; do
	"$venv/bin/python" "$here/random_model.py" "$directory/model-$number.gguf" "$mib" "$number"
	number=$((number + 1))
done
