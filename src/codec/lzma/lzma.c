/*
 * lzma.c: LZMA and LZMA2 in the containers .xz and .lzma, and without one, by liblzma, which is
 * opened at run time.  The numbers and structs are part of its ABI (lzma.h of liblzma 5.2).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/library.h"
#include "codec/codecs.h"

/* ---- liblzma ------------------------------------------------------------------------- */

enum { LZMA_OK = 0, LZMA_STREAM_END = 1, LZMA_MEM_ERROR = 5, LZMA_MEMLIMIT_ERROR = 6 };
enum { LZMA_FORMAT_ERROR = 7, LZMA_OPTIONS_ERROR = 8, LZMA_BUF_ERROR = 10 };
enum { LZMA_FINISH = 3, LZMA_CONCATENATED = 8 };

#define FILTER_LZMA1 UINT64_C(0x4000000000000001)
#define FILTER_LZMA2 UINT64_C(0x21)
#define FILTER_DELTA UINT64_C(3)
#define FILTER_END UINT64_MAX

typedef struct lzma_allocator {
	void *(*alloc)(void *opaque, size_t count, size_t size);
	void (*free)(void *opaque, void *ptr);
	void *opaque;
} lzma_allocator;

typedef struct lzma_stream {
	const uint8_t *next_in;
	size_t avail_in;
	uint64_t total_in;
	uint8_t *next_out;
	size_t avail_out;
	uint64_t total_out;
	const lzma_allocator *allocator;
	void *internal, *reserved_pointers[4];
	uint64_t reserved_numbers[2];
	size_t reserved_sizes[2];
	int reserved_enums[2];
} lzma_stream;

typedef struct lzma_options {
	uint32_t dict_size;
	const uint8_t *preset_dict;
	uint32_t preset_dict_size, lc, lp, pb;
	int mode;
	uint32_t nice_len;
	int match_finder;
	uint32_t depth, reserved_numbers[8];
	int reserved_enums[4];
	void *reserved_pointers[2];
} lzma_options;

typedef struct lzma_delta {
	int type;
	uint32_t distance, reserved_numbers[4];
	void *reserved_pointers[2];
} lzma_delta;

typedef struct lzma_filter {
	uint64_t id;
	void *options;
} lzma_filter;

typedef struct lzma_functions {
	int (*code)(lzma_stream *z, int action);
	void (*end)(lzma_stream *z);
	uint64_t (*memory)(const lzma_stream *z);
	unsigned char (*preset)(lzma_options *options, uint32_t level);
	int (*stream_encoder)(lzma_stream *z, const lzma_filter *filters, int check);
	int (*alone_encoder)(lzma_stream *z, const lzma_options *options);
	int (*raw_encoder)(lzma_stream *z, const lzma_filter *filters);
	int (*stream_decoder)(lzma_stream *z, uint64_t memory, uint32_t flags);
	int (*alone_decoder)(lzma_stream *z, uint64_t memory);
	int (*raw_decoder)(lzma_stream *z, const lzma_filter *filters);
} lzma_functions;

static const char *const files[] = {"liblzma.so.5", "liblzma.5.dylib", NULL};
static const char *const names[] = {
	"lzma_code",
	"lzma_end",
	"lzma_memusage",
	"lzma_lzma_preset",
	"lzma_stream_encoder",
	"lzma_alone_encoder",
	"lzma_raw_encoder",
	"lzma_stream_decoder",
	"lzma_alone_decoder",
	"lzma_raw_decoder",
	NULL,
};

/* What a decoder may allocate for what a stream's header asks for: twice that of level 9. */
#define MEMORY_MAX ((uint64_t)128 << 20)

/* ---- state --------------------------------------------------------------------------- */

/* A worker's.  liblzma keeps the memory of one chunk's coder for the next. */
typedef struct coder {
	const lade_allocator *host;
	void *library; /* NULL: there is none */
	lzma_functions lzma;
	lzma_allocator allocator;
	lzma_stream z;
} coder;

static void *z_alloc(void *opaque, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return lade__sized_alloc((const lade_allocator *)opaque, total);
}

static void z_free(void *opaque, void *ptr)
{
	lade__sized_free((const lade_allocator *)opaque, ptr);
}

static void *state_new(void *ctx, const lade_allocator *host)
{
	(void)ctx;
	coder *c = lade__host_alloc(host, sizeof *c);
	if (!c)
		return NULL;
	memset(c, 0, sizeof *c);
	c->host = host;
	c->library = lade__library_open(files, names, &c->lzma);
	c->allocator = (lzma_allocator){z_alloc, z_free, (void *)(uintptr_t)host};
	c->z.allocator = &c->allocator;
	return c;
}

static void state_free(void *ctx, void *state)
{
	(void)ctx;
	coder *c = state;
	if (c->library)
		c->lzma.end(&c->z);
	lade__library_close(c->library);
	lade__host_free(c->host, c, sizeof *c);
}

/* ---- options ------------------------------------------------------------------------- */

enum { LEVEL, FORMAT, CHECK, DELTA, DICT, LC, LP, PB, OPTION_COUNT };
enum { XZ, ALONE, RAW, RAW1 };

