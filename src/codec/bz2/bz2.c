/*
 * bz2.c: bzip2 streams, any number of them one after the other, by libbz2, which is opened at run
 * time.  The numbers and the struct are part of its ABI (bzlib.h of bzip2 1.0).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/library.h"
#include "codec/codecs.h"

/* ---- libbz2 -------------------------------------------------------------------------- */

enum { BZ_RUN = 0, BZ_FINISH = 2 };
enum { BZ_OK = 0, BZ_RUN_OK = 1, BZ_FINISH_OK = 3, BZ_STREAM_END = 4 };
enum { BZ_MEM_ERROR = -3, BZ_DATA_ERROR_MAGIC = -5 };

typedef struct bz_stream {
	const void *next_in;
	unsigned avail_in, total_in_low, total_in_high;
	void *next_out;
	unsigned avail_out, total_out_low, total_out_high;
	void *state;
	void *(*alloc)(void *opaque, int count, int size);
	void (*free)(void *opaque, void *ptr);
	void *opaque;
} bz_stream;

typedef struct bz_functions {
	int (*compress_init)(bz_stream *z, int level, int verbosity, int work_factor);
	int (*compress)(bz_stream *z, int action);
	int (*compress_end)(bz_stream *z);
	int (*decompress_init)(bz_stream *z, int verbosity, int small);
	int (*decompress)(bz_stream *z);
	int (*decompress_end)(bz_stream *z);
} bz_functions;

static const char *const files[] = {"libbz2.so.1.0", "libbz2.so.1", "libbz2.dylib", NULL};
static const char *const names[] = {
	"BZ2_bzCompressInit",
	"BZ2_bzCompress",
	"BZ2_bzCompressEnd",
	"BZ2_bzDecompressInit",
	"BZ2_bzDecompress",
	"BZ2_bzDecompressEnd",
	NULL,
};

/* libbz2 counts in unsigned int: a long buffer is given in pieces. */
#define PIECE ((size_t)1 << 30)

typedef struct coder {
	const lade_allocator *host;
	void *library; /* NULL: there is none */
	bz_functions bz;
} coder;

static void *state_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	coder *c = lade__host_alloc(host, sizeof *c);
	if (c) {
		c->host = host;
		c->library = lade__library_open(files, names, &c->bz);
	}
	return c;
}

static void state_free(void *ctx, void *state)
{
	(void)ctx;
	coder *c = state;
	lade__library_close(c->library);
	lade__host_free(c->host, c, sizeof *c);
}

static void *bz_alloc(void *opaque, int count, int size)
{
	return lade__sized_alloc((const lade_allocator *)opaque, (size_t)count * (size_t)size);
}

static void bz_free(void *opaque, void *ptr)
{
	lade__sized_free((const lade_allocator *)opaque, ptr);
}

static lade_status begin(const coder *c, bz_stream *z, lade_error *err)
{
	if (!c->library)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "bz2 needs libbz2, and %s cannot be opened", files[0]);
	*z = (bz_stream){.alloc = bz_alloc, .free = bz_free, .opaque = (void *)(uintptr_t)c->host};
	return LADE_OK;
}

static void offer(bz_stream *z, lade__flow *c)
{
	z->next_in = c->src + c->in;
	z->avail_in = (unsigned)lade__flow_left(c, PIECE);
	z->next_out = lade__flow_to(c);
	z->avail_out = (unsigned)lade__flow_room(c, PIECE);
}

/* ---- sizes --------------------------------------------------------------------------- */

/* The manual's: 1 % and 600 bytes more; a block of noise gets 0.5 % larger, by its codes of up to
 * 8.04 bits, and the run-length code in front adds 1 byte after each 4 equal ones. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	size_t more = size / 100 + 601;
	return size > SIZE_MAX - more ? SIZE_MAX : size + more;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src, (void)size;
	*decoded = 0;
	return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
	                 "bz2: the stream does not store the decoded size");
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 100000, 0.012);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 20000, 0.035);
}

/* ---- encoding ------------------------------------------------------------------------ */

