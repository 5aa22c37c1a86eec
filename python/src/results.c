/*
 * results.c: what became of work that was enqueued on a device, and what that work still uses.
 *
 * Sizes and statuses stay on the device until somebody asks.  Sources and destinations are kept
 * from the enqueuing on until the stream has passed them, whatever becomes of the objects that the
 * caller has.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <pthread.h>
#include <string.h>

/* A device's tables are aligned as all of its blocks are. */
#define TABLE_ALIGN 256

struct py_results {
	atomic_size_t refs;
	pthread_mutex_t lock;
	atomic_bool fetched;
	bool lent; /* somebody else's work reads the sizes: the tables stay */
	int32_t device;
	lade_stream stream; /* the call's, and behind it that one's home */
	PyObject *stream_object; /* keeps the stream alive, or NULL */
	size_t count;
	void *block; /* on the device, until fetched: sizes u64[count] | statuses u32[count] */
	lade_result *results;
	char name[32];      /* of the codec, for messages */
	uint64_t *wanted;   /* sizes that are expected, or NULL */
	py_want want;       /* ... and whose fault others are: the data's or the config's */
	py_parent *parents; /* of the sources, or NULL */
	unsigned depth;     /* of the longest line of parents */
};

/* Longer lines of parents are waited for. */
#define DEPTH_MAX 64

static size_t block_size(const py_results *r)
{
	return r->count * (sizeof(uint64_t) + sizeof(uint32_t));
}

py_results *py_results_new(py_state *st, const py_codec *codec, int32_t device, size_t count)
{
	const lade_allocator *from = lade_allocator_default(LADE_DEVICE);
	py_results *r = calloc(1, sizeof(*r));
	size_t stages = lade_spec_count(codec->spec);

	if (!r || !(r->results = malloc((count + 1) * sizeof(*r->results)))) {
		free(r);
		PyErr_NoMemory();
		return NULL;
	}
	atomic_init(&r->refs, 1);
	pthread_mutex_init(&r->lock, NULL);
	r->device = device;
	r->stream = (lade_stream)codec->stream;
	r->stream_object = Py_XNewRef(codec->stream_object);
	r->count = count;
	PyOS_snprintf(r->name, sizeof(r->name), "%s",
	              lade_spec_stage(codec->spec, stages - 1)->algorithm->name);
	/* Where memory is short, what streams have passed meanwhile gives its own back. */
	for (int try = 0; count && !r->block && try < 2; try++) {
		if (try)
			py_kept_sweep(st);
		r->block = from->alloc(from->ctx, block_size(r), TABLE_ALIGN,
		                       (lade_place){LADE_DEVICE, device}, r->stream);
	}
	if (count && !r->block) {
		py_no_block(st, block_size(r), (lade_place){LADE_DEVICE, device}, codec->stream);
		py_results_unref(r);
		return NULL;
	}
	return r;
}

py_results *py_results_ref(py_results *r)
{
	if (r)
		atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	return r;
}

/* The tables go back in the stream's order: what still writes them is done before. */
static void give_block(py_results *r)
{
	const lade_allocator *to = lade_allocator_default(LADE_DEVICE);

	if (r->block)
		to->free(to->ctx, r->block, block_size(r), TABLE_ALIGN,
		         (lade_place){LADE_DEVICE, r->device}, r->stream);
	r->block = NULL;
}

void py_results_unref(py_results *r)
{
	if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
		return;
	give_block(r);
	for (size_t i = 0; r->parents && i < r->count; i++)
		py_results_unref(r->parents[i].results);
	free(r->parents);
	free(r->wanted);
	free(r->results);
	pthread_mutex_destroy(&r->lock);
	Py_XDECREF(r->stream_object);
	free(r);
}

void py_results_on_stream(py_results *r, uintptr_t stream)
{
	r->stream = (lade_stream)stream;
}

uint64_t *py_results_sizes(const py_results *r)
{
	return r->block;
}

