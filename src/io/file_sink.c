/*
 * file_sink.c: a sink that is a file: whole or not at all.
 *
 *	temporary file beside it --(write, fsync)--> lock the directory --(compare the version)-->
 *	rename or link --(fsync of the directory)--> unlock
 *
 * The lock is flock() on the directory: it leaves no file behind, and ends with the process.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* renameat2() */
#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Bytes of one write(): a cancelled write ends after one. */
#define WRITE_BYTES ((size_t)4 << 20)

/* A write on its way. */
typedef struct writing {
	char *path;       /* behind symbolic links */
	const char *name; /* in 'path', behind the last '/' */
	char *dir;        /* of 'path' */
	char temp[32];    /* beside 'name'; "": none is there */
	int fd, dir_fd;
	bool exists;
	bool sync;        /* waits for the disk */
	bool through;     /* writes to devices and pipes */
	struct stat st;   /* of what exists */
	struct stat made; /* of the temporary file, when its bytes are in it */
} writing;

static lade_status failed(lade_error *err, const char *what, const char *path)
{
	return lade_fail(err, errno == ENOENT ? LADE_E_NOT_FOUND : LADE_E_IO, LADE_NO_OFFSET,
	                 "%s: %s: %s", path, what, strerror(errno));
}

static lade_status look(writing *w, lade_error *err)
{
	w->exists = fstatat(w->dir_fd, w->name, &w->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (w->exists || errno == ENOENT)
		return LADE_OK;
	return failed(err, "looking at it", w->path);
}

static void forget(writing *w)
{
	if (w->dir_fd >= 0)
		close(w->dir_fd); /* and unlocks */
	w->dir_fd = -1;
	free(w->dir);
	free(w->path);
	w->dir = w->path = NULL;
}

/* Takes 'path', NULL if there was no memory for it: opens its directory and looks at it. */
static lade_status take_path(writing *w, char *path, lade_error *err)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	w->path = path;
	w->dir = path ? strdup(n ? path : "./") : NULL;
	if (!w->dir)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	if (n)
		w->dir[n] = 0;
	w->name = path[n] ? path + n : ".";
	w->dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir_fd < 0)
		return failed(err, "opening the directory", w->dir);
	return look(w, err);
}

/* The place that the name stands for, and its directory. */
static lade_status begin(writing *w, const char *path, lade_error *err)
{
	lade_status status = take_path(w, strdup(path), err);
	if (status != LADE_OK || !w->exists || !S_ISLNK(w->st.st_mode))
		return status;
	forget(w);
	char *real = realpath(path, NULL);
	if (!real && errno != ENOMEM)
		return failed(err, "following the link", path);
	return take_path(w, real, err);
}

static void end(writing *w)
{
	if (w->temp[0])
		unlinkat(w->dir_fd, w->temp, 0);
	if (w->fd >= 0)
		close(w->fd);
	forget(w);
}

static lade_status write_bytes(int fd, const char *path, lade_cspan src,
                               const lade_io_options *options, lade_error *err)
{
	const uint8_t *from = src.data;
	lade__stop stop = lade__stop_of(options->cancel);
	for (size_t at = 0; at < src.size;) {
		if (lade__stopped(&stop))
			return lade__stop_fail(err);
		size_t left = src.size - at;
		ssize_t n = write(fd, from + at, left < WRITE_BYTES ? left : WRITE_BYTES);
		if (n < 0 && errno != EINTR)
			return lade_fail(err, LADE_E_IO, at, "%s: writing %zu bytes at %zu: %s",
			                 path, left, at, strerror(errno));
		at += n > 0 ? (size_t)n : 0;
	}
	return LADE_OK;
}