static lade_status nomem(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "bz2: no memory for a stream");
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const coder *state = run->state;
	lade__flow c = {
		.src = lade__bytes(src), .size = src.size, .dst = dst.data, .cap = dst.size};
	lade__progress progress = LADE__MOVED;
	bz_stream z;
	*dst_size = 0;
	lade_status status = begin(state, &z, err);
	if (status != LADE_OK)
		return status;
	if (state->bz.compress_init(&z, (int)run->stage->option[0].i, 0, 0) != BZ_OK)
		return nomem(err);
	int rc = BZ_RUN_OK;
	while (rc != BZ_STREAM_END && rc > 0 && progress == LADE__MOVED) {
		offer(&z, &c);
		size_t left = z.avail_in, room = z.avail_out;
		bool last = left == c.size - c.in;
		rc = state->bz.compress(&z, last ? BZ_FINISH : BZ_RUN);
		progress = lade__flow_step(&c, left - z.avail_in, room - z.avail_out);
	}
	state->bz.compress_end(&z);
	if (progress == LADE__FULL)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "bz2: want up to %zu bytes, have %zu", bound(run->stage, src.size),
		                 dst.size);
	if (rc != BZ_STREAM_END)
		return lade_fail(err, LADE_E_INTERNAL, LADE_NO_OFFSET, "bz2: libbz2's code %d", rc);
	*dst_size = c.out;
	return LADE_OK;
}

/* ---- decoding ------------------------------------------------------------------------ */

static lade_status why(const lade__flow *c, size_t start, int rc, lade__progress progress,
                       lade_error *err)
{
	if (progress == LADE__FULL)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "bz2: want more than %zu bytes, have %zu", c->cap, c->cap);
	if (rc == BZ_MEM_ERROR)
		return nomem(err);
	if (rc == BZ_OK)
		return lade_fail(err, LADE_E_TRUNCATED, c->size,
		                 "bz2: the stream at %zu does not end in %zu bytes", start,
		                 c->size - start);
	return lade_fail(err, LADE_E_CORRUPT, rc == BZ_DATA_ERROR_MAGIC ? start : c->in,
	                 rc == BZ_DATA_ERROR_MAGIC ? "bz2: no stream begins at %zu"
	                                           : "bz2: the stream at %zu is damaged",
	                 start);
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const coder *state = run->state;
	lade__flow c = {
		.src = lade__bytes(src), .size = src.size, .dst = dst.data, .cap = dst.size};
	bz_stream z;
	*dst_size = 0;
	lade_status status = begin(state, &z, err);
	do {
		size_t start = c.in;
		lade__progress progress = LADE__MOVED;
		int rc = BZ_OK;
		if (status != LADE_OK)
			return status;
		if (state->bz.decompress_init(&z, 0, 0) != BZ_OK)
			return nomem(err);
		while (rc == BZ_OK && progress == LADE__MOVED) {
			offer(&z, &c);
			size_t left = z.avail_in, room = z.avail_out;
			rc = state->bz.decompress(&z);
			progress = lade__flow_step(&c, left - z.avail_in, room - z.avail_out);
		}
		state->bz.decompress_end(&z);
		if (rc != BZ_STREAM_END || progress == LADE__FULL)
			return why(&c, start, rc, progress, err);
	} while (c.in < c.size);
	*dst_size = c.out;
	return LADE_OK;
}

/* ---- records ------------------------------------------------------------------------- */

static const lade_option options[] = {
	{
		.name = "level",
		.type = LADE_OPTION_INT,
		.always = true,
		.fallback = {.i = 9},
		.min = 1,
		.max = 9,
		.doc = "blocks of 100 to 900 kB",
	},
};

static const lade_algorithm bz2 = {
	.struct_size = sizeof(lade_algorithm),
	.name = "bz2",
	.id = 14,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = 1,
	.doc = "bzip2 (docs/format/codecs.md)",
	.bound = bound,
	.decoded_size = decoded_size,
	/* A block decodes to at most 900,000 / 5 runs of 259 bytes.  It has at least 191 bits: 155
	 * of fixed fields, a selector, two tables of three codes, and 19 codes for 900,000 equal
	 * bytes.  That is 1.95 million times. */
	.ratio_max = 1 << 21,
};

static const lade_implementation encoder = {
	.struct_size = sizeof(lade_implementation),
	.name = "bz2/libbz2",
	.algorithm = "bz2",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = encode_cost,
	.state_new = state_new,
	.state_free = state_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

static const lade_implementation decoder = {
	.struct_size = sizeof(lade_implementation),
	.name = "bz2/libbz2",
	.algorithm = "bz2",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = decode_cost,
	.state_new = state_new,
	.state_free = state_free,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};

static const lade_algorithm *const algorithms[] = {&bz2, NULL};
static const lade_implementation *const implementations[] = {&encoder, &decoder, NULL};
const lade__set lade__codec_bz2 = {algorithms, implementations, NULL};
