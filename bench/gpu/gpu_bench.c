/*
 * gpu_bench.c: times liblade's codecs on a device, beside nvCOMP's, and checks every result.
 *
 *     gpu_bench --data=DIR [--sets=json.u1,...] [--chunks=16384,...] [--batches=1,...]
 *               [--total=655360000] [--formats=lz4,snappy,...] [--peers=liblade,nvcomp]
 *               [--specs='shuffle(4)|lz4;...']
 *               [--nvcomp=PATH] [--typed=NAME] [--repeats=5] [--device=0] [--quick]
 *               [--out=FILE] [--host=FILE] [--info=FILE]
 *
 * --sets names files of DIR, by default the twelve of bench/make_data.py; a name ends in its
 * elements' type.  Each set is repeated end to end until it has --total bytes, all at addresses of
 * their own, and cut into chunks: of 64 KiB for all --batches, of the other sizes for all of the
 * bytes in one batch.
 * Chunks, tables and workspaces lie on the device.  What is timed is a call as a user makes it,
 * between two events on its stream, with the L2 cache flushed before; the number is the median.
 *
 * Rows: codec `lz4` is a peer's encoder and its decoder on what that encoder made, `lz4/cpu` a
 * decoder on what liblz4 made, and `lz4/liblade` and `lz4/nvcomp` the other peer's decoder on what
 * that peer's encoder made; `lz4-typed`, with --typed, where encoders are told the size of the
 * elements: NAME is the option of liblade's stage for it.  Of the codecs and filters of own.h each
 * peer decodes its own encoder's bytes; `crc32`, `crc32c`, `adler32` and `xxh64` are sums, whose
 * rates stand where encoders have theirs.  --formats names formats and codecs; without it all are
 * run.  With --specs there are rows of these pipelines and no others (with ; for , in their
 * names).  Every decoded byte is compared; what encoders make is decoded on the host too, and sums
 * are compared with the host's.  `blosc-lz4-shuffle/cpu` and `blosc-zstd-bit/cpu` are Blosc1
 * containers, beside `shuffle-lz4/cpu` and `bitshuffle-zstd/cpu`, the same without containers, and
 * `blosc-lz4-shuffle/inner` and so on, the containers' streams by their codec's kernel.  The
 * columns end with the percent of the copy roofline that the rates come to; sums only read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu.h"
#include "inner.h"
#include "nvcomp.h"
#include "own.h"

enum { LADE, NVCOMP, CPU, PEERS }; /* who encodes; the first two decode too */

static const char *const peer_names[PEERS] = {"liblade", "nvcomp", "cpu"};

typedef struct options {
	const char *data, *sets, *formats, *specs, *peers, *nvcomp, *typed, *out, *host, *info;
	size_t chunks[LIST_MOST + 1], batches[LIST_MOST + 1];
	size_t total, repeats;
	int32_t device;
	bool quick;
} options;

/* The whole run. */
typedef struct bench {
	options options;
	gpu gpu;
	double copy_rate;
	FILE *out, *host;
	lade_engine *engine;
	nvcomp_library library;
	char version[PEERS][32];

	/* The set at hand: 'set_size' bytes of it, and what lies on the device. */
	const char *set;
	unsigned char *set_data;
	size_t set_size;
	unsigned char *plain, *coded, *decoded; /* device; 'total', slots, and 'total' bytes */
	unsigned char *back;                    /* pinned: where results are looked at */
	size_t coded_cap, back_cap;

	/* The chunk size at hand: tables on the device, 'most' entries each. */
	size_t chunk, most, slot; /* 'slot': bytes from one encoded chunk to the next */
	size_t distinct;          /* chunks of the set, before it repeats */
	const void **plain_at;
	void **coded_at, **decoded_at;
	uint64_t *chunk_sizes, *slot_sizes, *coded_sizes, *decoded_sizes;
	uint32_t *statuses;

	/* The format at hand. */
	const format *format; /* NULL: a codec of own.h, or none */
	char codec_name[64];  /* the format's, or "lz4-typed", or a spec */
	lade_spec *spec;
	nvcomp_codec codec;
	nvcomp_options nvcomp_options, nvcomp_decoder; /* of the encoder and the decoder */
	lade_checksum sum;                             /* of sums */
} bench;

/* One peer's work on one batch. */
typedef struct work {
	bench *b;
	int peer;
	bool encode;
	size_t count;
	void *workspace;
	size_t workspace_size;
	char failed[160]; /* why it cannot be done, or what was wrong; empty: nothing */
} work;

/* ---- the calls that are timed ------------------------------------------------------------ */

static void run_lade(work *w)
{
	bench *b = w->b;
	lade_error err;
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = b->options.device,
	                        .stream = b->gpu.stream,
	                        .workspace = w->workspace,
	                        .workspace_size = w->workspace_size,
	                        .statuses = b->statuses};
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .count = w->count,
	                 .largest = b->chunk,
	                 .total = w->count * b->chunk};
	lade_status status;
	if (w->encode) {
		a.src = b->plain_at;
		a.src_size = b->chunk_sizes;
		a.dst = b->coded_at;
		a.dst_cap = b->slot_sizes;
		o.sizes = b->coded_sizes;
		status = lade_encode_arrays_async(b->engine, b->spec, &a, &o, &err);
	} else {
		a.src = (const void *const *)b->coded_at;
		a.src_size = b->coded_sizes;
		a.dst = b->decoded_at;
		a.dst_cap = b->chunk_sizes;
		o.sizes = b->decoded_sizes;
		status = lade_decode_arrays_async(b->engine, b->spec, &a, &o, &err);
	}
	if (status != LADE_OK)
		snprintf(w->failed, sizeof w->failed, "%.150s", err.message);
}

