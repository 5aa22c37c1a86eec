#!/usr/bin/env bash
# steps.sh FOLDER KERNELS STEP...: builds gpu_bench once for each step, to time them side by side on
# a machine with a GPU.  A step is NAME=COMMIT, or NAME=COMMIT:FILE:SED to change a file of it.
# KERNELS are .cu files without their ending, divided by ; (others are left out, which saves time).
# FOLDER is to be taken along; there, FOLDER/run.sh DATA [gpu_bench's options] times each step in
# turn, twice, and writes FOLDER/NAME-1.csv and -2.csv.
#
#     bench/gpu/steps.sh /tmp/steps 'zstd_decode;copy' before=f629b1e after=main
#     /tmp/steps/run.sh build/bench-data --formats=zstd --peers=liblade
#
#   NVCC  the compiler (default: what scripts/nvcc.sh installs in FOLDER)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
usage="usage: steps.sh FOLDER KERNELS NAME=COMMIT[:FILE:SED]..."
folder=${1:?$usage} kernels=${2:?$usage}
shift 2
[ $# -gt 0 ] || { echo "$usage" >&2 && exit 64; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'git -C "$root" worktree prune; rm -rf "$work"' EXIT
if [ -z "${NVCC:-}" ]; then
	"$root/scripts/nvcc.sh" "$work"
	NVCC=$(ls "$work"/nvcc/lib/python3.*/site-packages/nvidia/cu13/bin/nvcc)
fi
: >"$folder/steps"
for step; do
	name=${step%%=*} what=${step#*=}
	commit=${what%%:*} tree=$work/$name
	git -C "$root" worktree add --quiet --detach "$tree" "$commit"
	if [ "$what" != "$commit" ]; then
		change=${what#*:}
		file=$tree/${change%%:*}
		sed -i.before "${change#*:}" "$file"
		! cmp -s "$file" "$file.before" || { echo "$step: changes nothing" >&2 && exit 1; }
	fi
	cmake -S "$tree" -B "$tree/build" -G Ninja -DLADE_BENCH=ON -DLADE_CUDA=ON \
		-DLADE_CUDA_ONLY="$kernels" -DLADE_NVCC="$NVCC" >"$work/log"
	cmake --build "$tree/build" --target gpu_bench >"$work/log" ||
		{ tail "$work/log" && exit 1; }
	mkdir -p "$folder/$name"
	rm -f "$folder/$name"/*
	cp "$tree/build/bench/gpu_bench" "$folder/$name/"
	ldd "$folder/$name/gpu_bench" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
		grep -Ev '/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc++)\.so' |
		xargs -I{} cp -L {} "$folder/$name/"
	strip --strip-debug "$folder/$name"/*
	cp "$tree/build/kernels.txt" "$folder/$name/"
	git -C "$root" worktree remove --force "$tree"
	echo "$name" >>"$folder/steps"
	echo "$name: $commit"
done
cat >"$folder/run.sh" <<'R'
#!/usr/bin/env bash
# run.sh DATA [OPTION...]: times each step in turn, twice, with gpu_bench's options.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=${1:?usage: run.sh DATA [OPTION...]}
shift
for turn in 1 2; do
	while read -r name; do
		LD_LIBRARY_PATH=$here/$name "$here/$name/gpu_bench" --data="$data" \
			--out="${OUT:-$here}/$name-$turn.csv" "$@"
	done <"$here/steps"
done
R
chmod +x "$folder/run.sh"
du -sh "$folder"
