/*
 * sweep.c: removes the temporary files that killed writes have left in a directory: all of them, or
 * those in directories that hold nothing else.
 *
 * A writer holds a lock on its temporary file, which ends with its process: on NFS too, where the
 * server keeps it.  The age is for the moment before the lock, and for mounts with local locks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/cancel.h"
#include "base/try.h"
#include "io/file.h"
#include "store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Files have their times from the clock of clock_gettime(), or from one that is behind by a tick.
 * time() always is: a file could be younger than it. */
static time_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec;
}

typedef struct sweep {
	const lade__directory *dir;
	time_t before; /* younger files stay */
	lade__stop stop;
	uint64_t removed;
	lade_error *err;
} sweep;

/* ".lade-" and 16 hexadecimal digits. */
static bool is_temporary(const char *name)
{
	return strncmp(name, ".lade-", 6) == 0 && strlen(name) == 22 &&
	       strspn(name + 6, "0123456789abcdef") == 16;
}

static lade_status failed(const sweep *s, const char *what, const char *name)
{
	return lade_fail(s->err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s '%.100s': %s", s->dir->path,
	                 what, name, strerror(errno));
}

/* Removes a file that no process has locked. */
static lade_status sweep_file(sweep *s, int dir, const char *name)
{
	struct stat st;
	/* On NFS only who may write gets a lock. */
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? LADE_OK : failed(s, "opening", name);
	lade_status status = LADE_OK;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtime <= s->before &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0) {
		if (unlinkat(dir, name, 0) == 0)
			s->removed++;
		else if (errno != ENOENT)
			status = failed(s, "removing", name);
	}
	close(fd);
	return status;
}

/* Takes 'fd'. */
static lade_status sweep_directory(sweep *s, int fd)
{
	DIR *dir = fdopendir(fd);
	lade_status status = LADE_OK;
	if (!dir) {
		status = failed(s, "listing", "a directory");
		close(fd);
		return status;
	}
	for (const struct dirent *e; errno = 0, (e = readdir(dir));) {
		if (lade__stopped(&s->stop))
			TRY(lade__stop_fail(s->err));
		if (is_temporary(e->d_name)) {
			TRY(sweep_file(s, dirfd(dir), e->d_name));
			continue;
		}
		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) ||
		    lade_key_check(e->d_name, NULL) != LADE_OK)
			continue;
		int sub = openat(dirfd(dir), e->d_name,
		                 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (sub >= 0)
			TRY(sweep_directory(s, sub));
		else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			TRY(failed(s, "opening", e->d_name));
	}
	if (errno)
		status = failed(s, "listing", "a directory");
out:
	closedir(dir);
	return status;
}

lade_status lade_store_directory_sweep(lade_store *store, uint64_t age_s, lade_cancel *cancel,
                                       uint64_t *removed, lade_error *err)
{
	const lade__directory *dir = lade__store_context(store, lade__directory_read);
	const time_t until = now();
	if (removed)
		*removed = 0;
	if (!dir)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "store is not a directory's");
	if (dir->flags & LADE_DIRECTORY_READ_ONLY)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s is for reading only",
		                 store->name);
	sweep s = {.dir = dir,
	           .before = age_s < (uint64_t)until ? until - (time_t)age_s : 0,
	           .stop = lade__stop_of(cancel),
	           .err = err};
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lade_status status = fd >= 0 ? sweep_directory(&s, fd) : failed(&s, "opening", ".");
	if (removed)
		*removed = s.removed;
	return status;
}

/* ---- after deletions ----------------------------------------------------------------------- */

/* Removes the temporary files of a directory; true: it is empty. */
static bool empty_directory(sweep *s, DIR *dir)
{
	bool left = false;
	rewinddir(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		uint64_t removed = s->removed;
		if (!is_temporary(e->d_name))
			continue;
		sweep_file(s, dirfd(dir), e->d_name);
		left = left || s->removed == removed;
	}
	return !left;
}

/* Removes the directories below one that have no files but temporary ones; true: so has it, and
 * it is empty now.  Takes 'fd'. */
static bool tidy_directory(sweep *s, int fd)
{
	DIR *dir = fdopendir(fd);
	bool left = false;
	if (!dir) {
		close(fd);
		return false;
	}
	for (const struct dirent *e; (e = readdir(dir));) {
		if (is_temporary(e->d_name) || strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0)
			continue;
		int sub = e->d_type != DT_DIR && e->d_type != DT_UNKNOWN
			? -1
			: openat(dirfd(dir), e->d_name,
		                 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (sub < 0 || !tidy_directory(s, sub) ||
		    unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR) != 0)
			left = true;
	}
	bool empty = !left && empty_directory(s, dir);
	closedir(dir);
	return empty;
}

void lade__directory_tidy(void *ctx, const char *prefix)
{
	const lade__directory *dir = ctx;
	char path[LADE_KEY_MAX + 2];
	size_t size = strlen(prefix);
	sweep s = {.dir = dir, .before = now()};
	memcpy(path, prefix, size + 1);
	int fd = openat(dir->fd, size ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool empty = fd >= 0 && tidy_directory(&s, fd);
	for (char *slash; empty && (slash = strrchr(path, '/'));) {
		*slash = 0;
		empty = unlinkat(dir->fd, path, AT_REMOVEDIR) == 0;
	}
}
