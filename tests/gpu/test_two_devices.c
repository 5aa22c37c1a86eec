/*
 * test_two_devices.c: chunks that lie on one device and are wanted on another.  Kernels of the one
 * do not reach the memory of the other, so the driver copies.  Wants two devices with kernels, and
 * skips elsewhere, also with "--must".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

static lade_engine *engine;

enum { COUNT = 40 };

/* Chunks of one spec, packed one behind the other on one device, to a row on another. */
typedef struct crossing {
	const lade_spec *spec;
	chunk chunk[COUNT];
	buffer src, dst;
	lade_segment segment[COUNT];
	lade_item item[COUNT];
	lade_result result[COUNT];
} crossing;

static size_t size_at(size_t i)
{
	return 8 * (i * 37 % 400);
}

static crossing *crossing_new(const lade_spec *spec, int32_t from, int32_t to, bool encode)
{
	crossing *x = calloc(1, sizeof *x);
	size_t in = 0, out = 0, room = 0;
	rng r = {.s = 17};
	x->spec = spec;
	for (size_t i = 0; i < COUNT; i++) {
		x->chunk[i] = chunk_of(engine, spec, NULL, &r, size_at(i));
		in += encode ? x->chunk[i].plain_size : x->chunk[i].encoded_size;
		out += encode ? lade_spec_bound(spec, size_at(i)) : size_at(i);
	}
	x->src = buffer_new((lade_place){LADE_DEVICE, from}, in, 5);
	x->dst = buffer_new((lade_place){LADE_DEVICE, to}, out, 3);
	uint8_t *packed = malloc(in + 1);
	in = out = 0;
	for (size_t i = 0; i < COUNT; i++) {
		const chunk *c = &x->chunk[i];
		size_t n = encode ? c->plain_size : c->encoded_size;
		if (n)
			memcpy(packed + in, encode ? c->plain : c->encoded, n);
		room = encode ? lade_spec_bound(spec, size_at(i)) : size_at(i);
		x->segment[i] = (lade_segment){x->src.data + in, n, x->src.place, 0};
		x->item[i] = (lade_item){.src = &x->segment[i],
		                         .src_count = 1,
		                         .dst = {x->dst.data + out, room, x->dst.place}};
		in += n;
		out += room;
	}
	buffer_put(&x->src, packed, in);
	free(packed);
	return x;
}

static void crossing_free(crossing *x)
{
	for (size_t i = 0; i < COUNT; i++)
		chunk_free(&x->chunk[i]);
	buffer_free(&x->src);
	buffer_free(&x->dst);
	free(x);
}

/* All results are there, and what was not theirs is as it was. */
static void crossing_right(const crossing *x, bool encode)
{
	uint8_t *image = malloc(x->dst.size + 1), back[4000];
	buffer_get(&x->dst, image, x->dst.size);
	free(buffer_image(&x->src));
	for (size_t i = 0; i < COUNT; i++) {
		const chunk *c = &x->chunk[i];
		const uint8_t *at = image + ((uint8_t *)x->item[i].dst.data - x->dst.data);
		size_t size = x->result[i].size;
		assert_int_equal(x->result[i].status, LADE_OK);
		if (encode) {
			OK(lade_decode(engine, x->spec, lade_host_cspan(at, x->result[i].size),
			               lade_host_span(back, sizeof back), &size, err));
			at = back;
		}
		assert_int_equal(size, c->plain_size);
		assert_memory_equal(at, c->plain, size);
	}
	free(image);
}

static void run(const char *text, int32_t from, int32_t to, bool encode, lade_where where)
{
	lade_spec *spec = spec_of(engine, text);
	crossing *x = crossing_new(spec, from, to, encode);
	lade_batch_options o = {.struct_size = sizeof o, .where = where};
	if (encode)
		OK(lade_encode_into(engine, spec, x->item, COUNT, x->result, &o, err));
	else
		OK(lade_decode_into(engine, spec, x->item, COUNT, x->result, &o, err));
	crossing_right(x, encode);
	crossing_free(x);
	lade_spec_unref(spec);
}

