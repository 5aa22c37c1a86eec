/*
 * worker.c: the process that compresses blocks, writes them to files, and brings them back.
 *
 * It has codecs and threads; the broker has neither, and never waits for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/worker.h"

#include <lade/frame.h>
#include <lade/suggest.h>

#include "base/try.h"
#include "share/area.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* All specs are tried on that much of a block, in about a tenth of a second; for blocks that encode
 * in less, a few fast ones on less of them. */
#define SAMPLE (256u << 10)
#define SAMPLED_FROM (16u << 20)
#define SMALL_SAMPLE (64u << 10)
#define SOCKET 3
#define FOLDER 4

typedef struct worker {
	lade_engine *engine;
	lade__packet packet;
} worker;

static lade_status failed(const char *what, lade_error *err)
{
	int code = errno;
	bool full = code == ENOSPC || code == EDQUOT;

	return lade_fail(err, code == ENOMEM ? LADE_E_NOMEM : full ? LADE_E_LIMIT : LADE_E_IO,
	                 LADE_NO_OFFSET, "%s: %s", what, strerror(code));
}

static lade_status write_all(int fd, const void *bytes, size_t size, const char *what,
                             lade_error *err)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return failed(what, err);
		done += (size_t)n;
	}
	return LADE_OK;
}

static lade_status write_memory(void *ctx, const void *bytes, size_t size, lade_error *err)
{
	return write_all(*(int *)ctx, bytes, size, "compressed memory", err);
}

/* ---- compressing ------------------------------------------------------------------------ */

/* What makes the block's beginning smallest. */
static lade_status choose_small(worker *w, lade_cspan data, lade_spec **out, lade_error *err)
{
	static const char *const specs[] = {"lz4", "shuffle(4)|lz4", "shuffle(8)|lz4"};
	lade_measure_options o = {.struct_size = sizeof o, .chunk_size = SMALL_SAMPLE};
	lade_status status = LADE_OK;
	uint64_t least = 0;

	data.size = data.size < SMALL_SAMPLE ? data.size : SMALL_SAMPLE;
	for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
		lade_measurement m = {0};
		lade_spec *spec;
		TRY(lade_spec_parse(w->engine, specs[i], &spec, err));
		status = lade_measure(w->engine, spec, data, &o, &m, err);
		if (status == LADE_OK && (!*out || m.encoded_size < least)) {
			lade_spec_unref(*out);
			*out = spec;
			least = m.encoded_size;
		} else {
			lade_spec_unref(spec);
		}
		TRY(status);
	}
out:
	return status;
}

/* What takes the least time among those that save a good part; "copy": nothing saves any. */
static lade_status choose(worker *w, lade_cspan data, lade_spec **out, lade_error *err)
{
	lade_suggest_options o = {.struct_size = sizeof o,
	                          .guess = true,
	                          .sample_size = SAMPLE,
	                          .chunk_size = SAMPLE / 2,
	                          .seconds = 1e-4};
	lade_suggestions *found = NULL;
	const char *text = "copy";
	lade_status status;

	if (data.size < SAMPLED_FROM)
		return choose_small(w, data, out, err);
	TRY(lade_suggest(w->engine, data, &o, &found, err));
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i]->goals & LADE_GOAL_SPEED)
			text = lade_spec_text(found->items[i]->spec);
	TRY(lade_spec_parse(w->engine, text, out, err));
out:
	lade_suggestions_free(found);
	return status;
}

static lade_status pack(worker *w, int from, size_t size, int *out, lade_error *err)
{
	lade_frame_options o = {.struct_size = sizeof o, .has_size = true, .size = size};
	lade_output output = {out, write_memory};
	lade_frame_writer *writer = NULL;
	lade_spec *spec = NULL;
	lade_status status = LADE_OK;
	void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, from, 0);

	if (data == MAP_FAILED)
		TRY(failed("a map of a block", err));
	TRY(choose(w, lade_host_cspan(data, size), &spec, err));
	o.spec = spec;
	TRY(lade__memfd_new(0, out, err));
	TRY(lade_frame_writer_new(w->engine, output, &o, &writer, err));
	TRY(lade_frame_writer_write(writer, data, size, err));
	TRY(lade_frame_writer_finish(writer, err));
	TRY(lade__memfd_seal(*out, err));
out:
	lade_frame_writer_free(writer);
	lade_spec_unref(spec);
	if (data != MAP_FAILED)
		munmap(data, size);
	return status;
}

static lade_status unpack(worker *w, int from, uint64_t *size, int *out, lade_error *err)
{
	char path[40];
	lade_frame *frame = NULL;
	lade_frame_range range = {0};
	void *data = MAP_FAILED;
	lade_status status;

	snprintf(path, sizeof path, "/proc/self/fd/%d", from);
	TRY(lade_frame_open_path(w->engine, path, NULL, &frame, err));
	*size = lade_frame_get_info(frame)->size;
	if (!*size || *size > PTRDIFF_MAX)
		TRY(lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET, "a block of %llu bytes",
		              (unsigned long long)*size));
	TRY(lade__memfd_new((size_t)*size, out, err));
	data = mmap(NULL, (size_t)*size, PROT_READ | PROT_WRITE, MAP_SHARED, *out, 0);
	if (data == MAP_FAILED)
		TRY(failed("a map of a block", err));
	range.dst = lade_host_span(data, (size_t)*size);
	TRY(lade_frame_read(frame, &range, 1, NULL, NULL, err));
	munmap(data, (size_t)*size);
	data = MAP_FAILED;
	TRY(lade__memfd_seal(*out, err));