static void nvcomp_call(work *w)
{
	bench *b = w->b;
	nvcomp_options own = b->nvcomp_options;
	int *statuses = (int *)b->statuses;
	int result =
		w->encode
			? b->codec.compress(b->plain_at, as_sizes(b->chunk_sizes), b->chunk,
	                                    w->count, w->workspace, w->workspace_size, b->coded_at,
	                                    as_sizes(b->coded_sizes), own, statuses, b->gpu.stream)
			: b->codec.decompress((const void *const *)b->coded_at,
	                                      as_sizes(b->coded_sizes), as_sizes(b->chunk_sizes),
	                                      as_sizes(b->decoded_sizes), w->count, w->workspace,
	                                      w->workspace_size, b->decoded_at, b->nvcomp_decoder,
	                                      statuses, b->gpu.stream);
	if (result != 0)
		snprintf(w->failed, sizeof w->failed, "nvCOMP's status %d", result);
}

static void call(void *ctx)
{
	work *w = ctx;
	if (w->peer == LADE)
		run_lade(w);
	else
		nvcomp_call(w);
}

/* Takes the workspace that the call asks for. */
static work work_new(bench *b, int peer, bool encode, size_t count)
{
	work w = {.b = b, .peer = peer, .encode = encode, .count = count};
	size_t total = count * b->chunk;
	if (peer == LADE) {
		lade_error err;
		if (lade_workspace_size(b->engine, b->spec, encode ? LADE_ENCODE : LADE_DECODE,
		                        &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                       .count = count,
		                                       .largest = b->chunk,
		                                       .total = total},
		                        &w.workspace_size, &err) != LADE_OK)
			snprintf(w.failed, sizeof w.failed, "%.150s", err.message);
	} else {
		int result = (encode ? b->codec.compress_temp : b->codec.decompress_temp)(
			count, b->chunk, encode ? b->nvcomp_options : b->nvcomp_decoder,
			&w.workspace_size, total, b->gpu.stream);
		if (result != 0)
			snprintf(w.failed, sizeof w.failed, "nvCOMP's status %d", result);
	}
	if (!w.failed[0] && w.workspace_size)
		w.workspace = gpu_alloc(&b->gpu, w.workspace_size);
	return w;
}

static void work_free(work *w)
{
	gpu_free(&w->b->gpu, w->workspace);
	w->workspace = NULL;
}

/* ---- checks ------------------------------------------------------------------------------ */

/* What threads of the host look at, and the least index at which something is wrong. */
typedef struct check {
	bench *b;
	int peer;
	uint64_t *sizes;
	size_t bad;
	pthread_mutex_t mutex;
} check;

static void note(check *c, size_t i)
{
	pthread_mutex_lock(&c->mutex);
	if (i < c->bad)
		c->bad = i;
	pthread_mutex_unlock(&c->mutex);
}

static void compare_chunk(void *ctx, size_t i)
{
	check *c = ctx;
	bench *b = c->b;
	if (memcmp(b->back + i * b->chunk, b->set_data + i % b->distinct * b->chunk, b->chunk) != 0)
		note(c, i);
}

static void decode_chunk(void *ctx, size_t i)
{
	check *c = ctx;
	bench *b = c->b;
	const unsigned char *coded = b->back + i * b->slot;
	void *got = malloc(b->chunk);
	size_t made = b->chunk;
	bool ok = got && c->sizes[i] <= b->slot;
	if (ok && b->format)
		ok = b->format->decode(coded, c->sizes[i], got, b->chunk);
	else if (ok && c->peer == LADE)
		ok = lade_decode(b->engine, b->spec, lade_host_cspan(coded, c->sizes[i]),
		                 lade_host_span(got, b->chunk), &made, NULL) == LADE_OK;
	else if (ok)
		memcpy(got, b->set_data + i * b->chunk, b->chunk); /* closed: only sizes are told */
	if (!ok || made != b->chunk || memcmp(got, b->set_data + i * b->chunk, b->chunk) != 0)
		note(c, i);
	free(got);
}

/* Statuses and sizes of all chunks; 'sizes' gets what the call stored. */
static void check_results(work *w, uint64_t *sizes)
{
	bench *b = w->b;
	uint32_t *statuses = bench_alloc(w->count * sizeof *statuses);
	gpu_down(&b->gpu, statuses, b->statuses, w->count * sizeof *statuses);
	gpu_down(&b->gpu, sizes, w->encode ? b->coded_sizes : b->decoded_sizes,
	         w->count * sizeof *sizes);
	for (size_t i = 0; i < w->count && !w->failed[0]; i++) {
		bool size_ok =
			w->encode ? sizes[i] > 0 && sizes[i] <= b->slot : sizes[i] == b->chunk;
		if (statuses[i] != 0 || !size_ok)
			snprintf(w->failed, sizeof w->failed, "chunk %zu: status %u and size %llu",
			         i, statuses[i], (unsigned long long)sizes[i]);
	}
	free(statuses);
}