static void from_one_to_the_other(void **state)
{
	(void)state;
	static const char *const texts[] = {"lz4", "snappy", "bitshuffle(4)|lz4"};
	for (int32_t from = 0; from < 2; from++) {
		for (size_t k = 0; k < 3; k++) {
			run(texts[k], from, 1 - from, false, LADE_WHERE_DEVICE);
			run(texts[k], from, 1 - from, true, LADE_WHERE_DEVICE);
		}
		run("lz4", from, 1 - from, false, LADE_WHERE_HOST);
		run("zstd(level=1)", from, 1 - from, false, LADE_WHERE_AUTO);
		run("zstd(level=1)", from, 1 - from, true, LADE_WHERE_AUTO);
	}
}

/* Some of each device in one call, and in one item. */
static void both_in_one_call(void **state)
{
	(void)state;
	lade_spec *spec = spec_of(engine, "lz4");
	crossing *x[2] = {crossing_new(spec, 0, 1, false), crossing_new(spec, 1, 0, false)};
	lade_item item[2 * COUNT];
	lade_result result[2 * COUNT];
	for (size_t i = 0; i < 2 * COUNT; i++)
		item[i] = x[i % 2]->item[i / 2];
	lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
	OK(lade_decode_into(engine, spec, item, 2 * COUNT, result, &o, err));
	for (size_t i = 0; i < 2 * COUNT; i++)
		x[i % 2]->result[i / 2] = result[i];
	crossing_right(x[0], false);
	crossing_right(x[1], false);
	assert_int_equal(lade_decoded_sizes(engine, spec, item, 2 * COUNT, result, NULL, NULL),
	                 LADE_E_UNKNOWN_SIZE);
	/* Two segments, one on each. */
	size_t a = 11, b = 12, total = size_at(a) + size_at(b);
	lade_segment both[2] = {x[0]->segment[a], x[1]->segment[b]};
	both[0].decoded_size = size_at(a);
	both[1].decoded_size = size_at(b);
	buffer dst = buffer_new((lade_place){LADE_DEVICE, 1}, total, 9);
	lade_item one = {.src = both, .src_count = 2, .dst = buffer_span(&dst)};
	OK(lade_decode_into(engine, spec, &one, 1, result, &o, err));
	uint8_t *image = malloc(total);
	buffer_get(&dst, image, total);
	assert_int_equal(result[0].size, total);
	assert_memory_equal(image, x[0]->chunk[a].plain, size_at(a));
	assert_memory_equal(image + size_at(a), x[1]->chunk[b].plain, size_at(b));
	free(image);
	buffer_free(&dst);
	crossing_free(x[0]);
	crossing_free(x[1]);
	lade_spec_unref(spec);
}

/* Of many items: a transpose on each device and one on the host, and plain bytes on the other; the
 * chunks are unshuffled as a whole. */
