/*
 * c_side.c: the C side of c.test.js.  "c_side SOCKET publish" publishes a table "c/table"; "c_side
 * SOCKET check NAME" opens one like it and checks each value; "c_side SOCKET device" publishes a
 * column "c/device" on device 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/lade.h>

#include "share/arrow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 20000
#define COLUMNS 4

static void no_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void no_array(struct ArrowArray *a)
{
	a->release = NULL;
}

static int fail(const char *what)
{
	fprintf(stderr, "c_side: %s\n", what);
	exit(1);
}

/* Row i of the table: number 3 i, null at each seventh; text "t<i % 10>"; a list of i % 3 bytes;
 * a code of the dictionary {"no", "yes"}. */
static uint8_t bitmap[ROWS / 8 + 1];
static int64_t numbers[ROWS];
static int32_t text_offsets[ROWS + 1], list_offsets[ROWS + 1], words_offsets[3] = {0, 2, 5};
static char texts[ROWS * 2 + 1];
static uint8_t bytes[ROWS * 2];
static int8_t codes[ROWS];

static void fill(void)
{
	for (int i = 0; i < ROWS; i++) {
		bitmap[i / 8] |= (uint8_t)((i % 7 != 0) << i % 8);
		numbers[i] = 3 * i;
		text_offsets[i + 1] = 2 * (i + 1);
		snprintf(texts + 2 * i, 3, "t%d", i % 10);
		list_offsets[i + 1] = list_offsets[i] + i % 3;
		for (int j = 0; j < i % 3; j++)
			bytes[list_offsets[i] + j] = (uint8_t)(i + j);
		codes[i] = i % 5 == 0;
	}
}

/* Publishes rows 5 to ROWS - 1: the columns have an offset. */
static void publish(lade_share *share)
{
	struct ArrowSchema item = {"C", "item", NULL, 0, 0, NULL, NULL, no_schema, NULL};
	struct ArrowSchema words = {"u", "", NULL, 0, 0, NULL, NULL, no_schema, NULL};
	struct ArrowSchema *items[] = {&item};
	struct ArrowSchema column[COLUMNS] = {
		{"l", "number", NULL, 2, 0, NULL, NULL, no_schema, NULL},
		{"u", "text", NULL, 0, 0, NULL, NULL, no_schema, NULL},
		{"+l", "list", NULL, 0, 1, items, NULL, no_schema, NULL},
		{"c", "code", NULL, 0, 0, NULL, &words, no_schema, NULL},
	};
	struct ArrowSchema *columns[] = {&column[0], &column[1], &column[2], &column[3]};
	struct ArrowSchema schema = {"+s", "", NULL, 0, COLUMNS, columns, NULL, no_schema, NULL};
	const void *number_buffers[] = {bitmap, numbers}, *byte_buffers[] = {NULL, bytes};
	const void *text_buffers[] = {NULL, text_offsets, texts};
	const void *list_buffers[] = {NULL, list_offsets}, *code_buffers[] = {NULL, codes};
	const void *word_buffers[] = {NULL, words_offsets, "noyes"}, *none[] = {NULL};
	struct ArrowArray item_a = {list_offsets[ROWS], 0,    0,    2,        0,
	                            byte_buffers,       NULL, NULL, no_array, NULL};
	struct ArrowArray word_a = {2, 0, 0, 3, 0, word_buffers, NULL, NULL, no_array, NULL};
	struct ArrowArray *item_as[] = {&item_a};
	struct ArrowArray array[COLUMNS] = {
		{ROWS - 5, -1, 5, 2, 0, number_buffers, NULL, NULL, no_array, NULL},
		{ROWS - 5, 0, 5, 3, 0, text_buffers, NULL, NULL, no_array, NULL},
		{ROWS - 5, 0, 5, 2, 1, list_buffers, item_as, NULL, no_array, NULL},
		{ROWS - 5, 0, 5, 2, 0, code_buffers, NULL, &word_a, no_array, NULL},
	};
	struct ArrowArray *arrays[] = {&array[0], &array[1], &array[2], &array[3]};
	struct ArrowArray table = {ROWS - 5, 0, 0, 1, COLUMNS, none, arrays, NULL, no_array, NULL};
	const struct ArrowArray *batches[] = {&table};
	lade_share_table what = {.struct_size = sizeof what,
	                         .schema = &schema,
	                         .batches = batches,
	                         .batch_count = 1};
	lade_error err;

	if (lade_share_publish(share, "c/table", &what, NULL, &err))
		fail(err.message);
}