/*
 * Runs the call once and checks what it made: when decoding all bytes of all chunks, or of the
 * distinct ones with --quick; when encoding what the host's decoder makes of the distinct ones.
 * Gives the sum of the sizes.
 */
static uint64_t run_checked(work *w)
{
	bench *b = w->b;
	uint64_t *sizes = bench_alloc(w->count * sizeof *sizes), sum = 0;
	check c = {.b = b,
	           .peer = w->peer,
	           .sizes = sizes,
	           .bad = SIZE_MAX,
	           .mutex = PTHREAD_MUTEX_INITIALIZER};
	unsigned char *dst = w->encode ? b->coded : b->decoded;
	size_t pitch = w->encode ? b->slot : b->chunk;
	size_t look = w->count;
	if ((w->encode || b->options.quick) && look > b->distinct)
		look = b->distinct;
	gpu_fill(&b->gpu, dst, 0xA5, w->count * pitch);
	gpu_fill(&b->gpu, b->statuses, 0xA5, w->count * sizeof *b->statuses);
	call(w);
	if (!w->failed[0]) {
		gpu_wait(&b->gpu);
		check_results(w, sizes);
	}
	if (!w->failed[0]) {
		gpu_down(&b->gpu, b->back, dst, look * pitch);
		parallel_run(look, w->encode ? decode_chunk : compare_chunk, &c);
		if (c.bad != SIZE_MAX)
			snprintf(w->failed, sizeof w->failed, "chunk %zu: wrong bytes", c.bad);
		for (size_t i = 0; i < w->count; i++)
			sum += sizes[i];
	}
	free(sizes);
	return sum;
}

/* ---- rows -------------------------------------------------------------------------------- */

typedef struct row {
	int peer;
	char codec[80];
	size_t count;
	double ratio, encode_us, decode_us;
	double encode_temp, decode_temp; /* bytes of workspace */
	bool reads;                      /* and writes next to nothing */
	const char *failed;
} row;

static double rate(const bench *b, const row *r, double us)
{
	return us > 0 ? (double)(r->count * b->chunk) / us / 1e3 : 0;
}

static void print_row(bench *b, const row *r)
{
	char ok[200] = "yes";
	double roof = r->reads       ? b->copy_rate / 1e9
	              : r->ratio > 0 ? gpu_roofline(b->copy_rate, r->ratio) / 1e9
	                             : 0;
	double encode = rate(b, r, r->encode_us), decode = rate(b, r, r->decode_us);
	if (r->failed && r->failed[0]) {
		snprintf(ok, sizeof ok, "NO: %s", r->failed);
		for (char *p = ok; *p; p++)
			*p = *p == ',' || *p == '\n' ? ';' : *p;
		fprintf(stderr, "%s %s %s, %zu chunks of %zu: %s\n", peer_names[r->peer], r->codec,
		        b->set, r->count, b->chunk, ok);
	}
	fprintf(b->out, "%s,%s,%s,%s,%zu,%zu,%.4f,%.4f,%.4f,%.1f,%.1f,%.1f,%.1f,%s,%.3f,%.3f\n",
	        peer_names[r->peer], b->version[r->peer], r->codec, b->set, b->chunk, r->count,
	        r->ratio, encode, decode, r->encode_us, r->decode_us, r->encode_temp / (double)MIB,
	        r->decode_temp / (double)MIB, ok, roof > 0 ? 100 * encode / roof : 0,
	        roof > 0 ? 100 * decode / roof : 0);
	fflush(b->out);
}

/* Times one decoder on the batch that lies in 'coded', and adds it to the row. */
static void time_decoder(bench *b, int peer, row *r, work *w)
{
	/* LOOKAHEAD, nvCOMP's other decoder of gzip: fast for one chunk, and for no more. */
	if (b->format && strcmp(b->format->name, "gzip") == 0)
		b->nvcomp_decoder.word[1] = r->count == 1;
	*w = work_new(b, peer, false, r->count);
	if (!w->failed[0])
		run_checked(w);
	if (!w->failed[0])
		r->decode_us = gpu_time(&b->gpu, b->options.repeats, call, w);
	r->decode_temp = (double)w->workspace_size;
	if (w->failed[0])
		r->failed = w->failed;
	work_free(w);
	if (b->format)
		b->nvcomp_decoder.word[1] = 0;
}

/* The rows of one batch that 'source' encodes: its own, and that of the other's decoder. */
static void bench_encoder(bench *b, int source, size_t count)
{
	row own = {.peer = source, .count = count};
	work encoder = work_new(b, source, true, count), decoder;
	snprintf(own.codec, sizeof own.codec, "%s", b->codec_name);
	uint64_t sum = encoder.failed[0] ? 0 : run_checked(&encoder);
	if (!encoder.failed[0])
		own.encode_us = gpu_time(&b->gpu, b->options.repeats, call, &encoder);
	own.encode_temp = (double)encoder.workspace_size;
	own.ratio = sum ? (double)(count * b->chunk) / (double)sum : 0;
	work_free(&encoder);
	if (encoder.failed[0]) {
		own.failed = encoder.failed;
		print_row(b, &own);
		return;
	}
	time_decoder(b, source, &own, &decoder);
	print_row(b, &own);
	int other = source == LADE ? NVCOMP : LADE;
	if (!b->version[other][0] || !b->format)
		return;
	row cross = {.peer = other, .count = count, .ratio = own.ratio};
	snprintf(cross.codec, sizeof cross.codec, "%s/%s", b->codec_name, peer_names[source]);
	time_decoder(b, other, &cross, &decoder);
	print_row(b, &cross);
}