static void outputs_on_both(void **state)
{
	(void)state;
	enum { ROWS = 12, COLUMNS = 20, SIZE = ROWS * COLUMNS * 2, HALF = 200 };
	lade_spec *lz4 = spec_of(engine, "lz4"), *tail = spec_of(engine, "shuffle(2)");
	size_t shape[2] = {ROWS, COLUMNS}, order[2] = {1, 0};
	lade_layout turn = {.struct_size = sizeof turn, .elem_size = 2, .ndim = 2, .shape = shape,
	                    .order = order, .swap_size = 2};
	lade_place places[4] = {{LADE_DEVICE, 1}, {LADE_DEVICE, 0}, LADE_PLACE_HOST,
	                        {LADE_DEVICE, 1}};
	uint8_t plain[COUNT][SIZE], turned[COUNT][SIZE], joined[SIZE], packed[2][2 * SIZE];
	uint8_t got[SIZE];
	buffer dst[COUNT][4];
	lade_item_output output[COUNT][4];
	buffer src[COUNT][2];
	lade_segment segment[COUNT][2];
	lade_item item[COUNT];
	rng r = {.s = 23};
	for (size_t i = 0; i < COUNT; i++) {
		size_t n;
		fill(&r, plain[i], SIZE);
		for (size_t k = 0; k < SIZE; k++)
			turned[i][(k / 2 % COLUMNS * ROWS + k / 2 / COLUMNS) * 2 + (k + 1) % 2] =
				plain[i][k];
		OK(lade_encode(engine, tail, lade_host_cspan(plain[i], SIZE),
		               lade_host_span(joined, SIZE), &n, err));
		for (size_t k = 0; k < 2; k++) {
			size_t part = k ? SIZE - HALF : HALF;
			OK(lade_encode(engine, lz4,
			               lade_host_cspan(joined + k * HALF, part),
			               lade_host_span(packed[k], sizeof packed[k]), &n, err));
			src[i][k] = buffer_new((lade_place){LADE_DEVICE, (int32_t)k}, n, k);
			buffer_put(&src[i][k], packed[k], n);
			segment[i][k] = (lade_segment){src[i][k].data, n, src[i][k].place, part};
		}
		for (size_t k = 0; k < 4; k++) {
			dst[i][k] = buffer_new(places[k], SIZE, i % 5);
			output[i][k] = (lade_item_output){buffer_span(&dst[i][k]),
			                                  k < 3 ? &turn : NULL};
		}
		item[i] = (lade_item){.src = segment[i], .src_count = 2, .outputs = output[i],
		                      .output_count = 4, .tail = tail};
	}
	for (int where = LADE_WHERE_AUTO; where <= LADE_WHERE_HOST; where++) {
		lade_batch_options o = {.struct_size = sizeof o, .where = (lade_where)where};
		lade_result result[COUNT];
		OK(lade_decode_into(engine, lz4, item, COUNT, result, &o, err));
		for (size_t i = 0; i < COUNT; i++) {
			assert_int_equal(result[i].size, 4 * SIZE);
			for (size_t k = 0; k < 4; k++) {
				buffer_get(&dst[i][k], got, SIZE);
				assert_memory_equal(got, k < 3 ? turned[i] : plain[i], SIZE);
				memset(got, 0, SIZE);
				buffer_put(&dst[i][k], got, SIZE);
			}
		}
	}
	lade_batch_options there = {.struct_size = sizeof there, .where = LADE_WHERE_DEVICE};
	FAILS(LADE_E_UNSUPPORTED, "tail",
	      lade_decode_into(engine, lz4, item, 1, NULL, &there, err));
	item[0].tail = NULL;
	FAILS(LADE_E_UNSUPPORTED, "outputs on several devices",
	      lade_decode_into(engine, lz4, item, 1, NULL, &there, err));
	output[0][1].dst.place.device = 77;
	FAILS(LADE_E_NO_DEVICE, "77", lade_decode_into(engine, lz4, item, 1, NULL, NULL, err));
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t k = 0; k < 2; k++)
			buffer_free(&src[i][k]);
		for (size_t k = 0; k < 4; k++)
			buffer_free(&dst[i][k]);
	}
	lade_spec_unref(lz4);
	lade_spec_unref(tail);
}

static int begin(void **state)
{
	(void)state;
	OK(lade_engine_new(NULL, &engine, err));
	if (emu)
		emu->seed = EMULATED_LAZY;
	return 0;
}

static int end(void **state)
{
	(void)state;
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(from_one_to_the_other, begin, end),
		cmocka_unit_test_setup_teardown(both_in_one_call, begin, end),
		cmocka_unit_test_setup_teardown(outputs_on_both, begin, end),
	};
	const lade_device_info *info;
	int rc;
	if (!kit_begin(argc, argv, &rc))
		return rc;
	if (device_count < 2 || lade_device_get_info(1, &info, NULL) != LADE_OK || !info->kernels) {
		printf("skipped: there is one device\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
