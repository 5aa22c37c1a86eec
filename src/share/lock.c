/*
 * lock.c: one broker for a path, version numbers that never come again, and descriptors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/broker.h"

#include "base/support.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

lade_status lade__lock_take(lade__broker *b, const char *path, lade_error *err)
{
	b->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (b->lock < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
	int rc = flock(b->lock, LOCK_EX | LOCK_NB);
	/* A process that a broker was just starting when it was killed has its descriptors for a
	 * moment. */
	for (int i = 0; rc && errno == EWOULDBLOCK && i < LADE__LOCK_TRIES; i++) {
		usleep(LADE__LOCK_MS * 1000);
		rc = flock(b->lock, LOCK_EX | LOCK_NB);
	}
	if (!rc)
		return LADE_OK;
	return errno == EWOULDBLOCK
		       ? lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET,
		                   "%s: a broker has it: it serves already", path)
		       : lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
}

lade_status lade__lock_read(lade__broker *b, lade_error *err)
{
	uint8_t bytes[8] = {0}; /* a new file has none */
	uint64_t found = 0;

	if (pread(b->lock, bytes, sizeof bytes, 0) < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s.lock: %s", b->path,
		                 strerror(errno));
	if (b->shelf.count)
		found = b->shelf.versions[b->shelf.count - 1]->record.version;
	b->last_version = lade__le64(bytes);
	if (b->last_version < found)
		b->last_version = found;
	return LADE_OK;
}

lade_status lade__lock_next(lade__broker *b, uint64_t *version, lade_error *err)
{
	uint8_t bytes[8];
	ssize_t n;

	lade__le_put(bytes, b->last_version + 1, sizeof bytes);
	n = pwrite(b->lock, bytes, sizeof bytes, 0);
	if (n != (ssize_t)sizeof bytes)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s.lock: writing the version: %zd of 8 bytes: %s", b->path, n,
		                 strerror(n < 0 ? errno : ENOSPC));
	*version = ++b->last_version;
	return LADE_OK;
}

uint64_t lade__lock_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		limit.rlim_cur = limit.rlim_max = 1024;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit more = {limit.rlim_max, limit.rlim_max};
		if (!setrlimit(RLIMIT_NOFILE, &more))
			limit = more;
	}
	return limit.rlim_cur;
}
