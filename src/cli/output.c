/*
 * output.c: writes files so that a half-written one is never left behind.
 *
 * The bytes go to a temporary file in the same directory, which takes its name when all is done.
 * Its path is known to the handler of the signals that end the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE /* O_CLOEXEC temporary files, renames that do not replace */
#include "cli/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/table.h"

/* ---- signals --------------------------------------------------------------------------------- */

static char signal_path[PATH_MAX];
static volatile sig_atomic_t signal_armed;

static const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
#define FATAL_COUNT (sizeof fatal / sizeof fatal[0])

/*
 * The signals are blocked here, and end the program by their default only when the file is gone: a
 * second one may come at once (timeout(1) sends one to the process and one to its group).
 */
static void on_signal(int number)
{
	if (signal_armed)
		unlink(signal_path);
	signal(number, SIG_DFL);
	raise(number);
}

static void fatal_signals(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < FATAL_COUNT; i++)
		sigaddset(set, fatal[i]);
}

void cli_out_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct sigaction old;

	fatal_signals(&action.sa_mask);
	for (size_t i = 0; i < FATAL_COUNT; i++) {
		/* What the parent had ignored (nohup) stays ignored. */
		if (sigaction(fatal[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(fatal[i], &action, NULL);
	}
	/* A file that passes the limit of its size is an error of write(), reported like others. */
	signal(SIGXFSZ, SIG_IGN);
}

static void block_signals(sigset_t *old)
{
	sigset_t set;

	fatal_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, old);
}

/* ---- opening ------------------------------------------------------------------------ */

void cli_out_null(cli_out *out)
{
	*out = (cli_out){.fd = -1};
}

void cli_out_stdout(cli_out *out)
{
	*out = (cli_out){.name = "standard output", .fd = STDOUT_FILENO};
}

/* Asks on the terminal.  True: yes. */
static bool ask(const char *path)
{
	char line[16], name[PATH_MAX];

	progress_clear();
	fprintf(stderr, "lade: %s exists already; overwrite it? (y/n) ",
	        cli_escape(path, name, sizeof name));
	fflush(stderr);
	if (!fgets(line, sizeof line, stdin))
		return false;
	bool yes = line[0] == 'y' || line[0] == 'Y';
	while (!strchr(line, '\n') && fgets(line, sizeof line, stdin))
		;
	return yes;
}

/* Bytes of a file's name in its temporary file's: both must be names that are short enough. */
#define TEMP_SHOWN 64

/* "dir/.name.lade-XXXXXX" beside "dir/name", cut at a whole character: who finds one that SIGKILL
 * has left knows what it is. */
static char *temp_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0, size = (int)strlen(path + dir);
	char *name;

	size = size < TEMP_SHOWN ? size : TEMP_SHOWN;
	while (size && (path[dir + size] & 0xC0) == 0x80)
		size--;
	size = asprintf(&name, "%.*s.%.*s.lade-XXXXXX", dir, path, size, path + dir);
	return size < 0 ? cli_need(NULL) : name;
}

/* ---- where a path leads --------------------------------------------------------------- */

#define LINKS_MAX 40
#define PROC_MAGIC 0x9fa0 /* of linux/magic.h */

/* The folder of 'path', without links.  NULL: there is none.  To be freed. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = cli_need(slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("."));
	char *real = realpath(name, NULL);

	free(name);
	return real;
}

/* Whether a folder lists the open files of a process, and of this one. */
static bool lists_open_files(const char *folder, bool *own)
{
	static const char *const lists[] = {"/proc/self/fd", "/proc/thread-self/fd"};
	size_t size = strlen(folder);
	struct statfs fs;

	*own = false;
	for (size_t i = 0; i < 2 && !*own; i++) {
		char *real = realpath(lists[i], NULL);
		*own = real && strcmp(real, folder) == 0;
		free(real);
	}
	return *own || (size > 3 && strcmp(folder + size - 3, "/fd") == 0 &&
	                statfs(folder, &fs) == 0 && fs.f_type == PROC_MAGIC);
}

enum { NAMED, OPEN_HERE, OPEN_ELSEWHERE };

/*
 * Follows the links at the end of 'path', up to what is none, or to a file that some process has
 * open (/dev/stdout, /proc/self/fd/3): such a link is no name of that file.  Gives the path of what
 * is there, or could be made.  NULL: errno says why not.  To be freed.
 */
