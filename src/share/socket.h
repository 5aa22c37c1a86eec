/*
 * socket.h: paths, listening sockets, connections, and who is at their other ends.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_SOCKET_H
#define LADE_SHARE_SOCKET_H

#include <lade/share.h>

#include <sys/types.h>

/* What a socket's path may have with its NUL (sun_path of Linux). */
#define LADE__PATH_MAX 108

/* The caller's path, or the default one.  'suffix' is put behind it.  The default folder in /tmp is
 * made if 'make'.  Fails: LADE_E_ARG (too long), as lade_share_path_default() */
lade_status lade__socket_path(const char *given, const char *suffix, bool make,
                              char path[LADE__PATH_MAX], lade_error *err);

/* A listening socket that replaces a stale file; nobody else may use 'path' meanwhile.  'group':
 * the members of 'gid' may connect.  Fails: LADE_E_IO */
lade_status lade__socket_listen(const char *path, bool group, gid_t gid, int *out, lade_error *err);

/* Fails: LADE_E_NOT_FOUND: nobody listens; LADE_E_IO */
lade_status lade__socket_connect(const char *path, int *out, lade_error *err);

/* Waits until there is something to receive, or the end of the connection, however many signals
 * come.  UINT32_MAX: for ever.  Fails: LADE_E_STATE: nothing within the time; LADE_E_IO */
lade_status lade__socket_await(int fd, uint32_t timeout_ms, lade_error *err);

/* The user and the process that the other end was when it connected.  Fails: LADE_E_IO */
lade_status lade__socket_peer(int fd, uid_t *uid, pid_t *pid, lade_error *err);

/* Room for a message of any size; the system may give less. */
void lade__socket_room(int fd);

/* Calls that wait for longer than that fail. */
void lade__socket_timeout(int fd, uint32_t ms);

#endif
