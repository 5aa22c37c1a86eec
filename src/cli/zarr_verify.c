/*
 * zarr_verify.c: 'lade zarr verify', reads every chunk that is there and names the bad ones.
 *
 * The store's listing says which chunks are there; where it cannot list, and with --complete, the
 * command asks for each key of the grid.  Threads read a chunk each.  A shard that fails, or that
 * is larger than a thread's memory, is halved until the bad inner chunks are found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/zarr.h"

/* Chunks that threads share out among themselves. */
#define BATCH 256
/* Threads for a web server, which mostly wait. */
#define REMOTE_THREADS 16
/* Failures of one shard that are named, and those that are one if they are alike. */
#define NAMED_MAX 100
#define ALIKE 8

/* A failed chunk, or a failed inner chunk of a shard. */
typedef struct failure {
	uint64_t start[LADE_DIMS_MAX]; /* its first element */
	bool inner;                    /* an inner chunk */
	lade_error err;
} failure;

/* A key of the store, and what its chunk was found to be. */
typedef struct job {
	uint64_t index[LADE_DIMS_MAX];
	uint64_t stored;
	bool listed; /* the store has the key; else it is asked */
	bool missing;
	failure *failures;
	size_t failed;
	bool partly;              /* something of it is good */
	bool whole;               /* the shard fails as a whole: one failure is enough */
	uint64_t decoded, chunks; /* bytes and inner chunks of what is good */
} job;

typedef struct verify {
	const zarr_settings *s;
	const zarr_node *node;
	json *j; /* or NULL */
	lade_engine *engine;
	uint64_t inner[LADE_DIMS_MAX]; /* the chunks in shards; 0: the whole axis */
	uint64_t memory;               /* of a read */
	job *jobs;
	size_t count;
	uint64_t good, bad, missing, stored, decoded, chunks, other;
	int rc;
} verify;

/* ---- one chunk ----------------------------------------------------------------------------- */

/* A rectangle of elements. */
typedef struct box {
	uint64_t start[LADE_DIMS_MAX], count[LADE_DIMS_MAX];
} box;

static lade_status read_box(const verify *v, const box *b, lade_zarr_report *report,
                            lade_error *err)
{
	const lade_zarr_array *array = v->node->array;
	lade_zarr_index axes[LADE_DIMS_MAX];
	lade_zarr_selection selection = {.struct_size = sizeof selection,
	                                 .axis_count = array->ndim,
	                                 .axes = axes,
	                                 .index_size = sizeof axes[0]};
	uint64_t size = array->type.size;

	for (size_t i = 0; i < array->ndim; i++) {
		axes[i] = (lade_zarr_index){.kind = LADE_ZARR_SLICE,
		                            .start = (int64_t)b->start[i],
		                            .stop = (int64_t)(b->start[i] + b->count[i])};
		size = zarr_times(size, b->count[i]);
	}
	void *memory = size < PTRDIFF_MAX ? malloc((size_t)size + 1) : NULL;
	if (!memory)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a chunk of %" PRIu64 " bytes", size);
	lade_zarr_target target = {.struct_size = sizeof target,
	                           .span = lade_host_span(memory, (size_t)size)};
	lade_status status = zarr_read(v->node->zarr, &selection, &target, 1, report, err);
	free(memory);
	return status;
}

static uint64_t box_size(const verify *v, const box *b)
{
	uint64_t size = v->node->array->type.size;

	for (size_t i = 0; i < v->node->array->ndim; i++)
		size = zarr_times(size, b->count[i]);
	return size;
}

/* Cuts a box between inner chunks, in the middle of the first axis that has several of them. */
static bool halve(const verify *v, const box *b, box halves[2])
{
	for (size_t i = 0; i < v->node->array->ndim; i++) {
		uint64_t inner = v->inner[i];
		if (inner == 0 || b->count[i] <= inner)
			continue;
		uint64_t half = ((b->count[i] - 1) / inner + 1) / 2 * inner;
		halves[0] = halves[1] = *b;
		halves[0].count[i] = half;
		halves[1].start[i] += half;
		halves[1].count[i] -= half;
		return true;
	}
	return false;
}