static const char *const formats[] = {"xz", "alone", "raw", "raw1", NULL};
static const char *const checks[] = {"crc64", "none", "crc32", "sha256", NULL};
static const int check_numbers[] = {4, 0, 1, 10};

#define NUMBER(option, low, high, normal, text) \
	{ \
		.name = option, .type = LADE_OPTION_INT, .fallback = {.i = normal}, .min = low, \
		.max = high, .doc = text \
	}

static const lade_option options[OPTION_COUNT] = {
	[LEVEL] = {.name = "level",
                   .type = LADE_OPTION_INT,
                   .always = true,
                   .fallback = {.i = 6},
                   .max = 9,
                   .doc = "0 fast to 9 small; also says the dictionary of raw streams"},
	[FORMAT] = {.name = "format",
                    .type = LADE_OPTION_ENUM,
                    .names = formats,
                    .doc = ".xz, .lzma, or a raw stream of LZMA2 or LZMA"},
	[CHECK] = {.name = "check",
                   .type = LADE_OPTION_ENUM,
                   .names = checks,
                   .doc = "xz: the checksum of the content"},
	[DELTA] =
		NUMBER("delta", 0, 256, 0, "xz, raw: differences of bytes that far apart; 0: none"),
	[DICT] = NUMBER("dict", 0, 64 << 20, 0, "bytes of the dictionary; 0: the level's"),
	[LC] = NUMBER("lc", -1, 4, -1, "bits of the previous byte that count; -1: 3"),
	[LP] = NUMBER("lp", -1, 4, -1, "bits of the position that count for literals; -1: 0"),
	[PB] = NUMBER("pb", -1, 4, -1, "bits of the position that count; -1: 2"),
};

static lade_status check(const lade_stage *stage, lade_error *err)
{
	const lade_value *o = stage->option;
	long long lc = o[LC].i < 0 ? 3 : o[LC].i, lp = o[LP].i < 0 ? 0 : o[LP].i;
	if (lc + lp > 4)
		return lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET,
		                 "lzma: lc + lp is %lld, at most 4", lc + lp);
	if (o[DICT].i && o[DICT].i < 4096)
		return lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET,
		                 "lzma: dict is %lld, want 0 or 4096 and more",
		                 (long long)o[DICT].i);
	if (o[FORMAT].i == ALONE && o[DELTA].i)
		return lade_fail(err, LADE_E_VALUE, LADE_NO_OFFSET,
		                 "lzma: delta is %lld, the format alone has no filters",
		                 (long long)o[DELTA].i);
	return LADE_OK;
}

/* The filters that a stage's options ask for. */
typedef struct chain {
	lzma_options lzma;
	lzma_delta delta;
	lzma_filter list[3];
} chain;

static bool chain_make(const coder *c, const lade_stage *stage, chain *out)
{
	const lade_value *o = stage->option;
	int i = 0;
	memset(out, 0, sizeof *out);
	if (c->lzma.preset(&out->lzma, (uint32_t)o[LEVEL].i))
		return false;
	if (o[DICT].i)
		out->lzma.dict_size = (uint32_t)o[DICT].i;
	if (o[LC].i >= 0)
		out->lzma.lc = (uint32_t)o[LC].i;
	if (o[LP].i >= 0)
		out->lzma.lp = (uint32_t)o[LP].i;
	if (o[PB].i >= 0)
		out->lzma.pb = (uint32_t)o[PB].i;
	out->delta.distance = (uint32_t)o[DELTA].i;
	if (o[DELTA].i)
		out->list[i++] = (lzma_filter){FILTER_DELTA, &out->delta};
	out->list[i++] =
		(lzma_filter){o[FORMAT].i == RAW1 ? FILTER_LZMA1 : FILTER_LZMA2, &out->lzma};
	out->list[i].id = FILTER_END;
	return true;
}

/* ---- sizes --------------------------------------------------------------------------- */

/*
 * LZMA2 stores a chunk of noise as it is, of 64 KiB or a little less, with 3 bytes in front: a 16th
 * covers chunks of 48 bytes.  LZMA has no such chunks: a literal takes 9 decisions, whose adaptive
 * probabilities cost an adversary's bits 1.1 bits each in the long run, which a half more covers.
 */
static size_t bound(const lade_stage *stage, size_t size)
{
	bool stores = stage->option[FORMAT].i == XZ || stage->option[FORMAT].i == RAW;
	size_t more = size / (stores ? 16 : 2) + 1024;
	return size > SIZE_MAX - more ? SIZE_MAX : size + more;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	(void)stage, (void)src, (void)size;
	*decoded = 0;
	return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
	                 "lzma: the decoded size is not known before decoding");
}

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 100000, 0.004);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 20000, 0.08);
}

/* ---- coding -------------------------------------------------------------------------- */