static void encode_chunk(void *ctx, size_t i)
{
	check *c = ctx;
	bench *b = c->b;
	const unsigned char *plain = b->set_data + i * b->chunk;
	unsigned char *to = b->back + i * b->slot;
	size_t made = 0;
	if (b->format)
		made = b->format->encode(plain, b->chunk, to, b->slot);
	else if (lade_encode(b->engine, b->spec, lade_host_cspan(plain, b->chunk),
	                     lade_host_span(to, b->slot), &made, NULL) !=
	         LADE_OK)
		made = 0;
	c->sizes[i] = made;
}

/* Encodes the set on the host and repeats it on the device. */
static uint64_t *encode_on_host(bench *b)
{
	uint64_t *sizes = bench_alloc(b->most * sizeof *sizes);
	size_t first = b->distinct < b->most ? b->distinct : b->most;
	check c = {.b = b, .sizes = sizes};
	parallel_run(first, encode_chunk, &c);
	for (size_t i = 0; i < b->most; i++) {
		sizes[i] = sizes[i % first];
		if (sizes[i] == 0)
			bench_die(b->codec_name, "the host's encoder failed");
	}
	for (size_t i = 0; i < b->most; i += first)
		gpu_up(&b->gpu, b->coded + i * b->slot, b->back,
		       (b->most - i < first ? b->most - i : first) * b->slot);
	gpu_up(&b->gpu, b->coded_sizes, sizes, b->most * sizeof *sizes);
	return sizes;
}

/* What the peers encode. */
static void bench_encoders(bench *b, const size_t *batches, bool with_nvcomp)
{
	for (int source = LADE; source <= (with_nvcomp ? NVCOMP : LADE); source++)
		for (const size_t *count = batches; *count && b->version[source][0]; count++)
			bench_encoder(b, source, *count);
}

/* What the host encoded: the format's library, or liblade, whose codecs nvCOMP does not decode. */
static void bench_cpu(bench *b, const size_t *batches)
{
	int last = b->format && b->format->nvcomp ? NVCOMP : LADE;
	uint64_t *sizes = encode_on_host(b);
	for (const size_t *count = batches; *count; count++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < *count; i++)
			sum += sizes[i];
		for (int peer = LADE; peer <= last; peer++) {
			row r = {.peer = peer, .count = *count};
			work decoder;
			if (!b->version[peer][0])
				continue;
			r.ratio = (double)(*count * b->chunk) / (double)sum;
			snprintf(r.codec, sizeof r.codec, "%s/cpu", b->codec_name);
			time_decoder(b, peer, &r, &decoder);
			print_row(b, &r);
		}
	}
	free(sizes);
}

static lade_spec *spec_of(bench *b, const char *text)
{
	lade_spec *spec;
	lade_error err;
	bench_ok(lade_spec_parse(b->engine, text, &spec, &err), &err, text);
	return spec;
}

/*
 * Encoders that are told the size of the set's elements: by the option --typed=NAME of liblade's
 * stage, and by nvCOMP's type of LZ4, which has none of 8 bytes.
 */
static void bench_typed(bench *b, const size_t *batches)
{
	char text[128];
	int elem = b->set[strlen(b->set) - 1] - '0';
	if (elem < 2 || elem > 8)
		return;
	snprintf(text, sizeof text, "%s(%s=%d)", b->format->name, b->options.typed, elem);
	snprintf(b->codec_name, sizeof b->codec_name, "%s-typed", b->format->name);
	b->spec = spec_of(b, text);
	b->nvcomp_options.word[0] = elem == 2 ? 3 : 5; /* NVCOMP_TYPE_USHORT, NVCOMP_TYPE_UINT */
	bench_encoders(b, batches, strcmp(b->format->nvcomp, "LZ4") == 0 && elem <= 4);
	b->nvcomp_options.word[0] = 0;
	lade_spec_unref(b->spec);
}

/* ---- own codecs, filters, sums --------------------------------------------------------------- */

/* Whether liblade has the stage and kernels for it; if not, a line says so. */
static bool can_run(bench *b, const char *name, lade_direction direction)
{
	lade_error err = {.message = "there is no such algorithm"};
	size_t size;
	if (b->spec && lade_workspace_size(b->engine, b->spec, direction,
	                                   &(lade_arrays){.struct_size = sizeof(lade_arrays),
	                                                  .count = 1,
	                                                  .largest = b->chunk,
	                                                  .total = b->chunk},
	                                   &size, &err) == LADE_OK)
		return true;
	fprintf(stderr, "%s, %s: no row: %s\n", name, b->set, err.message);
	return false;
}

/* The streams inside of Blosc's containers, by their codec's kernel: without shuffle, and without
 * those that are stored, so that the time is given for as many bytes as the containers have. */
