/*
 * fuzz_share.c: what comes from other processes: messages, and heads of versions with a block.
 *
 *     | what 1 | the rest: a message, or a head |
 *
 * A head that is read and passes the full check has nothing outside its memory: an export is
 * walked, value by value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "share/column.h"

#include "share/job.h"

#include <stdlib.h>
#include <string.h>

static uint64_t sum; /* of all that was reached, so that it is read */

static void touch(const void *at, uint64_t size)
{
	const uint8_t *p = at;

	for (uint64_t i = 0; i < size; i++)
		sum += p[i];
}

/* What a reader that trusts the layout reads. */
static void walk(const lade__column *c)
{
	uint64_t end = (uint64_t)(c->off + c->length);
	const lade__type *t = &c->node->type;

	if (c->buffer_count && t->layout < LADE__AS_SPARSE && c->buffers[0].data)
		touch(c->buffers[0].data, (end + 7) / 8);
	if (t->layout == LADE__AS_FIXED && t->width)
		touch(c->buffers[1].data, end * t->width);
	if (t->layout == LADE__AS_BYTES && c->length)
		for (int64_t i = 0; i < c->length; i++) {
			uint64_t at = (uint64_t)(c->off + i);
			int64_t first = lade__element(c->buffers[1].data, t->width, at);
			int64_t last = lade__element(c->buffers[1].data, t->width, at + 1);
			touch(c->buffers[2].data + first, (uint64_t)(last - first));
		}
	for (size_t i = 0; i < c->node->child_count; i++)
		walk(c->children[i]);
	if (c->dictionary)
		walk(c->dictionary);
}

static void read_head(const uint8_t *data, size_t size)
{
	/* Exactly as large, so that the sanitizer sees each byte beyond. */
	void *copy = NULL, *block = NULL;
	lade__head head;
	lade_error err;

	if (posix_memalign(&copy, 64, size ? size : 1) || posix_memalign(&block, 64, 256))
		abort();
	if (size)
		memcpy(copy, data, size);
	for (size_t i = 0; i < 256; i++)
		((uint8_t *)block)[i] = (uint8_t)(i / 8);
	lade__buffer memory = {.data = block, .size = 256};
	if (lade__head_read(copy, size, &memory, 1, &head, &err) == LADE_OK) {
		bool good = true;
		for (size_t i = 0; i < head.batch_count && good; i++)
			good = lade__column_check(head.batches[i], &err) == LADE_OK;
		for (size_t i = 0; i < head.batch_count && good; i++)
			walk(head.batches[i]);
		lade__head_free(&head);
	} else if (!err.message[0]) {
		abort();
	}
	free(copy);
	free(block);
}

static void read_message(const uint8_t *data, size_t size)
{
	static lade__packet packet;
	lade__block room[LADE__WIRE_FDS];
	char name[LADE__NAME_MAX + 1];
	lade__record record;
	lade_error err;

	if (size > LADE__WIRE_MAX - LADE__WIRE_HEAD)
		return;
	lade__wire_begin(&packet, LADE__RECORD, 1);
	lade__wire_bytes(&packet, data, size);
	packet.fd_count = size % 3;
	for (size_t i = 0; i < packet.fd_count; i++)
		packet.fds[i] = -1;
	lade__cursor c = lade__packet_body(&packet);
	lade__take(&c, 8);
	lade__take_name(&c, name, size % 2);
	lade__read_failed(&packet, &err);
	for (c = lade__packet_body(&packet); !c.bad && c.left;)
		lade__read_entry(&c, &record);
	if (lade__read_record(&packet, &record, room, &err) == LADE_OK) {
		touch(record.head, record.head_size);
		for (size_t i = 0; i < record.block_count; i++)
			sum += record.blocks[i].size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] & 1)
		read_message(data + 1, size - 1);
	else if (size)
		read_head(data + 1, size - 1);
	return 0;
}
