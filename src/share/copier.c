/*
 * copier.c: the process that copies a device's memory to the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/copier.h"

#include "base/try.h"
#include "share/area.h"
#include "share/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The bytes of a block, in a sealed memfd that takes the place of its descriptor. */
static lade_status copy_block(lade__block *b, lade_error *err)
{
	lade__vmm *vmm = NULL;
	void *to = MAP_FAILED;
	int fd = -1;
	lade_status status;

	if (b->kind != LADE__BLOCK_DEVICE && b->kind != LADE__BLOCK_LEASE)
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET, "a block of kind %d",
		                 b->kind);
	TRY(lade__vmm_open(b, &vmm, err));
	TRY(lade__memfd_new(vmm->size, &fd, err));
	to = mmap(NULL, vmm->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for %zu bytes",
		              vmm->size));
	TRY(lade__device_read(vmm->device, (const void *)(uintptr_t)vmm->at, vmm->size, to, err));
	munmap(to, vmm->size);
	to = MAP_FAILED;
	TRY(lade__memfd_seal(fd, err));
	if (b->fd >= 0)
		close(b->fd);
	*b = (lade__block){.kind = LADE__BLOCK_HOST, .fd = fd, .size = vmm->size};
	fd = -1;
out:
	if (to != MAP_FAILED)
		munmap(to, vmm->size);
	if (fd >= 0)
		close(fd);
	lade__vmm_unref(vmm);
	return status;
}

/* False: the broker has closed the connection. */
static bool serve(int fd, lade__packet *p)
{
	lade__block room[LADE__WIRE_FDS];
	lade__record r = {.block_count = 0};
	lade_error err;
	lade_status status = lade__wire_receive(fd, p, &err);

	if (status != LADE_OK || !p->size)
		return false;
	uint64_t request = lade__packet_request(p);
	TRY(lade__read_record(p, &r, room, &err));
	for (size_t i = 0; i < r.block_count; i++)
		TRY(copy_block(&r.blocks[i], &err));
out:
	if (status == LADE_OK) {
		r.head_size = 0;
		lade__wire_begin(p, LADE__COPY, request);
		lade__wire_record(p, &r);
	} else {
		lade__packet_close(p);
		lade__wire_failed(p, request, &err);
	}
	bool sent = lade__wire_send(fd, p) == 0;
	p->fd_count = 0; /* the record's */
	lade__record_close(&r);
	return sent;
}

static _Noreturn void live(int fd)
{
	lade__packet *p = malloc(sizeof *p);
	sigset_t none;

	if (fd != 3)
		dup2(fd, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	close_range(4, ~0u, 0);
	fcntl(3, F_SETFD, FD_CLOEXEC);
	prctl(PR_SET_NAME, "lade-copier");
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	while (p && serve(3, p))
		;
	_exit(0);
}

/* A grandchild, so that nobody needs to wait for its end. */
lade_status lade__copier_start(int *out, lade_error *err)
{
	int pair[2], state;
	pid_t pid;

	*out = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "a socket: %s", strerror(errno));
	lade__socket_room(pair[0]);
	lade__socket_room(pair[1]);
	pid = fork();
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			live(pair[1]);
		_exit(pid < 0);
	}
	close(pair[1]);
	if (pid > 0 && waitpid(pid, &state, 0) == pid && !state) {
		fcntl(pair[0], F_SETFL, O_NONBLOCK);
		*out = pair[0];
		return LADE_OK;
	}
	close(pair[0]);
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "starting a process to copy: %s",
	                 strerror(pid < 0 ? errno : EAGAIN));
}
