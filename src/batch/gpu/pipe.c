/*
 * pipe.c: a route's stages on a device, one behind the other, over tables in device memory.
 *
 * Between two stages stand results of the one that are sources of the other: a slot of equal size
 * for each item, or, where sizes are known beforehand and their sum is less than that, one of its
 * own size.  Two such buffers, used in turn, serve any number of stages.  An item that fails in one
 * stage is left alone by those behind it.  Stages that their codecs join are done at once, as one
 * step, and nothing stands between them.
 *
 * A checksum behind another stage moves nothing: when encoding that stage writes to where the
 * checksum's chunk has to stand, and when decoding the next stage reads it from there.  Tables of
 * its own, a view, say where that is.
 *
 * The first kernel that makes tables looks whether items are larger than what there is room for.
 *
 *     workspace:  | what the stages want | status[] | 2 x ( address[] | cap[] | size[] | slots )
 *                 | a checksum: address[] | cap[] | size[] | ... |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/try.h"
#include "batch/gpu/gpu.h"
#include "engine/spec.h"

#define TABLE_THREADS 256u

static const lade__gpu_codec *codec_at(const lade_engine *engine, const lade__route *route,
                                       size_t stage)
{
	return lade__route_entry(engine, route, stage)->gpu;
}

/* How many stages from 'first' on, in the order of encoding, are one step. */
static size_t join(const lade_engine *engine, const lade__route *route, size_t first)
{
	const lade__gpu_codec *codec = codec_at(engine, route, first);
	size_t count = 1;
	while (first + count < route->spec->count && codec->join &&
	       codec_at(engine, route, first + count)->join == codec->join)
		count++;
	return count > 1 ? codec->join(&route->spec->stage[first], count) : 1;
}

/* The steps of a route, each by its first stage, in the order of encoding; behind the last
 * stands the count of stages. */
typedef struct steps {
	size_t first[LADE_STAGES_MAX + 1], count;
} steps;

static steps steps_of(const lade_engine *engine, const lade__route *route)
{
	steps s = {.count = 0};
	for (size_t at = 0; at < route->spec->count; at += join(engine, route, at))
		s.first[s.count++] = at;
	s.first[s.count] = route->spec->count;
	return s;
}

/* The most bytes that stand between the stages: what encoding 'largest' bytes can give anywhere,
 * where each stage takes no more than a chunk. */
static uint64_t slot_size(const lade__route *route, uint64_t largest)
{
	uint64_t size = largest, most = 0;
	for (size_t i = 0; i + 1 < route->spec->count; i++) {
		const lade_stage *stage = &route->spec->stage[i];
		size = size < LADE_CHUNK_MAX ? size : LADE_CHUNK_MAX;
		size = stage->algorithm->bound(stage, (size_t)size);
		if (size == SIZE_MAX) /* more than the host's encoder takes */
			size = LADE_CHUNK_MAX;
		most = size > most ? size : most;
	}
	return lade__gpu_round((size_t)most);
}

/* Whether a stage is a checksum that leaves its chunks where they are. */
static bool is_view(const lade__route *route, size_t stage)
{
	return stage > 0 && route->spec->stage[stage].algorithm->kind == LADE_STAGE_CHECKSUM;
}

/* Whether what stands between a route's stages is as long as what is decoded, but for checksums if
 * 'sums'. */
static bool keeps_sizes(const lade__route *route, bool sums)
{
	size_t count = route->spec->count;
	while (is_view(route, count - 1))
		count--;
	for (size_t i = 0; i + 1 < count; i++) {
		const lade_stage *stage = &route->spec->stage[i];
		if (sums && stage->algorithm->kind == LADE_STAGE_CHECKSUM)
			continue;
		if (!(stage->algorithm->flags & LADE_ALGORITHM_FIXED_SIZE) ||
		    stage->algorithm->bound(stage, 1000) != 1000)
			return false;
	}
	return true;
}

bool lade__gpu_pipe_keeps_sizes(const lade__route *route)
{
	return keeps_sizes(route, false);
}

/* Tables of a stage's sources or results, in device memory. */
typedef struct rows {
	lade__address address, cap, size;
} rows;

