/*
 * test_where.c: what lade_device_takes() says is what calls on a device do, and calls of items of
 * many specs and places: each item runs where it can, and none changes another's result.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

static lade_engine *engine;
static lade_spec *lz4, *lz4f;

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 1};
	OK(lade_engine_new(&o, &engine, err));
	lz4 = spec_of(engine, "lz4");
	lz4f = spec_of(engine, "lz4f");
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_spec_unref(lz4);
	lade_spec_unref(lz4f);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

/* What a call on the host's bytes says that has to run on device 0. */
static lade_status asked(const lade_spec *spec, lade_direction direction)
{
	static uint8_t nothing[1];
	const lade_segment segment = {.data = nothing, .size = 2000};
	const lade_item item = {.src = &segment, .src_count = 1,
	                        .dst = lade_host_span(nothing, 2000)};
	const lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	const lade_call call = {.struct_size = sizeof call, .direction = direction, .spec = spec,
	                        .items = &item, .count = 1, .options = &o};
	lade_candidate all[64];
	size_t count;
	return lade_explain(engine, &call, all, 64, &count, NULL);
}

static void a_device_takes_what_it_does(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"copy", "lz4", "snappy", "zstd", "deflate", "zlib", "gzip", "lz4f", "gdeflate",
		"ans", "bitcomp", "cascaded", "shuffle(4)|lz4", "bitshuffle(4)|lz4f", "lz4|crc32c",
		"shuffle(4)|ans|xxh64"};
	size_t taken = 0, refused = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		lade_spec *spec;
		if (lade_spec_parse(engine, texts[i], &spec, NULL) != LADE_OK)
			continue; /* this build leaves it out */
		for (int k = 0; k < 2; k++) {
			lade_direction direction = k ? LADE_DECODE : LADE_ENCODE;
			lade_workload work = {.direction = direction, .largest = 2000};
			lade_status takes = lade_device_takes(engine, spec, &work, 0, NULL);
			assert_int_equal(takes, asked(spec, direction));
			taken += takes == LADE_OK;
			refused += takes != LADE_OK;
		}
		lade_spec_unref(spec);
	}
	assert_true(taken > 0 && refused > 0);
}

static void what_it_does_not_take_is_named(void **state)
{
	(void)state;
	lade_workload work = {.direction = LADE_DECODE};
	OK(lade_device_takes(engine, lz4, &work, 0, err));
	FAILS(LADE_E_NO_DEVICE, "99", lade_device_takes(engine, lz4, &work, 99, err));
	FAILS(LADE_E_NO_DEVICE, "-1", lade_device_takes(engine, lz4, &work, -1, err));
	FAILS(LADE_E_UNSUPPORTED, "lz4f", lade_device_takes(engine, lz4f, &work, 0, err));
	FAILS(LADE_E_ARG, "work", lade_device_takes(engine, lz4, NULL, 0, err));
	FAILS(LADE_E_ARG, "spec", lade_device_takes(engine, NULL, &work, 0, err));
	work.largest = (size_t)1 << 31;
	FAILS(LADE_E_LIMIT, "kernels take", lade_device_takes(engine, lz4, &work, 0, err));
	work.largest = 1;
	work.has_dict = true;
	FAILS(LADE_E_UNSUPPORTED, "dictionar", lade_device_takes(engine, lz4, &work, 0, err));
	work.direction = (lade_direction)7;
	FAILS(LADE_E_ARG, "7", lade_device_takes(engine, lz4, &work, 0, err));
}

/* ---- many groups in one call ----------------------------------------------------------------- */

enum { ITEMS = 500, ALIKE = 300, SPECS = 24, BYTES = 96, ROOM = 192 };

typedef struct many {
	lade_spec *spec[SPECS], *tail; /* equal texts make several specs: each is a group */
	chunk chunk[SPECS];
	buffer src[3], dst[3]; /* by place: ROOM bytes for each item */
	lade_segment segment[ITEMS];
	lade_item item[ITEMS];
	lade_result result[ITEMS];
	lade_error error[ITEMS];
} many;

/* Which places an item has. */
static size_t in_at(size_t i)
{
	return i < ALIKE ? 2 : i / 7 % 3;
}

static size_t out_at(size_t i)
{
	return i < ALIKE ? 2 : i / 9 % 3;
}

static size_t spec_at(size_t i)
{
	return i < ALIKE ? 0 : i / 2 % SPECS; /* neighbours share a spec, not all else */
}

/* The first ALIKE items are one group of the device's, so that it begins to run before the others
 * are looked at; those are of all specs and places, some with a tail, one in 50 bad. */
