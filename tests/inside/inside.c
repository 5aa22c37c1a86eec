/*
 * inside.c: a codec that was added to the library goes round on the host and on a device, by the
 * public headers alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 3
#define SIZE ((size_t)1000)
#define ROOM (SIZE + 5)

static void want(bool what, const char *text)
{
	if (what)
		return;
	fprintf(stderr, "inside: not so: %s\n", text);
	exit(1);
}
#define WANT(what) want(what, #what)

static void good(lade_status status, const lade_error *err)
{
	if (status == LADE_OK)
		return;
	fprintf(stderr, "inside: %s\n", err->message);
	exit(1);
}

static uint8_t plain[ITEMS][SIZE], coded[ITEMS][ROOM], back[ITEMS][SIZE];

/* The items' first bytes, of sizes that differ. */
static size_t size_of(size_t item)
{
	return item == 0 ? 0 : SIZE - 100 * item;
}

/* There and back, where it is told; the bytes are the same wherever they were made. */
static void go_round(lade_engine *engine, const lade_spec *spec, lade_where to, lade_where from)
{
	lade_batch_options options;
	lade_segment segments[ITEMS];
	lade_item items[ITEMS];
	lade_result results[ITEMS];
	lade_error err;

	lade_batch_options_init(&options);
	memset(items, 0, sizeof items);
	memset(segments, 0, sizeof segments);
	memset(coded, 0xA5, sizeof coded);
	memset(back, 0xA5, sizeof back);
	for (size_t i = 0; i < ITEMS; i++) {
		segments[i].data = plain[i];
		segments[i].size = size_of(i);
		items[i].src = &segments[i];
		items[i].src_count = 1;
		items[i].dst = lade_host_span(coded[i], size_of(i) + 5);
	}
	options.where = to;
	good(lade_encode_into(engine, spec, items, ITEMS, results, &options, &err), &err);
	for (size_t i = 0; i < ITEMS; i++) {
		WANT(results[i].size == size_of(i) + 5);
		WANT(coded[i][0] == 0xF1 && coded[i][5] == (i ? (uint8_t)~plain[i][0] : 0xA5));
		segments[i].data = coded[i];
		segments[i].size = results[i].size;
		items[i].dst = lade_host_span(back[i], size_of(i));
	}
	options.where = from;
	good(lade_decode_into(engine, spec, items, ITEMS, results, &options, &err), &err);
	for (size_t i = 0; i < ITEMS; i++)
		WANT(results[i].size == size_of(i) && !memcmp(back[i], plain[i], size_of(i)));

	/* Damage is one item's. */
	coded[1][1] ^= 1;
	WANT(lade_decode_into(engine, spec, items, ITEMS, results, &options, &err) ==
	     LADE_E_CORRUPT);
	WANT(results[0].status == LADE_OK && results[1].status == LADE_E_CORRUPT &&
	     results[2].status == LADE_OK);
}

int main(void)
{
	static const lade_where places[] = {LADE_WHERE_HOST, LADE_WHERE_DEVICE};
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	lade_engine *engine;
	lade_spec *spec;
	lade_error err;

	for (size_t i = 0; i < ITEMS; i++)
		for (size_t k = 0; k < SIZE; k++)
			plain[i][k] = (uint8_t)(k * k / 7 + i);
	good(lade_engine_new(&options, &engine, &err), &err);
	WANT(lade_engine_find(engine, "flip") && lade_engine_find(engine, "FLIP"));
	good(lade_spec_parse(engine, "flip", &spec, &err), &err);
	WANT(lade_spec_decoded_max(spec, 92) == 100);
	for (size_t to = 0; to < 2; to++)
		for (size_t from = 0; from < 2; from++)
			go_round(engine, spec, places[to], places[from]);
	lade_spec_unref(spec);
	lade_engine_free(engine);
	puts("flip goes round on the host and on the device");
	return 0;
}