uint32_t *py_results_statuses(const py_results *r)
{
	return (uint32_t *)((uint64_t *)r->block + r->count);
}

void py_results_want(py_results *r, uint64_t *sizes, py_want want)
{
	r->wanted = sizes;
	r->want = want;
}

const uint64_t *py_results_lend(py_results *r, size_t first)
{
	const uint64_t *sizes = NULL;

	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&r->fetched)) {
		r->lent = true;
		sizes = py_results_sizes(r) + first;
	}
	pthread_mutex_unlock(&r->lock);
	return sizes;
}

bool py_results_after(py_state *st, py_results *r, size_t i, py_results *parent, size_t item,
                      size_t index)
{
	if (parent->depth >= DEPTH_MAX && !py_results_wait(st, parent))
		return false;
	if (py_results_fetched(parent))
		return py_results_check(st, parent, item, index);
	if (parent->depth >= r->depth)
		r->depth = parent->depth + 1;
	if (!r->parents && !(r->parents = calloc(r->count + 1, sizeof(*r->parents))))
		return PyErr_NoMemory() != NULL;
	r->parents[i] = (py_parent){py_results_ref(parent), item};
	return true;
}

bool py_results_fetched(const py_results *r)
{
	return atomic_load(&r->fetched);
}

/* Waits, without the interpreter.  False: the device failed, and 'err' says how. */
static bool fetch(py_results *r, lade_error *err)
{
	bool ok = true;

	pthread_mutex_lock(&r->lock);
	if (!atomic_load(&r->fetched) && r->count) {
		/* Entries stay as they are where the call itself fails. */
		r->results[0].status = (lade_status)-1;
		lade_async_options options = {.struct_size = sizeof options,
		                              .device = r->device,
		                              .stream = r->stream,
		                              .sizes = r->block,
		                              .statuses = py_results_statuses(r)};
		ok = !lade_results_get(&options, r->count, r->results, err) ||
		     r->results[0].status != (lade_status)-1;
		for (size_t i = 0; ok && i < r->count; i++) {
			py_parent *parent = r->parents ? &r->parents[i] : NULL;
			lade_result *own = &r->results[i];
			if (parent && parent->results) {
				ok = fetch(parent->results, err);
				if (ok && parent->results->results[parent->item].status)
					*own = parent->results->results[parent->item];
			}
			if (!own->status && r->wanted && r->wanted[i] != own->size)
				*own = (lade_result){r->want ? LADE_E_VALUE : LADE_E_CORRUPT,
				                     own->size};
		}
	}
	if (ok) {
		if (!r->lent)
			give_block(r);
		atomic_store(&r->fetched, true);
	}
	pthread_mutex_unlock(&r->lock);
	return ok;
}

bool py_results_wait(py_state *st, py_results *r)
{
	lade_error err = {.status = LADE_OK};
	bool ok = true;

	if (!atomic_load(&r->fetched)) {
		Py_BEGIN_ALLOW_THREADS ok = fetch(r, &err);
		Py_END_ALLOW_THREADS py_kept_sweep(st);
	}
	if (!ok)
		py_raise(st, &err, SIZE_MAX);
	return ok;
}

bool py_results_check(py_state *st, const py_results *r, size_t i, size_t index)
{
	const lade_result *own = &r->results[i];
	lade_error err;

	if (!own->status)
		return true;
	if (own->status == LADE_E_VALUE && r->want)
		lade_fail(&err, own->status, LADE_NO_OFFSET,
		          "decompression_config: %llu bytes, and the data has %zu",
		          (unsigned long long)r->wanted[i], own->size);
	else if (own->status == LADE_E_NOSPACE && r->want == PY_WANT_CONFIG_ROOM)
		lade_fail(&err, LADE_E_VALUE, LADE_NO_OFFSET,
		          "decompression_config: %llu bytes, and the data has more",
		          (unsigned long long)r->wanted[i]);
	else if (own->status == LADE_E_CORRUPT && own->size && r->wanted)
		lade_fail(&err, own->status, LADE_NO_OFFSET, "%s: %zu bytes, want %llu", r->name,
		          own->size, (unsigned long long)r->wanted[i]);
	else
		lade_fail(&err, own->status, LADE_NO_OFFSET, "%s: %s, the device says", r->name,
		          lade_status_text(own->status));
	py_raise(st, &err, index);
	return false;
}

