/*
 * test_batch_layout.c: layouts, several outputs and tails with sources and destinations of every
 * kind of memory, by calls that wait and calls that do not, against nested indices on the host.
 * "--seed N" repeats one round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"
#include "layout_kit.h"

static lade_engine *engine;
static uint64_t seed;

/* The first KERNEL_SPECS are done by kernels too. */
static const char *const texts[] = {
	"lz4", "snappy", "shuffle(4)|lz4", "bitshuffle(2)|lz4|crc32c", "ans", "zstd(level=1)",
	"delta(|i1)|zstd(level=1)|xxh64", "blosc(cname=lz4,typesize=4)", "copy",
};
#define SPECS (sizeof texts / sizeof *texts)
#define KERNEL_SPECS 5
static lade_spec *specs[SPECS];

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 3};
	OK(lade_engine_new(&o, &engine, err));
	for (size_t i = 0; i < SPECS; i++)
		specs[i] = spec_of(engine, texts[i]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < SPECS; i++)
		lade_spec_unref(specs[i]);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

static rng round_begin(uint64_t number)
{
	rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (number + 1)) | 1};
	print_message("round %d: --seed %llu\n", (int)number, (unsigned long long)r.s);
	kit_round(number, r.s);
	for (int i = 0; i < 8; i++)
		rng_next(&r);
	return r;
}

static int rounds(int emulated, int real)
{
	return seed ? 1 : emu ? emulated : real;
}

/* ---- one item ------------------------------------------------------------------------------- */

#define OUTPUTS 3
#define SEGMENTS 3

typedef struct one {
	size_t spec, count, segments;
	layout_case layout[OUTPUTS];
	bool plain[OUTPUTS];
	lade_item_output output[OUTPUTS];
	buffer dst[OUTPUTS], src[SEGMENTS];
	lade_segment segment[SEGMENTS];
	uint8_t *chunk, *want[OUTPUTS];
	size_t size, encoded;
} one;

/* Another layout of the same chunk. */
static void layout_again(rng *r, layout_case *c, const layout_case *like)
{
	layout_same(c, like);
	layout_box(r, c, c->layout.ndim, false);
	layout_shuffle(r, c->order, c->layout.ndim);
	layout_place(r, c, c->layout.ndim, false);
	c->size = c->part_size;
	for (size_t a = 0; a < c->layout.ndim; a++)
		c->size *= c->count[a];
}

static void make_output(rng *r, one *o, size_t k, lade_place place)
{
	layout_case *c = &o->layout[k];
	if (k)
		layout_again(r, c, &o->layout[0]);
	o->plain[k] = o->count > 1 && rng_below(r, 4) == 0;
	size_t size = o->plain[k] ? c->chunk_size : c->span_size, misalign = rng_below(r, 40);
	misalign = rng_below(r, 2) ? misalign : 0;
	o->dst[k] = buffer_new(place, size, misalign);
	o->want[k] = malloc(o->dst[k].block_size);
	size_t lead = (size_t)(o->dst[k].data - o->dst[k].block);
	for (size_t i = 0; i < size; i++)
		o->want[k][i] = around_byte(lead + i);
	if (o->plain[k] && c->chunk_size)
		memcpy(o->want[k], o->chunk, c->chunk_size);
	else if (!o->plain[k])
		layout_reference(c, o->chunk, o->want[k], false);
	o->size += o->plain[k] ? c->chunk_size : c->size;
	o->output[k] = (lade_item_output){buffer_span(&o->dst[k]),
	                                  o->plain[k] ? NULL : &c->layout};
}