static void add_failure(job *j, const uint64_t *start, bool inner, const lade_error *err)
{
	failure *f = realloc(j->failures, (j->failed + 1) * sizeof *f);

	j->failures = cli_need(f);
	f += j->failed++;
	memcpy(f->start, start, sizeof f->start);
	f->inner = inner;
	f->err = *err;
}

/* If the first inner chunks fail in the same words, it is for the same reason: a bad index. */
static void check_alike(job *j)
{
	if (j->partly || j->failed < 2)
		return;
	for (size_t i = 1; i < j->failed; i++)
		if (strcmp(j->failures[0].err.message, j->failures[i].err.message) != 0)
			return;
	j->whole = true;
	j->failed = 1;
	j->failures[0].inner = false;
}

static void check_box(const verify *v, job *j, const box *b)
{
	lade_zarr_report report = {.struct_size = sizeof report};
	lade_error err = {.offset = LADE_NO_OFFSET};
	lade_status status = LADE_OK;
	box halves[2];
	bool can_halve = halve(v, b, halves);

	if (j->whole || j->failed == NAMED_MAX)
		return;
	if (!can_halve || box_size(v, b) <= v->memory) {
		status = read_box(v, b, &report, &err);
		if (status == LADE_OK) {
			j->decoded += report.decoded_size;
			j->chunks += report.chunk_count;
			j->partly = true;
			return;
		}
	}
	if (can_halve) {
		check_box(v, j, &halves[0]);
		check_box(v, j, &halves[1]);
		return;
	}
	add_failure(j, b->start, v->node->array->chain.shard != NULL, &err);
	if (j->failed == ALIKE)
		check_alike(j);
}

/* Asks the store for the chunk's size. */
static void look(const verify *v, job *j, const box *b)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	char key[LADE_KEY_MAX + 1];
	lade_status status = lade_zarr_chunk_key(v->node->zarr, j->index, key, &err);

	if (status == LADE_OK)
		status = lade_store_look(v->node->store, key, &j->stored, NULL, &err);
	if (status != LADE_OK || j->stored == LADE_SIZE_UNKNOWN)
		j->stored = 0;
	j->missing = status == LADE_E_NOT_FOUND;
	if (status != LADE_OK && !j->missing)
		add_failure(j, b->start, false, &err);
}

/* For lade_engine_each(); failures are in the job. */
static lade_status run_job(void *ctx, size_t index, lade_error *err)
{
	verify *v = ctx;
	job *j = &v->jobs[index];
	box b = {.start = {0}};

	(void)err;
	for (size_t i = 0; i < v->node->array->ndim; i++) {
		lade_zarr_extent extent = {0};
		lade_zarr_chunk_extent(&v->node->array->axes[i], j->index[i], &extent, NULL);
		b.start[i] = extent.start;
		b.count[i] = extent.used;
	}
	if (!j->listed)
		look(v, j, &b);
	if (!j->missing && !j->failed)
		check_box(v, j, &b);
	check_alike(j);
	progress_add(j->stored, j->decoded);
	return LADE_OK;
}

/* ---- results -------------------------------------------------------------------------------- */

static void json_numbers(json *j, const char *key, const uint64_t *values, size_t count)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < count; i++)
		json_uint(j, NULL, values[i]);
	json_close(j, ']');
}

