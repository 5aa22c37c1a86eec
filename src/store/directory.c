/*
 * directory.c: the store of the files below a directory: writing and listing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/try.h"
#include "io/file.h"
#include "store/directory.h"

#include <lade/cpu.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef lade__directory directory;

/* ---- writing ------------------------------------------------------------------------------- */

/* The path of a key, to be freed.  NULL: no memory. */
static char *path_of(const directory *dir, const char *key)
{
	size_t base = strlen(dir->path), size = strlen(key) + 1;
	char *path = malloc(base + 1 + size);
	if (!path)
		return NULL;
	memcpy(path, dir->path, base);
	path[base] = '/';
	memcpy(path + base + 1, key, size);
	return path;
}

/* Has the disk know the name of a new directory. */
static lade_status sync_above(char *path, lade_error *err)
{
	char *slash = strrchr(path, '/'), kept = slash[1];
	slash[1] = 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lade_status status = LADE_OK;
	if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP))
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "syncing the directory %s: %s",
		                   path, strerror(errno));
	if (fd >= 0)
		close(fd);
	slash[1] = kept;
	return status;
}

/* Makes the directories above a file. */
static lade_status make_parents(const directory *dir, char *path, bool sync, lade_error *err)
{
	for (char *at = path + strlen(dir->path) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		int rc = mkdir(path, 0777);
		if (rc != 0 && errno != EEXIST) {
			lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "making the directory %s: %s",
			          path, strerror(errno));
			*at = '/';
			return LADE_E_IO;
		}
		lade_status status = rc == 0 && sync ? sync_above(path, err) : LADE_OK;
		*at = '/';
		if (status != LADE_OK)
			return status;
	}
	return LADE_OK;
}

/* Removes the directories above a file that are empty. */
static void remove_parents(const directory *dir, char *path)
{
	size_t base = strlen(dir->path) + 1;
	for (char *at; (at = strrchr(path + base, '/'));) {
		*at = 0;
		if (rmdir(path) != 0)
			return;
	}
}