/* 'device' >= 0: all of it is there, and its sizes are told. */
static lade_item make_one(rng *r, one *o, size_t spec, const lade_spec *tail, int device)
{
	lade_place place = any_place(r), there = {LADE_DEVICE, device};
	*o = (one){.spec = spec, .count = rng_below(r, 3) ? 1 : 1 + rng_below(r, OUTPUTS)};
	layout_random(r, &o->layout[0], emu ? 500 : 30000, false);
	size_t size = o->layout[0].chunk_size, off = 0, got = size;
	o->chunk = malloc(size + 1);
	fill(r, o->chunk, size);
	uint8_t *joined = o->chunk;
	if (tail) {
		size_t room = lade_spec_bound(tail, size);
		joined = malloc(room + 1);
		OK(lade_encode(engine, tail, lade_host_cspan(o->chunk, size),
		               lade_host_span(joined, room), &got, err));
	}
	o->segments = rng_below(r, 2) ? 1 : 1 + rng_below(r, SEGMENTS);
	for (size_t i = 0; i < o->segments; i++) {
		size_t part = i + 1 == o->segments ? got - off : rng_below(r, got - off + 1);
		size_t room = lade_spec_bound(specs[spec], part), n;
		uint8_t *bytes = malloc(room + 1);
		OK(lade_encode(engine, specs[spec], lade_host_cspan(joined + off, part),
		               lade_host_span(bytes, room), &n, err));
		o->src[i] = buffer_new(device >= 0 ? there : rng_below(r, 4) ? place : any_place(r),
		                       n, rng_below(r, 20));
		buffer_put(&o->src[i], bytes, n);
		bool tells = device >= 0 || rng_below(r, 2);
		o->segment[i] = (lade_segment){o->src[i].data, n, o->src[i].place,
		                               tells ? part : 0};
		free(bytes);
		off += part;
	}
	if (tail)
		free(joined);
	place = any_place(r);
	for (size_t k = 0; k < o->count; k++)
		make_output(r, o, k,
		            device >= 0        ? there
		            : rng_below(r, 4) ? place
		                              : any_place(r));
	lade_item item = {.spec = device >= 0 ? NULL : specs[spec], .src = o->segment,
	                  .src_count = o->segments, .tail = tail};
	if (o->count == 1) {
		item.dst = o->output[0].dst;
		item.layout = o->output[0].layout;
	} else {
		item.outputs = o->output;
		item.output_count = o->count;
	}
	return item;
}

static void free_one(one *o)
{
	for (size_t i = 0; i < OUTPUTS; i++) {
		buffer_free(&o->dst[i]);
		free(o->want[i]);
	}
	for (size_t i = 0; i < SEGMENTS; i++)
		buffer_free(&o->src[i]);
	free(o->chunk);
}

static void check_one(const one *o, const lade_result *got, size_t i, const char *why)
{
	if (got->status != LADE_OK)
		print_error("item %zu, %s: %s\n", i, texts[o->spec], why);
	assert_int_equal(got->status, LADE_OK);
	assert_int_equal(got->size, o->size);
	for (size_t k = 0; k < o->count; k++) {
		uint8_t *bytes = malloc(o->dst[k].size + 1);
		buffer_get(&o->dst[k], bytes, o->dst[k].size);
		if (memcmp(bytes, o->want[k], o->dst[k].size))
			print_error("item %zu, output %zu, %s %d -> %s %d\n", i, k, texts[o->spec],
			            (int)o->segment[0].place.kind,
			            lade_kind_name(o->dst[k].place.kind),
			            (int)o->dst[k].place.device);
		assert_memory_equal(bytes, o->want[k], o->dst[k].size);
		free(bytes);
	}
}

/* Whether an item may be what no device takes. */
static bool may_refuse(const one *o, const lade_item *item, lade_where where)
{
	bool told = true;
	for (size_t i = 0; i < o->segments; i++)
		told &= o->segment[i].decoded_size != 0;
	return where == LADE_WHERE_DEVICE &&
	       (o->spec >= KERNEL_SPECS || item->tail || !told || o->count > 1);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void decode_round(rng *r, size_t count, const lade_spec *tail)
{
	one *ones = calloc(count, sizeof *ones);
	lade_item *items = calloc(count, sizeof *items);
	lade_result *results = calloc(count, sizeof *results);
	lade_error *errors = calloc(count, sizeof *errors);
	lade_batch_options options = {.struct_size = sizeof options,
	                              .where = (lade_where)rng_below(r, 3),
	                              .item_errors = errors,
	                              .device = (int32_t)rng_below(r, (uint64_t)device_count)};
	for (size_t i = 0; i < count; i++)
		items[i] = make_one(r, &ones[i], rng_below(r, SPECS), tail, -1);
	lade_decode_into(engine, NULL, items, count, results, &options, NULL);
	for (size_t i = 0; i < count; i++) {
		if (results[i].status != LADE_E_UNSUPPORTED ||
		    !may_refuse(&ones[i], &items[i], options.where))
			check_one(&ones[i], &results[i], i, errors[i].message);
		free_one(&ones[i]);
	}
	free(ones);
	free(items);
	free(results);
	free(errors);
}

static void decode_everywhere(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(40, 100); i++) {
		rng r = round_begin((uint64_t)i);
		decode_round(&r, 1 + rng_below(&r, 30), NULL);
	}
}

static void decode_tails(void **state)
{
	(void)state;
	lade_spec *tail = spec_of(engine, "shuffle(4)|delta(|i1)");
	for (int i = 0; i < rounds(8, 20); i++) {
		rng r = round_begin(500 + (uint64_t)i);
		decode_round(&r, 1 + rng_below(&r, 20), tail);
	}
	lade_spec_unref(tail);
}

/* A source to be gathered, and the chunk that it gives. */
typedef struct source {
	layout_case layout;
	buffer src, dst;
	lade_segment segment;
	uint8_t *want;
	size_t spec;
} source;

