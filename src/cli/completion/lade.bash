# lade.bash: completion of the lade command's arguments, for bash.
# SPDX-License-Identifier: Apache-2.0

# The names of a kind, as the command lists them.
_lade_algorithms() {
	"${COMP_WORDS[0]}" --algorithms 2>/dev/null | awk -v kind="$1" '$2 == kind { print $1 }'
}

_lade() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} option= words=
	local dtypes="bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64
		bfloat16 float8_e4m3"

	# "--name=value" comes as three words where = parts words, and as one where it does not.
	if [[ $cur == = ]]; then
		option=$prev cur=
	elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $cur == --*=* ]]; then
		option=${cur%%=*} cur=${cur#*=}
	else
		option=$prev
	fi
	case $option in
	--algorithm) words=$(_lade_algorithms codec) ;;
	--filter) words=$(_lade_algorithms filter) ;;
	--dtype) words=$dtypes ;;
	--checksum) [[ $prev == --checksum ]] || words="xxh64 crc32c none" ;;
	--format) words="lade zst gz lz4" ;;
	--long) [[ $prev == --long ]] || words="24 27 30 31" ;;
	--fast) [[ $prev == --fast ]] || words="1 3 5 10" ;;
	--chunk-size) words="64K 256K 1M 4M 16M" ;;
	--threads | -T) words="0 1 $(nproc 2>/dev/null)" ;;
	--gpu) [[ $prev == --gpu ]] || words="0 1 2 3" ;;
	esac
	if [[ $words ]]; then
		COMPREPLY=($(compgen -W "$words" -- "$cur"))
		return
	fi
	case ${COMP_WORDS[1]} in
	zarr)
		if [[ $COMP_CWORD == 2 ]]; then
			COMPREPLY=($(compgen -W "info ls tree cat verify create" -- "$cur"))
			return
		fi
		;;&
	rntuple)
		if [[ $COMP_CWORD == 2 ]]; then
			COMPREPLY=($(compgen -W "info ls schema dump verify" -- "$cur"))
			return
		fi
		;;&
	share)
		if [[ $COMP_CWORD == 2 ]]; then
			COMPREPLY=($(compgen -W "serve ls rm top" -- "$cur"))
			return
		fi
		if [[ ${COMP_WORDS[2]} == @(ls|rm) && $cur != -* ]]; then
			words=$("${COMP_WORDS[0]}" share ls --json 2>/dev/null |
				sed -n 's/^ *"name": "\(.*\)",$/\1/p')
			COMPREPLY=($(compgen -W "$words" -- "$cur"))
			return
		fi
		;;&
	bench | inspect | suggest | devices | zarr | rntuple | share)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help \
				2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$cur"))
			return
		fi
		;;
	*)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "-1 -3 -6 -9 -12 -15 -19 -c -d -f -h -k -l -o -q -r
				-t -v -z -D -M -T -V --algorithm= --algorithms --checksum
				--chunk-size=
				--compress --decompress --dict= --dtype= --fast --filter= --force
				--format=
				--gpu --help --keep --level= --list --long --memory=
				--no-check --no-sparse --output=
				--quiet --raw --recursive --rm --sparse --spec=
				--stdout --strict --test
				--threads= --ultra --verbose --version" -- "$cur"))
			[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
			return
		fi
		if [[ $COMP_CWORD == 1 ]]; then
			words="bench devices inspect rntuple share suggest zarr"
			COMPREPLY=($(compgen -W "$words" -- "$cur"))
		fi
		;;
	esac
	# What can be decompressed, when that is asked for; any file otherwise.
	local word pattern=
	for word in "${COMP_WORDS[@]}"; do
		case $word in
		--decompress | --test | --list | -[!-]*[dtl]* | -[dtl]*)
			pattern='*.@(lade|zst|gz|zz|lz4|sz|tgz|tzst)'
			;;
		esac
	done
	[[ ${COMP_WORDS[1]} == inspect ]] && pattern='*.lade'
	local file
	while IFS= read -r file; do
		if [[ -z $pattern || -d $file ]] ||
			(shopt -s extglob; [[ $file == $pattern ]]); then
			COMPREPLY+=("$file")
		fi
	done < <(compgen -f -- "$cur")
	compopt -o filenames 2>/dev/null
}
complete -F _lade lade
