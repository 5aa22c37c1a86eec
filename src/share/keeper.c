/*
 * keeper.c: the process that holds all that a broker has published, and outlives it.
 *
 * It has no device, one connection at a time, and answers what a broker says.  A new broker that
 * connects takes the place of an old one, after all that the old one had sent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/keeper.h"

#include "base/try.h"
#include "share/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without a broker, the keeper looks that often whether its socket is still there: a new broker
 * could not find it otherwise, and its memory would be lost for ever. */
#define LOOK_MS 5000

typedef struct keeper {
	int listener, broker; /* broker -1: there is none */
	lade__shelf shelf;
	lade__packet packet;
	lade__block room[LADE__WIRE_FDS];
} keeper;

/* ---- the keeper's side ------------------------------------------------------------------ */

/* A broker that has ended gets no answer, and what it had sent before is done nevertheless. */
static void answer(keeper *k, uint64_t request, uint64_t version)
{
	lade__wire_begin(&k->packet, LADE__KEPT, request);
	lade__wire_put(&k->packet, version, 8);
	lade__wire_send(k->broker, &k->packet);
}

static void keep(keeper *k, uint64_t request)
{
	lade__record record;
	lade__kept *kept;
	lade_error err;

	/* A broker whose connection broke may say it again. */
	if (lade__shelf_find(&k->shelf, request)) {
		lade__packet_close(&k->packet);
		answer(k, request, request);
		return;
	}
	if (lade__read_record(&k->packet, &record, k->room, &err) != LADE_OK ||
	    lade__shelf_add(&k->shelf, &record, 0, &kept, &err) != LADE_OK) {
		lade__packet_close(&k->packet);
		lade__wire_failed(&k->packet, request, &err);
		lade__wire_send(k->broker, &k->packet);
		return;
	}
	kept->visible = true;
	answer(k, request, record.version);
}

/* A block is elsewhere now; one that is not here any more has gone meanwhile. */
static void swap(keeper *k, uint64_t request)
{
	lade__cursor c = lade__packet_body(&k->packet);
	dev_t dev = (dev_t)lade__take(&c, 8);
	ino_t ino = (ino_t)lade__take(&c, 8);
	lade__block to = {.kind = (uint8_t)lade__take(&c, 8), .fd = -1};
	lade__memory *m = lade__shelf_memory(&k->shelf, dev, ino);
	lade_error err;

	to.version = lade__take(&c, 8);
	to.size = lade__take(&c, 8);
	if (k->packet.fd_count == 1)
		to.fd = k->packet.fds[0];
	else
		lade__packet_close(&k->packet);
	k->packet.fd_count = 0;
	if (m && lade__shelf_swap(&k->shelf, m, &to, &err) != LADE_OK) {
		lade__wire_failed(&k->packet, request, &err);
		lade__wire_send(k->broker, &k->packet);
		return;
	}
	if (!m && to.fd >= 0)
		close(to.fd);
	answer(k, request, 0);
}

static void drop(keeper *k, uint64_t request)
{
	lade__cursor c = lade__packet_body(&k->packet);
	uint64_t version = lade__take(&c, 8);
	lade__kept *kept = lade__shelf_find(&k->shelf, version);

	if (kept)
		lade__shelf_drop(&k->shelf, kept);
	answer(k, request, version);
}

static void send_all(keeper *k, uint64_t request)
{
	int rc = 0;

	for (size_t i = 0; i < k->shelf.count && !rc; i++) {
		lade__wire_begin(&k->packet, LADE__KEEP, request);
		lade__wire_record(&k->packet, lade__kept_record(k->shelf.versions[i]));
		rc = lade__wire_send(k->broker, &k->packet);
	}
	answer(k, request, (uint64_t)getpid());
}

/* One message of the broker's.  False: the broker is gone. */
static bool serve_broker(keeper *k, bool *stop)
{
	lade_status status = lade__wire_receive(k->broker, &k->packet, NULL);
	uint64_t request;

	if (status != LADE_OK || !k->packet.size)
		return status == LADE_E_STATE;
	request = lade__packet_request(&k->packet);
	switch (lade__packet_kind(&k->packet)) {
	case LADE__KEEP:
		keep(k, request);
		return true;
	case LADE__DROP:
		drop(k, request);
		return true;
	case LADE__SWAP:
		swap(k, request);
		return true;
	case LADE__ALL:
		send_all(k, request);
		return true;
	case LADE__STOP:
		*stop = true;
		break;
	default:
		break;
	}
	lade__packet_close(&k->packet);
	return false;
}