static char *follow(const char *path, int *what)
{
	char *at = cli_need(strdup(path));
	char target[PATH_MAX];
	struct stat st;

	*what = NAMED;
	for (unsigned i = 0; lstat(at, &st) == 0 && S_ISLNK(st.st_mode); i++) {
		bool own;
		char *folder = folder_of(at), *next = NULL;
		ssize_t size = readlink(at, target, sizeof target - 1);
		if (!folder || size < 0 || i == LINKS_MAX) {
			errno = i == LINKS_MAX ? ELOOP : errno;
			free(folder);
			free(at);
			return NULL;
		}
		target[size] = 0;
		if (lists_open_files(folder, &own)) {
			*what = own ? OPEN_HERE : OPEN_ELSEWHERE;
			free(folder);
			return at;
		}
		if (asprintf(&next, target[0] == '/' ? "%.0s%s" : "%s/%s", folder, target) < 0)
			cli_need(NULL);
		free(folder);
		free(at);
		at = next;
	}
	return at;
}

/* ---- opening ------------------------------------------------------------------------ */

/* Opens a temporary file beside out->path, which the signals remove; out->fd stays -1 where that
 * fails. */
static void make_temp(cli_out *out)
{
	sigset_t old;

	out->temp = temp_name(out->path);
	block_signals(&old);
	out->fd = mkostemp(out->temp, O_CLOEXEC);
	int error = errno;
	if (out->fd < 0) {
		free(out->temp);
		out->temp = NULL;
	} else if (strlen(out->temp) < sizeof signal_path) {
		strcpy(signal_path, out->temp);
		signal_armed = 1;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
}

/* Whether a file that is there may be replaced. */
static bool may_replace(const char *path, bool replace, bool may_ask)
{
	if (replace)
		return true;
	if (!may_ask || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		cli_error("%s: exists already (-f overwrites it)", path);
	else if (ask(path))
		return true;
	else
		cli_error("%s: not overwritten", path);
	return false;
}

int cli_out_open(cli_out *out, const char *path, bool replace, bool may_ask)
{
	struct stat st;
	int what;

	*out = (cli_out){.name = path, .fd = -1, .owned = true, .replace = replace};
	out->path = follow(path, &what);
	if (!out->path)
		goto failed;
	bool there = stat(out->path, &st) == 0, regular = !there || S_ISREG(st.st_mode);
	if (there && S_ISDIR(st.st_mode)) {
		cli_error("%s: is a directory", path);
		cli_out_abandon(out);
		return CLI_FAILED;
	}
	if (what == OPEN_HERE) {
		/* As the shell's ">&3": behind what is there already. */
		out->fd = fcntl(atoi(strrchr(out->path, '/') + 1), F_DUPFD_CLOEXEC, 0);
	} else {
		if (there && regular && !may_replace(path, replace, may_ask)) {
			cli_out_abandon(out);
			return CLI_FAILED;
		}
		out->replace = there;
		if (regular && what == NAMED)
			make_temp(out);
		else
			out->fd = open(out->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
	}
	if (out->fd >= 0)
		return CLI_OK;

failed:
	cli_error("%s: %s", path, strerror(errno));
	cli_out_abandon(out);
	return CLI_FAILED;
}

/* ---- writing ------------------------------------------------------------------------ */

static lade_status write_failed(const cli_out *out, lade_error *err)
{
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s, writing %s", strerror(errno),
	                 out->name);
}

/* The block of most file systems: what a hole saves at least. */
#define HOLE ((size_t)4096)

/* Bytes at 'p' that are zero ('*zero') or not, in whole blocks of the file from 'off' on. */
static size_t stretch(const uint8_t *p, size_t size, uint64_t off, bool *zero)
{
	static const uint8_t zeros[HOLE];
	size_t end = 0;

	while (end < size) {
		size_t block = HOLE - (size_t)((off + end) % HOLE);
		block = block < size - end ? block : size - end;
		bool is = memcmp(p + end, zeros, block) == 0;
		if (end == 0)
			*zero = is;
		else if (is != *zero)
			break;
		end += block;
	}
	return end;
}

static lade_status write_next(void *ctx, const void *src, size_t size, lade_error *err)
{
	cli_out *out = ctx;
	const uint8_t *p = src;

	progress_add(0, size);
	while (size && out->fd >= 0) {
		bool zero = false;
		size_t part = out->sparse ? stretch(p, size, out->written, &zero) : size;
		ssize_t n = (ssize_t)part;
		if (zero && lseek(out->fd, (off_t)part, SEEK_CUR) < 0)
			return write_failed(out, err);
		if (!zero)
			n = write(out->fd, p, part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return write_failed(out, err);
		p += n;
		size -= (size_t)n;
		out->written += (uint64_t)n;
	}
	out->written += size;
	return LADE_OK;
}

void cli_out_sparse(cli_out *out)
{
	struct stat st;
	int flags = fcntl(out->fd, F_GETFL);

	out->sparse = out->fd >= 0 && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	              flags >= 0 && !(flags & O_APPEND) &&
	              lseek(out->fd, 0, SEEK_CUR) >= st.st_size;
}

/* Gives the file the size that a hole at its end has not given it. */
static int end_hole(const cli_out *out)
{
	struct stat st;
	off_t end = out->temp ? (off_t)out->written : lseek(out->fd, 0, SEEK_CUR);

	if (!out->sparse)
		return 0;
	if (end < 0 || fstat(out->fd, &st) != 0)
		return -1;
	return st.st_size < end ? ftruncate(out->fd, end) : 0;
}

lade_output cli_out_output(cli_out *out)
{
	return (lade_output){out, write_next};
}

lade_status cli_out_write_at(void *ctx, uint64_t off, const void *data, size_t size,
                             lade_error *err)
{
	const cli_out *out = ctx;
	const uint8_t *p = data;

	off += out->written;
	progress_add(0, size);
	while (size && out->fd >= 0) {
		bool zero = false;
		size_t part = out->sparse ? stretch(p, size, off, &zero) : size;
		ssize_t n = zero ? (ssize_t)part : pwrite(out->fd, p, part, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return write_failed(out, err);
		p += n;
		size -= (size_t)n;
		off += (uint64_t)n;
	}
	return LADE_OK;
}

/* ---- the end ------------------------------------------------------------------------ */

/* The file takes its name; an existing one is only replaced if that was allowed and it is a regular
 * file. */
static int take_name(const cli_out *out)
{
	struct stat st;

	if (out->replace && (lstat(out->path, &st) != 0 || S_ISREG(st.st_mode)))
		return rename(out->temp, out->path);
	if (renameat2(AT_FDCWD, out->temp, AT_FDCWD, out->path, RENAME_NOREPLACE) == 0)
		return 0;
	/* Some file systems have no RENAME_NOREPLACE; a link never replaces. */
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (link(out->temp, out->path) == 0)
		return unlink(out->temp);
	if (errno == EEXIST)
		return -1;
	return rename(out->temp, out->path);
}

/* The name is on the disk too.  Some file systems cannot be asked for that. */
static int sync_folder(const char *path)
{
	char *folder = folder_of(path);
	int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int rc = fd < 0 ? -1 : fsync(fd), error = errno;

	if (fd >= 0)
		close(fd);
	free(folder);
	errno = error;
	return rc != 0 && error == EINVAL ? 0 : rc;
}

int cli_out_commit(cli_out *out, const cli_in *like, bool sync)
{
	if (end_hole(out) != 0) {
		cli_error("%s: %s", out->name, strerror(errno));
		cli_out_abandon(out);
		return CLI_FAILED;
	}
	if (!out->owned)
		return CLI_OK;
	if (out->temp) {
		mode_t mask = umask(0);
		umask(mask);
		if (S_ISREG(like->stat.st_mode) && !like->is_stdin) {
			struct timespec times[2] = {like->stat.st_atim, like->stat.st_mtim};
			/* Changing the owner is for root; the mode comes after it, which may clear
			 * bits.  Failures are no harm: the bytes are right. */
			if (fchown(out->fd, like->stat.st_uid, like->stat.st_gid) != 0)
				cli_note("%s: the owner stays: %s", out->name, strerror(errno));
			fchmod(out->fd, like->stat.st_mode & 0777);
			futimens(out->fd, times);
		} else {
			fchmod(out->fd, 0666 & ~mask);
		}
	}
	bool good = !sync || !out->temp || fsync(out->fd) == 0;
	good = close(out->fd) == 0 && good;
	out->fd = -1;
	good = good && (!out->temp || take_name(out) == 0);
	good = good && (!out->temp || !sync || sync_folder(out->path) == 0);
	if (!good) {
		cli_error("%s: %s", out->name, strerror(errno));
		cli_out_abandon(out);
		return CLI_FAILED;
	}
	signal_armed = 0;
	free(out->temp);
	free(out->path);
	out->temp = out->path = NULL;
	return CLI_OK;
}

void cli_out_abandon(cli_out *out)
{
	if (out->owned && out->fd >= 0)
		close(out->fd);
	out->fd = -1;
	if (out->temp) {
		unlink(out->temp);
		signal_armed = 0;
	}
	free(out->temp);
	free(out->path);
	out->temp = out->path = NULL;
}
