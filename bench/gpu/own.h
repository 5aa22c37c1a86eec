/*
 * own.h: the rows of gpu_bench beside LZ4 and Snappy: liblade's own formats with nvCOMP's codecs of
 * the same purpose, and filters.  How both peers are told what a set's elements are.
 *
 * nvCOMP's streams of these codecs are closed: each peer decodes what it has encoded itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_OWN_H
#define LADE_BENCH_OWN_H

#include "nvcomp.h"

#include <stdio.h>
#include <string.h>

/* What a set holds, by its name's suffix: "f4". */
typedef struct elements {
	int size;
	char kind;                       /* 'i', 'u' or 'f' */
	char dtype[16];                  /* of liblade's stages */
	char integers[8];                /* and as integers of that size */
	char numbers[16];                /* dtype, and bfloat16 for what is that */
	int32_t nvcomp, nvcomp_integers; /* nvcompType_t */
} elements;

static inline elements elements_of(const char *set)
{
	static const int32_t signed_types[] = {[1] = 0, [2] = 2, [4] = 4, [8] = 6};
	const char *suffix = strrchr(set, '.') + 1;
	elements e = {.size = suffix[1] - '0', .kind = suffix[0]};
	bool bf16 = strncmp(set, "bf16", 4) == 0;
	const char *order = e.size > 1 ? "<" : "";
	snprintf(e.dtype, sizeof e.dtype, "%s%c%d", order, e.kind, e.size);
	snprintf(e.integers, sizeof e.integers, "%s%c%d", order, e.kind == 'i' ? 'i' : 'u', e.size);
	snprintf(e.numbers, sizeof e.numbers, "%s", bf16 ? "bfloat16" : e.dtype);
	e.nvcomp_integers = signed_types[e.size] + (e.kind == 'i' ? 0 : 1);
	/* Its FLOAT16 stands for all floats of two bytes. */
	e.nvcomp = bf16 ? 10 : e.kind == 'f' && e.size == 4 ? 11 : e.nvcomp_integers;
	return e;
}

/* Which sets a row is for. */
typedef enum own_sets {
	OWN_ALL,
	OWN_FLOATS, /* those of floating-point numbers of 2 and 4 bytes, which nvCOMP's ANS takes */
	OWN_WIDE,   /* elements of 4 and 8 bytes: nvCOMP's symmetric Cascaded takes no others */
	OWN_SIZES,  /* one of each size of elements above 1 */
	OWN_TYPED,  /* likewise, size 1 too */
	OWN_HOST,   /* all; rows NAME/cpu, too: the host encodes */
} own_sets;

/* Where it does not matter what a set holds. */
static inline bool own_sample(const char *set)
{
	return strcmp(set, "json.u1") == 0 || strcmp(set, "bf16_weights.u2") == 0 ||
	       strcmp(set, "tpch_shipdate.i4") == 0 || strcmp(set, "timestamps.i8") == 0;
}

typedef struct own_codec {
	const char *name;      /* as rows have it */
	const char *algorithm; /* liblade's, to be found in its registry */
	const char *spec;      /* %s: the type, or, with 'sized', the size in bytes */
	const char *nvcomp;    /* as the names of its functions have it; NULL: it has none */
	own_sets sets;
	bool sized, integers, numbers; /* what %s stands for; none: dtype */
} own_codec;