out:
	if (data != MAP_FAILED)
		munmap(data, (size_t)*size);
	lade_frame_close(frame);
	return status;
}

/* ---- files ------------------------------------------------------------------------------ */

/* A file that is there whole, or not at all: from a memfd, or from memory. */
static lade_status write_file(const char *name, uint64_t number, int from, const void *bytes,
                              uint64_t *size, lade_error *err)
{
	char part[LADE__FILE_NAME];
	struct stat st;
	int to = -1;
	off_t at = 0;
	lade_status status = LADE_OK;

	snprintf(part, sizeof part, LADE__FILE_PART, (unsigned long long)number);
	to = openat(FOLDER, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0 || (from >= 0 && fstat(from, &st)))
		TRY(failed(name, err));
	if (from >= 0)
		*size = (uint64_t)st.st_size;
	else
		TRY(write_all(to, bytes, (size_t)*size, name, err));
	while (from >= 0 && (uint64_t)at < *size) {
		ssize_t n = sendfile(to, from, &at, (size_t)(*size - (uint64_t)at));
		if (n <= 0 && errno != EINTR)
			TRY(failed(name, err));
	}
	int fd = to;
	to = -1;
	if (close(fd) || renameat(FOLDER, part, FOLDER, name))
		TRY(failed(name, err));
out:
	if (to >= 0)
		close(to);
	if (status != LADE_OK)
		unlinkat(FOLDER, part, 0);
	return status;
}

static lade_status store(uint64_t number, int from, uint64_t *size, lade_error *err)
{
	char name[LADE__FILE_NAME];

	snprintf(name, sizeof name, LADE__FILE_BLOCK, (unsigned long long)number);
	return write_file(name, number, from, NULL, size, err);
}

/* The rest of the message, and its checksum. */
static lade_status note(lade__cursor *c, uint64_t *size, lade_error *err)
{
	uint64_t version = lade__take(c, 8);
	char name[LADE__FILE_NAME];

	*size = c->left;
	snprintf(name, sizeof name, LADE__FILE_VERSION, (unsigned long long)version);
	return write_file(name, version, -1, c->at, size, err);
}

/* ---- the process ------------------------------------------------------------------------ */

static lade_status answer(worker *w, lade__wire_kind kind, uint64_t *size, int *out,
                          lade_error *err)
{
	lade__cursor c = lade__packet_body(&w->packet);
	int from = w->packet.fd_count ? w->packet.fds[0] : -1;
	uint64_t number;

	switch (kind) {
	case LADE__PACK:
		*size = lade__take(&c, 8);
		return pack(w, from, (size_t)*size, out, err);
	case LADE__UNPACK:
		return unpack(w, from, size, out, err);
	case LADE__STORE:
		number = lade__take(&c, 8);
		return store(number, from, size, err);
	case LADE__NOTE:
		return note(&c, size, err);
	default:
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a message of kind %d is not known", (int)kind);
	}
}

static _Noreturn void live(int socket, int folder, pid_t parent)
{
	worker *w = calloc(1, sizeof *w);
	sigset_t none;
	lade_error err;

	/* The parent may have gone before this. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || !w)
		_exit(0);
	/* Above both, so that neither takes the other's place.  The folder is opened again: the
	 * broker's descriptor has its lock, which must not outlive it. */
	int own = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY);
	int held = fcntl(socket, F_DUPFD, 10), kept = own < 0 ? -1 : fcntl(own, F_DUPFD, 10);
	dup2(held, SOCKET);
	/* Without a folder the broker asks for no files. */
	close_range(dup2(kept, FOLDER) == FOLDER ? FOLDER + 1 : SOCKET + 1, ~0u, 0);
	prctl(PR_SET_NAME, "lade-worker");
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (lade_engine_new(NULL, &w->engine, NULL) != LADE_OK)
		_exit(1);
	while (lade__wire_receive(SOCKET, &w->packet, NULL) == LADE_OK && w->packet.size) {
		uint64_t request = lade__packet_request(&w->packet), size = 0;
		int out = -1;
		lade_status status =
			answer(w, lade__packet_kind(&w->packet), &size, &out, &err);
		lade__packet_close(&w->packet);
		if (status != LADE_OK) {
			lade__wire_failed(&w->packet, request, &err);
		} else {
			lade__wire_begin(&w->packet, LADE__MADE, request);
			lade__wire_put(&w->packet, size, 8);
			if (out >= 0)
				w->packet.fds[w->packet.fd_count++] = out;
		}
		lade__wire_send(SOCKET, &w->packet);
		if (out >= 0)
			close(out);
	}
	_exit(0);
}

lade_status lade__worker_start(int folder, int *fd, pid_t *pid, lade_error *err)
{
	int both[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both))
		return failed("a socket for a worker", err);
	*pid = fork();
	if (*pid == 0)
		live(both[1], folder, parent);
	close(both[1]);
	if (*pid < 0) {
		close(both[0]);
		return failed("starting a worker", err);
	}
	/* The message of a version has a whole record. */
	int size = 2 * LADE__WIRE_MAX;
	setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	fcntl(both[0], F_SETFL, O_NONBLOCK);
	*fd = both[0];
	return LADE_OK;
}