static lade_item make_source(rng *r, source *s, size_t spec, int device)
{
	lade_place there = {LADE_DEVICE, device};
	s->spec = spec;
	layout_random(r, &s->layout, emu ? 500 : 30000, true);
	size_t size = s->layout.span_size;
	uint8_t *bytes = malloc(size + 1);
	fill(r, bytes, size);
	s->want = malloc(s->layout.chunk_size + 1);
	layout_reference(&s->layout, bytes, s->want, true);
	s->src = buffer_new(device >= 0 ? there : any_place(r), size, rng_below(r, 20));
	buffer_put(&s->src, bytes, size);
	free(bytes);
	s->segment = (lade_segment){.data = s->src.data, .size = size, .place = s->src.place};
	s->dst = buffer_new(device >= 0 ? there : any_place(r),
	                    lade_spec_bound(specs[spec], s->layout.chunk_size), rng_below(r, 20));
	return (lade_item){.spec = device >= 0 ? NULL : specs[spec], .src = &s->segment,
	                   .src_count = 1, .layout = &s->layout.layout,
	                   .dst = buffer_span(&s->dst)};
}

static void check_source(source *s, const lade_result *got, size_t i, const char *why)
{
	if (got->status != LADE_OK)
		print_error("item %zu, %s: %s\n", i, texts[s->spec], why);
	assert_int_equal(got->status, LADE_OK);
	size_t size = s->layout.chunk_size, n;
	uint8_t *encoded = malloc(got->size + 1), *back = malloc(size + 1);
	buffer_get(&s->dst, encoded, got->size);
	OK(lade_decode(engine, specs[s->spec], lade_host_cspan(encoded, got->size),
	               lade_host_span(back, size), &n, err));
	assert_int_equal(n, size);
	if (memcmp(back, s->want, size))
		print_error("item %zu, %s, from %s %d\n", i, texts[s->spec],
		            lade_kind_name(s->src.place.kind), (int)s->src.place.device);
	assert_memory_equal(back, s->want, size);
	free(encoded);
	free(back);
}

static void free_source(source *s)
{
	buffer_free(&s->src);
	buffer_free(&s->dst);
	free(s->want);
}

static void encode_everywhere(void **state)
{
	(void)state;
	for (int k = 0; k < rounds(30, 80); k++) {
		rng r = round_begin(1000 + (uint64_t)k);
		size_t count = 1 + rng_below(&r, 30);
		source *all = calloc(count, sizeof *all);
		lade_item *items = calloc(count, sizeof *items);
		lade_result *results = calloc(count, sizeof *results);
		lade_error *errors = calloc(count, sizeof *errors);
		lade_batch_options options = {.struct_size = sizeof options,
		                              .where = (lade_where)rng_below(&r, 3),
		                              .item_errors = errors};
		for (size_t i = 0; i < count; i++)
			items[i] = make_source(&r, &all[i], rng_below(&r, SPECS), -1);
		lade_encode_into(engine, NULL, items, count, results, &options, NULL);
		for (size_t i = 0; i < count; i++) {
			bool other = all[i].src.place.kind == LADE_DEVICE;
			if (results[i].status != LADE_E_UNSUPPORTED ||
			    options.where != LADE_WHERE_DEVICE ||
			    (all[i].spec < KERNEL_SPECS && !other))
				check_source(&all[i], &results[i], i, errors[i].message);
			free_source(&all[i]);
		}
		free(all);
		free(items);
		free(results);
		free(errors);
	}
}

/* ---- enqueued ------------------------------------------------------------------------------- */

/* In some rounds gives a call the workspace that lade_workspace_size() says of such a batch. */
static buffer give_workspace(rng *r, const lade_spec *spec, lade_direction direction,
                             const lade_arrays *like, size_t more, lade_async_options *o)
{
	size_t size = 0;
	if (rng_below(r, 3) == 0)
		return (buffer){0};
	OK(lade_workspace_size(engine, spec, direction, like, &size, err));
	buffer space = buffer_new((lade_place){LADE_DEVICE, 0}, size + more, 0);
	o->workspace = space.data;
	o->workspace_size = space.size;
	return space;
}

/* Nothing was written around it. */
static void check_workspace(buffer *space)
{
	if (space->block)
		free(buffer_image(space));
	buffer_free(space);
}

/* What lade_workspace_size() is to be asked about items. */
typedef struct likeness {
	size_t shape[LADE_DIMS_MAX], units, more;
	lade_layout layout;
} likeness;

