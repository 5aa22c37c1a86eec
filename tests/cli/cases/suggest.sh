# lade suggest: its command lines work, its guesses are right, and it does not invent gains.
# SPDX-License-Identifier: Apache-2.0
if needs python3; then
	python3 - <<-'END'
		import math, random, struct
		random.seed(1)
		field = [280 + 10 * math.sin(i / 900) + random.gauss(0, 0.001)
			for i in range(150000)]
		times = [1700000000000 + 1000 * i + random.randrange(40) for i in range(60000)]
		open("field", "wb").write(struct.pack("<150000f", *field))
		open("it's times", "wb").write(struct.pack("<60000q", *times))
	END
	run 0 "$lade" suggest --dtype=f4 field
	quiet
	prints "field: 585.94 KiB of 585.94 KiB tried, <f4"
	cp "$top/out" said
	# Each command line that it gives does what it says.
	cp field orig
	for goal in speed between ratio; do
		command=$(sed -n "s/^$goal *\(lade .*\)/\1/p" said)
		[ -n "$command" ] || bad "no command for $goal"
		rm -f field.lade
		run 0 sh -c "PATH='$build':\$PATH; $command"
		run 0 "$lade" -d -fo back field.lade
		same back orig
	done

	# Bytes of 8-byte integers: the size is guessed; a name with a blank and a quote is quoted.
	run 0 "$lade" suggest "it's times"
	prints "elements of 8 bytes (a guess)"
	command=$(sed -n "s/^ratio *\(lade .*\)/\1/p" "$top/out")
	run 0 sh -c "PATH='$build':\$PATH; $command"
	run 0 "$lade" -d -fo back "it's times.lade"
	same back "it's times"

	# All pipelines of the table, and the choice among them.
	run 0 "$lade" suggest --json --all --sample=256K --dtype=f4 field
	python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
		import json, sys
		(one,) = json.load(open(sys.argv[1]))
		assert one["size"] == 600000 and 200000 < one["sample_size"] <= 262144
		assert one["compressible"] and one["dtype"] == "<f4" and not one["dtype_guessed"]
		best, all_ = one["suggestions"], one["all"]
		assert best["ratio"]["ratio"] * 1.005 >= max(p["ratio"] for p in all_) > 1.3
		assert {best[g]["pipeline"] for g in best} <= {p["pipeline"] for p in all_}
		assert "shuffle" in best["ratio"]["pipeline"]
		assert set(best) == {"speed", "between", "ratio"}
	END
fi

# What does not compress is to be stored.
noise 100000 >noise
run 0 "$lade" suggest noise
prints "store it as it is"
prints "lade --spec='copy' noise"
run 0 sh -c "PATH='$build':\$PATH; lade --spec=copy noise"

# Text has no elements; tiny files are no problem.
seq 1 100000 | head -c 300000 >-text
run 0 "$lade" suggest --dtype=none --chunk-size=64K -- -text
prints "bytes"
prints "--chunk-size=65536 './-text'"
for n in 1 2 7 63 65; do
	seq 1 100 | head -c $n >tiny
	run 0 "$lade" suggest tiny
done

: >empty
run 1 "$lade" suggest empty
says "empty: the file is empty"
run 1 "$lade" suggest nosuch
run 2 "$lade" suggest
run 2 "$lade" suggest --dtype=nosuch noise
run 2 "$lade" suggest --sample=1 noise
run 2 "$lade" suggest --bandwidth=0 noise
run 2 "$lade" suggest --chunk-size=1 noise
run 2 "$lade" suggest --threads=x noise
run 0 "$lade" suggest --help
prints "Usage: lade suggest"
