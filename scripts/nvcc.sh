#!/usr/bin/env bash
# nvcc.sh FOLDER: installs the compiler of the kernels, nvcc 13.0 from PyPI, in a virtual
# environment FOLDER/nvcc (300 MB), unless it is there or the system has one.  Without Python or a
# network it says so and succeeds: the build goes on, without kernels.  NO_CUDA=1 leaves it out.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
folder=${1:?usage: nvcc.sh FOLDER}/nvcc
[ "${NO_CUDA:-}" = 1 ] && exit 0
right() { # nvcc
	"$1" --version 2>/dev/null | grep -q 'release 13\.0,'
}
for nvcc in "$folder"/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc \
	/usr/local/cuda-13.0/bin/nvcc /usr/local/cuda/bin/nvcc "$(command -v nvcc || true)"; do
	right "$nvcc" && exit 0
done
without() { # why
	echo "no nvcc, so no GPU kernels: $1"
	rm -rf "$folder"
	exit 0
}
[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || [ "$(uname -s)-$(uname -m)" = Linux-aarch64 ] ||
	without "there is none for $(uname -s) on $(uname -m)"
command -v python3 >/dev/null || without "python3 is missing"
mkdir -p "$(dirname "$folder")"
log=$folder.log
rm -rf "$folder"
python3 -m venv "$folder" >"$log" 2>&1 || without "python3 -m venv failed (see $log)"
echo "installing nvcc 13.0 in $folder"
# nvcc's wheel does not ask for cccl, whose headers cuda_fp16.h includes.
"$folder/bin/pip" install --quiet --no-deps --disable-pip-version-check --retries 2 \
	nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-runtime==13.0.96 \
	nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 >>"$log" 2>&1 ||
	without "pip could not install it (see $log)"
right "$folder"/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc || without "it does not run"