static const own_codec own_codecs[] = {
	{"ans", "ans", "ans", "ANS", OWN_ALL, false, false, false},
	{"ans-float", "ans", "ans(dtype=%s)", "ANS", OWN_FLOATS, false, false, true},
	{"bitcomp", "bitcomp", "bitcomp(dtype=%s)", "Bitcomp", OWN_ALL, false, false, false},
	{"bitcomp-sparse", "bitcomp", "bitcomp(dtype=%s,algorithm=sparse)", "Bitcomp", OWN_ALL,
         false, false, false},
	{"cascaded", "cascaded", "cascaded(dtype=%s)", "Cascaded", OWN_ALL, false, false, false},
	{"cascaded-sym", "cascaded", "cascaded(dtype=%s,mode=fast)", "Cascaded", OWN_WIDE, false,
         false, false},
	{"shuffle", "shuffle", "shuffle(%s)", NULL, OWN_SIZES, true, false, false},
	{"bitshuffle", "bitshuffle", "bitshuffle(%s)", NULL, OWN_SIZES, true, false, false},
	{"delta", "delta", "delta(%s)", NULL, OWN_TYPED, false, true, false},
	{"zigzag", "zigzag", "zigzag(<i%s)", NULL, OWN_SIZES, true, false, false},
	{"byteswap", "byteswap", "byteswap(%s)", NULL, OWN_SIZES, true, false, false},
	{"blosc-lz4-shuffle", "blosc", "blosc(cname=lz4,typesize=%s)", NULL, OWN_HOST, true, false,
         false},
	{"shuffle-lz4", "lz4", "shuffle(%s)|lz4", NULL, OWN_HOST, true, false, false},
	{"blosc-zstd-bit", "blosc", "blosc(cname=zstd,level=3,shuffle=bitshuffle,typesize=%s)",
         NULL, OWN_HOST, true, false, false},
	{"bitshuffle-zstd", "zstd", "bitshuffle(%s)|zstd(level=5)", NULL, OWN_HOST, true, false,
         false},
};
#define OWN_COUNT (sizeof own_codecs / sizeof *own_codecs)

/* Whether a set has rows of a codec. */
static inline bool own_takes(const own_codec *c, const elements *e, const char *set)
{
	switch (c->sets) {
	case OWN_FLOATS:
		return (e->kind == 'f' && e->size <= 4) || e->nvcomp == 10;
	case OWN_WIDE:
		return e->size >= 4;
	case OWN_SIZES:
		return e->size > 1 && own_sample(set);
	case OWN_TYPED:
		return own_sample(set);
	default:
		return true;
	}
}

/* The spec of liblade's stage, for chunks of a size. */
static inline void own_spec(const own_codec *c, const elements *e, size_t chunk, char *text,
                            size_t cap)
{
	char size[8];
	/* What the encoder takes by itself, but for a few chunks: rows of these decode the same
	 * bytes as others. */
	if (strcmp(c->name, "ans") == 0 && chunk >= 65536) {
		snprintf(text, cap, "ans(block=8192)");
		return;
	}
	snprintf(size, sizeof size, "%d", e->size);
	const char *what = c->sized      ? size
	                   : c->integers ? e->integers
	                   : c->numbers  ? e->numbers
	                                 : e->dtype;
	const char *at = strstr(c->spec, "%s");
	if (at)
		snprintf(text, cap, "%.*s%s%s", (int)(at - c->spec), c->spec, what, at + 2);
	else
		snprintf(text, cap, "%s", c->spec);
}

/* nvCOMP's options, word by word as its headers lay them out. */
static inline void own_options(const own_codec *c, const elements *e, nvcomp_options *encode,
                               nvcomp_options *decode)
{
	bool symmetric = strcmp(c->name, "cascaded-sym") == 0;
	*encode = *decode = (nvcomp_options){{0}};
	if (!c->nvcomp)
		return;
	/* Decoders are told all that their encoders were, which lets nvCOMP choose the fastest
	 * kernel. */
	if (strcmp(c->nvcomp, "ANS") == 0) {
		/* | algorithm or backend 4 | type 4 | sub-chunks 1 | states 1 |: two states, as
		 * where none are said. */
		encode->word[1] = decode->word[1] = c->numbers ? e->nvcomp : 0;
		encode->word[2] = decode->word[2] = 2 << 8;
	} else if (strcmp(c->nvcomp, "Bitcomp") == 0) {
		encode->word[0] = strcmp(c->name, "bitcomp-sparse") == 0;
		encode->word[1] = e->nvcomp;
	} else {
		/* | type 4 | mode 4 | terminal codecs 8 | coarse 8 | fine 8 | level 1 |: all
		 * encodings, level 3. */
		encode->word[0] = e->nvcomp_integers;
		encode->word[1] = symmetric ? 2 : 1;
		encode->word[2] = 1;
		encode->word[6] = 7;
		encode->word[8] = 3;
		/* | backend 4 | unused 4 | type 4 | mode 4 | terminal codecs 8 | coarse 8 | */
		memcpy(decode->word + 2, encode->word, 6 * sizeof *encode->word);
	}
}

#endif