static void say_failure(verify *v, const job *j, const failure *f)
{
	size_t ndim = v->node->array->ndim;
	char key[LADE_KEY_MAX + 1] = "";
	uint64_t inner[LADE_DIMS_MAX];

	if (!v->j) {
		cli_lade_error(v->node->name, &f->err);
		return;
	}
	for (size_t i = 0; i < ndim && f->inner; i++) {
		lade_zarr_extent extent = {0};
		lade_zarr_chunk_extent(&v->node->array->axes[i], j->index[i], &extent, NULL);
		inner[i] = (f->start[i] - extent.start) / v->inner[i];
	}
	lade_zarr_chunk_key(v->node->zarr, j->index, key, NULL);
	json_open(v->j, NULL, '{');
	json_text(v->j, "key", key);
	json_numbers(v->j, "chunk", j->index, ndim);
	json_numbers(v->j, "start", f->start, ndim);
	if (f->inner)
		json_numbers(v->j, "inner_chunk", inner, ndim);
	json_text(v->j, "status", lade_status_name(f->err.status));
	json_text(v->j, "reason", f->err.message);
	json_close(v->j, '}');
}

static void say_missing(verify *v, const job *j)
{
	char key[LADE_KEY_MAX + 1] = "";
	failure f = {.err = {.status = LADE_E_NOT_FOUND, .offset = LADE_NO_OFFSET}};

	lade_zarr_chunk_key(v->node->zarr, j->index, key, NULL);
	lade_fail(&f.err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "key '%.120s': there is no such chunk",
	          key);
	for (size_t i = 0; i < v->node->array->ndim; i++) {
		lade_zarr_extent extent = {0};
		lade_zarr_chunk_extent(&v->node->array->axes[i], j->index[i], &extent, NULL);
		f.start[i] = extent.start;
	}
	say_failure(v, j, &f);
}

/* Runs the jobs that have gathered, and counts and names what they found. */
static lade_status flush(verify *v, lade_error *err)
{
	lade_status status = lade_engine_each(v->engine, v->count, run_job, v, NULL, err);

	for (size_t i = 0; i < v->count; i++) {
		job *j = &v->jobs[i];
		v->missing += j->missing;
		v->good += !j->missing && !j->failed;
		v->bad += j->failed > 0;
		v->stored += j->stored;
		v->decoded += j->decoded;
		v->chunks += j->chunks;
		if (j->failed || (j->missing && v->s->complete))
			v->rc = CLI_FAILED;
		for (size_t f = 0; f < j->failed; f++)
			say_failure(v, j, &j->failures[f]);
		if (j->missing && v->s->complete)
			say_missing(v, j);
		free(j->failures);
	}
	v->count = 0;
	return status;
}

/* ---- all chunks ------------------------------------------------------------------------------ */

static lade_status add(verify *v, const uint64_t *index, uint64_t stored, bool listed,
                       lade_error *err)
{
	v->jobs[v->count] = (job){.stored = stored, .listed = listed};
	memcpy(v->jobs[v->count].index, index, v->node->array->ndim * sizeof *index);
	return ++v->count == BATCH ? flush(v, err) : LADE_OK;
}

static lade_status visit(void *ctx, const lade_store_entry *entry)
{
	verify *v = ctx;
	uint64_t index[LADE_DIMS_MAX];

	if (!zarr_chunk_parse(v->node, entry->key, index))
		return LADE_OK;
	return add(v, index, entry->size == LADE_SIZE_UNKNOWN ? 0 : entry->size, true, NULL);
}

static lade_status from_listing(verify *v, lade_error *err)
{
	const char *path = lade_zarr_path(v->node->zarr);
	char prefix[LADE_KEY_MAX + 2];
	lade_store_listing listing = {.struct_size = sizeof listing,
	                              .prefix = prefix,
	                              .sizes = true,
	                              .visit = visit,
	                              .ctx = v};

	snprintf(prefix, sizeof prefix, "%s%s", path, *path ? "/" : "");
	lade_status status = lade_store_list(v->node->store, &listing, err);
	return status == LADE_OK ? flush(v, err) : status;
}

static lade_status from_grid(verify *v, lade_error *err)
{
	const lade_zarr_array *array = v->node->array;
	uint64_t index[LADE_DIMS_MAX] = {0};
	size_t axis = array->ndim;

	if (zarr_chunk_count(array) == 0)
		return LADE_OK;
	do {
		lade_status status = add(v, index, 0, false, err);
		if (status != LADE_OK)
			return status;
		for (axis = array->ndim; axis > 0; axis--) {
			if (++index[axis - 1] < array->axes[axis - 1].chunk_count)
				break;
			index[axis - 1] = 0;
		}
	} while (axis > 0);
	return flush(v, err);
}