static void bench_inner(bench *b, const char *codec, const size_t *batches)
{
	uint64_t *sizes = encode_on_host(b);
	size_t first = b->distinct < b->most ? b->distinct : b->most;
	lade_spec *spec = spec_of(b, codec);
	for (const size_t *count = batches; *count; count++) {
		row r = {.peer = LADE, .count = *count};
		inner i = {.g = &b->gpu, .engine = b->engine, .spec = spec};
		inner_new(&i, b->back, first, *count, b->coded, b->slot, b->decoded, b->chunk);
		snprintf(r.codec, sizeof r.codec, "%s/inner", b->codec_name);
		inner_check(&i);
		if (!i.failed[0])
			r.decode_us = gpu_time(&b->gpu, b->options.repeats, inner_call, &i) *
			              (double)(*count * b->chunk) / (double)i.bytes;
		r.failed = i.failed;
		print_row(b, &r);
		inner_free(&i);
	}
	lade_spec_unref(spec);
	free(sizes);
}

static void bench_own(bench *b, const own_codec *c, const elements *e, const size_t *batches)
{
	char text[128];
	char versions[PEERS][sizeof b->version[0]];
	memcpy(versions, b->version, sizeof versions);
	snprintf(b->codec_name, sizeof b->codec_name, "%s", c->name);
	own_spec(c, e, b->chunk, text, sizeof text);
	b->format = NULL;
	b->spec = lade_engine_find(b->engine, c->algorithm) ? spec_of(b, text) : NULL;
	own_options(c, e, &b->nvcomp_options, &b->nvcomp_decoder);
	bool decodes = b->version[LADE][0] && can_run(b, c->name, LADE_DECODE);
	if (decodes && (c->nvcomp || c->sets == OWN_HOST))
		bench_cpu(b, batches);
	if (decodes && strcmp(c->algorithm, "blosc") == 0)
		bench_inner(b, strstr(c->name, "zstd") ? "zstd" : "lz4", batches);
	if (!decodes || !can_run(b, c->name, LADE_ENCODE))
		b->version[LADE][0] = 0;
	if (!c->nvcomp || (b->library.handle && !nvcomp_find(&b->library, c->nvcomp, &b->codec)))
		b->version[NVCOMP][0] = 0;
	bench_encoders(b, batches, true);
	memcpy(b->version, versions, sizeof versions);
	b->nvcomp_options = b->nvcomp_decoder = (nvcomp_options){{0}};
	lade_spec_unref(b->spec);
}

/* Pipelines, which nvCOMP has not. */
static void bench_specs(bench *b, const size_t *batches)
{
	const char *at = b->options.specs;
	while (*at) {
		char text[sizeof b->codec_name];
		size_t size = strcspn(at, ";");
		snprintf(text, sizeof text, "%.*s", (int)size, at);
		at += size + (at[size] == ';');
		b->format = NULL;
		b->spec = spec_of(b, text);
		for (char *p = text; *p; p++)
			*p = *p == ',' ? ';' : *p;
		snprintf(b->codec_name, sizeof b->codec_name, "%s", text);
		if (can_run(b, text, LADE_DECODE) && can_run(b, text, LADE_ENCODE))
			for (const size_t *count = batches; *count; count++)
				bench_encoder(b, LADE, *count);
		lade_spec_unref(b->spec);
	}
}

static void sum_call(void *ctx)
{
	work *w = ctx;
	bench *b = w->b;
	lade_error err;
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = b->options.device,
	                        .stream = b->gpu.stream,
	                        .workspace = w->workspace,
	                        .workspace_size = w->workspace_size,
	                        .statuses = b->statuses};
	lade_arrays a = {.struct_size = sizeof(lade_arrays),
	                 .src = b->plain_at,
	                 .src_size = b->chunk_sizes,
	                 .count = w->count,
	                 .largest = b->chunk,
	                 .total = w->count * b->chunk};
	if (lade_checksums_arrays_async(b->engine, b->sum, &a, b->coded_sizes, &o, &err) != LADE_OK)
		snprintf(w->failed, sizeof w->failed, "%.150s", err.message);
}

static void compare_sum(void *ctx, size_t i)
{
	check *c = ctx;
	bench *b = c->b;
	const unsigned char *chunk = b->set_data + i % b->distinct * b->chunk;
	if (c->sizes[i] != lade_checksum_of(b->sum, chunk, b->chunk))
		note(c, i);
}

static void bench_sum(bench *b, lade_checksum kind, size_t count)
{
	row r = {.peer = LADE, .count = count, .reads = true};
	uint64_t *sums = bench_alloc(count * sizeof *sums);
	check c = {.b = b, .sizes = sums, .bad = SIZE_MAX, .mutex = PTHREAD_MUTEX_INITIALIZER};
	b->sum = kind;
	b->spec = spec_of(b, lade_checksum_name(kind));
	snprintf(r.codec, sizeof r.codec, "%s", lade_checksum_name(kind));
	work w = work_new(b, LADE, true, count);
	if (!w.failed[0])
		sum_call(&w);
	if (!w.failed[0]) {
		gpu_wait(&b->gpu);
		gpu_down(&b->gpu, sums, b->coded_sizes, count * sizeof *sums);
		parallel_run(count, compare_sum, &c);
		if (c.bad != SIZE_MAX)
			snprintf(w.failed, sizeof w.failed, "chunk %zu: wrong sum", c.bad);
	}
	if (!w.failed[0])
		r.encode_us = gpu_time(&b->gpu, b->options.repeats, sum_call, &w);
	r.encode_temp = (double)w.workspace_size;
	r.failed = w.failed;
	print_row(b, &r);
	work_free(&w);
	lade_spec_unref(b->spec);
	free(sums);
}

