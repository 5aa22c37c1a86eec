/*
 * inside.h: the emulated device's inside: memory, streams and what is enqueued on them, kernels.
 * One lock is held in all functions of the driver, and so in all of these.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_EMULATED_INSIDE_H
#define LADE_TESTS_EMULATED_INSIDE_H

#include "gpu/emulated.h"

#include <stdint.h>

#include <deque>
#include <set>
#include <vector>

extern "C" emulated_state emulated;

/* Results of the driver that gpu/driver.h does not name. */
enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_TIMEOUT = 702,
	MISALIGNED_ADDRESS = 716,
	LAUNCH_FAILED = 719,
	NOT_SUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_MERGE = 902,
	CAPTURE_UNMATCHED = 903,
	CAPTURE_UNJOINED = 904,
	CAPTURE_ISOLATION = 905,
	CAPTURE_IMPLICIT = 906,
	CAPTURED_EVENT = 907,
	UNKNOWN = 999
};

#define DEVICE_MEMORY ((size_t)1 << 30)

/* ---- memory.cc ------------------------------------------------------------------------------- */

enum memory_kind {
	ON_DEVICE,
	PINNED,
	MANAGED
};

struct pool {
	int device;
	uint64_t used, reserved, threshold;
	bool shared; /* other devices were given access */
};

struct block {
	uintptr_t at;
	size_t size;
	uintptr_t pages; /* whole pages around it; beyond them nothing can be touched */
	size_t pages_size;
	memory_kind kind;
	int device;
	pool *from;   /* NULL: of no pool */
	bool live;    /* false until the stream has come to its taking */
	bool leaving; /* its giving back is enqueued */
	bool mapped;  /* a reservation of addresses, for memory of descriptors */
	int access;   /* of one: 0, 1: reads, 3: all */
	int shared;   /* a descriptor of the pages and 1; 0: none */
};

extern size_t memory_used[EMULATED_DEVICES]; /* of devices, in blocks of no pool */

/* A block with garbage in it, aligned to 256 bytes, pinned and managed ones to a page; NULL: the
 * device's memory is used up.  Dead until memory_begin(). */
block *memory_take(memory_kind kind, int device, size_t size, pool *from);
void memory_begin(block *b);
/* The block and its pages are gone; the address is not used again for long. */
void memory_drop(block *b);

/* Addresses for memory that comes later: a block that is not live, whose size is a multiple of
 * VMM_GRANULE.  memory_drop() ends it. */
#define VMM_GRANULE ((size_t)2 << 20)
block *memory_reserve(size_t size);
/* Puts the memory of a descriptor there, which cannot be touched yet; -1: takes it away. */
bool memory_map(block *b, int fd, int device);
void memory_access(block *b, int access);
/* A descriptor of a block's pages, which become a memfd's; below 0: there is none. */
int memory_descriptor(block *b);

/* The block in which an address is, or NULL. */
block *memory_find(uint64_t at);
/* True for addresses that blocks have, had, or will have. */
bool memory_is_ours(uint64_t at);
/* Whether work of a device may touch these bytes: in one live block, and not of another device;
 * below 0: of any device, for copies. */
bool memory_reaches(int device, uint64_t at, size_t size);
/* False for maps that can only be read. */
bool memory_writable(uint64_t at);

/* Blocks on devices can be touched between these two.  They nest. */
void memory_open(void);
void memory_close(void);

/* ---- kernels --------------------------------------------------------------------------------- */

/* A kernel of the library, made from its declaration in a .cu file (kernel.h). */
struct kernel {
	const char *image, *name;
	size_t size; /* of its arguments, packed */
	void (*pack)(void **arguments, unsigned char *packed);
	void (*call)(const unsigned char *packed); /* one thread of it */
	kernel *next;
};

extern kernel *kernels;

struct kernel_entry {
	kernel k;
	kernel_entry(const kernel &row) : k(row)
	{
		k.next = kernels;
		kernels = &k;
	}
};

/* ---- streams.cc ------------------------------------------------------------------------------ */

struct stream;

struct event {
	int device;
	uint64_t recorded;           /* how often */
	std::set<uint64_t> awaited;  /* which of these have not run */
	double time;
	struct capture *of;      /* recorded last in a stream that is captured */
	stream *origin;
	size_t captured; /* what 'origin' had captured then */
};

enum op_kind {
	COPY,
	FILL,
	LAUNCH,
	RECORD,
	WAIT,
	TAKE,
	GIVE
};

struct op {
	op_kind kind;
	uint64_t ticket;       /* ascending over all streams */
	uint64_t dst, src;
	size_t size;           /* bytes */
	unsigned value, width; /* FILL: with a value of this many bytes */
	std::vector<unsigned char> bytes; /* COPY: the source, read before; LAUNCH: arguments */
	bool staged;           /* COPY: 'bytes' is the source */
	const kernel *what;
	unsigned grid[3], threads[3], shared;
	event *mark;
	uint64_t generation;
	block *memory;
};

/* Streams that are captured into one graph, and what they were given, in order of the calls. */
struct capture {
	stream *origin;
	bool invalid;
	std::vector<op> ops;
};

struct stream {
	int device;
	bool legacy, blocking; /* the default stream; one that is ordered with it */
	bool dead;             /* destroyed, with work left */
	std::deque<op> ops;
	capture *of;     /* NULL: not captured */
	size_t captured; /* operations so far, of this stream */
	bool unjoined;   /* no other stream waits for the last of them */
};

extern std::vector<stream *> &streams;
/* Those that were destroyed; their memory, and so the handle, is not used again. */
extern std::set<const void *> &gone_streams;
extern std::vector<event *> &events;
extern int device_error[EMULATED_DEVICES];
extern int captures; /* under way */

/* Appends, or captures; runs what the seed wants. */
int stream_add(stream *s, op &&work);
int stream_record(stream *s, event *e);
int stream_wait(stream *s, event *e);
/* One operation that brings the stream, or the event, nearer to its end; until that is reached. */
void stream_step(stream *s);
void event_step(event *e);
void stream_drain(stream *s);
void event_drain(event *e);
void device_drain(int device);

int capture_begin(stream *s);
/* '*ops' is what was captured. */
int capture_end(stream *s, std::vector<op> *ops);
/* What must not be called while a capture is under way invalidates it. */
void captures_invalidate(void);

/* Keeps the first error of a device and reports it. */
void device_fail(int device, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

double now(void);
uint64_t chance(void);

#endif
