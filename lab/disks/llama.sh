#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fills a directory with llama.cpp's `llama-simple`, static, and models of random weights:
#     llama.sh DIRECTORY COUNT MIB
# The build is kept. TOLL_LAB_CACHE is the directory of the lab's cache; needs cmake and g++.
set -eu
directory=$1 count=$2 mib=$3
here=$(dirname "$0")
# shellcheck source=llama_source.sh
. "$here/llama_source.sh"
python=$TOLL_LAB_CACHE/venv/bin/python
work=$TOLL_LAB_CACHE/llama-$llama_version

for tool in cmake g++; do
	command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2; exit 1; }
done
if [ ! -x "$work/llama-simple" ]; then
	rm -rf "$work"
	mkdir -p "$work"
	unpack_llama "$python" "$work"
	# Build for AVX2: the emulated CPU has it, and without it a token takes twenty times as long.
	cmake -S "$llama_source" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
		-DBUILD_SHARED_LIBS=OFF -DCMAKE_EXE_LINKER_FLAGS=-static -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF \
		-DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
		-DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_EXAMPLES=ON >&2
	cmake --build "$work/build" --target llama-simple --parallel "$(nproc)" >&2
	cp "$work/build/bin/llama-simple" "$work/llama-simple"
fi
install_gguf "$python"
cp "$work/llama-simple" "$directory/"
number=0
while [ "$number" -lt "$count" ]; do
	"$python" "$here/random_model.py" "$directory/model-$number.gguf" "$mib" "$number"
	number=$((number + 1))
done