static void liken(likeness *l, const layout_case *c, size_t segments, size_t outputs)
{
	if (l->units == 0) {
		for (size_t a = 0; a < LADE_DIMS_MAX; a++)
			l->shape[a] = 1;
		l->layout = (lade_layout){.struct_size = sizeof l->layout, .elem_size = 1,
		                          .shape = l->shape};
	}
	size_t ndim = c->layout.ndim ? c->layout.ndim : 1;
	l->units += segments;
	l->layout.ndim = l->layout.ndim < ndim ? ndim : l->layout.ndim;
	l->shape[0] = l->shape[0] < c->chunk_size ? c->chunk_size : l->shape[0];
	l->more += segments * (outputs - 1) * (104 + 32 * ndim);
}

static void enqueued(void **state)
{
	(void)state;
	for (int k = 0; k < rounds(30, 80); k++) {
		rng r = round_begin(2000 + (uint64_t)k);
		size_t count = 1 + rng_below(&r, 30), spec = rng_below(&r, KERNEL_SPECS);
		bool encode = rng_below(&r, 3) == 0;
		one *ones = calloc(count, sizeof *ones);
		source *all = calloc(count, sizeof *all);
		lade_item *items = calloc(count, sizeof *items);
		lade_result *results = calloc(count, sizeof *results);
		lade_place there = {LADE_DEVICE, 0};
		buffer sizes = buffer_new(there, 8 * count, 0);
		buffer statuses = buffer_new(there, 4 * count, 0);
		lade_async_options o = {.struct_size = sizeof o,
		                        .sizes = (uint64_t *)(void *)sizes.data,
		                        .statuses = (uint32_t *)(void *)statuses.data};
		lade_error why = {.message = ""};
		likeness like = {.units = 0};
		for (size_t i = 0; i < count; i++) {
			items[i] = encode ? make_source(&r, &all[i], spec, 0)
			                  : make_one(&r, &ones[i], spec, NULL, 0);
			liken(&like, encode ? &all[i].layout : &ones[i].layout[0],
			      items[i].src_count, encode ? 1 : ones[i].count);
		}
		buffer space = give_workspace(&r, specs[spec], encode ? LADE_ENCODE : LADE_DECODE,
		                              &(lade_arrays){.struct_size = sizeof(lade_arrays),
		                                             .count = like.units,
		                                             .layout = &like.layout},
		                              (like.more + 255) / 256 * 256, &o);
		lade_status status =
			encode ? lade_encode_async(engine, specs[spec], items, count, &o, &why)
			       : lade_decode_async(engine, specs[spec], items, count, &o, &why);
		/* Segments of no bytes do not tell their size. */
		bool refused = status == LADE_E_UNSUPPORTED && !encode;
		if (status != LADE_OK && !refused)
			print_error("%s\n", why.message);
		assert_true(status == LADE_OK || refused);
		if (!refused)
			OK(lade_results_get(&o, count, results, err));
		for (size_t i = 0; i < count; i++) {
			if (!refused && encode)
				check_source(&all[i], &results[i], i, "");
			else if (!refused)
				check_one(&ones[i], &results[i], i, "");
			free_source(&all[i]);
			free_one(&ones[i]);
		}
		check_workspace(&space);
		buffer_free(&sizes);
		buffer_free(&statuses);
		free(ones);
		free(all);
		free(items);
		free(results);
	}
}

/* ---- arrays --------------------------------------------------------------------------------- */

#define CHUNKS 24

/* Chunks of one layout, or, with boxes, of one shape and one way to place them. */
typedef struct batch {
	layout_case layout, own[CHUNKS];
	size_t count;
	buffer src[CHUNKS], dst[CHUNKS];
	uint8_t *bytes[CHUNKS], *want[CHUNKS];
	uint64_t boxes[CHUNKS * 2 * LADE_DIMS_MAX];
	lade_status status[CHUNKS];
	const void *srcs[CHUNKS];
	void *dsts[CHUNKS];
	uint64_t src_sizes[CHUNKS], dst_caps[CHUNKS];
} batch;

/* A box of chunk 'i', some of which are lies. */
static void make_box(rng *r, batch *b, size_t i)
{
	layout_case *c = &b->own[i];
	size_t ndim = c->layout.ndim;
	uint64_t *box = b->boxes + i * 2 * ndim;
	c->size = c->part_size;
	for (size_t a = 0; a < ndim; a++) {
		size_t n = c->shape[a], step = c->step[a];
		c->start[a] = rng_below(r, n + 1);
		size_t there = c->start[a] < n ? (n - c->start[a] - 1) / step + 1 : 0;
		there = there < b->layout.count[a] ? there : b->layout.count[a];
		c->count[a] = rng_below(r, there + 1);
		if (rng_below(r, 12) == 0)
			c->start[a] = rng_below(r, 2) ? SIZE_MAX - rng_below(r, 3) : n + 1;
		if (rng_below(r, 12) == 0)
			c->count[a] = rng_below(r, 2) ? SIZE_MAX / (1 + rng_below(r, 9)) : n + 1;
		box[a] = c->start[a];
		box[ndim + a] = c->count[a];
		c->size *= c->count[a];
	}
	b->status[i] = lade_layout_measure(&c->layout, LADE_DECODE, b->dst_caps[i], NULL, NULL);
}

