/*
 * foreign_impl.h: what the readers and writers of other tools' formats share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_FOREIGN_IMPL_H
#define LADE_FRAME_FOREIGN_IMPL_H

#include "base/cancel.h"
#include "base/support.h"

#include <lade/foreign.h>

/* ---- encoded bytes as they come ------------------------------------------------------------ */

/* The bytes [pos, end) of 'data' have been read and not yet been used. */
typedef struct lade__in {
	lade_input input;
	const lade_allocator *alloc;
	uint8_t *data;
	size_t cap, pos, end;
	uint64_t off; /* of data[pos], from the input's first byte */
	bool eof;
} lade__in;

static inline size_t lade__in_have(const lade__in *in)
{
	return in->end - in->pos;
}

static inline const uint8_t *lade__in_at(const lade__in *in)
{
	return in->data + in->pos;
}

static inline void lade__in_take(lade__in *in, size_t size)
{
	in->pos += size;
	in->off += size;
}

/* Reads until at least 'size' unused bytes are at hand or the input has ended. */
lade_status lade__in_want(lade__in *in, size_t size, lade_error *err);

/* ---- readers ------------------------------------------------------------------------ */

typedef struct lade__foreign_decoder {
	size_t state_size; /* of what 'state' points to: zeroed before 'start' */
	lade_status (*start)(lade_foreign_reader *reader, lade_error *err);
	/* '*got' from 1 to 'cap', which is at least 1; or 0 at the end. */
	lade_status (*read)(lade_foreign_reader *reader, uint8_t *dst, size_t cap, size_t *got,
	                    lade_error *err);
	void (*stop)(lade_foreign_reader *reader); /* also after a failed start */
} lade__foreign_decoder;

struct lade_foreign_reader {
	lade_engine *engine;
	const lade_allocator *alloc;
	lade_format format;
	uint64_t max_window;
	bool ignore_checksum, strict;
	const lade_dict *dict;
	const lade__foreign_decoder *decoder;
	void *state;
	uint64_t frames; /* that have begun */
	lade__in in;
	lade__stop stop;
	bool done;
	lade_error failed; /* the first failure, given again by every later call */
};

/* lade_foreign_reader_read() of checked arguments, which does not look whether it is to stop. */
lade_status lade__foreign_read(lade_foreign_reader *reader, void *dst, size_t cap, size_t *got,
                               lade_error *err);

extern const lade__foreign_decoder lade__frames_decoder; /* foreign_frames.c: .zst and .lz4 */
extern const lade__foreign_decoder lade__gzip_decoder;   /* foreign_gzip.c: .gz and .zz */
extern const lade__foreign_decoder lade__snappy_decoder; /* foreign_snappy.c: .sz */

/* ---- writers ------------------------------------------------------------------------ */

typedef struct lade__foreign_encoder {
	size_t state_size;
	lade_status (*start)(lade_foreign_writer *writer, lade_error *err);
	lade_status (*write)(lade_foreign_writer *writer, const uint8_t *data, size_t size,
	                     lade_error *err);
	lade_status (*finish)(lade_foreign_writer *writer, lade_error *err);
	void (*stop)(lade_foreign_writer *writer);
} lade__foreign_encoder;

struct lade_foreign_writer {
	lade_engine *engine;
	const lade_allocator *alloc;
	lade_format format;
	lade_output output;
	unsigned threads;
	int level;
	uint64_t window; /* of .zst; 0: the level's */
	bool checksum;
	uint64_t size; /* decoded bytes in all, if the caller said so; 0: not known */
	const lade_dict *dict;
	const lade__foreign_encoder *encoder;
	void *state;
	uint64_t taken; /* decoded bytes so far */
	lade__stop stop;
	bool finished;
	lade_error failed;
};

extern const lade__foreign_encoder lade__zstd_encoder;   /* foreign_zstd_write.c */
/* The bits at which the last block of a Deflate stream begins and ends; false: it is damaged. */
bool lade__deflate_last(const uint8_t *data, size_t size, size_t *begin, size_t *end);

extern const lade__foreign_encoder lade__blocks_encoder; /* foreign_blocks.c: .gz and .lz4 */

#endif
