/*
 * suggest.c: which pipelines suit some data.
 *
 * Pieces spread over the data make the sample.  Filters are first sorted out by one quick pass
 * with LZ4 and one with Zstandard each; those that are left are timed with every codec.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "advise/measure.h"

#include "base/cancel.h"
#include "base/options.h"
#include "base/try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_DEFAULT ((size_t)4 << 20)
#define CHUNK_DEFAULT ((size_t)1 << 20)
#define SECONDS_DEFAULT 0.05
#define BANDWIDTH_DEFAULT 500e6

#define FILTERS_MAX 8
#define FILTER_TEXT 96
#define TEXT_MAX 160

/* Chains of filters that are timed: none, the best two by Zstandard, the best two by LZ4. */
#define CHAINS_MAX 5

typedef struct trial {
	lade_suggestion suggestion;
	lade_measurement measured;
} trial;

typedef struct search {
	lade_suggestions result; /* what the caller gets: it comes first */
	lade_engine *engine;
	lade_suggest_options options; /* with defaults filled in */
	lade_measure_options measure; /* of the sample */
	lade__stop stop;
	lade_cspan sample;
	void *data;         /* the sample's memory */
	lade_status failed; /* of the last pipeline that could not be tried */
	lade_error error;
	trial *trials;
	const lade_suggestion **items; /* of the result */
} search;

static void report(const search *x, const char *pipeline, const lade_error *failed)
{
	if (x->options.progress)
		x->options.progress(x->options.progress_ctx, pipeline, failed);
}

/* ---- the sample ------------------------------------------------------------------------- */

/*
 * Copies pieces of the data, spread evenly, one behind the other.  A piece is a chunk, or an eighth
 * of the sample where that is less, so that there are at least eight places; it starts at a
 * multiple of 64 bytes, where an element starts whatever its size.
 */
static lade_status take_sample(search *x, lade_cspan from, lade_error *err)
{
	size_t most = x->options.sample_size, want = from.size < most ? from.size : most;
	size_t piece = want < from.size ? want / 8 : want;

	piece = piece < x->options.chunk_size ? piece : x->options.chunk_size;
	if (piece > 64)
		piece &= ~(size_t)63;
	if (piece == 0)
		piece = want;
	x->measure = (lade_measure_options){.struct_size = sizeof x->measure,
	                                    .measurement_size = sizeof(lade_measurement),
	                                    .chunk_size = piece,
	                                    .threads = x->options.threads,
	                                    .seconds = x->options.seconds,
	                                    .cancel = x->options.cancel};
	x->sample = from;
	if (want < from.size) {
		size_t count = want / piece;
		uint8_t *to = x->data = malloc(count * piece);
		if (!to)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for a sample of %zu bytes", want);
		for (size_t i = 0; i < count; i++) {
			/* i < count and piece * count <= size, so that a piece ends inside. */
			size_t off = count > 1 ? (from.size - piece) / (count - 1) * i : 0;
			memcpy(to + i * piece, (const uint8_t *)from.data + (off & ~(size_t)63),
			       piece);
		}
		x->sample = lade_host_cspan(to, count * piece);
	}
	x->result.sample_size = x->sample.size;
	return LADE_OK;
}

/* ---- trying ----------------------------------------------------------------------------- */

/* The encoded size, or UINT64_MAX when it does not work. */
static uint64_t try_size(search *x, const char *text)
{
	lade_spec *spec = NULL;
	uint64_t size = UINT64_MAX;

	if (lade__stopped(&x->stop))
		return size;
	report(x, text, NULL);
	if (lade_spec_parse(x->engine, text, &spec, NULL) != LADE_OK)
		return UINT64_MAX;
	if (lade__measure_size(x->engine, spec, x->sample, &x->measure, &size, NULL) != LADE_OK)
		size = UINT64_MAX;
	lade_spec_unref(spec);
	return size;
}

/*
 * Finds the size of the elements of plain bytes: the one whose byte shuffle makes the data at
 * least 3 % smaller than none, and smallest.
 */
static void guess_dtype(search *x)
{
	static const struct {
		const char *text;
		lade_dtype dtype;
	} tries[] = {{"shuffle(2)|lz4", LADE_U2},
	             {"shuffle(4)|lz4", LADE_U4},
	             {"shuffle(8)|lz4", LADE_U8}};
	uint64_t best = try_size(x, "lz4");

	best -= best / 33;
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		uint64_t size = try_size(x, tries[i].text);
		if (size < best) {
			best = size;
			x->result.dtype = tries[i].dtype;
			x->result.guessed = true;
		}
	}
}

