/*
 * fuzz_foreign.h: the target of all fuzz_foreign_*.c: the input is a file of FUZZ_FORMAT.  What is
 * decoded does not depend on how the input comes and how much is asked for at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/foreign.h>

#include <stdlib.h>
#include <string.h>

/* A small file may stand for a huge one: stop there. */
#define DECODED_MAX ((size_t)4 << 20)

typedef struct feed {
	const uint8_t *data;
	size_t size, pos, step;
} feed;

static lade_status feed_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	feed *f = ctx;
	size_t n = f->size - f->pos;
	(void)err;
	if (n > f->step)
		n = f->step;
	if (n > cap)
		n = cap;
	if (n)
		memcpy(dst, f->data + f->pos, n);
	f->pos += n;
	*got = n;
	return LADE_OK;
}

/* The checksum of all that was decoded, and its size; with a failure, the part before it counts. */
static lade_status decode(lade_engine *engine, const uint8_t *data, size_t size, size_t step,
                          size_t cap, uint8_t *all, size_t *all_size)
{
	feed f = {data, size, 0, step};
	lade_foreign_options options = {.struct_size = sizeof options, .max_window = 1 << 20};
	lade_foreign_reader *r = NULL;
	uint8_t *buf = malloc(cap);
	lade_error err = {0};
	lade_status status = lade_foreign_reader_new(
		engine, FUZZ_FORMAT, (lade_input){&f, feed_read}, &options, &r, &err);
	*all_size = 0;
	while (buf && status == LADE_OK && *all_size < DECODED_MAX) {
		size_t got = 0;
		status = lade_foreign_reader_read(r, buf, cap, &got, &err);
		if (status != LADE_OK && (!err.message[0] || err.status != status || got))
			abort();
		if (got == 0)
			break;
		if (got > DECODED_MAX - *all_size)
			got = DECODED_MAX - *all_size;
		memcpy(all + *all_size, buf, got);
		*all_size += got;
	}
	if (status != LADE_OK && err.offset != LADE_NO_OFFSET && err.offset > size)
		abort();
	lade_foreign_reader_free(r);
	free(buf);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lade_engine *engine;
	static uint8_t *a, *b;
	size_t a_size, b_size;

	if (!engine) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
		lade_engine_new(&options, &engine, NULL);
		a = malloc(DECODED_MAX);
		b = malloc(DECODED_MAX);
	}
	if (!engine || !a || !b)
		return 0;
	lade_status one = decode(engine, data, size, SIZE_MAX, (size_t)2 << 20, a, &a_size);
	lade_status two = decode(engine, data, size, 5, 1000, b, &b_size);
	size_t common = a_size < b_size ? a_size : b_size;
	if (memcmp(a, b, common) != 0)
		abort();
	if (one == LADE_OK && two == LADE_OK && a_size != b_size)
		abort();
	if ((one == LADE_OK) != (two == LADE_OK) && a_size < DECODED_MAX && b_size < DECODED_MAX)
		abort();
	return 0;
}