static void take_broker(keeper *k)
{
	int fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
	uid_t uid;
	pid_t pid;

	if (fd < 0)
		return;
	if (lade__socket_peer(fd, &uid, &pid, NULL) != LADE_OK || uid != geteuid()) {
		close(fd);
		return;
	}
	if (k->broker >= 0)
		close(k->broker);
	lade__socket_room(fd);
	k->broker = fd;
}

static bool still_there(const char *path, const struct stat *mine)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == mine->st_dev && st.st_ino == mine->st_ino;
}

static void run(keeper *k, const char *path)
{
	struct stat mine;
	bool stop = lstat(path, &mine) != 0;

	while (!stop) {
		struct pollfd fds[2] = {{k->listener, POLLIN, 0}, {k->broker, POLLIN, 0}};
		int count = poll(fds, 2, k->broker < 0 ? LOOK_MS : -1);
		if (count == 0 && !still_there(path, &mine))
			return; /* and leave the file: it is not ours */
		if (count <= 0)
			continue;
		if (k->broker < 0 || !fds[1].revents) {
			take_broker(k);
		} else if (!serve_broker(k, &stop) && !stop) {
			close(k->broker);
			k->broker = -1;
		}
	}
	/* Before the broker sees the end of the connection: then the next one may start. */
	if (still_there(path, &mine))
		unlink(path);
}

/* The life of the process, after fork(). */
static _Noreturn void live(int listener, const char *path)
{
	keeper *k = calloc(1, sizeof *k);
	sigset_t none;

	if (listener != 3)
		dup2(listener, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	close_range(4, ~0u, 0);
	setsid();
	prctl(PR_SET_NAME, "lade-keeper");
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (k && chdir("/") == 0) {
		k->listener = 3;
		k->broker = -1;
		run(k, path);
		lade__shelf_reset(&k->shelf);
	}
	free(k);
	_exit(0);
}

/* ---- the broker's side ------------------------------------------------------------------ */

/* A grandchild, so that nobody needs to wait for its end. */
static lade_status start(const char *path, lade_error *err)
{
	int listener, state;
	lade_status status = lade__socket_listen(path, false, 0, &listener, err);

	if (status != LADE_OK)
		return status;
	pid_t pid = fork();
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			live(listener, path);
		_exit(pid < 0);
	}
	if (pid < 0 || (waitpid(pid, &state, 0) == pid && state != 0))
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "starting a keeper: %s",
		                   strerror(pid < 0 ? errno : EAGAIN));
	close(listener);
	return status;
}

lade_status lade__keeper_connect(const char *path, int *out, lade_error *err)
{
	uid_t uid;
	pid_t pid;
	lade_status status = lade__socket_connect(path, out, NULL);

	if (status != LADE_OK) {
		TRY(start(path, err));
		TRY(lade__socket_connect(path, out, err));
	}
	TRY(lade__socket_peer(*out, &uid, &pid, err));
	if (uid != geteuid()) {
		close(*out);
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: the keeper is user %u's", path,
		              (unsigned)uid));
	}
out:
	if (status != LADE_OK)
		*out = -1;
	return status;
}

lade_status lade__keeper_all(int fd, lade__packet *p, lade__shelf *shelf, uint64_t *pid,
                             lade_error *err)
{
	lade__block room[LADE__WIRE_FDS];
	lade__record record;
	lade__kept *kept;
	lade_status status;

	lade__wire_begin(p, LADE__ALL, 0);
	if (lade__wire_send(fd, p))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the keeper is gone");
	for (;;) {
		TRY(lade__wire_receive(fd, p, err));
		if (!p->size)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the keeper is gone");
		if (lade__packet_kind(p) != LADE__KEEP)
			break;
		TRY(lade__read_record(p, &record, room, err));
		TRY(lade__shelf_add(shelf, &record, 0, &kept, err));
		kept->visible = true;
		kept->state = LADE__KEPT_SAFE;
	}
	lade__cursor c = lade__packet_body(p);
	*pid = lade__take(&c, 8);
	if (lade__packet_kind(p) != LADE__KEPT || c.bad)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "the keeper answers with a message of kind %d",
		                   (int)lade__packet_kind(p));
out:
	lade__packet_close(p);
	return status;
}
