/*
 * write_repair.c: mends an anchor that does not match its checksum.
 *
 * An append changes what the anchor says of the footer; what it says of the header stays.  Each
 * footer has the header's checksum at byte 16: it is looked for from the file's end on.  A footer
 * that ROOT has compressed is one block, so blocks are tried, too; not those of more than 16 MiB.
 *
 *     footer  | type 2, size 6 | features 8 | header's checksum 8 | ... | XXH3 8 |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include "base/options.h"
#include "base/try.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	CHUNK = 1 << 20,
	SUM_AT = 16,      /* of a footer */
	TRIES_MAX = 1000, /* candidates whose type and size are right, and blocks */
	ANCHOR_SIZE = 78,
	OVERLAP = RNT_BLOCK_HEAD - 1, /* of chunks */
};

typedef struct repair {
	lade_rntuple *tuple; /* of a candidate; its file is the one that is mended */
	rnt_file file;
	uint64_t key_off, anchor_off;
	rnt_anchor anchor;
	uint64_t header_sum;
	unsigned tries, block_tries;
} repair;

/* What the torn anchor says, whatever its checksum is. */
static lade_status read_torn(repair *r, lade_error *err)
{
	uint8_t a[ANCHOR_SIZE];
	lade_status status;
	TRY(lade__rnt_anchor_at(&r->file, r->key_off, &r->anchor_off, err));
	TRY(lade__rnt_fetch(&r->file, r->anchor_off, a, sizeof a, err));
	uint64_t value[13];
	for (size_t i = 0; i < 7; i++)
		value[i] = (uint64_t)lade__be32(a + 14 + 8 * i) << 32 | lade__be32(a + 18 + 8 * i);
	for (size_t i = 0; i < 4; i++)
		r->anchor.version[i] = (uint16_t)(a[6 + 2 * i] << 8 | a[7 + 2 * i]);
	r->anchor.header = (rnt_link){{value[0], value[1]}, value[2]};
	r->anchor.key_max = value[6];
	r->file.key_max = value[6];
	rnt_fault fault = {.err = err};
	rnt_in header = {.fault = &fault};
	status = lade__rnt_envelope(&r->file, &r->anchor.header, RNT_HEADER, &header,
	                            &r->header_sum, err);
	free((void *)(uintptr_t)header.data);
out:
	return status;
}

/* Whether the RNTuple can be opened with a footer. */
static bool try_footer(repair *r, rnt_link footer, lade_status *status)
{
	if (footer.decoded_size < 32 || footer.at.size > r->file.size - footer.at.off)
		return false;
	lade_rntuple *t = calloc(1, sizeof *t);
	if (!t) {
		*status = LADE_E_NOMEM;
		return false;
	}
	t->file = r->file;
	r->anchor.footer = footer;
	*status = lade__rnt_envelopes(t, &r->anchor, NULL);
	lade__rnt_free(t);
	return *status == LADE_OK;
}

static bool try_stored(repair *r, uint64_t off, lade_status *status)
{
	uint8_t head[8];
	*status = lade__rnt_fetch(&r->file, off, head, sizeof head, NULL);
	uint64_t size = lade__le64(head) >> 16;
	if (*status != LADE_OK || (lade__le64(head) & 0xFFFF) != RNT_FOOTER)
		return false;
	r->tries++;
	return try_footer(r, (rnt_link){{off, size}, size}, status);
}

static bool try_block(repair *r, const uint8_t *head, uint64_t off, lade_status *status)
{
	rnt_link footer = {.at.off = off};
	if (r->block_tries == TRIES_MAX ||
	    !lade__rnt_block(head, &footer.at.size, &footer.decoded_size))
		return false;
	r->block_tries++;
	return try_footer(r, footer, status);
}