static void check_row(const struct ArrowArray *const *column, int64_t row, int i)
{
	const struct ArrowArray *n = column[0], *t = column[1], *l = column[2], *c = column[3];
	int64_t at = n->offset + row;
	bool valid = !n->buffers[0] || (((const uint8_t *)n->buffers[0])[at / 8] >> at % 8 & 1);
	if (valid != (i % 7 != 0) || (valid && ((const int64_t *)n->buffers[1])[at] != 3 * i))
		fail("a number");
	const int32_t *o = (const int32_t *)t->buffers[1] + t->offset + row;
	if (o[1] - o[0] != 2 || ((const char *)t->buffers[2])[o[0] + 1] != '0' + i % 10)
		fail("a text");
	o = (const int32_t *)l->buffers[1] + l->offset + row;
	const struct ArrowArray *item = l->children[0];
	if (o[1] - o[0] != i % 3)
		fail("the size of a list");
	for (int j = 0; j < i % 3; j++)
		if (((const uint8_t *)item->buffers[1])[item->offset + o[0] + j] !=
		    (uint8_t)(i + j))
			fail("an element of a list");
	int8_t code = ((const int8_t *)c->buffers[1])[c->offset + row];
	const struct ArrowArray *words = c->dictionary;
	o = (const int32_t *)words->buffers[1] + words->offset + code;
	const char *word = i % 5 == 0 ? "yes" : "no";
	if (strncmp((const char *)words->buffers[2] + o[0], word, (size_t)(o[1] - o[0])))
		fail("a word");
}

/* All batches together are rows 5 to ROWS - 1. */
static void check(lade_share *share, const char *name)
{
	lade_share_open_options options = {.struct_size = sizeof options,
	                                   .check = LADE_SHARE_CHECK_FULL};
	lade_share_version *version;
	struct ArrowArray table;
	lade_error err;
	int i = 5;

	if (lade_share_open(share, name, &options, &version, &err))
		fail(err.message);
	for (uint32_t b = 0; b < lade_share_version_info(version)->batches; b++) {
		if (lade_share_version_array(version, b, &table, &err))
			fail(err.message);
		if (table.n_children != COLUMNS || table.offset)
			fail("the columns");
		for (int64_t row = 0; row < table.length; row++)
			check_row((const struct ArrowArray *const *)table.children, row, i++);
		table.release(&table);
	}
	if (i != ROWS)
		fail("rows are missing");
	lade_share_version_unref(version);
	printf("%d rows\n", i - 5);
}

static void publish_device(lade_share *share)
{
	struct ArrowSchema schema = {"l", "", NULL, 0, 0, NULL, NULL, no_schema, NULL};
	lade_place place = {LADE_DEVICE, 0};
	lade_array *memory;
	lade_error err;

	if (lade_share_alloc_in(share, sizeof numbers, place, &memory, &err) ||
	    lade_copy(NULL, lade_host_cspan(numbers, sizeof numbers), lade_array_span(memory), NULL,
	              &err))
		fail(err.message);
	const void *buffers[] = {NULL, lade_array_span(memory).data};
	struct ArrowDeviceArray column = {
		.array = {ROWS, 0, 0, 2, 0, buffers, NULL, NULL, no_array, NULL},
		.device_type = 2, /* CUDA */
	};
	const struct ArrowDeviceArray *columns[] = {&column};
	lade_share_table what = {.struct_size = sizeof what,
	                         .schema = &schema,
	                         .batch_count = 1,
	                         .copy = LADE_SHARE_COPY_NEVER,
	                         .device_batches = columns};
	if (lade_share_publish(share, "c/device", &what, NULL, &err))
		fail(err.message);
	lade_array_unref(memory);
}

int main(int argc, char **argv)
{
	lade_share_options options = {.struct_size = sizeof options};
	lade_share *share;
	lade_error err;

	if (argc < 3)
		return fail("usage: c_side SOCKET publish|check|device [NAME]");
	options.path = argv[1];
	if (lade_share_connect(&options, &share, &err))
		return fail(err.message);
	fill();
	if (!strcmp(argv[2], "publish"))
		publish(share);
	else if (!strcmp(argv[2], "device"))
		publish_device(share);
	else
		check(share, argv[3]);
	lade_share_close(share);
	return 0;
}