static lade_status directory_write(void *ctx, lade_write *write, const lade_io_options *options,
                                   lade_error *err)
{
	directory *dir = ctx;
	bool sync = options->sync || dir->flags & LADE_DIRECTORY_SYNC;
	bool delete = write->kind == LADE_DELETE_IF_VERSION;
	lade_status status = LADE_OK;
	char *path = path_of(dir, write->key);
	if (!path)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a path");
	/* Who deletes a neighbour may remove the directory that was just made. */
	for (int i = 0; i < 8; i++) {
		/* A pipe would wait for its reader. */
		status = lade__file_write(path, write, sync, false, options, err);
		if (status != LADE_E_NOT_FOUND || delete || write->kind == LADE_WRITE_IF_VERSION)
			break;
		TRY(make_parents(dir, path, sync, err));
	}
	if (status == LADE_OK && delete)
		remove_parents(dir, path);
out:
	free(path);
	return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct walk {
	const directory *dir;
	const lade_store_listing *listing;
	lade__stop stop;
	lade_error *err;
	char key[LADE_KEY_MAX + 2];
} walk;

static lade_status no_memory(lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
}

/* Adds what an entry of a directory stands for: a file, or a directory with a '/' at its end. */
static lade_status add_entry(walk *w, int fd, const struct dirent *entry, lade__names *names)
{
	struct stat st = {.st_mode = 0};
	uint64_t size = LADE_SIZE_UNKNOWN;
	bool file = entry->d_type == DT_REG, sub = entry->d_type == DT_DIR;
	if (lade_key_check(entry->d_name, NULL) != LADE_OK)
		return LADE_OK; /* "." and "..", and what no key can name */
	if ((!file && !sub) || (file && w->listing->sizes)) {
		if (fstatat(fd, entry->d_name, &st, 0) != 0)
			return LADE_OK; /* gone meanwhile */
		file = S_ISREG(st.st_mode);
		sub = S_ISDIR(st.st_mode);
		if (file && w->listing->sizes)
			size = (uint64_t)st.st_size;
	}
	if ((!file && !sub) ||
	    lade__names_add(names, entry->d_name, strlen(entry->d_name), sub, size))
		return LADE_OK;
	return no_memory(w->err);
}

/* Reads the names of the directory that the walk is at. */
static lade_status read_names(walk *w, lade__names *names)
{
	const char *at = w->key[0] ? w->key : ".";
	int fd = openat(w->dir->fd, at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	lade_status status = LADE_OK;
	if (!dir) {
		int why = errno;
		if (fd >= 0)
			close(fd);
		if (why == ENOENT || why == ENOTDIR)
			return LADE_OK;
		return lade_fail(w->err, why == ENOMEM ? LADE_E_NOMEM : LADE_E_IO, LADE_NO_OFFSET,
		                 "%s/%s: listing it: %s", w->dir->path, w->key, strerror(why));
	}
	const struct dirent *entry;
	while (errno = 0, status == LADE_OK && (entry = readdir(dir)))
		status = add_entry(w, fd, entry, names);
	if (status == LADE_OK && errno)
		status = lade_fail(w->err, LADE_E_IO, LADE_NO_OFFSET, "%s/%s: listing it: %s",
		                   w->dir->path, w->key, strerror(errno));
	closedir(dir);
	if (status == LADE_OK && !lade__names_sort(names))
		status = no_memory(w->err);
	return status;
}

/* Visits what is below w->key, "" or with a '/' at its end.  Symbolic links may form circles: keys
 * end at LADE_KEY_MAX bytes. */
static lade_status walk_directory(walk *w)
{
	lade__names names = {0};
	size_t base = strlen(w->key);
	lade_status status;
	TRY(read_names(w, &names));
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.text + names.names[i].at;
		size_t size = strlen(name);
		if (lade__stopped(&w->stop))
			TRY(lade__stop_fail(w->err));
		if (size > LADE_KEY_MAX - base)
			continue;
		memcpy(w->key + base, name, size + 1);
		lade_store_entry entry = {sizeof entry, w->key, names.names[i].size};
		if (name[size - 1] == '/' && !w->listing->level)
			TRY(walk_directory(w));
		else
			TRY(w->listing->visit(w->listing->ctx, &entry));
		w->key[base] = 0;
	}
out:
	lade__names_free(&names);
	return status;
}

static lade_status directory_list(void *ctx, const lade_store_listing *listing, lade_error *err)
{
	walk w = {
		.dir = ctx, .listing = listing, .stop = lade__stop_of(listing->cancel), .err = err};
	memcpy(w.key, listing->prefix, strlen(listing->prefix) + 1);
	return walk_directory(&w);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void directory_close(void *ctx)
{
	directory *dir = ctx;
	lade__pool_reset(&dir->pool);
	lade__rings_reset(&dir->rings);
	close(dir->fd);
	free(dir);
}

/* The directory's absolute path, which is made if that is wanted. */
static lade_status find(const char *path, uint64_t flags, char **absolute, lade_error *err)
{
	if (flags & LADE_DIRECTORY_CREATE && mkdir(path, 0777) != 0 && errno != EEXIST)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: making it: %s", path,
		                 strerror(errno));
	*absolute = realpath(path, NULL);
	if (*absolute)
		return LADE_OK;
	return lade_fail(err,
	                 errno == ENOENT   ? LADE_E_NOT_FOUND
	                 : errno == ENOMEM ? LADE_E_NOMEM
	                                   : LADE_E_IO,
	                 LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
}

lade_status lade_store_directory_open(const char *path, const lade_directory_options *given,
                                      lade_store **out, lade_error *err)
{
	static const lade_store_ops ops = {.struct_size = sizeof ops,
	                                   .flags = LADE_STORE_LOCAL | LADE_STORE_PARTS,
	                                   .parallel = LADE__DIRECTORY_THREADS,
	                                   .request_ns = 10000,
	                                   .request_rate = 3000000000,
	                                   .read = lade__directory_read,
	                                   .write = directory_write,
	                                   .list = directory_list,
	                                   .close = directory_close};
	const uint64_t known = LADE_DIRECTORY_SYNC | LADE_DIRECTORY_CREATE |
	                       LADE_DIRECTORY_READ_ONLY | LADE_DIRECTORY_DIRECT |
	                       LADE_DIRECTORY_CUFILE;
	lade_directory_options options;
	char name[128], *absolute = NULL;
	directory *dir = NULL;
	if (!path || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 path ? "out" : "path");
	*out = NULL;
	lade_status status;
	TRY(lade__options_read(&options, sizeof options, given, "directory options", err));
	if (options.flags & ~known)
		TRY(lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		              "directory options: flags 0x%" PRIx64 ", known are 0x%" PRIx64,
		              options.flags, known));
	TRY(find(path, options.flags, &absolute, err));
	size_t size = strlen(absolute) + 1;
	dir = malloc(sizeof *dir + size);
	if (!dir)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store"));
	*dir = (directory){.flags = options.flags};
	memcpy(dir->path, absolute, size);
	if (absolute[1] == 0)
		dir->path[0] = 0; /* the root: keys follow a '/' */
	if (options.flags & LADE_DIRECTORY_CUFILE)
		TRY(lade__cufile_open(&dir->cufile, options.cufile, err));
	TRY(lade__pool_init(&dir->pool, dir->helpers, LADE__DIRECTORY_THREADS - 1, err));
	lade__rings_init(&dir->rings);
	dir->ring_least = lade_cpu_count() < LADE__DIRECTORY_RING_CPUS ||
	                                  options.flags & LADE_DIRECTORY_DIRECT ||
	                                  dir->cufile.library
	                          ? SIZE_MAX
	                          : LADE__DIRECTORY_RING;
	dir->fd = open(absolute, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	lade_store_ops own = ops;
	if (options.flags & LADE_DIRECTORY_READ_ONLY)
		own.write = NULL;
	if (options.flags & LADE_DIRECTORY_CUFILE)
		own.flags |= LADE_STORE_ANY_PLACE;
	snprintf(name, sizeof name, "directory%s%s %s",
	         options.flags & LADE_DIRECTORY_DIRECT ? " (O_DIRECT)" : "",
	         options.flags & LADE_DIRECTORY_CUFILE ? " (cuFile)" : "", absolute);
	if (dir->fd < 0)
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", path, strerror(errno));
	else
		status = lade__store_new(&own, dir, name, out, err);
	if (status == LADE_OK && own.write)
		(*out)->tidy = lade__directory_tidy;
	if (status != LADE_OK && dir->fd >= 0)
		close(dir->fd);
	if (status != LADE_OK) {
		lade__pool_reset(&dir->pool);
		lade__rings_reset(&dir->rings);
	}
out:
	if (status != LADE_OK && dir)
		if (status != LADE_OK)
			free(dir);
	free(absolute);
	return status;
}