/* What is not LZ4 or Snappy. */
static void bench_others(bench *b, const size_t *batches)
{
	static const lade_checksum kinds[] = {LADE_CRC32, LADE_CRC32C, LADE_ADLER32, LADE_XXH64};
	elements e = elements_of(b->set);
	for (size_t i = 0; i < OWN_COUNT; i++)
		if (list_has(b->options.formats, own_codecs[i].name) &&
		    own_takes(&own_codecs[i], &e, b->set))
			bench_own(b, &own_codecs[i], &e, batches);
	bool sums = b->version[LADE][0] && e.size == 1 && own_sample(b->set);
	for (size_t i = 0; sums && i < sizeof kinds / sizeof *kinds; i++)
		if (list_has(b->options.formats, lade_checksum_name(kinds[i])))
			for (const size_t *count = batches; *count; count++)
				bench_sum(b, kinds[i], *count);
}

/* ---- host time --------------------------------------------------------------------------- */

enum { HOST_WARM = 50, HOST_CALLS = 201 };

static void print_host(bench *b, int peer, const char *how, bool encode, size_t count,
                       const double *us)
{
	bench_stat s = bench_stat_of(us, HOST_CALLS);
	fprintf(b->host, "%s,%s,%s,%s,%s,%zu,%zu,%.2f,%.2f,%.2f\n", peer_names[peer],
	        b->version[peer], how, b->format->name, encode ? "encode" : "decode", b->chunk,
	        count, s.median, s.q1, s.q3);
}

/* Microseconds that the host spends in a call which only enqueues, the device idle before it. */
static void host_arrays(bench *b, int peer, bool encode, size_t count)
{
	double us[HOST_WARM + HOST_CALLS];
	work w = work_new(b, peer, encode, count);
	if (!w.failed[0])
		run_checked(&w);
	for (size_t i = 0; i < HOST_WARM + HOST_CALLS && !w.failed[0]; i++) {
		double start = bench_now();
		call(&w);
		us[i] = 1e6 * (bench_now() - start);
		gpu_wait(&b->gpu);
	}
	if (!w.failed[0])
		print_host(b, peer, "arrays", encode, count, us + HOST_WARM);
	work_free(&w);
}

/* The same of liblade's calls that take a table of items in host memory. */
static void host_items(bench *b, bool encode, size_t count, const uint64_t *sizes)
{
	double us[HOST_WARM + HOST_CALLS];
	lade_error err;
	lade_place device = {LADE_DEVICE, b->options.device};
	lade_segment *segments = bench_alloc(count * sizeof *segments);
	lade_item *items = bench_alloc(count * sizeof *items);
	work w = work_new(b, LADE, encode, count);
	lade_async_options o = {.struct_size = sizeof o,
	                        .device = b->options.device,
	                        .stream = b->gpu.stream,
	                        .workspace = w.workspace,
	                        .workspace_size = w.workspace_size,
	                        .statuses = b->statuses,
	                        .sizes = b->decoded_sizes};
	for (size_t i = 0; i < count; i++) {
		unsigned char *plain = (encode ? b->plain : b->decoded) + i * b->chunk;
		unsigned char *coded = b->coded + i * b->slot;
		segments[i] = (lade_segment){.data = encode ? plain : coded,
		                             .size = encode ? b->chunk : sizes[i],
		                             .place = device};
		items[i] = (lade_item){
			.src = &segments[i],
			.src_count = 1,
			.dst = {encode ? coded : plain, encode ? b->slot : b->chunk, device}};
	}
	for (size_t i = 0; i < HOST_WARM + HOST_CALLS && !w.failed[0]; i++) {
		double start = bench_now();
		if ((encode ? lade_encode_async : lade_decode_async)(b->engine, b->spec, items,
		                                                     count, &o, &err) != LADE_OK)
			snprintf(w.failed, sizeof w.failed, "%.150s", err.message);
		us[i] = 1e6 * (bench_now() - start);
		gpu_wait(&b->gpu);
	}
	if (!w.failed[0] && lade_results_get(&o, count, NULL, &err) != LADE_OK)
		snprintf(w.failed, sizeof w.failed, "%.150s", err.message);
	if (!w.failed[0])
		print_host(b, LADE, "items", encode, count, us + HOST_WARM);
	else
		fprintf(stderr, "items, %s: %s\n", encode ? "encode" : "decode", w.failed);
	work_free(&w);
	free(segments);
	free(items);
}

static void host_times(bench *b)
{
	static const size_t counts[] = {1, 16, 100};
	uint64_t *sizes = encode_on_host(b);
	for (int encode = 0; encode < 2; encode++)
		for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= b->most;
		     i++) {
			for (int peer = LADE; peer <= NVCOMP; peer++)
				if (b->version[peer][0] && (peer == LADE || b->format->nvcomp))
					host_arrays(b, peer, encode, counts[i]);
			if (b->version[LADE][0])
				host_items(b, encode, counts[i], sizes);
		}
	free(sizes);
	fflush(b->host);
}