static void print_summary(const verify *v)
{
	const char *what = v->node->array->chain.shard ? "shard" : "chunk";
	char stored[16], decoded[16], *shown;
	cli_text t;

	cli_text_open(&t);
	fputs(v->node->name, t.file);
	shown = cli_text_take(&t);
	printf("%s: %" PRIu64 " %s%s good, %" PRIu64 " bad, ", shown, v->good, what,
	       v->good == 1 ? "" : "s", v->bad);
	if (v->missing == UINT64_MAX)
		printf("more than 2^64 missing");
	else
		printf("%" PRIu64 " missing", v->missing);
	printf("; %s stored", cli_format_size(v->stored, stored));
	if (v->node->array->type.size) /* of strings the command does not know it */
		printf(", %s decoded", cli_format_size(v->decoded, decoded));
	if (v->node->array->chain.shard)
		printf(", %" PRIu64 " inner chunks", v->chunks);
	putchar('\n');
	free(shown);
}

static void json_summary(verify *v)
{
	json_close(v->j, ']');
	json_uint(v->j, "good", v->good);
	json_uint(v->j, "bad", v->bad);
	if (v->missing != UINT64_MAX)
		json_uint(v->j, "missing", v->missing);
	json_uint(v->j, "decoded_chunks", v->chunks);
	json_uint(v->j, "stored_size", v->stored);
	json_uint(v->j, "decoded_size", v->decoded);
	json_close(v->j, '}');
}

static int verify_array(const zarr_settings *s, const zarr_node *node, json *j)
{
	verify v = {.s = s, .node = node, .j = j, .rc = CLI_OK};
	uint64_t count = zarr_chunk_count(node->array);
	lade_error err = {.offset = LADE_NO_OFFSET};
	zarr_chunks listed;

	unsigned threads = s->threads ? s->threads : lade_cpu_count();
	if (!s->threads && cli_is_url(node->name))
		threads = REMOTE_THREADS;
	lade_engine_options options = {.struct_size = sizeof options, .threads = threads};
	if (lade_engine_new(&options, &v.engine, &err) != LADE_OK)
		return cli_lade_error(node->name, &err);
	v.jobs = cli_need(calloc(BATCH, sizeof *v.jobs));
	v.memory = s->memory / threads;
	for (size_t i = 0; i < node->array->ndim && node->array->chain.shard; i++)
		v.inner[i] = zarr_inner_length(node->array, i);
	if (j) {
		json_open(j, NULL, '{');
		json_text(j, "name", node->name);
		json_text(j, "path", lade_zarr_path(node->zarr));
		json_open(j, "failures", '[');
	}
	lade_status status = zarr_chunks_list(node, 80, 0, &listed, &err);
	progress_start(node->name, "verifying", listed.stored);
	if (status == LADE_OK && !s->complete) {
		status = from_listing(&v, &err);
		v.missing = count == UINT64_MAX ? count : count - v.good - v.bad;
	} else if (status == LADE_OK || status == LADE_E_UNSUPPORTED) {
		status = from_grid(&v, &err);
	}
	progress_end();
	if (status != LADE_OK)
		v.rc = cli_lade_error(node->name, &err);
	if (j)
		json_summary(&v);
	else
		print_summary(&v);
	zarr_chunks_free(&listed);
	lade_engine_free(v.engine);
	free(v.jobs);
	return v.rc;
}

typedef struct group {
	const zarr_settings *s;
	json *j;
} group;

static int verify_member(void *ctx, const zarr_node *node)
{
	const group *g = ctx;

	return verify_array(g->s, node, g->j);
}

int zarr_verify(const zarr_settings *s, zarr_node *node, json *j)
{
	group g = {s, j};

	return zarr_each_array(s, node, verify_member, &g);
}