static many *many_new(void)
{
	static const char *const texts[] = {"lz4", "lz4f", "shuffle(4)|lz4", "snappy"};
	static const lade_place places[] = {{LADE_HOST, 0}, {LADE_PINNED, 0}, {LADE_DEVICE, 0}};
	many *m = calloc(1, sizeof *m);
	uint8_t *coded = calloc(ITEMS, ROOM);
	rng r = {.s = 11};
	m->tail = spec_of(engine, "copy");
	for (size_t k = 0; k < SPECS; k++) {
		m->spec[k] = spec_of(engine, texts[k % 4]);
		m->chunk[k] = chunk_of(engine, m->spec[k], NULL, &r, BYTES);
		assert_true(m->chunk[k].encoded_size <= ROOM);
	}
	for (size_t p = 0; p < 3; p++) {
		m->src[p] = buffer_new(places[p], (size_t)ITEMS * ROOM, 0);
		m->dst[p] = buffer_new(places[p], (size_t)ITEMS * ROOM, 0);
	}
	for (size_t i = 0; i < ITEMS; i++) {
		lade_place from = places[in_at(i)], to = places[out_at(i)];
		const chunk *c = &m->chunk[spec_at(i)];
		memcpy(coded + i * ROOM, c->encoded, c->encoded_size);
		m->segment[i] = (lade_segment){.data = m->src[in_at(i)].data + i * ROOM,
		                               .size = c->encoded_size,
		                               .place = from};
		m->item[i] = (lade_item){.spec = m->spec[spec_at(i)],
		                         .src = &m->segment[i],
		                         .src_count = 1,
		                         .dst = {m->dst[out_at(i)].data + i * ROOM, BYTES, to}};
		if (i >= ALIKE && i % 10 == 3)
			m->item[i].tail = m->tail;
		if (i % 50 == 49)
			m->item[i].dst.data = NULL;
	}
	for (size_t p = 0; p < 3; p++)
		buffer_put(&m->src[p], coded, (size_t)ITEMS * ROOM);
	free(coded);
	return m;
}

static void many_free(many *m)
{
	for (size_t p = 0; p < 3; p++) {
		buffer_free(&m->src[p]);
		buffer_free(&m->dst[p]);
	}
	for (size_t k = 0; k < SPECS; k++) {
		chunk_free(&m->chunk[k]);
		lade_spec_unref(m->spec[k]);
	}
	lade_spec_unref(m->tail);
	free(m);
}

/* What an item gets; with 'device' the host does nothing. */
static lade_status many_want(const many *m, size_t i, bool device)
{
	if (!m->item[i].dst.data)
		return LADE_E_ARG;
	bool kernels = spec_at(i) % 4 != 1 && !m->item[i].tail;
	return device && !kernels ? LADE_E_UNSUPPORTED : LADE_OK;
}

static void many_run(many *m, lade_where where, size_t first)
{
	const size_t size = (size_t)ITEMS * ROOM;
	lade_batch_options o = {
		.struct_size = sizeof o, .where = where, .threads = 2, .item_errors = m->error};
	uint8_t *bytes = calloc(4, size), *zeros = bytes + 3 * size;
	lade_status worst = LADE_OK;
	for (size_t p = 0; p < 3; p++)
		buffer_put(&m->dst[p], zeros, size);
	lade_status status =
		lade_decode_into(engine, NULL, &m->item[first], ITEMS - first, m->result, &o, NULL);
	for (size_t p = 0; p < 3; p++)
		buffer_get(&m->dst[p], bytes + p * size, size);
	for (size_t i = first; i < ITEMS; i++) {
		const lade_result *result = &m->result[i - first];
		lade_status want = many_want(m, i, where == LADE_WHERE_DEVICE);
		const uint8_t *plain = want == LADE_OK ? m->chunk[spec_at(i)].plain : zeros;
		if (result->status != want)
			print_error("item %zu: %s\n", i, m->error[i - first].message);
		assert_int_equal(result->status, want);
		assert_int_equal(result->size, want == LADE_OK ? BYTES : 0);
		assert_memory_equal(bytes + out_at(i) * size + i * ROOM, plain, BYTES);
		worst = worst == LADE_OK ? want : worst;
	}
	assert_int_equal(status, worst);
	free(bytes);
}

static void each_item_of_many_groups_runs_where_it_can(void **state)
{
	(void)state;
	many *m = many_new();
	for (int k = LADE_WHERE_AUTO; k <= LADE_WHERE_DEVICE; k++) {
		many_run(m, (lade_where)k, 0);
		many_run(m, (lade_where)k, ALIKE);
	}
	many_free(m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_device_takes_what_it_does, begin, end),
		cmocka_unit_test_setup_teardown(what_it_does_not_take_is_named, begin, end),
		cmocka_unit_test_setup_teardown(each_item_of_many_groups_runs_where_it_can, begin,
	                                        end),
	};
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
