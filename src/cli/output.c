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
	/* A file that passes the limit of its size is an error of write(), told like others. */
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
	struct stat st;

	*out = (cli_out){.name = "standard output", .fd = STDOUT_FILENO};
	out->regular = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

/* Asks on the terminal.  True: yes. */
static bool ask(const char *path)
{
	char line[16];

	progress_clear();
	fprintf(stderr, "lade: %s exists already; overwrite it? (y/n) ", path);
	fflush(stderr);
	if (!fgets(line, sizeof line, stdin))
		return false;
	bool yes = line[0] == 'y' || line[0] == 'Y';
	while (!strchr(line, '\n') && fgets(line, sizeof line, stdin))
		;
	return yes;
}

/* "dir/.lade-XXXXXX" beside "dir/name": short, since 'name' may be as long as names can be. */
static char *temp_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path) + 1 : 0;
	char *name;

	return asprintf(&name, "%.*s.lade-XXXXXX", dir, path) < 0 ? cli_need(NULL) : name;
}

int cli_out_open(cli_out *out, const char *path, bool replace, bool may_ask)
{
	struct stat st;
	sigset_t old;

	*out = (cli_out){.name = path, .fd = -1, .owned = true, .replace = replace};
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode)) {
			cli_error("%s: is a directory", path);
			return CLI_FAILED;
		}
		if (!S_ISREG(st.st_mode)) {
			out->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
			if (out->fd < 0)
				goto failed;
			return CLI_OK;
		}
		if (!replace) {
			if (!may_ask || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
				cli_error("%s: exists already (-f overwrites it)", path);
				return CLI_FAILED;
			}
			if (!ask(path)) {
				cli_error("%s: not overwritten", path);
				return CLI_FAILED;
			}
			out->replace = true;
		}
	}
	out->path = cli_need(strdup(path));
	out->temp = temp_name(path);
	block_signals(&old);
	out->fd = mkostemp(out->temp, O_CLOEXEC);
	if (out->fd >= 0 && strlen(out->temp) < sizeof signal_path) {
		strcpy(signal_path, out->temp);
		signal_armed = 1;
	}
	int error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
	if (out->fd < 0) {
		free(out->temp);
		out->temp = NULL;
		goto failed;
	}
	out->regular = true;
	return CLI_OK;

failed:
	cli_error("%s: %s", path, strerror(errno));
	cli_out_abandon(out);
	return CLI_FAILED;
}

/* ---- writing ------------------------------------------------------------------------ */

static lade_status write_failed(lade_error *err)
{
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "writing failed: %s", strerror(errno));
}

static lade_status write_next(void *ctx, const void *src, size_t size, lade_error *err)
{
	cli_out *out = ctx;
	const uint8_t *p = src;

	out->written += size;
	progress_add(0, size);
	while (size && out->fd >= 0) {
		ssize_t n = write(out->fd, p, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return write_failed(err);
		p += n;
		size -= (size_t)n;
	}
	return LADE_OK;
}

lade_output cli_out_output(cli_out *out)
{
	return (lade_output){out, write_next};
}

lade_status cli_out_write_at(cli_out *out, uint64_t off, const void *data, size_t size,
                             lade_error *err)
{
	const uint8_t *p = data;

	progress_add(0, size);
	while (size && out->fd >= 0) {
		ssize_t n = pwrite(out->fd, p, size, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return write_failed(err);
		p += n;
		size -= (size_t)n;
		off += (uint64_t)n;
	}
	return LADE_OK;
}

/* ---- the end ------------------------------------------------------------------------ */

/* The file takes its name; an existing one is only replaced if that was allowed. */
static int take_name(const cli_out *out)
{
	if (out->replace)
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

int cli_out_commit(cli_out *out, const cli_in *like, bool sync)
{
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
	if (!good || (out->temp && take_name(out) != 0)) {
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