/*
 * Chains of filters that may suit elements of a size.  Differences are taken of the bits as
 * whole numbers, whatever the type, so that nothing is lost.
 */
static size_t make_filters(lade_dtype dtype, char (*out)[FILTER_TEXT])
{
	size_t n = lade_dtype_size(dtype), count = 0;

	snprintf(out[count++], FILTER_TEXT, "%s", "");
	if (n <= 1) {
		snprintf(out[count++], FILTER_TEXT, "delta(u1)|");
		return count;
	}
	snprintf(out[count++], FILTER_TEXT, "shuffle(%zu)|", n);
	snprintf(out[count++], FILTER_TEXT, "bitshuffle(%zu)|", n);
	snprintf(out[count++], FILTER_TEXT, "delta(<u%zu)|", n);
	snprintf(out[count++], FILTER_TEXT, "delta(<u%zu)|shuffle(%zu)|", n, n);
	snprintf(out[count++], FILTER_TEXT, "delta(<u%zu)|bitshuffle(%zu)|", n, n);
	snprintf(out[count++], FILTER_TEXT, "delta(<i%zu)|zigzag(<i%zu)|shuffle(%zu)|", n, n, n);
	snprintf(out[count++], FILTER_TEXT, "delta(<i%zu)|zigzag(<i%zu)|bitshuffle(%zu)|", n, n, n);
	return count;
}

/* Times one pipeline and keeps it; one that does not work on these data is left out. */
static void try_pipeline(search *x, const char *text)
{
	size_t at = x->result.count;
	lade_spec *spec = NULL;
	lade_error err;

	if (lade__stopped(&x->stop))
		return;
	report(x, text, NULL);
	lade_status status = lade_spec_parse(x->engine, text, &spec, &err);
	if (status == LADE_OK)
		status = lade_measure(x->engine, spec, x->sample, &x->measure,
		                      &x->trials[at].measured, &err);
	if (status == LADE_OK) {
		x->trials[at].suggestion =
			(lade_suggestion){.spec = spec, .measured = &x->trials[at].measured};
		x->items[at] = &x->trials[at].suggestion;
		x->result.count++;
		return;
	}
	lade_spec_unref(spec);
	x->failed = status;
	x->error = err;
	report(x, text, &err);
}

/* The index of the smallest of 'count' sizes that is not taken yet; it is taken then. */
static void take_smallest(const uint64_t *sizes, bool *taken, size_t count)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++)
		if (!taken[i] && (best == count || sizes[i] < sizes[best]))
			best = i;
	if (best < count)
		taken[best] = true;
}

/* Whether the elements' type is its first option. */
static bool is_typed(const lade_algorithm *a)
{
	return a->option_count && a->options[0].type == LADE_OPTION_DTYPE;
}

static void try_codecs(search *x, const char *filters)
{
	char text[TEXT_MAX];
	const lade_algorithm *a;

	for (size_t i = 0; (a = lade_engine_algorithm(x->engine, i)); i++)
		for (const char *const *s = a->suggest; !is_typed(a) && s && *s; s++) {
			snprintf(text, sizeof text, "%.95s%.63s", filters, *s);
			try_pipeline(x, text);
		}
}

static void try_typed(search *x)
{
	const char *type = lade_dtype_text(x->result.dtype ? x->result.dtype : LADE_U1);
	char text[TEXT_MAX];
	const lade_algorithm *a;

	if (lade_dtype_is_big(x->result.dtype))
		return;
	for (size_t i = 0; (a = lade_engine_algorithm(x->engine, i)); i++)
		for (const char *const *s = a->suggest; is_typed(a) && s && *s; s++) {
			snprintf(text, sizeof text, "%.63s(%s)", *s, type);
			try_pipeline(x, text);
		}
}

/* Room for all trials that there may be. */
static lade_status make_room(search *x, lade_error *err)
{
	const lade_algorithm *a;
	size_t count = 0;

	for (size_t i = 0; (a = lade_engine_algorithm(x->engine, i)); i++)
		for (const char *const *s = a->suggest; s && *s; s++)
			count += is_typed(a) ? 1 : CHAINS_MAX;
	x->trials = calloc(count + 1, sizeof *x->trials);
	x->items = calloc(count + 1, sizeof *x->items);
	if (!x->trials || !x->items)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu trials",
		                 count);
	x->result.items = x->items;
	return LADE_OK;
}

