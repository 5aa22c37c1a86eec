/*
 * batch_kit.h: what the tests of batches on devices share: memory of every kind with bytes around
 * it that must stay, data of several kinds, and chunks made of it.  The tests run on the emulated
 * device and on real ones.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_BATCH_KIT_H
#define LADE_TESTS_BATCH_KIT_H

#include "gpu/device.h"
#include "gpu/emulated.h"
#include "guard.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* NULL on a real device. */
static emulated_state *emu;
static int32_t device_count;

#define OK(call) \
	do { \
		lade_error err_ = {.message = ""}; \
		lade_error *err = &err_; \
		lade_status status_ = (call); \
		if (status_ != LADE_OK) \
			print_error("line %d: %s: %s\n", __LINE__, #call, err->message); \
		assert_int_equal(status_, LADE_OK); \
	} while (0)

/* Fails so, with 'text' in its message. */
#define FAILS(want, text, call) \
	do { \
		lade_error err_ = {.message = ""}; \
		lade_error *err = &err_; \
		lade_status status_ = (call); \
		if (status_ != (want) || !strstr(err->message, text)) \
			print_error("line %d: %s: %s: %s\n", __LINE__, #call, \
			            lade_status_name(status_), err->message); \
		assert_int_equal(status_, want); \
		assert_non_null(strstr(err->message, text)); \
	} while (0)

/* ---- memory ------------------------------------------ */

#define AROUND ((size_t)64)

/* 'size' bytes at 'data', with bytes around them that must stay. */
typedef struct buffer {
	uint8_t *data, *block;
	size_t size, block_size;
	lade_place place;
} buffer;

static inline uint8_t around_byte(size_t i)
{
	return (uint8_t)(0xC3 ^ (i * 29));
}

/* Between the host and any place; waits. */
static inline void move(int32_t device, void *to, const void *from, size_t size)
{
	lade__device *d;
	if (size == 0)
		return;
	OK(lade__device_use(device, &d, err));
	OK(LADE__CU(d, cuMemcpyAsync, lade__address_of(to), lade__address_of(from), size, NULL));
	OK(LADE__CU(d, cuStreamSynchronize, NULL));
	lade__device_leave(d);
}

/* 'misalign' below 64. */
static inline buffer buffer_new(lade_place place, size_t size, size_t misalign)
{
	buffer b = {.size = size, .block_size = size + 2 * AROUND, .place = place};
	const lade_allocator *a = lade_allocator_default(place.kind);
	b.block = a->alloc(a->ctx, b.block_size, 64, place, NULL);
	assert_non_null(b.block);
	b.data = b.block + misalign;
	uint8_t *image = malloc(b.block_size);
	for (size_t i = 0; i < b.block_size; i++)
		image[i] = around_byte(i);
	if (place.kind == LADE_DEVICE)
		move(place.device, b.block, image, b.block_size);
	else
		memcpy(b.block, image, b.block_size);
	free(image);
	return b;
}

static inline void buffer_put(const buffer *b, const void *from, size_t size)
{
	assert_true(size <= b->size);
	if (b->place.kind == LADE_DEVICE)
		move(b->place.device, b->data, from, size);
	else if (size)
		memcpy(b->data, from, size);
}

/* The whole block, bytes around included; to be freed.  What lies around is checked. */
static inline uint8_t *buffer_image(const buffer *b)
{
	uint8_t *image = malloc(b->block_size);
	size_t lead = (size_t)(b->data - b->block);
	if (b->place.kind == LADE_DEVICE)
		move(b->place.device, image, b->block, b->block_size);
	else
		memcpy(image, b->block, b->block_size);
	for (size_t i = 0; i < b->block_size; i++)
		if ((i < lead || i >= lead + b->size) && image[i] != around_byte(i)) {
			print_error("%s memory: byte %zu of a block of %zu was written, the span "
			            "is %zu to %zu\n",
			            lade_kind_name(b->place.kind), i, b->block_size, lead,
			            lead + b->size);
			fail();
		}
	return image;
}

static inline void buffer_get(const buffer *b, void *to, size_t size)
{
	uint8_t *image = buffer_image(b);
	if (size)
		memcpy(to, image + (b->data - b->block), size);
	free(image);
}

static inline void buffer_free(buffer *b)
{
	const lade_allocator *a = lade_allocator_default(b->place.kind);
	if (b->block)
		a->free(a->ctx, b->block, b->block_size, 64, b->place, NULL);
	b->block = NULL;
}

static inline lade_span buffer_span(const buffer *b)
{
	return (lade_span){b->data, b->size, b->place};
}

/* Pageable, pinned, managed, each device. */
static inline lade_place any_place(rng *r)
{
	switch (rng_below(r, 5)) {
	case 0:
		return LADE_PLACE_HOST;
	case 1:
		return (lade_place){LADE_PINNED, 0};
	case 2:
		return (lade_place){LADE_MANAGED, 0};
	case 3:
		return (lade_place){LADE_DEVICE, 0};
	default:
		return (lade_place){LADE_DEVICE, device_count - 1};
	}
}

/* ---- data ------------------------------------------ */

/* Bytes between random and very regular. */
static inline void fill(rng *r, uint8_t *data, size_t size)
{
	uint64_t kind = rng_below(r, 5), value = rng_next(r);
	for (size_t i = 0; i < size; i++) {
		if (kind == 0)
			data[i] = (uint8_t)rng_next(r);
		else if (kind == 1)
			data[i] = (uint8_t)value;
		else if (kind == 2)
			data[i] = (uint8_t)((i / 4) >> (8 * (i % 4)));
		else if (kind == 3)
			data[i] = rng_below(r, 16) ? (uint8_t)(i / 7) : (uint8_t)rng_next(r);
		else
			data[i] = (uint8_t)("the quick brown fox jumps over it"[(i * i / 11) % 33]);
	}
}

/* A multiple of 8, mostly small; the emulated device is slow. */
static inline size_t any_size(rng *r)
{
	static const size_t small[] = {0, 8, 64, 512, 3000, 20000};
	static const size_t large[] = {0, 64, 4096, 70000, 300000, 1 << 20};
	return rng_below(r, (emu ? small : large)[rng_below(r, 6)] / 8 + 1) * 8;
}

/* A chunk on the host: what it decodes to, and what it is encoded as. */
typedef struct chunk {
	uint8_t *plain, *encoded;
	size_t plain_size, encoded_size;
} chunk;

static inline chunk chunk_of(lade_engine *engine, const lade_spec *spec, const lade_dict *dict,
                             rng *r, size_t size)
{
	size_t bound = lade_spec_bound(spec, size);
	chunk c = {.plain = malloc(size + 1), .encoded = malloc(bound + 1), .plain_size = size};
	fill(r, c.plain, size);
	lade_segment s = {.data = c.plain, .size = size};
	lade_item item = {.src = &s, .src_count = 1, .dst = lade_host_span(c.encoded, bound)};
	lade_batch_options o = {.struct_size = sizeof o, .dict = dict};
	lade_result result;
	OK(lade_encode_into(engine, spec, &item, 1, &result, &o, err));
	c.encoded_size = result.size;
	return c;
}

static inline void chunk_free(chunk *c)
{
	free(c->plain);
	free(c->encoded);
}

static inline lade_spec *spec_of(lade_engine *engine, const char *text)
{
	lade_spec *spec;
	OK(lade_spec_parse(engine, text, &spec, err));
	return spec;
}

/* How the emulated device runs in a round; it is quicker when the host may touch its memory. */
static inline void kit_round(uint64_t number, uint64_t random)
{
	if (!emu)
		return;
	emu->seed = number % 4 == 0 ? EMULATED_LAZY : number % 4 == 1 ? EMULATED_EAGER : random;
	emu->protect = number % 5 == 0;
}

/* ---- begin and end ------------------------------------------ */

static inline uint64_t seed_of(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--seed") == 0)
			return strtoull(argv[i + 1], NULL, 0);
	return 0;
}

/* Whether the tests can run: there is a device with kernels.  '*rc' is what to exit with if not. */
static inline bool kit_begin(int argc, char **argv, int *rc)
{
	lade_error err = {.message = ""};
	*rc = 0;
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--must") == 0)
			*rc = 1;
	emu = emulated_open();
	if (lade_device_count(&device_count, &err) != LADE_OK) {
		printf("skipped: %s\n", err.message);
		return false;
	}
	const lade_device_info *info;
	if (lade_device_get_info(0, &info, &err) != LADE_OK || !info->kernels) {
		printf("skipped: the build has no kernels for device 0\n");
		return false;
	}
	printf("%d devices, %s\n", (int)device_count, emu ? "emulated" : info->name);
	*rc = 0;
	return true;
}

/* The emulated device found nothing wrong, and nothing is left. */
static inline void kit_clean(void)
{
	if (!emu)
		return;
	emu->protect = 1;
	/* Streams that are gone may have work left: blocks to give back. */
	int (*wait)(void) = NULL;
	void *symbol = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxSynchronize");
	memcpy(&wait, &symbol, sizeof wait);
	for (int32_t i = 0; i < device_count; i++) {
		lade__device *d;
		OK(lade__device_use(i, &d, err));
		assert_int_equal(wait(), 0);
		lade__device_leave(d);
	}
	assert_string_equal(emu->message, "");
	assert_int_equal(emu->pending, 0);
	assert_int_equal(emu->pushed, 0);
	assert_int_equal(emu->blocks, 0);
	assert_int_equal(emu->streams, 0);
	assert_int_equal(emu->events, 0);
}

#endif
