/*
 * encode.c: the Blosc1 codec's options and sizes, and its encoder: blocks.c for what is written
 * most, c-blosc for the rest.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"

#include <blosc.h>

/* The index is the option's value; c-blosc knows the codecs by these names. */
static const char *const cnames[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd", NULL};
enum { CNAME_LZ4 = 1, CNAME_ZSTD = 5 };

/* The index is c-blosc's BLOSC_NOSHUFFLE, BLOSC_SHUFFLE, BLOSC_BITSHUFFLE. */
static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle", NULL};

static const lade_option options[] = {
	[BLOSC_OPTION_CNAME] = {.name = "cname",
                                .type = LADE_OPTION_ENUM,
                                .fallback = {.i = CNAME_LZ4},
                                .names = cnames,
                                .doc = "the codec inside"},
	[BLOSC_OPTION_LEVEL] = {.name = "level",
                                .type = LADE_OPTION_INT,
                                .always = true,
                                .fallback = {.i = 5},
                                .min = 0,
                                .max = 9,
                                .doc = "0 stores, 9 compresses most"},
	[BLOSC_OPTION_SHUFFLE] = {.name = "shuffle",
                                  .type = LADE_OPTION_ENUM,
                                  .fallback = {.i = BLOSC_SHUFFLE},
                                  .names = shuffles,
                                  .doc = "what is done to each block first"},
	[BLOSC_OPTION_TYPESIZE] = {.name = "typesize",
                                   .type = LADE_OPTION_INT,
                                   .fallback = {.i = 1},
                                   .min = 1,
                                   .max = BLOSC_MAX_TYPESIZE,
                                   .doc = "bytes an element; with 1 the byte shuffle does nothing"},
	[BLOSC_OPTION_BLOCKSIZE] = {.name = "blocksize",
                                    .type = LADE_OPTION_INT,
                                    .fallback = {.i = 0},
                                    .min = 0,
                                    .max = BLOSC_BLOCK_MAX,
                                    .doc = "bytes a block; 0: chosen by c-blosc"},
};

/*
 * Header and bytes: whatever c-blosc cannot make smaller within the room that encode() gives it,
 * it stores behind the header.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > BLOSC_NBYTES_MAX ? SIZE_MAX : size + BLOSC_HEADER_SIZE;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage;
	lade__blosc_info info;
	if (!src)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "blosc: the decoded size is in the header, which was not given");
	lade_status status = lade__blosc_parse(src, size, &info, err);
	if (status == LADE_OK)
		*decoded = info.nbytes;
	return status;
}

/*
 * c-blosc writes the first block's place before it looks whether there is room for it.  From 128
 * bytes on it makes blocks, and the smallest container of those is a header, a start, a csize and
 * a byte; below, it stores.
 */
#define BLOCKS_FROM 128
#define BLOCKS_CAP_MIN (BLOSC_HEADER_SIZE + 4 + 4 + 1)

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const lade_value *option = run->stage->option;
	const char *cname = cnames[option[BLOSC_OPTION_CNAME].i];
	*dst_size = 0;
	if (src.size > BLOSC_NBYTES_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "blosc: %zu bytes, want at most %zu", src.size, BLOSC_NBYTES_MAX);
	size_t least = src.size < BLOCKS_FROM ? BLOSC_HEADER_SIZE : BLOCKS_CAP_MIN;
	if (dst.size < least)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "blosc: want room for at least %zu bytes, have %zu", least,
		                 dst.size);
	if (blosc_compname_to_compcode(cname) < 0)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "blosc: this system's c-blosc was built without %s", cname);
	int64_t inside = option[BLOSC_OPTION_CNAME].i;
	if ((inside == CNAME_LZ4 || inside == CNAME_ZSTD) && src.size >= BLOCKS_FROM &&
	    option[BLOSC_OPTION_LEVEL].i && !option[BLOSC_OPTION_BLOCKSIZE].i)
		return lade__blosc_blocks(run, inside == CNAME_ZSTD, src, dst, dst_size, err);
	/*
	 * No more room than the bound: with more, c-blosc would rather write streams that are
	 * larger than what they hold than store the whole.
	 */
	size_t cap = bound(run->stage, src.size);
	if (cap > dst.size)
		cap = dst.size;
	int n = blosc_compress_ctx(
		(int)option[BLOSC_OPTION_LEVEL].i, (int)option[BLOSC_OPTION_SHUFFLE].i,
		(size_t)option[BLOSC_OPTION_TYPESIZE].i, src.size, lade__bytes(src), dst.data, cap,
		cname, (size_t)option[BLOSC_OPTION_BLOCKSIZE].i, 1);
	if (n < 0)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET,
		                 "blosc: c-blosc failed with %d", n);
	if (n == 0)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "blosc: %zu bytes do not fit into %zu", src.size, dst.size);
	*dst_size = (size_t)n;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *work)
{
	(void)ctx;
	static const double rates[] = {1.0, 1.5, 0.15, 1.2, 0.1, 0.4};
	return lade__codec_cost(work, 3000, rates[work->stage->option[BLOSC_OPTION_CNAME].i]);
}

const lade_algorithm lade__blosc = {
	.struct_size = sizeof(lade_algorithm),
	.name = "blosc",
	.id = 8,
	.kind = LADE_STAGE_CODEC,
	.flags = LADE_ALGORITHM_RANGES,
	.options = options,
	.option_count = sizeof options / sizeof options[0],
	.doc = "the Blosc1 container: shuffled blocks (docs/format/blosc.md)",
	.bound = bound,
	.decoded_size = decoded_size,
	.header_size = BLOSC_HEADER_SIZE,
	.decoded_max = (uint64_t)1 << 31,
};

const lade_implementation lade__blosc_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "blosc/lade",
	.algorithm = "blosc",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.state_new = lade__blosc_blocks_new,
	.state_free = lade__blosc_blocks_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};