static void decode_arrays_round(rng *r, size_t spec, bool boxes, bool host_tables)
{
	batch *b = calloc(1, sizeof *b);
	lade_place there = {LADE_DEVICE, 0};
	b->count = 1 + rng_below(r, CHUNKS);
	layout_random(r, &b->layout, emu ? 300 : 30000, false);
	size_t chunk_size = b->layout.chunk_size, span = b->layout.span_size, n = b->count;
	for (size_t i = 0; i < n; i++) {
		size_t room = lade_spec_bound(specs[spec], chunk_size), size;
		uint8_t *encoded = malloc(room + 1);
		b->bytes[i] = malloc(chunk_size + 1);
		fill(r, b->bytes[i], chunk_size);
		OK(lade_encode(engine, specs[spec], lade_host_cspan(b->bytes[i], chunk_size),
		               lade_host_span(encoded, room), &size, err));
		b->src[i] = buffer_new(there, size, rng_below(r, 20));
		buffer_put(&b->src[i], encoded, size);
		free(encoded);
		bool small = rng_below(r, 8) == 0;
		size_t cap = small ? rng_below(r, span + 1) : span;
		b->dst[i] = buffer_new(there, cap, rng_below(r, 2) ? rng_below(r, 20) : 0);
		b->srcs[i] = b->src[i].data;
		b->src_sizes[i] = size;
		b->dsts[i] = b->dst[i].data;
		b->dst_caps[i] = cap;
		layout_same(&b->own[i], &b->layout);
		b->status[i] =
			lade_layout_measure(&b->own[i].layout, LADE_DECODE, cap, NULL, NULL);
		if (boxes)
			make_box(r, b, i);
		if (!b->own[i].size)
			b->status[i] = b->status[i] == LADE_E_RANGE ? LADE_E_RANGE : LADE_OK;
		b->want[i] = malloc(b->dst[i].block_size);
		size_t lead = (size_t)(b->dst[i].data - b->dst[i].block);
		for (size_t k = 0; k < cap; k++)
			b->want[i][k] = around_byte(lead + k);
		if (b->status[i] == LADE_OK)
			layout_reference(&b->own[i], b->bytes[i], b->want[i], false);
	}
	buffer tables[4], sizes = buffer_new(there, 8 * n, 0);
	buffer statuses = buffer_new(there, 4 * n, 0);
	buffer box = buffer_new(there, 16 * n * b->layout.layout.ndim + 8, 0);
	const void *from[4] = {b->srcs, b->src_sizes, b->dsts, b->dst_caps};
	for (int k = 0; k < 4; k++) {
		tables[k] = buffer_new(there, 8 * n, 0);
		buffer_put(&tables[k], from[k], 8 * n);
	}
	buffer_put(&box, b->boxes, 16 * n * b->layout.layout.ndim);
	lade_arrays arrays = {
		.struct_size = sizeof(lade_arrays),
		.src = host_tables ? b->srcs : (const void *const *)(void *)tables[0].data,
		.src_size = host_tables ? b->src_sizes : (uint64_t *)(void *)tables[1].data,
		.dst = host_tables ? b->dsts : (void *const *)(void *)tables[2].data,
		.dst_cap = host_tables ? b->dst_caps : (uint64_t *)(void *)tables[3].data,
		.count = n,
		.layout = &b->layout.layout,
		.boxes = boxes ? (uint64_t *)(void *)box.data : NULL};
	lade_async_options o = {.struct_size = sizeof o,
	                        .flags = host_tables ? LADE_ASYNC_HOST_TABLES : 0,
	                        .sizes = (uint64_t *)(void *)sizes.data,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	lade_result results[CHUNKS];
	buffer space = give_workspace(r, specs[spec], LADE_DECODE, &arrays, 0, &o);
	OK(lade_decode_arrays_async(engine, specs[spec], &arrays, &o, err));
	lade_results_get(&o, n, results, NULL);
	check_workspace(&space);
	for (size_t i = 0; i < n; i++) {
		uint8_t *got = malloc(b->dst[i].block_size);
		if (results[i].status != b->status[i])
			print_error("chunk %zu of %zu%s: status %d, want %d\n", i, n,
			            boxes ? " with boxes" : "", (int)results[i].status,
			            (int)b->status[i]);
		assert_int_equal(results[i].status, b->status[i]);
		assert_int_equal(results[i].size, b->status[i] == LADE_OK ? b->own[i].size : 0);
		buffer_get(&b->dst[i], got, b->dst[i].size);
		assert_memory_equal(got, b->want[i], b->dst[i].size);
		free(got);
		buffer_free(&b->src[i]);
		buffer_free(&b->dst[i]);
		free(b->bytes[i]);
		free(b->want[i]);
	}
	for (int k = 0; k < 4; k++)
		buffer_free(&tables[k]);
	buffer_free(&sizes);
	buffer_free(&statuses);
	buffer_free(&box);
	free(b);
}

static void arrays_and_boxes(void **state)
{
	(void)state;
	for (int k = 0; k < rounds(40, 100); k++) {
		rng r = round_begin(3000 + (uint64_t)k);
		decode_arrays_round(&r, rng_below(&r, KERNEL_SPECS), k % 2, rng_below(&r, 2));
	}
}

/* Sources gathered by one layout. */
static void arrays_encoded(void **state)
{
	(void)state;
	for (int k = 0; k < rounds(16, 60); k++) {
		rng r = round_begin(4000 + (uint64_t)k);
		size_t n = 1 + rng_below(&r, CHUNKS), spec = rng_below(&r, KERNEL_SPECS);
		lade_place there = {LADE_DEVICE, 0};
		layout_case c;
		buffer src[CHUNKS], dst[CHUNKS];
		const void *srcs[CHUNKS];
		void *dsts[CHUNKS];
		uint64_t src_sizes[CHUNKS], caps[CHUNKS];
		uint8_t *bytes[CHUNKS];
		layout_random(&r, &c, emu ? 300 : 30000, true);
		size_t size = c.chunk_size, room = lade_spec_bound(specs[spec], size);
		for (size_t i = 0; i < n; i++) {
			bytes[i] = malloc(c.span_size + 1);
			fill(&r, bytes[i], c.span_size);
			src[i] = buffer_new(there, c.span_size, rng_below(&r, 20));
			buffer_put(&src[i], bytes[i], c.span_size);
			dst[i] = buffer_new(there, room, rng_below(&r, 20));
			srcs[i] = src[i].data;
			dsts[i] = dst[i].data;
			src_sizes[i] = c.span_size;
			caps[i] = room;
		}
		if (c.size)
			src_sizes[0] = 0; /* too small */
		buffer sizes = buffer_new(there, 8 * n, 0), statuses = buffer_new(there, 4 * n, 0);
		lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
		                      .src = srcs,
		                      .src_size = src_sizes,
		                      .dst = dsts,
		                      .dst_cap = caps,
		                      .count = n,
		                      .layout = &c.layout};
		lade_async_options o = {.struct_size = sizeof o, .flags = LADE_ASYNC_HOST_TABLES,
		                        .sizes = (uint64_t *)(void *)sizes.data,
		                        .statuses = (uint32_t *)(void *)statuses.data};
		lade_result results[CHUNKS];
		buffer space = give_workspace(&r, specs[spec], LADE_ENCODE, &arrays, 0, &o);
		OK(lade_encode_arrays_async(engine, specs[spec], &arrays, &o, err));
		lade_results_get(&o, n, results, NULL);
		check_workspace(&space);
		for (size_t i = 0; i < n; i++) {
			uint8_t *want = malloc(size + 1), *back = malloc(size + 1);
			uint8_t *encoded = malloc(room + 1);
			size_t got;
			assert_int_equal(results[i].status,
			                 i == 0 && c.size ? LADE_E_RANGE : LADE_OK);
			buffer_get(&dst[i], encoded, results[i].size);
			layout_reference(&c, bytes[i], want, true);
			if (results[i].status == LADE_OK) {
				OK(lade_decode(engine, specs[spec],
				               lade_host_cspan(encoded, results[i].size),
				               lade_host_span(back, size), &got, err));
				assert_int_equal(got, size);
				assert_memory_equal(back, want, size);
			}
			free(want);
			free(back);
			free(encoded);
			free(bytes[i]);
			buffer_free(&src[i]);
			buffer_free(&dst[i]);
		}
		buffer_free(&sizes);
		buffer_free(&statuses);
	}
}