/* ---- sets and tables --------------------------------------------------------------------- */

/* The most bytes that any encoder makes of a chunk, in whole sectors. */
static size_t slot_of(bench *b, size_t chunk)
{
	size_t most = 0;
	for (size_t f = 0; f < FORMAT_COUNT; f++) {
		lade_spec *spec = spec_of(b, formats[f].name);
		nvcomp_codec codec;
		nvcomp_options none = {{0}};
		size_t bounds[3] = {formats[f].bound(chunk)};
		bounds[1] = lade_spec_bound(spec, chunk);
		lade_spec_unref(spec);
		if (b->library.handle && formats[f].nvcomp &&
		    nvcomp_find(&b->library, formats[f].nvcomp, &codec) &&
		    codec.compress_bound(chunk, none, &bounds[2]) != 0)
			bench_die(formats[f].name, "nvCOMP knows no bound for such chunks");
		for (size_t i = 0; i < 3; i++)
			most = bounds[i] > most ? bounds[i] : most;
	}
	for (size_t k = 0; k < OWN_COUNT; k++) {
		/* Elements of a byte are the most of them. */
		elements e = elements_of("bytes.u1");
		char text[128];
		size_t bounds[2] = {0, 0};
		nvcomp_codec codec;
		nvcomp_options encode, decode;
		own_spec(&own_codecs[k], &e, chunk, text, sizeof text);
		own_options(&own_codecs[k], &e, &encode, &decode);
		lade_spec *spec = lade_engine_find(b->engine, own_codecs[k].algorithm)
		                          ? spec_of(b, text)
		                          : NULL;
		if (spec)
			bounds[0] = lade_spec_bound(spec, chunk);
		lade_spec_unref(spec);
		if (b->library.handle && own_codecs[k].nvcomp &&
		    nvcomp_find(&b->library, own_codecs[k].nvcomp, &codec))
			codec.compress_bound(chunk, encode, &bounds[1]);
		for (size_t i = 0; i < 2; i++)
			most = bounds[i] > most ? bounds[i] : most;
	}
	return (most + 255) / 256 * 256;
}

static void tables_new(bench *b, size_t chunk, size_t most)
{
	b->chunk = chunk;
	b->most = most;
	b->slot = slot_of(b, chunk);
	b->distinct = b->set_size / chunk;
	if (b->set_size % chunk)
		bench_die(b->set, "is no whole number of chunks");
	if (most * b->slot > b->coded_cap)
		bench_die("memory", "too little for such chunks");
	b->plain_at = gpu_table(&b->gpu, most, lade__address_of(b->plain), chunk);
	b->coded_at = gpu_table(&b->gpu, most, lade__address_of(b->coded), b->slot);
	b->decoded_at = gpu_table(&b->gpu, most, lade__address_of(b->decoded), chunk);
	b->chunk_sizes = gpu_table(&b->gpu, most, chunk, 0);
	b->slot_sizes = gpu_table(&b->gpu, most, b->slot, 0);
	b->coded_sizes = gpu_table(&b->gpu, most, 0, 0);
	b->decoded_sizes = gpu_table(&b->gpu, most, 0, 0);
	b->statuses = gpu_table(&b->gpu, most, 0, 0);
}

static void tables_free(bench *b)
{
	void *tables[] = {b->plain_at,   b->coded_at,    b->decoded_at,    b->chunk_sizes,
	                  b->slot_sizes, b->coded_sizes, b->decoded_sizes, b->statuses};
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		gpu_free(&b->gpu, tables[i]);
}

/* Reads a set, whole mebibytes of it, so that chunks of all sizes repeat it at the same places. */
static void set_load(bench *b, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", b->options.data, name);
	b->set = name;
	b->set_data = bench_load(path, 64 * MIB, &b->set_size);
	b->set_size -= b->set_size % MIB;
	if (b->set_size == 0)
		bench_die(path, "has less than a mebibyte");
	for (size_t at = 0; at < b->options.total; at += b->set_size) {
		size_t left = b->options.total - at;
		gpu_up(&b->gpu, b->plain + at, b->set_data,
		       left < b->set_size ? left : b->set_size);
	}
}

static void bench_set(bench *b, const char *name, bool first)
{
	set_load(b, name);
	for (const size_t *chunk = b->options.chunks; *chunk; chunk++) {
		size_t all[2] = {b->options.total / *chunk, 0};
		bool batches = *chunk == 64 * KIB;
		const size_t *counts = batches ? b->options.batches : all;
		tables_new(b, *chunk, all[0]);
		if (b->options.specs)
			bench_specs(b, counts);
		for (size_t f = 0; f < FORMAT_COUNT && !b->options.specs; f++) {
			b->format = &formats[f];
			if (!list_has(b->options.formats, b->format->name))
				continue;
			if (b->library.handle && b->format->nvcomp &&
			    !nvcomp_find(&b->library, b->format->nvcomp, &b->codec))
				bench_die(b->format->name, "nvCOMP lacks its calls");
			b->spec = spec_of(b, b->format->name);
			snprintf(b->codec_name, sizeof b->codec_name, "%s", b->format->name);
			if (first && batches && b->host)
				host_times(b);
			if (b->format->encodes)
				bench_encoders(b, counts, true);
			bench_cpu(b, counts);
			lade_spec_unref(b->spec);
			if (b->options.typed && b->format->encodes)
				bench_typed(b, counts);
		}
		if (!b->options.specs)
			bench_others(b, counts);
		tables_free(b);
	}
	free(b->set_data);
}

