/*
 * plan.c: which ranges share a request, and which are split.
 *
 *	ranges, sorted by key and offset
 *	     --(join those with small gaps)--> extents --(cut large ones)--> requests with parts
 *
 * Joining the k smallest gaps of a call leaves n - k requests and reads the gaps' bytes for
 * nothing.  As every k can be asked for its cost (cost.c), the best one is found by looking at
 * all.  An extent is cut where several requests at once are faster than one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

/* The least bytes of a piece of a range that is cut, and what its size is a multiple of. */
#define PIECE_LEAST ((uint64_t)1 << 20)
#define PIECE_STEP ((uint64_t)1 << 16)

/* ---- order --------------------------------------------------------------------------------- */

/* Has a place that is known before the value's size is. */
static bool placed(const lade_range *range)
{
	return range->kind == LADE_RANGE_AT && range->dst.size &&
	       range->off <= UINT64_MAX - range->dst.size;
}

/* Keys together; of a key those that have places first, by the version they want and by offset. */
static int compare(const lade__fetch *p, size_t a, size_t b)
{
	const lade_range *x = lade__fetch_range(p, a), *y = lade__fetch_range(p, b);
	const char *left = lade__fetch_key(p, a), *right = lade__fetch_key(p, b);
	int order = left == right ? 0 : strcmp(left, right);
	if (order == 0 && x->want != y->want)
		order = (uintptr_t)x->want < (uintptr_t)y->want ? -1 : 1;
	if (order == 0)
		order = placed(y) - placed(x);
	if (order == 0 && x->off != y->off)
		order = x->off < y->off ? -1 : 1;
	return order ? order : (a > b) - (a < b);
}

static void sort(const lade__fetch *p, size_t *order, size_t *other, size_t count)
{
	size_t half = count / 2, i = 0, j = half;
	if (count < 2)
		return;
	sort(p, order, other, half);
	sort(p, order + half, other, count - half);
	if (compare(p, order[half - 1], order[half]) <= 0)
		return;
	memcpy(other, order, half * sizeof *order);
	for (size_t k = 0; i < half; k++)
		order[k] =
			j < count && compare(p, order[j], other[i]) < 0 ? order[j++] : other[i++];
}

/* ---- joining ------------------------------------------------------------------------------- */