static void search_run(search *x)
{
	char filters[FILTERS_MAX][FILTER_TEXT], text[TEXT_MAX];
	uint64_t by_lz4[FILTERS_MAX], by_zstd[FILTERS_MAX];
	bool taken[FILTERS_MAX] = {true};

	if (x->result.dtype == LADE_DTYPE_NONE && x->options.guess)
		guess_dtype(x);
	size_t count = make_filters(x->result.dtype, filters);
	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof text, "%.95slz4", filters[i]);
		by_lz4[i] = try_size(x, text);
		snprintf(text, sizeof text, "%.95szstd(level=1)", filters[i]);
		by_zstd[i] = try_size(x, text);
	}
	/* No filter at all is always timed; then the best two by either codec. */
	take_smallest(by_zstd, taken, count);
	take_smallest(by_zstd, taken, count);
	take_smallest(by_lz4, taken, count);
	take_smallest(by_lz4, taken, count);
	for (size_t i = 0; i < count; i++)
		if (taken[i])
			try_codecs(x, filters[i]);
	try_typed(x);
}

/* ---- choosing --------------------------------------------------------------------------- */

static double codec_seconds(const lade_suggestion *t)
{
	return t->measured->encode_seconds + t->measured->decode_seconds;
}

static double total_seconds(const lade_suggestion *t, double bandwidth)
{
	return codec_seconds(t) + 2 * (double)t->measured->encoded_size / bandwidth;
}

/* Gives each goal to the best trial; to none when nothing saves 2 % of the bytes. */
static void choose(search *x)
{
	lade_suggestion *speed = NULL, *between = NULL, *ratio = NULL;
	uint64_t size = x->sample.size, smallest = UINT64_MAX;
	double bandwidth = x->options.bandwidth;

	for (size_t i = 0; i < x->result.count; i++)
		if (x->trials[i].measured.encoded_size < smallest)
			smallest = x->trials[i].measured.encoded_size;
	if ((double)smallest > 0.98 * (double)size)
		return;
	for (size_t i = 0; i < x->result.count; i++) {
		lade_suggestion *t = &x->trials[i].suggestion;
		uint64_t got = t->measured->encoded_size;
		if (got <= size - (size - smallest) / 3 &&
		    (!speed || codec_seconds(t) < codec_seconds(speed)))
			speed = t;
		if ((double)got <= 0.98 * (double)size &&
		    (!between || total_seconds(t, bandwidth) < total_seconds(between, bandwidth)))
			between = t;
		if ((double)got <= 1.005 * (double)smallest &&
		    (!ratio || codec_seconds(t) < codec_seconds(ratio)))
			ratio = t;
	}
	/* The smallest itself is worth each of them. */
	if (speed && between && ratio) {
		speed->goals |= LADE_GOAL_SPEED;
		between->goals |= LADE_GOAL_BETWEEN;
		ratio->goals |= LADE_GOAL_RATIO;
	}
}

/* ---- calls ------------------------------------------------------------------------------ */

lade_status lade_suggest(lade_engine *engine, lade_cspan data, const lade_suggest_options *options,
                         lade_suggestions **out, lade_error *err)
{
	lade_status status;
	search *x;

	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	x = calloc(1, sizeof *x);
	if (!x)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a search");
	x->engine = engine;
	TRY(lade__options_read(&x->options, sizeof x->options, options, "suggest options", err));
	TRY(lade__measure_check(engine, data, err));
	lade_suggest_options *o = &x->options;
	o->sample_size = o->sample_size ? o->sample_size : SAMPLE_DEFAULT;
	o->chunk_size = o->chunk_size ? o->chunk_size : CHUNK_DEFAULT;
	o->seconds = o->seconds > 0 ? o->seconds : SECONDS_DEFAULT;
	o->bandwidth = o->bandwidth > 0 ? o->bandwidth : BANDWIDTH_DEFAULT;
	x->result.dtype = o->dtype;
	TRY(make_room(x, err));
	TRY(take_sample(x, data, err));
	x->stop = lade__stop_of(o->cancel);
	search_run(x);
	if (lade__stopped(&x->stop)) {
		status = lade__stop_fail(err);
		goto out;
	}
	if (x->result.count == 0) {
		status = x->failed;
		if (err)
			*err = x->error;
		goto out;
	}
	choose(x);
	free(x->data);
	x->data = NULL;
out:
	if (status == LADE_OK)
		*out = &x->result;
	else
		lade_suggestions_free(&x->result);
	return status;
}

void lade_suggestions_free(lade_suggestions *suggestions)
{
	search *x = (search *)suggestions; /* its first member */

	if (!x)
		return;
	for (size_t i = 0; i < x->result.count; i++)
		lade_spec_unref((lade_spec *)(uintptr_t)x->trials[i].suggestion.spec);
	free(x->trials);
	free(x->items);
	free(x->data);
	free(x);
}