/* Numbers whose sums pass 64 bits, where nothing else bounds them. */
static void arrays_of_any_size(void **state)
{
	(void)state;
	uint8_t raw[3] = {1, 2, 3}, encoded[40], got[64], around[64];
	size_t size, shape[1] = {3};
	ptrdiff_t strides[1] = {PTRDIFF_MAX};
	OK(lade_encode(engine, specs[0], lade_host_cspan(raw, 3), lade_host_span(encoded, 40),
	               &size, err));
	lade_place there = {LADE_DEVICE, 0};
	uint64_t table[2] = {0, 3}, encoded_size = size, cap = UINT64_MAX;
	buffer src = buffer_new(there, size, 0), dst = buffer_new(there, 64, 0);
	buffer boxes = buffer_new(there, sizeof table, 0), sizes = buffer_new(there, 8, 0);
	buffer statuses = buffer_new(there, 4, 0);
	buffer_put(&src, encoded, size);
	buffer_put(&boxes, table, sizeof table);
	buffer_get(&dst, around, 64);
	const void *from = src.data;
	void *to = dst.data;
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 1, .shape = shape,
	                 .strides = strides, .offset = 60};
	lade_arrays arrays = {.struct_size = sizeof(lade_arrays),
	                      .src = &from,
	                      .src_size = &encoded_size,
	                      .dst = &to,
	                      .dst_cap = &cap,
	                      .count = 1,
	                      .layout = &l,
	                      .boxes = (uint64_t *)(void *)boxes.data};
	lade_async_options o = {.struct_size = sizeof o, .flags = LADE_ASYNC_HOST_TABLES,
	                        .sizes = (uint64_t *)(void *)sizes.data,
	                        .statuses = (uint32_t *)(void *)statuses.data};
	lade_result result;
	OK(lade_decode_arrays_async(engine, specs[0], &arrays, &o, err));
	FAILS(LADE_E_RANGE, "", lade_results_get(&o, 1, &result, err));
	/* A stride of 0 is for the one index of the layout, not for the table's three. */
	size_t single[1] = {1};
	strides[0] = 0;
	l.count = single;
	cap = 64;
	OK(lade_decode_arrays_async(engine, specs[0], &arrays, &o, err));
	FAILS(LADE_E_ARG, "", lade_results_get(&o, 1, &result, err));
	l.count = NULL;
	strides[0] = 1;
	/* Of elements of 4 GiB there are none. */
	shape[0] = 0;
	l.elem_size = (size_t)1 << 32;
	arrays.boxes = NULL;
	OK(lade_decode_arrays_async(engine, specs[0], &arrays, &o, err));
	OK(lade_results_get(&o, 1, &result, err));
	assert_int_equal(result.size, 0);
	buffer_get(&dst, got, 64);
	assert_memory_equal(got, around, 64);
	buffer_free(&src);
	buffer_free(&dst);
	buffer_free(&boxes);
	buffer_free(&sizes);
	buffer_free(&statuses);
}