/* The bytes between two neighbours of the order; UINT64_MAX: they cannot be joined. */
static uint64_t gap_between(const lade__fetch *p, size_t a, size_t b)
{
	const lade_range *x = lade__fetch_range(p, a), *y = lade__fetch_range(p, b);
	const char *left = lade__fetch_key(p, a), *right = lade__fetch_key(p, b);
	if (!(p->store->ops.flags & LADE_STORE_PARTS) || !placed(x) || !placed(y) ||
	    x->want != y->want || (left != right && strcmp(left, right) != 0) ||
	    y->off < x->off + x->dst.size)
		return UINT64_MAX;
	return y->off - (x->off + x->dst.size);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The widest gap that is worth reading.  UINT64_MAX: none, not even one of no bytes. */
static uint64_t widest_gap(const lade__fetch *p, const size_t *order, uint64_t *gaps, size_t count)
{
	size_t gap_count = 0;
	for (size_t i = 1; i < count; i++) {
		gaps[gap_count] = gap_between(p, order[i - 1], order[i]);
		gap_count += gaps[gap_count] != UINT64_MAX;
	}
	if (gap_count == 0)
		return UINT64_MAX;
	if (p->cost.whole)
		return UINT64_MAX - 1;
	qsort(gaps, gap_count, sizeof *gaps, by_size);
	double bytes = (double)p->wanted_size, requests = (double)count;
	double best = lade__cost_ns(&p->cost, requests, bytes);
	uint64_t widest = UINT64_MAX;
	for (size_t k = 0; k < gap_count; k++) {
		bytes += (double)gaps[k];
		requests -= 1;
		double ns = lade__cost_ns(&p->cost, requests, bytes);
		if (ns <= best) {
			best = ns;
			widest = gaps[k];
		}
	}
	return widest;
}

/* ---- requests ------------------------------------------------------------------------------ */

static void begin_request(lade__fetch *p, size_t k, uint64_t off)
{
	const lade_range *range = lade__fetch_range(p, k);
	size_t r = p->request_count++;
	p->requests[r] = (lade_range){.key = lade__fetch_key(p, k),
	                              .off = off,
	                              .kind = range->kind,
	                              .dst = lade_host_span(NULL, 0),
	                              .want = range->want,
	                              .version = &p->versions[r]};
	p->first[r + 1] = p->first[r];
}

/* Adds bytes [at, at + size) of range k to the last request, at its end or behind it. */
static void add_part(lade__fetch *p, size_t k, size_t at, size_t size)
{
	const lade_range *range = lade__fetch_range(p, k);
	size_t r = p->request_count - 1, n = p->first[r + 1]++;
	lade_range *request = &p->requests[r];
	lade_span dst = range->dst;
	/* No arithmetic on a pointer that may be NULL: explain() has no destinations. */
	dst.data = dst.data ? (uint8_t *)dst.data + at : NULL;
	dst.size = size;
	size_t into = request->kind == LADE_RANGE_AT ? (size_t)(range->off + at - request->off) : 0;
	p->parts[n] = (lade_part){into, dst};
	p->owners[n] = k;
	if (n == p->first[r])
		request->dst = dst;
	else
		request->dst = lade_host_span(NULL, into + size);
}

/* The bytes of a piece; UINT64_MAX: nothing is cut. */
static uint64_t piece_size(const lade__fetch *p, uint64_t bytes)
{
	const lade__cost *c = &p->cost;
	if (p->store->ops.flags & LADE__STORE_PASSES || c->whole || c->parallel < 2 ||
	    c->store_rate < 1.2 * c->request_rate)
		return UINT64_MAX;
	double least = c->request_ns * c->request_rate, share = (double)bytes / c->parallel;
	double piece = least > share ? least : share;
	return piece > 1e18 ? UINT64_MAX : piece < PIECE_LEAST ? PIECE_LEAST : (uint64_t)piece;
}

/* Makes requests of ranges that were joined. */
static void add_extent(lade__fetch *p, const size_t *order, size_t count, uint64_t piece)
{
	const lade_range *head = lade__fetch_range(p, order[0]);
	const lade_range *tail = lade__fetch_range(p, order[count - 1]);
	begin_request(p, order[0], head->off);
	if (!placed(head)) {
		add_part(p, order[0], 0, head->dst.size);
		return;
	}
	uint64_t size = tail->off + tail->dst.size - head->off, step = size, pieces = size / piece;
	pieces = pieces <= p->spare ? pieces : p->spare;
	if (pieces > 1) {
		step = size / pieces;
		step += PIECE_STEP - step % PIECE_STEP;
		p->spare -= pieces - 1;
		p->split_count++;
	}
	uint64_t end = head->off + step;
	for (size_t i = 0; i < count; i++) {
		const lade_range *range = lade__fetch_range(p, order[i]);
		for (size_t at = 0; at < range->dst.size;) {
			uint64_t off = range->off + at;
			if (off >= end) {
				begin_request(p, order[i], off);
				end = UINT64_MAX - off < step ? UINT64_MAX : off + step;
			}
			size_t n = range->dst.size - at;
			n = n < end - off ? n : (size_t)(end - off);
			add_part(p, order[i], at, n);
			at += n;
		}
	}
	p->merged_count += count - 1;
}

/* One block for all tables: those of 'count' ranges, and of as many requests as they can become.
 * Cuts are at most as many as requests run at once, and each makes a request and a part more. */
static bool take_memory(lade__fetch *p, size_t **order, uint64_t **gaps)
{
	size_t n = p->count, most = n + p->cost.parallel + 1;
	p->spare = p->cost.parallel;
	const size_t each = sizeof *p->requests + sizeof *p->versions + sizeof *p->errors +
	                    sizeof *p->parts + sizeof *p->first + sizeof *p->owners;
	if (n > SIZE_MAX / 2 / (each + sizeof **order + sizeof **gaps) - p->cost.parallel - 2)
		return false;
	p->memory = malloc((most + 1) * each + n * (sizeof **order + sizeof **gaps));
	if (!p->memory)
		return false;
	p->requests = p->memory;
	p->parts = (lade_part *)(void *)(p->requests + most);
	p->errors = (lade_error *)(void *)(p->parts + most);
	p->first = (size_t *)(void *)(p->errors + most);
	p->owners = p->first + most + 1;
	*order = p->owners + most;
	*gaps = (uint64_t *)(void *)(*order + n);
	p->versions = (lade_object_version *)(void *)(*gaps + n);
	return true;
}

/* The ranges that have good keys, and their bytes.  Others are answered, or fail an explain(). */
static lade_status take_ranges(lade__fetch *p, size_t *order, size_t *count, lade_error *err)
{
	const char *good = NULL;
	*count = 0;
	for (size_t k = 0; k < p->count; k++) {
		const char *key = lade__fetch_key(p, k);
		lade_error why;
		lade_status status = key && key == good ? LADE_OK : lade_key_check(key, &why);
		size_t i = p->index ? p->index[k] : k;
		if (status == LADE_OK) {
			good = key;
			order[(*count)++] = k;
			p->wanted_size += lade__fetch_range(p, k)->dst.size;
		} else if (p->outer) {
			lade_reading_done(p->outer, i, status, &why);
		} else {
			return lade_fail(err, status, why.offset, "range %zu: %s", i, why.message);
		}
	}
	return LADE_OK;
}

lade_status lade__fetch_plan(lade__fetch *p, const lade_io_options *options, lade_error *err)
{
	size_t *order, count;
	uint64_t *gaps;
	p->cost = lade__store_cost(p->store);
	if (options->threads && options->threads < p->cost.parallel)
		p->cost.parallel = options->threads;
	if (!take_memory(p, &order, &gaps))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to read %zu ranges",
		                 p->count);
	lade_status status = take_ranges(p, order, &count, err);
	if (status != LADE_OK) {
		lade__fetch_free(p);
		return status;
	}
	bool passes = p->store->ops.flags & LADE__STORE_PASSES;
	if (!passes)
		sort(p, order, (size_t *)(void *)gaps, count);
	uint64_t widest = passes ? UINT64_MAX : widest_gap(p, order, gaps, count);
	uint64_t piece = piece_size(p, p->wanted_size);
	p->gap_size = 0;
	p->first[0] = 0;
	for (size_t i = 0, n; i < count; i += n) {
		for (n = 1; i + n < count; n++) {
			uint64_t gap = gap_between(p, order[i + n - 1], order[i + n]);
			if (gap == UINT64_MAX || gap > widest || widest == UINT64_MAX)
				break;
			p->gap_size = gap > p->gap_size ? gap : p->gap_size;
		}
		add_extent(p, order + i, n, piece);
	}
	for (size_t r = 0; r < p->request_count; r++)
		p->moved_size += p->requests[r].dst.size;
	return LADE_OK;
}

void lade__fetch_free(lade__fetch *p)
{
	free(p->memory);
	p->memory = NULL;
}