/* A new file beside 'path'.  The system applies the umask to its mode. */
static lade_status open_temporary(writing *w, lade_error *err)
{
	struct timespec now;
	for (int i = 0; i < 100 && w->fd < 0; i++) {
		clock_gettime(CLOCK_REALTIME, &now);
		snprintf(w->temp, sizeof w->temp, ".lade-%08x%08x", (unsigned)getpid(),
		         (unsigned)now.tv_nsec ^ (unsigned)((uintptr_t)w->dir >> 4) << 10);
		w->fd = openat(w->dir_fd, w->temp,
		               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (w->fd < 0 && errno != EEXIST)
			break;
	}
	if (w->fd < 0) {
		w->temp[0] = 0;
		return failed(err, "making a temporary file", w->dir);
	}
	flock(w->fd, LOCK_EX | LOCK_NB); /* for a sweep: somebody lives */
	return LADE_OK;
}

/* When all bytes are in the temporary file: it gets the mode of the file that it replaces. */
static lade_status finish_temporary(writing *w, lade_error *err)
{
	if (fstat(w->fd, &w->made) != 0)
		return failed(err, "looking at its new file", w->path);
	bool other = w->exists && ((w->st.st_mode ^ w->made.st_mode) & 07777);
	if ((other && fchmod(w->fd, w->st.st_mode & 07777) != 0) || (w->sync && fsync(w->fd) != 0))
		return failed(err, "syncing its new file", w->path);
	return LADE_OK;
}

/* The bytes in a temporary file, on the disk. */
static lade_status make_temporary(writing *w, lade_cspan src, const lade_io_options *options,
                                  lade_error *err)
{
	lade_status status = open_temporary(w, err);
	if (status == LADE_OK)
		status = write_bytes(w->fd, w->path, src, options, err);
	return status == LADE_OK ? finish_temporary(w, err) : status;
}

/* Takes the directory's lock.  Where there are no such locks, only writes that depend on a version
 * fail. */
static lade_status lock(const writing *w, lade_write_kind kind, lade_error *err)
{
	int rc;
	do
		rc = flock(w->dir_fd, LOCK_EX);
	while (rc != 0 && errno == EINTR);
	if (rc == 0 || kind == LADE_WRITE_ALWAYS || kind == LADE_WRITE_IF_ABSENT)
		return LADE_OK;
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
	                 "%s: the directory cannot be locked: %s", w->dir, strerror(errno));
}

/* The condition, with the lock held. */
static lade_status check(writing *w, const lade_write *write, lade_error *err)
{
	lade_object_version now;
	lade_status status = look(w, err);
	if (status != LADE_OK)
		return status;
	if (!w->exists)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "%s: there is no such file",
		                 w->path);
	lade__file_version(&w->st, &now);
	if (write->want && !lade_object_version_equal(write->want, &now))
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET,
		                 "%s: has changed: it is not the requested version", w->path);
	return LADE_OK;
}

/*
 * Makes the modification time later than that of the file it replaces: within a tick of the clock
 * the two could be alike, and inode numbers are used again.  With the lock held, so that no version
 * comes back.
 */
static lade_status make_newer(writing *w, lade_error *err)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	lade_status status = look(w, err);
	if (status != LADE_OK || !w->exists)
		return status;
	const struct timespec *old = &w->st.st_mtim, *now = &w->made.st_mtim;
	if (now->tv_sec > old->tv_sec ||
	    (now->tv_sec == old->tv_sec && now->tv_nsec > old->tv_nsec))
		return LADE_OK;
	times[1] = *old;
	if (++times[1].tv_nsec == 1000000000) {
		times[1].tv_nsec = 0;
		times[1].tv_sec++;
	}
	return futimens(w->fd, times) == 0 ? LADE_OK : failed(err, "dating it", w->path);
}

/* Gives the temporary file a name that nothing has. */
static int name_absent(const writing *w)
{
	int rc = renameat2(w->dir_fd, w->temp, w->dir_fd, w->name, RENAME_NOREPLACE);
	if (rc == 0 || (errno != EINVAL && errno != ENOSYS))
		return rc;
	/* Some file systems have no such rename.  A link never replaces. */
	rc = linkat(w->dir_fd, w->temp, w->dir_fd, w->name, 0);
	return rc == 0 ? unlinkat(w->dir_fd, w->temp, 0) : rc;
}

static lade_status take_name(writing *w, lade_write_kind kind, lade_error *err)
{
	int rc = kind == LADE_DELETE_IF_VERSION ? unlinkat(w->dir_fd, w->name, 0)
	         : kind == LADE_WRITE_IF_ABSENT
	                 ? name_absent(w)
	                 : renameat(w->dir_fd, w->temp, w->dir_fd, w->name);
	if (rc != 0 && kind == LADE_WRITE_IF_ABSENT && errno == EEXIST)
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: exists already",
		                 w->path);
	if (rc != 0)
		return failed(err, kind == LADE_DELETE_IF_VERSION ? "deleting it" : "naming it",
		              w->path);
	w->temp[0] = 0;
	/* Not all file systems sync directories. */
	if (w->sync && fsync(w->dir_fd) != 0 && errno != EINVAL && errno != ENOTSUP)
		return failed(err, "syncing the directory", w->dir);
	return LADE_OK;
}

static lade_status not_regular(const writing *w, lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "%s: is not a regular file",
	                 w->path);
}