typedef struct layout {
	size_t stages; /* bytes of the stages' own workspace */
	size_t status, address[2], cap[2], size[2], slots[2];
	size_t view[LADE_STAGES_MAX]; /* of the checksum's chunks, by stage */
	size_t end;                   /* SIZE_MAX: too large */
	uint64_t slot;                /* bytes of the largest */
	uint64_t packed;              /* bytes of all, one behind the other; 0: they are alike */
} layout;

/* The next 'count' entries of 'size' bytes; l->end becomes SIZE_MAX when they are too many. */
static size_t take(layout *l, size_t count, uint64_t size)
{
	size_t at = l->end;
	if (at == SIZE_MAX || (size && count > (SIZE_MAX / 4 - at) / size)) {
		l->end = SIZE_MAX;
		return 0;
	}
	l->end = lade__gpu_round(at + count * (size_t)size);
	return at;
}

/* Bytes that checksums before 'stage' add to what it decodes to. */
static uint64_t sums_before(const lade__route *route, size_t stage)
{
	uint64_t more = 0;
	for (size_t i = 0; i < stage; i++) {
		const lade_stage *s = &route->spec->stage[i];
		if (s->algorithm->kind == LADE_STAGE_CHECKSUM)
			more += s->algorithm->bound(s, 0);
	}
	return more;
}

/* The bytes of slots that are as long as their items; UINT64_MAX: that is not known, or is more
 * than slots of equal size are.  It never grows when 'largest' or 'total' shrink. */
static uint64_t packed_size(const lade__route *route, size_t count, uint64_t slot, uint64_t total)
{
	uint64_t each = sums_before(route, route->spec->count) + LADE__GPU_ALIGN;
	if (total == 0 || !keeps_sizes(route, true) || total > UINT64_MAX / 4 ||
	    count > UINT64_MAX / 4 / each)
		return UINT64_MAX;
	uint64_t packed = total + count * each;
	return slot && packed / slot < count ? packed : UINT64_MAX;
}

static layout lay_out(const lade_engine *engine, const lade__route *route, size_t count,
                      uint64_t largest, uint64_t total)
{
	layout l = {0};
	size_t stages = route->spec->count, writers = 0;
	if (stages > 1 && largest == 0)
		return (layout){.end = SIZE_MAX};
	l.slot = stages > 1 ? slot_size(route, largest) : 0;
	uint64_t each = stages > 1 ? l.slot : largest, all = total;
	if (stages > 1) {
		all = packed_size(route, count, l.slot, total);
		l.packed = all == UINT64_MAX ? 0 : all;
		if (!l.packed && (!each || count <= UINT64_MAX / each))
			all = count * each;
	}
	for (size_t i = 0; i < stages; i++) {
		size_t want = codec_at(engine, route, i)
		                      ->workspace(&route->spec->stage[i], count, each, all);
		if (want > l.stages)
			l.stages = want;
	}
	steps s = steps_of(engine, route);
	for (size_t i = 0; i < s.count; i++)
		writers += !is_view(route, s.first[i]);
	if (l.stages == SIZE_MAX)
		return (layout){.end = SIZE_MAX};
	l.stages = lade__gpu_round(l.stages);
	l.end = l.stages;
	if (stages == 1)
		return l;
	l.status = take(&l, count, 4);
	for (size_t k = 0; k < 2 && k + 1 < writers; k++) {
		l.address[k] = take(&l, count, 8);
		l.cap[k] = take(&l, count, 8);
		l.size[k] = take(&l, count, 8);
		l.slots[k] = l.packed ? take(&l, 1, l.packed) : take(&l, count, l.slot);
	}
	for (size_t i = 0; i < stages; i++)
		if (is_view(route, i))
			l.view[i] = take(&l, count, 3 * sizeof(uint64_t));
	return l;
}

size_t lade__gpu_pipe_workspace(const lade_engine *engine, const lade__route *route, size_t count,
                                uint64_t largest, uint64_t total)
{
	return lay_out(engine, route, count, largest, total).end;
}

/* A pipe on its way. */
typedef struct pipe {
	const lade_engine *engine;
	const lade__route *route;
	const lade__gpu_tables *tables;
	const layout *l;
	lade__gpu_work work;
	lade__address base, limit;
	lade_gpu_sides sides;         /* to be looked at by the next kernel that makes tables */
	unsigned turn;                 /* the buffer whose slots are free */
	rows results[LADE_STAGES_MAX]; /* by stage */
} pipe;