bool py_results_size(const py_results *r, size_t i, size_t *size)
{
	*size = r->results[i].status ? 0 : r->results[i].size;
	return !r->results[i].status;
}

/* ---- what streams still use ------------------------------------------------------------- */

struct py_kept {
	py_kept *next;
	lade_mark *mark;
	uintptr_t stream;
	PyObject *objects; /* a tuple */
};

static void append(py_state *st, py_kept *first, py_kept **last, bool in_front)
{
	if (!first)
		return;
	py_lock(&st->kept_lock);
	if (in_front) {
		*last = st->kept;
		if (!st->kept)
			st->kept_last = last;
		st->kept = first;
	} else {
		*st->kept_last = first;
		st->kept_last = last;
	}
	py_unlock(&st->kept_lock);
}

void py_keep(py_state *st, int32_t device, uintptr_t stream, uintptr_t home, PyObject *objects)
{
	py_kept *kept = malloc(sizeof(*kept));

	if (kept)
		*kept = (py_kept){.stream = stream};
	if (!kept || lade_mark_new(device, (lade_stream)stream, &kept->mark, NULL) ||
	    (home != stream && lade_stream_follow(kept->mark, (lade_stream)home, NULL))) {
		/* Without a mark there is only waiting. */
		Py_BEGIN_ALLOW_THREADS lade_stream_wait(device, (lade_stream)stream, NULL);
		Py_END_ALLOW_THREADS if (kept) lade_mark_free(kept->mark);
		free(kept);
		return;
	}
	kept->objects = Py_NewRef(objects);
	append(st, kept, &kept->next, false);
}

static void let_go(py_kept *one)
{
	lade_mark_free(one->mark);
	Py_DECREF(one->objects);
	free(one);
}

/* Lets go of what has been passed.  Of a stream only the first that has not is asked about. */
void py_kept_sweep(py_state *st)
{
	py_kept *list, *one, *passed = NULL, *rest = NULL, **at, **rest_last = &rest;
	uintptr_t busy[8];
	size_t busy_count = 0;

	py_lock(&st->kept_lock);
	list = st->kept;
	st->kept = NULL;
	st->kept_last = &st->kept;
	py_unlock(&st->kept_lock);
	for (at = &passed; list;) {
		bool done = true;
		one = list;
		list = one->next;
		one->next = NULL;
		for (size_t i = 0; i < busy_count; i++)
			done &= busy[i] != one->stream;
		if (done && !lade_mark_passed(one->mark)) {
			done = false;
			if (busy_count < sizeof(busy) / sizeof(busy[0]))
				busy[busy_count++] = one->stream;
		}
		if (done) {
			*at = one;
			at = &one->next;
		} else {
			*rest_last = one;
			rest_last = &one->next;
		}
	}
	append(st, rest, rest_last, true);
	while ((one = passed)) {
		passed = one->next;
		let_go(one);
	}
}

void py_kept_wait(py_state *st)
{
	py_kept *one;

	while ((one = st->kept)) {
		st->kept = one->next;
		lade_mark_wait(one->mark, NULL);
		let_go(one);
	}
	st->kept_last = &st->kept;
}

bool py_follow(py_state *st, int32_t device, uintptr_t stream, uintptr_t other)
{
	lade_mark *mark = NULL;
	lade_error err;
	lade_status status;

	if (stream == other)
		return true;
	status = lade_mark_new(device, (lade_stream)other, &mark, &err);
	if (!status)
		status = lade_stream_follow(mark, (lade_stream)stream, &err);
	lade_mark_free(mark);
	if (status)
		py_raise(st, &err, SIZE_MAX);
	return !status;
}
