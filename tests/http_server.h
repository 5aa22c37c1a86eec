/*
 * http_server.h: starts tests/http_server.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_HTTP_SERVER_H
#define LADE_TESTS_HTTP_SERVER_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct http_server {
	pid_t pid;
	int input; /* the server ends when this is closed */
	int port;  /* 0: it did not start */
} http_server;

static inline http_server http_server_start(void)
{
	http_server s = {.pid = -1};
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return s;
	s.pid = fork();
	if (s.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("python3", "python3", LADE_TESTS_DIR "/http_server.py", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	s.input = in[1];
	FILE *f = fdopen(out[0], "r");
	if (!f || fscanf(f, "%d", &s.port) != 1)
		s.port = 0;
	if (f)
		fclose(f);
	return s;
}

static inline void http_server_stop(http_server *s)
{
	close(s->input);
	waitpid(s->pid, NULL, 0);
}

#endif
