/*
 * codecs.h: the list of the library's own codecs (docs/adding-a-codec.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CODEC_CODECS_H
#define LADE_CODEC_CODECS_H

#include "base/set.h"
#include "base/support.h"

#include <lade/codec.h>

#include <string.h>

/* Each is a folder here with a lade__set lade__codec_NAME; lade_engine_algorithm() lists their
 * algorithms in this order. */
#define LADE__CODECS(X) \
	X(copy) \
	X(lz4) \
	X(snappy) \
	X(zstd) \
	X(deflate) \
	X(blosc) \
	X(bitcomp) \
	X(cascaded) \
	X(ans) \
	X(bz2) \
	X(lzma)

#define LADE_X(name) extern const lade__set lade__codec_##name;
LADE__CODECS(LADE_X)
#undef LADE_X

/* The first host implementation of an algorithm among them; NULL: none. */
static inline const lade_implementation *lade__codec_find(const char *algorithm,
                                                          lade_direction direction)
{
#define LADE_X(name) &lade__codec_##name,
	static const lade__set *const sets[] = {LADE__CODECS(LADE_X) NULL};
#undef LADE_X
	for (const lade__set *const *s = sets; *s; s++)
		for (const lade_implementation *const *i = (*s)->implementations; *i; i++)
			if (!strcmp((*i)->algorithm, algorithm) && (*i)->direction == direction)
				return *i;
	return NULL;
}

/* For the headers of these folders: an algorithm's records; and those of its device
 * implementations. */
#define LADE__RECORDS(name) \
	extern const lade_algorithm lade__##name; \
	extern const lade_implementation lade__##name##_encode, lade__##name##_decode;
#define LADE__GPU_RECORDS(name) \
	extern const lade__gpu_implementation lade__##name##_encode_gpu, lade__##name##_decode_gpu;

#endif