/* What makes tables: slots of one size, slots one behind the other, and parts of slots. */
static const lade__kernel slots_kernel = {"copy", "lade_slots", 0};
static const lade__kernel packed_kernel = {"copy", "lade_packed", 0};
static const lade__kernel inset_kernel = {"copy", "lade_inset", 0};

/* Launches a kernel that makes tables, with p->sides in its arguments.  The first of them gives the
 * items their first status. */
static lade_status launch(pipe *p, const lade__kernel *kernel, void *args, lade_error *err)
{
	void *arguments[] = {args};
	unsigned count = (unsigned)p->tables->count;
	lade__launch l = {.blocks = (count + TABLE_THREADS - 1) / TABLE_THREADS,
	                  .threads = TABLE_THREADS,
	                  .stream = p->work.stream};
	if (kernel == &packed_kernel)
		l = (lade__launch){
			.blocks = 1, .threads = LADE_PACKED_THREADS, .stream = p->work.stream};
	lade_status status = lade__kernel_launch(p->work.device, kernel, &l, arguments, err);
	if (p->sides.status)
		p->work.before = p->sides.status;
	p->sides.status = 0;
	return status;
}

/* Where 'stage', which is not the last, writes to: makes the tables of a buffer. */
static lade_status make_slots(pipe *p, size_t stage, rows *out, lade_error *err)
{
	unsigned k = p->turn;
	/* When encoding, checksums up to the one that is a view of what is made. */
	bool encode = p->route->direction == LADE_ENCODE;
	uint64_t more = sums_before(p->route, encode ? p->route->spec->count : stage);
	*out = (rows){p->base + p->l->address[k], p->base + p->l->cap[k], p->base + p->l->size[k]};
	p->turn ^= 1;
	lade_gpu_slots s = {.address = out->address,
	                    .size = out->cap,
	                    .limit = encode && !p->l->packed ? 0 : p->limit,
	                    .base = p->base + p->l->slots[k],
	                    .stride = p->l->slot,
	                    .room = p->l->packed,
	                    .more = more,
	                    .sides = p->sides,
	                    .count = p->tables->count};
	return launch(p, s.room ? &packed_kernel : &slots_kernel, &s, err);
}

/* The chunks of checksum 'stage' within what it makes, or is made of, which is 'in'. */
static lade_status make_view(pipe *p, size_t stage, rows in, rows *out, lade_error *err)
{
	const lade_stage *s = &p->route->spec->stage[stage];
	uint64_t n = p->tables->count;
	uint32_t less = (uint32_t)s->algorithm->bound(s, 0);
	uint32_t first = lade__checksum_at_start(s) ? less : 0;
	*out = (rows){.address = p->base + p->l->view[stage]};
	out->cap = out->address + 8 * n;
	out->size = out->cap + 8 * n;
	lade_gpu_inset t = {.address = in.address,
	                    .cap = in.cap,
	                    .to_address = out->address,
	                    .to_cap = out->cap,
	                    .sides = p->sides,
	                    .first = first,
	                    .less = less,
	                    .count = n};
	return launch(p, &inset_kernel, &t, err);
}

/* Where 'stage' and, when encoding, the checksums behind it write to. */
static lade_status make_results(pipe *p, size_t stage, lade_error *err)
{
	const lade__gpu_tables *t = p->tables;
	bool encode = p->route->direction == LADE_ENCODE;
	size_t stages = p->route->spec->count, last = stage;
	lade_status status = LADE_OK;
	if (is_view(p->route, stage)) {
		if (encode)
			return LADE_OK;
		rows in = {.address = p->work.src};
		return make_view(p, stage, in, &p->results[stage], err);
	}
	while (encode && last + 1 < stages && is_view(p->route, last + 1))
		last++;
	rows to = {t->dst, t->dst_cap, t->dst_size};
	if (encode ? last + 1 < stages : last > 0)
		TRY(make_slots(p, stage, &to, err));
	for (; last > stage; last--) {
		p->results[last] = to;
		TRY(make_view(p, last, p->results[last], &to, err));
	}
	p->results[stage] = to;
out:
	return status;
}

