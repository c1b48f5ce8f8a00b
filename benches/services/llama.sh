#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds llama-server of llama.cpp and model.gguf, of random weights, for benches/services/run.py:
#     llama.sh PYTHON DIRECTORY MIB
# PYTHON is the interpreter of a virtual environment. What DIRECTORY has already is kept. Needs cmake and g++; builds for
# about ten minutes on two cores.
set -eu
python=$1 directory=$2 mib=$3
disks=$(dirname "$0")/../../lab/disks
# shellcheck source=../../lab/disks/llama_source.sh
. "$disks/llama_source.sh"

if [ ! -x "$directory/llama-server" ]; then
	mkdir -p "$directory"
	unpack_llama "$python" "$directory"
	cmake -S "$llama_source" -B "$directory/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF \
		-DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=ON \
		-DLLAMA_BUILD_SERVER=ON >&2
	cmake --build "$directory/build" --target llama-server --parallel "$(nproc)" >&2
	cp "$directory/build/bin/llama-server" "$directory/llama-server"
	rm -rf "$directory/build" "${llama_source%/vendor/*}"
fi
if [ ! -e "$directory/model.gguf" ]; then
	install_gguf "$python"
	"$python" "$disks/random_model.py" "$directory/new.gguf" "$mib" 1
	mv "$directory/new.gguf" "$directory/model.gguf"
fi