/* ---- large ----------------------------------------------------------------------------------- */

/* A chunk of more bytes than a kernel takes, as rows and as one run: the host decodes it. */
static void larger_than_kernels_take(void **state)
{
	(void)state;
	const size_t rows = 2200, run = (size_t)1 << 20, pitch = run + 64, size = rows * run;
	size_t shape[2] = {rows, run}, words[1] = {size / 8};
	ptrdiff_t strides[2] = {(ptrdiff_t)pitch, 1};
	if (emu) /* it has 1 GiB */
		skip();
	uint64_t *plain = malloc(size);
	assert_non_null(plain);
	for (size_t i = 0; i < size / 8; i++)
		plain[i] = i * 0x9E3779B97F4A7C15u;
	buffer dst = buffer_new((lade_place){LADE_DEVICE, 0}, rows * pitch, 0);
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 2, .shape = shape,
	                 .strides = strides};
	lade_segment segment = {.data = plain, .size = size};
	lade_item item = {.src = &segment, .src_count = 1, .dst = buffer_span(&dst), .layout = &l};
	OK(lade_decode_into(engine, specs[SPECS - 1], &item, 1, NULL, NULL, err));
	uint8_t *got = buffer_image(&dst);
	for (size_t i = 0; i < rows; i++) {
		assert_memory_equal(got + i * pitch, (uint8_t *)plain + i * run, run);
		assert_int_equal(got[i * pitch + run], around_byte(i * pitch + run));
	}
	free(got);
	l = (lade_layout){.struct_size = sizeof l, .elem_size = 8, .ndim = 1, .shape = words,
	                  .swap_size = 8};
	OK(lade_decode_into(engine, specs[SPECS - 1], &item, 1, NULL, NULL, err));
	got = buffer_image(&dst);
	for (size_t i = 0; i < size / 8; i++) {
		uint64_t word;
		memcpy(&word, got + 8 * i, 8);
		if (__builtin_bswap64(word) != plain[i])
			fail_msg("word %zu", i);
	}
	free(got);
	free(plain);
	buffer_free(&dst);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refused(void **state)
{
	(void)state;
	lade_place there = {LADE_DEVICE, 0};
	uint8_t raw[64] = {0}, encoded[200];
	size_t got, shape[2] = {8, 8}, wrong[2] = {8, 9};
	ptrdiff_t strides[2] = {8, 1};
	OK(lade_encode(engine, specs[0], lade_host_cspan(raw, 64), lade_host_span(encoded, 200),
	               &got, err));
	buffer src = buffer_new(there, got, 0), dst = buffer_new(there, 64, 0);
	buffer_put(&src, encoded, got);
	lade_segment segment = {src.data, got, there, 0};
	lade_layout l = {.struct_size = sizeof l, .elem_size = 1, .ndim = 2, .shape = shape,
	                 .strides = strides};
	lade_item item = {.src = &segment, .src_count = 1, .dst = buffer_span(&dst), .layout = &l};
	for (int where = 0; where < 3; where++) {
		lade_batch_options o = {.struct_size = sizeof o, .where = (lade_where)where};
		OK(lade_decode_into(engine, specs[0], &item, 1, NULL, &o, err));
		strides[0] = 9;
		FAILS(LADE_E_RANGE, "span",
		      lade_decode_into(engine, specs[0], &item, 1, NULL, &o, err));
		strides[0] = 0;
		FAILS(LADE_E_ARG, "stride of 0",
		      lade_decode_into(engine, specs[0], &item, 1, NULL, &o, err));
		strides[0] = 8;
		l.shape = wrong;
		l.strides = NULL;
		item.dst.size = 72; /* the layout's; the chunk is too short before that matters */
		FAILS(LADE_E_CORRUPT, "",
		      lade_decode_into(engine, specs[0], &item, 1, NULL, &o, err));
		item.dst.size = 64;
		l.shape = shape;
		l.strides = strides;
		shape[0] = 7;
		FAILS(LADE_E_NOSPACE, "",
		      lade_decode_into(engine, specs[0], &item, 1, NULL, &o, err));
		shape[0] = 8;
	}
	/* Encoding: what a layout claims takes no memory; and chunks without bytes may be of any
	 * shape. */
	size_t vast[3] = {(size_t)1 << 30, (size_t)1 << 27, 1}, vaster[3] = {vast[0], vast[0], 16};
	size_t none[3] = {vast[0], vast[0] * 16, 0};
	ptrdiff_t apart[3] = {(ptrdiff_t)1 << 27, 1, 1};
	buffer out = buffer_new(there, 100, 0);
	for (int where = 0; where < 2; where++) {
		lade_segment array = {dst.data, 64, there, 0};
		lade_batch_options o = {.struct_size = sizeof o, .where = (lade_where)where};
		lade_layout m = {.struct_size = sizeof m, .elem_size = 1, .ndim = 3,
		                 .strides = apart, .shape = vast};
		lade_item from = {.src = &array, .src_count = 1, .dst = buffer_span(&out),
		                  .layout = &m};
		FAILS(LADE_E_RANGE, "span",
		      lade_encode_into(engine, specs[5], &from, 1, NULL, &o, err));
		m.shape = vaster;
		FAILS(LADE_E_RANGE, "overflow",
		      lade_encode_into(engine, specs[5], &from, 1, NULL, &o, err));
		o.where = LADE_WHERE_DEVICE;
		FAILS(LADE_E_RANGE, "overflow",
		      lade_encode_into(engine, specs[0], &from, 1, NULL, &o, err));
		m.shape = none;
		OK(lade_encode_into(engine, specs[0], &from, 1, NULL, &o, err));
	}
	free(buffer_image(&out));
	buffer_free(&out);
	lade_async_options a = {.struct_size = sizeof a};
	OK(lade_decode_async(engine, specs[0], &item, 1, &a, err));
	OK(lade_stream_wait(0, NULL, err));
	strides[0] = 9;
	FAILS(LADE_E_RANGE, "item 0: layout",
	      lade_decode_async(engine, specs[0], &item, 1, &a, err));
	strides[0] = 8;
	size_t huge[1] = {(size_t)2 << 30}, few[1] = {8};
	lade_layout part = {.struct_size = sizeof part, .elem_size = 1, .ndim = 1, .shape = huge,
	                    .count = few};
	item.layout = &part;
	FAILS(LADE_E_LIMIT, "kernels take", lade_decode_async(engine, specs[0], &item, 1, &a, err));
	item.layout = &l;
	item.tail = specs[1];
	FAILS(LADE_E_UNSUPPORTED, "tails", lade_decode_async(engine, specs[0], &item, 1, &a, err));
	free(buffer_image(&dst));
	buffer_free(&src);
	buffer_free(&dst);
}

int main(int argc, char **argv)
{
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_everywhere), cmocka_unit_test(decode_tails),
		cmocka_unit_test(encode_everywhere), cmocka_unit_test(enqueued),
		cmocka_unit_test(arrays_and_boxes),  cmocka_unit_test(arrays_encoded),
		cmocka_unit_test(arrays_of_any_size),
		cmocka_unit_test(larger_than_kernels_take), cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