static int begin(coder *c, const lade_stage *stage, bool encodes)
{
	chain filters;
	int64_t format = stage->option[FORMAT].i;
	if (!chain_make(c, stage, &filters))
		return LZMA_OPTIONS_ERROR;
	if (format == XZ)
		return encodes ? c->lzma.stream_encoder(&c->z, filters.list,
		                                        check_numbers[stage->option[CHECK].i])
		               : c->lzma.stream_decoder(&c->z, MEMORY_MAX, LZMA_CONCATENATED);
	if (format == ALONE)
		return encodes ? c->lzma.alone_encoder(&c->z, &filters.lzma)
		               : c->lzma.alone_decoder(&c->z, MEMORY_MAX);
	return (encodes ? c->lzma.raw_encoder : c->lzma.raw_decoder)(&c->z, filters.list);
}

static lade_status why(const coder *s, const lade__flow *c, int rc, lade__progress progress,
                       lade_error *err)
{
	if (progress == LADE__FULL)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "lzma: want more than %zu bytes, have %zu", c->cap, c->cap);
	if (rc == LZMA_MEM_ERROR)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "lzma: no memory for a stream");
	if (rc == LZMA_MEMLIMIT_ERROR)
		return lade_fail(err, LADE_E_LIMIT, c->in,
		                 "lzma: decoding takes %llu bytes of memory, at most %llu",
		                 (unsigned long long)s->lzma.memory(&s->z),
		                 (unsigned long long)MEMORY_MAX);
	if (rc == LZMA_OK || rc == LZMA_BUF_ERROR)
		return lade_fail(err, LADE_E_TRUNCATED, c->size,
		                 "lzma: the stream does not end in %zu bytes", c->size);
	if (rc == LZMA_STREAM_END)
		return lade_fail(err, LADE_E_CORRUPT, c->in,
		                 "lzma: the stream has %zu bytes, there are %zu", c->in, c->size);
	if (rc == LZMA_OPTIONS_ERROR)
		return lade_fail(err, LADE_E_UNSUPPORTED, c->in,
		                 "lzma: options that liblzma does not know, near %zu", c->in);
	return lade_fail(err, LADE_E_CORRUPT, c->in,
	                 rc == LZMA_FORMAT_ERROR ? "lzma: no stream begins before %zu"
	                                         : "lzma: the stream is damaged before %zu",
	                 c->in);
}

static lade_status code(const lade_run *run, bool encodes, lade_cspan src, lade_span dst,
                        size_t *dst_size, lade_error *err)
{
	coder *s = run->state;
	lade__flow c = {
		.src = lade__bytes(src), .size = src.size, .dst = dst.data, .cap = dst.size};
	lade__progress progress = LADE__MOVED;
	*dst_size = 0;
	if (!s->library)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "lzma needs liblzma, and %s cannot be opened", files[0]);
	int rc = begin(s, run->stage, encodes);
	while (rc == LZMA_OK && progress == LADE__MOVED) {
		size_t left = lade__flow_left(&c, SIZE_MAX);
		size_t room = lade__flow_room(&c, SIZE_MAX);
		s->z.next_in = c.src + c.in;
		s->z.avail_in = left;
		s->z.next_out = lade__flow_to(&c);
		s->z.avail_out = room;
		rc = s->lzma.code(&s->z, LZMA_FINISH);
		progress = lade__flow_step(&c, left - s->z.avail_in, room - s->z.avail_out);
	}
	if (rc != LZMA_STREAM_END || progress == LADE__FULL || c.in < c.size)
		return why(s, &c, rc, progress, err);
	*dst_size = c.out;
	return LADE_OK;
}

static lade_status encode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	return code(run, true, src, dst, dst_size, err);
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	return code(run, false, src, dst, dst_size, err);
}

/* ---- records ------------------------------------------------------------------------- */

static const lade_algorithm lzma = {
	.struct_size = sizeof(lade_algorithm),
	.name = "lzma",
	.id = 15,
	.kind = LADE_STAGE_CODEC,
	.options = options,
	.option_count = OPTION_COUNT,
	.doc = "LZMA2 and LZMA, in .xz, .lzma or raw (docs/format/codecs.md)",
	.check = check,
	.bound = bound,
	.decoded_size = decoded_size,
	/* The longest match has 273 bytes and takes 14 decisions, of at least log2(2048 / 2017) =
	 * 0.022 bits each: 7,100 bytes for one. */
	.ratio_max = 8192,
};

#define IMPLEMENTATION(way, which, function) \
	static const lade_implementation function##r = { \
		.struct_size = sizeof(lade_implementation), \
		.name = "lzma/liblzma", \
		.algorithm = "lzma", \
		.direction = way, \
		.priority = LADE_PRIORITY_BUILTIN, \
		.cost = which, \
		.state_new = state_new, \
		.state_free = state_free, \
		.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), \
	                                         .run = function}, \
	};
IMPLEMENTATION(LADE_ENCODE, encode_cost, encode)
IMPLEMENTATION(LADE_DECODE, decode_cost, decode)

static const lade_algorithm *const algorithms[] = {&lzma, NULL};
static const lade_implementation *const implementations[] = {&encoder, &decoder, NULL};
const lade__set lade__codec_lzma = {algorithms, implementations, NULL};