/* ---- the program ------------------------------------------------------------------------- */

static options parse(int argc, char **argv)
{
	options o = {.total = 655360000, .repeats = 5};
	const char *v, *chunks = "65536", *batches = "1,100,1000,10000";
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if ((v = bench_option("--data", a)))
			o.data = v;
		else if ((v = bench_option("--sets", a)))
			o.sets = v;
		else if ((v = bench_option("--chunks", a)))
			chunks = v;
		else if ((v = bench_option("--batches", a)))
			batches = v;
		else if ((v = bench_option("--total", a)))
			o.total = strtoull(v, NULL, 10);
		else if ((v = bench_option("--formats", a)))
			o.formats = v;
		else if ((v = bench_option("--specs", a)))
			o.specs = v;
		else if ((v = bench_option("--peers", a)))
			o.peers = v;
		else if ((v = bench_option("--nvcomp", a)))
			o.nvcomp = v;
		else if ((v = bench_option("--typed", a)))
			o.typed = v;
		else if ((v = bench_option("--repeats", a)))
			o.repeats = strtoull(v, NULL, 10);
		else if ((v = bench_option("--device", a)))
			o.device = (int32_t)strtol(v, NULL, 10);
		else if ((v = bench_option("--out", a)))
			o.out = v;
		else if ((v = bench_option("--host", a)))
			o.host = v;
		else if ((v = bench_option("--info", a)))
			o.info = v;
		else if (strcmp(a, "--quick") == 0)
			o.quick = true;
		else
			bench_die(a, "is no option (they are listed at the head of gpu_bench.c)");
	}
	list_numbers(chunks, o.chunks);
	list_numbers(batches, o.batches);
	if (!o.data)
		bench_die("--data", "the folder of the sets is wanted (bench/make_data.py)");
	if (o.repeats == 0 || o.repeats > BENCH_ROUNDS_MAX)
		bench_die("--repeats", "1 to 1001");
	for (const size_t *n = o.chunks; *n; n++) {
		if (MIB % *n || *n % 256 || *n > o.total)
			bench_die("--chunks", "powers of two from 256 to 1048576");
		for (const size_t *m = o.batches; *m && *n == 64 * KIB; m++)
			if (*m * *n > o.total)
				bench_die("--batches", "more chunks of 64 KiB than --total holds");
	}
	return o;
}

static void open_peers(bench *b)
{
	if (list_has(b->options.peers, peer_names[LADE]))
		snprintf(b->version[LADE], sizeof b->version[LADE], "%s", lade_version_text());
	if (!list_has(b->options.peers, peer_names[NVCOMP]))
		return;
	b->library = nvcomp_open(b->options.nvcomp);
	if (b->library.handle)
		snprintf(b->version[NVCOMP], sizeof b->version[NVCOMP], "%u", b->library.version);
	else if (b->options.peers)
		bench_die("nvcomp", b->library.why);
	else
		fprintf(stderr, "without nvCOMP: %s\n", b->library.why);
}

int main(int argc, char **argv)
{
	static bench b;
	b.options = parse(argc, argv);
	b.gpu = gpu_open(b.options.device);
	b.engine = lade_engine_default();
	if (!b.engine)
		bench_die("engine", "out of memory");
	open_peers(&b);
	b.copy_rate = gpu_copy_rate(&b.gpu);
	FILE *info = open_out(b.options.info, stderr);
	gpu_print_machine(&b.gpu, info, argc, argv);
	fprintf(info, "nvcomp: %s\n", b.version[NVCOMP][0] ? b.version[NVCOMP] : "none");
	fprintf(info, "copy: %.1f GB/s read and written\n", b.copy_rate / 1e9);
	if (info != stderr)
		fclose(info);

	b.plain = gpu_alloc(&b.gpu, b.options.total);
	b.decoded = gpu_alloc(&b.gpu, b.options.total);
	for (const size_t *chunk = b.options.chunks; *chunk; chunk++) {
		size_t cap = b.options.total / *chunk * slot_of(&b, *chunk);
		b.coded_cap = cap > b.coded_cap ? cap : b.coded_cap;
	}
	b.coded = gpu_alloc(&b.gpu, b.coded_cap);
	b.back_cap = b.coded_cap > b.options.total ? b.coded_cap : b.options.total;
	b.back = gpu_pinned(&b.gpu, b.back_cap);

	b.out = open_out(b.options.out, stdout);
	b.host = b.options.host ? open_out(b.options.host, stdout) : NULL;
	fprintf(b.out,
	        "peer,version,codec,data,chunk,batch,ratio,encode_gbps,decode_gbps,encode_us,"
	        "decode_us,temp_enc_mib,temp_dec_mib,ok,encode_roof_pct,decode_roof_pct\n");
	if (b.host)
		fprintf(b.host, "peer,version,call,codec,direction,chunk,batch,host_us,host_us_q1,"
		                "host_us_q3\n");
	char set[64];
	for (size_t i = 0; set_name(b.options.sets, i, set); i++)
		bench_set(&b, set, i == 0);
	return 0;
}
