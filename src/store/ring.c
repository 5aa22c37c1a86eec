/*
 * ring.c: one ring of io_uring for each thread that reads.
 *
 *	a file     open, to a place of the ring's own table --> read --> close
 *
 * The three are linked: where a file cannot be opened the others are cancelled, and it is closed
 * whatever the read gave.  With O_NONBLOCK a read gives what the page cache has.  A kernel without
 * IORING_FEAT_LINKED_FILE (before 5.18) would look the place up before the file is opened: it gets
 * no ring.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "store/ring.h"

#include "base/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#ifdef IORING_FILE_INDEX_ALLOC /* of headers that know files without a number */

#define STEPS 3 /* of a file */
#define ENTRIES 64
#define NEEDED (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_LINKED_FILE)
_Static_assert(STEPS * LADE__RING_FILES <= ENTRIES, "a call's steps are submitted at once");

struct lade__ring {
	lade__ring *next;
	int fd;
	struct io_uring_params params;
	uint8_t *rings; /* both, and 'entries' beside them */
	size_t rings_size;
	struct io_uring_sqe *entries;
	bool broken;
};

static unsigned *word_at(const lade__ring *r, uint32_t off)
{
	return (unsigned *)(void *)(r->rings + off);
}

static void ring_free(lade__ring *r)
{
	if (r->entries)
		munmap(r->entries, r->params.sq_entries * sizeof *r->entries);
	if (r->rings)
		munmap(r->rings, r->rings_size);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static void *map(const lade__ring *r, size_t size, off_t off)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, off);
	return p == MAP_FAILED ? NULL : p;
}

/* NULL: there is no memory, or the kernel refuses; '*refused': it always will. */
static lade__ring *ring_new(bool *refused)
{
	lade__ring *r = calloc(1, sizeof *r);
	int places[LADE__RING_FILES];
	if (!r)
		return NULL;
	memset(places, -1, sizeof places);
	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &r->params);
	*refused = r->fd < 0 && errno != ENOMEM && errno != EMFILE && errno != ENFILE;
	if (r->fd >= 0 && (r->params.features & NEEDED) != NEEDED)
		*refused = true;
	const struct io_uring_params *p = &r->params;
	size_t submit = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	size_t done = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	r->rings_size = submit > done ? submit : done;
	if (r->fd >= 0 && !*refused) {
		r->rings = map(r, r->rings_size, IORING_OFF_SQ_RING);
		r->entries = map(r, p->sq_entries * sizeof *r->entries, IORING_OFF_SQES);
	}
	if (r->rings && r->entries &&
	    syscall(SYS_io_uring_register, r->fd, IORING_REGISTER_FILES, places,
	            LADE__RING_FILES) == 0)
		return r;
	ring_free(r);
	return NULL;
}

/* ---- rings that are free --------------------------------------------------------------------- */

lade__ring *lade__ring_take(lade__rings *rings)
{
	lade__ring *r = NULL, *old = NULL;
	pthread_mutex_lock(&rings->mutex);
	if (rings->generation != lade__fork_generation()) {
		old = rings->free; /* the parent's */
		rings->free = NULL;
		rings->generation = lade__fork_generation();
	}
	bool refused = rings->refused;
	if ((r = rings->free))
		rings->free = r->next;
	pthread_mutex_unlock(&rings->mutex);
	for (lade__ring *next; old; old = next) {
		next = old->next;
		ring_free(old);
	}
	if (r || refused)
		return r;
	r = ring_new(&refused);
	if (refused) {
		pthread_mutex_lock(&rings->mutex);
		rings->refused = true;
		pthread_mutex_unlock(&rings->mutex);
	}
	return r;
}