/*
 * Whether the decoder of step 'i' does the step behind it as well: its results are as large as
 * those, and their room is the same, because slots have just that of the destinations.
 */
static bool takes_next(pipe *p, const steps *s, size_t i)
{
	const lade__route *route = p->route;
	if (route->direction == LADE_ENCODE || i == 0 || !p->limit)
		return false;
	const lade__gpu_codec *codec = codec_at(p->engine, route, s->first[i]);
	const lade__gpu_codec *next = codec_at(p->engine, route, s->first[i - 1]);
	return codec->unshuffles && next->unshuffle &&
	       next->unshuffle(&route->spec->stage[s->first[i - 1]], s->first[i] - s->first[i - 1],
	                       &p->work);
}

static lade_status check(const lade__gpu_tables *t, const layout *l, lade_error *err)
{
	if (t->count > INT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu items, a batch on a device has 2147483647 at most", t->count);
	if (l->end == SIZE_MAX)
		return lade_fail(err, t->largest ? LADE_E_LIMIT : LADE_E_ARG, LADE_NO_OFFSET,
		                 "%zu items of up to %llu bytes: %s", t->count,
		                 (unsigned long long)t->largest,
		                 t->largest ? "the workspace would be too large"
		                            : "this spec needs the largest size");
	if (l->end > t->workspace_size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%zu items need a workspace of %zu bytes, here are %zu", t->count,
		                 l->end, t->workspace_size);
	return LADE_OK;
}

lade_status lade__gpu_pipe_enqueue(const lade_engine *engine, const lade__route *route,
                                   lade__device *device, lade_stream stream,
                                   const lade__gpu_tables *t, lade_error *err)
{
	layout l = lay_out(engine, route, t->count, t->largest, t->total);
	size_t stages = route->spec->count;
	/* When decoding, an item's slot then has just the room that its destination has, and the
	 * verdict of the codec is the host's. */
	bool limited = keeps_sizes(route, true), encode = route->direction == LADE_ENCODE;
	lade__address decoded = encode ? t->src_size : t->dst_cap;
	lade_status status = LADE_OK;
	if (t->count == 0)
		return LADE_OK;
	TRY(check(t, &l, err));
	pipe p = {.engine = engine,
	          .route = route,
	          .tables = t,
	          .l = &l,
	          .base = t->workspace,
	          .limit = limited ? decoded : 0,
	          .sides = {.address = encode ? t->src : t->dst,
	                    .size = decoded,
	                    .status = stages > 1 ? t->workspace + l.status : 0,
	                    .largest = t->largest}};
	p.work = (lade__gpu_work){.device = device,
	                          .stream = stream,
	                          .src = t->src,
	                          .src_size = t->src_size,
	                          .count = t->count,
	                          .in_flight = t->in_flight,
	                          .largest = stages > 1 ? l.slot : t->largest,
	                          .total = stages > 1 ? l.packed : t->total,
	                          .workspace = t->workspace,
	                          .workspace_size = l.stages,
	                          .ignore_checksums = route->ignore_checksums,
	                          .dict = route->dict};
	steps s = steps_of(engine, route);
	for (size_t step = 0; step < s.count; step++) {
		bool last = step + 1 == s.count;
		size_t i = encode ? step : s.count - 1 - step, first = s.first[i];
		size_t at = encode ? s.first[i + 1] - 1 : first; /* what it makes is this stage's */
		TRY(make_results(&p, at, err));
		p.work.stage = &route->spec->stage[first];
		p.work.stages = s.first[i + 1] - first;
		p.work.dst = p.results[at].address;
		p.work.dst_cap = p.results[at].cap;
		if (takes_next(&p, &s, i)) {
			at = s.first[i - 1];
			last = ++step + 1 == s.count;
			TRY(make_results(&p, at, err));
			p.work.to = p.results[at].address;
		} else {
			p.work.unshuffle = 0;
		}
		p.work.dst_size = p.results[at].size;
		p.work.status = last && t->status ? t->status
		                : stages > 1      ? t->workspace + l.status
		                                  : 0;
		p.work.in_place = is_view(route, at);
		TRY(codec_at(engine, route, first)->enqueue(&p.work, err));
		p.work.before = p.work.status;
		p.work.src = p.results[at].address;
		p.work.src_size = p.work.dst_size;
	}
out:
	return status;
}
