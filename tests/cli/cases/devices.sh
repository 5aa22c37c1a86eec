# lade devices: the same words with and without a driver; what a fake one tells is shown.
# SPDX-License-Identifier: Apache-2.0
run 0 "$lade" devices --help
prints "Usage: lade devices"
run 2 "$lade" devices --nosuch
run 2 "$lade" devices file
says "takes no files"

# A file that is no library stands for the driver: there is none, which is no failure.
mkdir -p broken
echo "no library" >broken/libcuda.so.1
run 0 env LD_LIBRARY_PATH=broken "$lade" devices
quiet
prints "no driver: "
prints "libcuda.so.1"
run 1 env LD_LIBRARY_PATH=broken "$lade" devices --check
prints "no driver: "
run 0 env LD_LIBRARY_PATH=broken "$lade" devices --json
prints '"devices": []'
prints '"why": "no driver: '

fake=$build/tests/gpu/fake_cuda
if [ -e "$fake/libcuda.so.1" ]; then
	run 0 env LD_LIBRARY_PATH="$fake" "$lade" devices
	quiet
	prints "fake 0"
	prints "1.00 GiB"
	# The second device is too old for the kernels, and a build may have none at all.
	run 1 env LD_LIBRARY_PATH="$fake" "$lade" devices --check
	prints "FAILS"
	says "device 1: "
	if needs python3; then
		run 0 env LD_LIBRARY_PATH="$fake" "$lade" devices --json
		python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
			import json, sys
			told = json.load(open(sys.argv[1]))
			one, two = told["devices"]
			assert one["device"] == 0 and two["device"] == 1
			assert one["memory_size"] == 1 << 30 and one["driver_version"] == 13000
			assert one["uuid"] == "GPU-01010101-0101-0101-0101-010101010101"
			assert one["kernels"] == ("sm_90" if told["kernels"] else "")
			assert two["kernels"] == ""
		END
	fi
fi