void lade__ring_give(lade__rings *rings, lade__ring *ring)
{
	if (ring->broken) {
		ring_free(ring);
		return;
	}
	pthread_mutex_lock(&rings->mutex);
	ring->next = rings->free;
	rings->free = ring;
	pthread_mutex_unlock(&rings->mutex);
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct io_uring_sqe *next_entry(lade__ring *r, unsigned *tail)
{
	unsigned at = (*tail)++ & (r->params.sq_entries - 1);
	struct io_uring_sqe *e = &r->entries[at];
	word_at(r, r->params.sq_off.array)[at] = at;
	memset(e, 0, sizeof *e);
	return e;
}

static void add_file(lade__ring *r, unsigned *tail, int dir, const lade__ring_file *file,
                     unsigned place)
{
	struct io_uring_sqe *e = next_entry(r, tail);
	e->opcode = IORING_OP_OPENAT;
	e->fd = dir;
	e->addr = (uintptr_t)file->name;
	e->open_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	e->file_index = place + 1;
	e->flags = IOSQE_IO_LINK;
	e->user_data = UINT64_MAX;
	e = next_entry(r, tail);
	e->opcode = IORING_OP_READ;
	e->fd = (int)place;
	e->addr = (uintptr_t)file->to;
	e->len = (unsigned)file->size;
	e->off = file->off;
	e->flags = IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	e->user_data = place;
	e = next_entry(r, tail);
	e->opcode = IORING_OP_CLOSE;
	e->file_index = place + 1;
	e->user_data = UINT64_MAX;
}

/* Takes the answers that are there.  Returns how many. */
static unsigned take_answers(lade__ring *r, lade__ring_file *files, size_t count)
{
	unsigned *head = word_at(r, r->params.cq_off.head), at = *head;
	unsigned end = __atomic_load_n(word_at(r, r->params.cq_off.tail), __ATOMIC_ACQUIRE);
	const struct io_uring_cqe *all =
		(const struct io_uring_cqe *)(void *)(r->rings + r->params.cq_off.cqes);
	unsigned n = end - at;
	for (; at != end; at++) {
		const struct io_uring_cqe *a = &all[at & (r->params.cq_entries - 1)];
		if (a->user_data < count)
			files[a->user_data].whole =
				a->res > 0 && (size_t)a->res == files[a->user_data].size;
	}
	__atomic_store_n(head, end, __ATOMIC_RELEASE);
	return n;
}

bool lade__ring_read(lade__ring *r, int dir, lade__ring_file *files, size_t count)
{
	unsigned *submit = word_at(r, r->params.sq_off.tail), tail = *submit;
	const unsigned all = STEPS * (unsigned)count;
	unsigned submitted = 0, answered = 0;
	for (size_t i = 0; i < count; i++) {
		files[i].whole = false;
		add_file(r, &tail, dir, &files[i], (unsigned)i);
	}
	__atomic_store_n(submit, tail, __ATOMIC_RELEASE);
	/* What was submitted writes to memory: nobody leaves before its answer. */
	while (answered < (r->broken ? submitted : all)) {
		long n = syscall(SYS_io_uring_enter, r->fd, r->broken ? 0 : all - submitted,
		                 r->broken ? 1 : all - answered, IORING_ENTER_GETEVENTS, NULL, 0);
		if (n > 0 && !r->broken)
			submitted += (unsigned)n;
		else if (n < 0 && errno != EINTR)
			r->broken = true;
		if (r->broken)
			sched_yield();
		answered += take_answers(r, files, count);
	}
	return !r->broken;
}

#else

lade__ring *lade__ring_take(lade__rings *rings)
{
	(void)rings;
	return NULL;
}

void lade__ring_give(lade__rings *rings, lade__ring *ring)
{
	(void)rings, (void)ring;
}

bool lade__ring_read(lade__ring *ring, int dir, lade__ring_file *files, size_t count)
{
	(void)ring, (void)dir, (void)files, (void)count;
	return false;
}

static void ring_free(lade__ring *ring)
{
	(void)ring;
}

struct lade__ring {
	lade__ring *next;
};
#endif

void lade__rings_init(lade__rings *rings)
{
	*rings = (lade__rings){.generation = lade__fork_generation()};
	pthread_mutex_init(&rings->mutex, NULL);
}

void lade__rings_reset(lade__rings *rings)
{
	for (lade__ring *r = rings->free, *next; r; r = next) {
		next = r->next;
		ring_free(r);
	}
	pthread_mutex_destroy(&rings->mutex);
}