/* Looks through bytes [off, off + size), from behind. */
static bool try_chunk(repair *r, const uint8_t *data, uint64_t off, size_t size,
                      lade_status *status)
{
	uint8_t sum[8];
	lade__le_put(sum, r->header_sum, sizeof sum);
	for (size_t at = size < RNT_BLOCK_HEAD ? 0 : size - OVERLAP;
	     at-- > 0 && r->tries < TRIES_MAX && *status != LADE_E_NOMEM;) {
		if (data[at] == sum[0] && memcmp(data + at, sum, 8) == 0 && off + at >= SUM_AT &&
		    try_stored(r, off + at - SUM_AT, status))
			return true;
		if (try_block(r, data + at, off + at, status))
			return true;
	}
	return *status == LADE_E_NOMEM;
}

static lade_status find_footer(repair *r, lade_error *err)
{
	lade_status status = LADE_E_CHECKSUM;
	uint8_t *data = malloc(CHUNK + OVERLAP);
	uint64_t end = r->file.size;
	bool done = false;
	if (!data)
		return lade__rnt_nomem(err);
	while (end && !done && r->tries < TRIES_MAX) {
		uint64_t off = end > CHUNK ? end - CHUNK : 0, more = r->file.size - end;
		size_t size = (size_t)(end - off) + (size_t)(more < OVERLAP ? more : OVERLAP);
		status = lade__rnt_fetch(&r->file, off, data, size, err);
		if (status != LADE_OK)
			break;
		done = try_chunk(r, data, off, size, &status);
		end = off;
	}
	free(data);
	if (done)
		return status == LADE_E_NOMEM ? lade__rnt_nomem(err) : LADE_OK;
	return lade_fail(err, LADE_E_CHECKSUM, r->anchor_off,
	                 "rntuple: no complete footer is there for the header with checksum "
	                 "%016" PRIx64 "; %u were tried",
	                 r->header_sum, r->tries + r->block_tries);
}

static lade_status mend(repair *r, int fd, const char *path, bool dry, bool *mended,
                        lade_error *err)
{
	rnt_sinkfile out = {.fd = fd, .path = (char *)(uintptr_t)path};
	uint8_t bytes[ANCHOR_SIZE];
	struct iovec piece = {bytes, sizeof bytes};
	lade_status status;
	TRY(read_torn(r, err));
	TRY(find_footer(r, err));
	*mended = true;
	if (dry)
		return LADE_OK;
	lade__rnt_anchor_bytes(&r->anchor, bytes);
	TRY(lade__rnt_write_at(&out, &piece, 1, r->anchor_off, err));
	TRY(lade__rnt_sync(&out, err));
out:
	return status;
}

lade_status lade_rntuple_repair(const char *path, const lade_rntuple_repair_options *options,
                                bool *mended, lade_error *err)
{
	lade_rntuple_repair_options o;
	lade_source source;
	bool unwanted;
	int fd;
	if (!path)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "rntuple: no path");
	mended = mended ? mended : &unwanted;
	*mended = false;
	lade_status status =
		lade__options_read(&o, sizeof o, options, "lade_rntuple_repair_options", err);
	if (status == LADE_OK)
		status = lade__rnt_open_locked(path, &fd, &source, err);
	if (status != LADE_OK)
		return status;
	repair r = {.file = {.source = source,
	                     .metadata_max = LADE__RNT_KEY_MAX,
	                     .engine = lade_engine_default()}};
	uint32_t key_size;
	status = r.file.engine ? lade__rnt_file_begin(&r.file, err) : lade__rnt_nomem(err);
	if (status == LADE_OK)
		status = lade__rnt_file_find(&r.file, o.name, &r.key_off, &key_size, err);
	lade__rnt_hold_none(&r.file);
	if (status == LADE_OK) {
		status = lade__rnt_anchor_read(&r.file, r.key_off, key_size, &r.anchor, err);
		if (status == LADE_E_CHECKSUM)
			status = mend(&r, fd, path, o.dry != 0, mended, err);
	}
	close(fd);
	lade_source_close(source);
	return status;
}
