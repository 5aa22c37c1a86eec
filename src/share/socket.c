/*
 * socket.c: paths, listening sockets, connections, and who is at their other ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/socket.h"

#include "share/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static lade_status failed(const char *path, const char *what, lade_error *err)
{
	int code = errno;

	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s: %s", path, what, strerror(code));
}

/* ---- paths ------------------------------------------------------------------------------ */

/* Anyone can make a folder of this name first: it must be the user's alone. */
static lade_status own_folder(const char *path, bool make, lade_error *err)
{
	struct stat st;

	if (make && mkdir(path, 0700) && errno != EEXIST)
		return failed(path, "making it", err);
	if (lstat(path, &st))
		return errno == ENOENT ? LADE_OK : failed(path, "looking at it", err);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: not a folder of user %u alone: owner %u, mode %o", path,
		                 (unsigned)geteuid(), (unsigned)st.st_uid,
		                 (unsigned)st.st_mode & 07777);
	return LADE_OK;
}

static lade_status default_path(char *path, size_t cap, bool make, lade_error *err)
{
	char folder[64];
	struct stat st;
	int size;

	snprintf(folder, sizeof folder, "/run/user/%u", (unsigned)geteuid());
	if (!stat(folder, &st) && S_ISDIR(st.st_mode)) {
		size = snprintf(path, cap, "%s/lade-share", folder);
	} else {
		snprintf(folder, sizeof folder, "/tmp/lade-%u", (unsigned)geteuid());
		lade_status status = own_folder(folder, make, err);
		if (status != LADE_OK)
			return status;
		size = snprintf(path, cap, "%s/share", folder);
	}
	if ((size_t)size < cap)
		return LADE_OK;
	return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET, "the path has %d bytes, have %zu",
	                 size + 1, cap);
}

lade_status lade_share_path_default(char *path, size_t cap, lade_error *err)
{
	if (!path)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "path is NULL");
	return default_path(path, cap, false, err);
}

lade_status lade__socket_path(const char *given, const char *suffix, bool make,
                              char path[LADE__PATH_MAX], lade_error *err)
{
	char own[LADE__PATH_MAX];
	lade_status status;

	if (!given) {
		status = default_path(own, sizeof own, make, err);
		if (status != LADE_OK)
			return status;
		given = own;
	}
	size_t size = strlen(given) + strlen(suffix) + 1;
	if (size > LADE__PATH_MAX || !*given)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "a socket's path of %zu bytes: at most %d, and at least one",
		                 size - 1, LADE__PATH_MAX - 1);
	memcpy(path, given, strlen(given));
	memcpy(path + strlen(given), suffix, strlen(suffix) + 1);
	return LADE_OK;
}

/* ---- sockets ---------------------------------------------------------------------------- */

void lade__socket_room(int fd)
{
	int size = 2 * LADE__WIRE_MAX;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

void lade__socket_timeout(int fd, uint32_t ms)
{
	struct timeval time = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};

	if (ms == UINT32_MAX)
		time = (struct timeval){0};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

static lade_status new_socket(const char *path, struct sockaddr_un *to, int *out, lade_error *err)
{
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(to->sun_path, path, strlen(path) + 1); /* LADE__PATH_MAX fits */
	*out = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (*out < 0)
		return failed(path, "a socket", err);
	lade__socket_room(*out);
	return LADE_OK;
}

lade_status lade__socket_listen(const char *path, bool group, gid_t gid, int *out, lade_error *err)
{
	struct sockaddr_un to;
	struct stat st;
	int fd;
	lade_status status = new_socket(path, &to, &fd, err);

	*out = -1;
	if (status != LADE_OK)
		return status;
	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		status = failed(path, "it is not a socket", err);
	} else {
		unlink(path);
		/* Nobody can connect before listen(); by then the mode is right. */
		if (bind(fd, (struct sockaddr *)&to, sizeof to))
			status = failed(path, "binding", err);
		else if (chmod(path, 0600) ||
		         (group && (chown(path, (uid_t)-1, gid) || chmod(path, 0660))))
			status = failed(path, "setting its mode", err);
		else if (listen(fd, 128))
			status = failed(path, "listening", err);
	}
	if (status != LADE_OK)
		close(fd);
	else
		*out = fd;
	return status;
}

lade_status lade__socket_connect(const char *path, int *out, lade_error *err)
{
	struct sockaddr_un to;
	int fd;
	lade_status status = new_socket(path, &to, &fd, err);

	*out = -1;
	if (status != LADE_OK)
		return status;
	int rc;
	do
		rc = connect(fd, (struct sockaddr *)&to, sizeof to);
	while (rc && errno == EINTR);
	if (rc) {
		status =
			errno == ENOENT || errno == ECONNREFUSED
		                ? lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		                            "%s: no broker answers: start 'lade share serve'", path)
		                : failed(path, "connecting", err);
		close(fd);
		return status;
	}
	*out = fd;
	return LADE_OK;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

lade_status lade__socket_await(int fd, uint32_t timeout_ms, lade_error *err)
{
	struct pollfd ready = {fd, POLLIN, 0};
	bool ever = timeout_ms == UINT32_MAX;
	int64_t end = ever ? 0 : now_ms() + timeout_ms, left = timeout_ms;
	int rc;

	do {
		rc = poll(&ready, 1, ever ? -1 : left > INT32_MAX ? INT32_MAX : (int)left);
		left = end - now_ms();
		left = left < 0 ? 0 : left;
	} while ((rc < 0 && errno == EINTR) || (rc == 0 && (ever || left)));
	if (rc < 0)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "poll: %s", strerror(errno));
	return rc ? LADE_OK
	          : lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "nothing within %u ms",
	                      timeout_ms);
}

lade_status lade__socket_peer(int fd, uid_t *uid, pid_t *pid, lade_error *err)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "SO_PEERCRED: %s",
		                 strerror(errno));
	*uid = peer.uid;
	*pid = peer.pid;
	return LADE_OK;
}