/* Devices and pipes are written through: they cannot be renamed over. */
static lade_status write_through(writing *w, const lade_write *write,
                                 const lade_io_options *options, lade_error *err)
{
	if (write->kind != LADE_WRITE_ALWAYS || S_ISDIR(w->st.st_mode))
		return not_regular(w, err);
	w->fd = open(w->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (w->fd < 0)
		return failed(err, "opening it", w->path);
	return write_bytes(w->fd, w->path, write->src, options, err);
}

static lade_status write_file(writing *w, lade_write *write, const char *path,
                              const lade_io_options *options, lade_error *err)
{
	struct stat st;
	bool depends = write->kind >= LADE_WRITE_IF_VERSION;
	lade_status status = begin(w, path, err);
	if (status == LADE_OK && w->exists && !S_ISREG(w->st.st_mode))
		return w->through ? write_through(w, write, options, err) : not_regular(w, err);
	/* Before the bytes are written for nothing. */
	if (status == LADE_OK && depends)
		status = check(w, write, err);
	if (status == LADE_OK && write->kind == LADE_WRITE_IF_ABSENT && w->exists)
		return lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: exists already",
		                 w->path);
	if (status == LADE_OK && write->kind != LADE_DELETE_IF_VERSION)
		status = make_temporary(w, write->src, options, err);
	if (status == LADE_OK)
		status = lock(w, write->kind, err);
	if (status == LADE_OK && depends)
		status = check(w, write, err);
	if (status == LADE_OK && w->temp[0])
		status = make_newer(w, err);
	if (status == LADE_OK)
		status = take_name(w, write->kind, err);
	if (status == LADE_OK && write->version && w->fd >= 0 && fstat(w->fd, &st) == 0)
		lade__file_version(&st, write->version);
	return status;
}

lade_status lade__file_write(const char *path, lade_write *write, bool sync, bool through,
                             const lade_io_options *options, lade_error *err)
{
	writing w = {.fd = -1, .dir_fd = -1, .sync = sync, .through = through};
	lade_status status = write_file(&w, write, path, options, err);
	end(&w);
	return status;
}

/* ---- drafts -------------------------------------------------------------------------------- */

struct lade__file_draft {
	writing writing;
	lade_write_kind kind;
};

lade_status lade__file_draft_new(const char *path, lade_write_kind kind, lade__file_draft **out,
                                 int *fd, lade_error *err)
{
	lade__file_draft *draft = malloc(sizeof *draft);
	*out = NULL;
	if (!draft)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	*draft = (lade__file_draft){.writing = {.fd = -1, .dir_fd = -1}, .kind = kind};
	writing *w = &draft->writing;
	lade_status status = begin(w, path, err);
	if (status == LADE_OK && w->exists && !S_ISREG(w->st.st_mode))
		status = not_regular(w, err);
	if (status == LADE_OK && w->exists && kind == LADE_WRITE_IF_ABSENT)
		status = lade_fail(err, LADE_E_CHANGED, LADE_NO_OFFSET, "%s: exists already", path);
	if (status == LADE_OK)
		status = open_temporary(w, err);
	if (status != LADE_OK) {
		lade__file_draft_free(draft);
		return status;
	}
	*fd = w->fd;
	*out = draft;
	return LADE_OK;
}

lade_status lade__file_draft_name(lade__file_draft *draft, bool sync, lade_error *err)
{
	writing *w = &draft->writing;
	w->sync = sync;
	lade_status status = finish_temporary(w, err);
	if (status == LADE_OK)
		status = lock(w, draft->kind, err);
	if (status == LADE_OK)
		status = make_newer(w, err);
	if (status == LADE_OK)
		status = take_name(w, draft->kind, err);
	flock(w->dir_fd, LOCK_UN);
	return status;
}

void lade__file_draft_free(lade__file_draft *draft)
{
	if (draft)
		end(&draft->writing);
	free(draft);
}

/* ---- the sink ------------------------------------------------------------------------------ */

static lade_status sink_write(void *ctx, lade_write *write, const lade_io_options *options,
                              lade_error *err)
{
	if (write->key)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a file has no keys: key must be NULL");
	return lade__file_write(ctx, write, true, true, options, err);
}

lade_status lade_sink_file_open(const char *path, lade_sink *out, lade_error *err)
{
	static const lade_sink_ops ops = {
		.struct_size = sizeof ops, .write = sink_write, .close = free};
	if (!path || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 path ? "out" : "path");
	*out = (lade_sink){0};
	char *copy = strdup(path);
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	*out = (lade_sink){&ops, copy};
	return LADE_OK;
}
