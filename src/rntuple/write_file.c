/*
 * write_file.c: where bytes go: records without a name, behind each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#define PIECES_MAX 512 /* of one system call; Linux takes 1,024 */

lade_status lade__rnt_write_at(rnt_sinkfile *file, struct iovec *pieces, size_t count, uint64_t off,
                               lade_error *err)
{
	for (size_t i = 0; i < count;) {
		int n = count - i < PIECES_MAX ? (int)(count - i) : PIECES_MAX;
		ssize_t done = pwritev(file->fd, pieces + i, n, (off_t)off);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return lade_fail(err, LADE_E_IO, off,
			                 "rntuple: %s: writing at byte %" PRIu64 ": %s", file->path,
			                 off, strerror(errno));
		off += (uint64_t)done;
		for (size_t left = (size_t)done; i < count; i++) {
			if (left < pieces[i].iov_len) {
				pieces[i].iov_base = (uint8_t *)pieces[i].iov_base + left;
				pieces[i].iov_len -= left;
				break;
			}
			left -= pieces[i].iov_len;
		}
	}
	return LADE_OK;
}

lade_status lade__rnt_sync(const rnt_sinkfile *file, lade_error *err)
{
	return fdatasync(file->fd) == 0
	               ? LADE_OK
	               : lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "rntuple: %s: syncing it: %s",
	                           file->path, strerror(errno));
}

lade_status lade__rnt_write_record(rnt_sinkfile *file, struct iovec *pieces, size_t count,
                                   uint64_t decoded_size, uint64_t *off, lade_error *err)
{
	rnt_out key = {0};
	uint64_t size = 0;
	for (size_t i = 1; i < count; i++)
		size += pieces[i].iov_len;
	lade__rnt_put_blob_key(&key, file, size, decoded_size);
	if (key.failed)
		return lade__rnt_nomem(err);
	if (size > INT32_MAX - key.size) {
		lade__rnt_out_free(&key);
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: a record of %" PRIu64 " bytes, the limit is %d", size,
		                 INT32_MAX);
	}
	pieces[0] = (struct iovec){key.data, key.size};
	*off = file->at + key.size;
	lade_status status = lade__rnt_write_at(file, pieces, count, file->at, err);
	if (status == LADE_OK)
		file->at = *off + size;
	lade__rnt_out_free(&key);
	return status;
}

lade_status lade__rnt_write_envelope(rnt_sinkfile *file, const rnt_out *out, rnt_link *link,
                                     lade_error *err)
{
	if (out->failed)
		return lade__rnt_nomem(err);
	struct iovec pieces[2] = {{NULL, 0}, {out->data, out->size}};
	link->decoded_size = link->at.size = out->size;
	if (out->size > LADE__RNT_KEY_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "rntuple: an envelope of %zu bytes, the limit is %u", out->size,
		                 LADE__RNT_KEY_MAX);
	return lade__rnt_write_record(file, pieces, 2, out->size, &link->at.off, err);
}
