/*
 * memory.cc: the emulated devices' memory, pinned and managed memory.
 *
 * Each device has a range of addresses of its own; pinned and managed memory have one, and so have
 * reserved addresses:
 *
 *	| guard page | pages of a block | guard page | pages of a block | ...
 *
 * Blocks on devices end where their pages do, but for the alignment, so that a page's guard stands
 * behind them; on the host no page of theirs can be touched while the device does no work.  A
 * block's address serves no other before the whole range was used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/inside.h"

#include <emu/fiber.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>

#if EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define PAGE ((size_t)4096)
#define ALIGN ((size_t)256)
#define RANGE ((size_t)128 << 30)
/* Of larger blocks only the ends get garbage, as it takes time. */
#define GARBAGE ((size_t)64 << 10)

struct range {
	uintptr_t at, next;
};

static range ranges[EMULATED_DEVICES + 2]; /* the last are the host's and that of reservations */
/* By the end of their pages.  As all that is static here it outlives the program's threads. */
static auto &blocks = *new std::map<uintptr_t, block>;
static int opened;
size_t memory_used[EMULATED_DEVICES];

/* Sanitizers replace mmap() and would look at the shadow of all that. */
static void *map(uintptr_t at, size_t size, int prot)
{
	long got = syscall(SYS_mmap, at, size, prot,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1,
	                   (off_t)0);
	return got == -1 ? NULL : (void *)got;
}

static void protect(const block &b, bool open)
{
	int most = !b.mapped || b.access == 3 ? PROT_READ | PROT_WRITE : b.access ? PROT_READ : 0;
	if (mprotect((void *)b.pages, b.pages_size, open ? most : PROT_NONE))
		abort();
}

static bool hidden(const block &b)
{
	return b.kind == ON_DEVICE && !opened && emulated.protect;
}

/* A place for this many bytes of pages and a guard on each side; from the range's start again when
 * its end is reached. */
static uintptr_t place(range *r, size_t size)
{
	if (!r->at) {
		r->at = r->next = (uintptr_t)map(0, RANGE, PROT_NONE);
		if (!r->at)
			return 0;
	}
	for (int turn = 0; turn < 2; turn++) {
		uintptr_t at = r->next + PAGE;
		for (auto it = blocks.upper_bound(at); size <= RANGE - 2 * PAGE; ++it) {
			if (at + size + PAGE > r->at + RANGE)
				break;
			if (it == blocks.end() || it->second.pages >= at + size + PAGE) {
				r->next = at + size;
				return at;
			}
			at = it->first + PAGE;
		}
		r->next = r->at;
	}
	return 0;
}

block *memory_take(memory_kind kind, int device, size_t size, pool *from)
{
	size_t whole = size / ALIGN * ALIGN + (size % ALIGN ? ALIGN : 0);
	uint64_t used = memory_used[device] + (from ? from->used : 0);

	if (size == 0 || size > DEVICE_MEMORY || used + whole > DEVICE_MEMORY)
		return NULL;
	size_t pages_size = (whole + PAGE - 1) / PAGE * PAGE;
	uintptr_t pages = place(&ranges[kind == ON_DEVICE ? device : EMULATED_DEVICES], pages_size);
	if (!pages)
		return NULL;
	block &b = blocks[pages + pages_size];
	b = {kind == ON_DEVICE ? pages + pages_size - whole : pages, size, pages, pages_size,
	     kind, device, from, false, false, false, 0, 0};
	if (from) {
		from->used += whole;
		if (from->reserved < from->used)
			from->reserved = from->used;
	} else if (kind == ON_DEVICE) {
		memory_used[device] += whole;
	}
	emulated.blocks++;
	return &b;
}

void memory_begin(block *b)
{
	size_t ends = b->size < 2 * GARBAGE ? b->size : GARBAGE;
	int garbage = emulated.seed > EMULATED_EAGER ? (int)(chance() & 0xFF) : 0xA5;

	protect(*b, true);
#if EMU_ASAN
	uintptr_t end = b->at + b->size;
	__asan_poison_memory_region((void *)b->pages, b->at - b->pages);
	__asan_poison_memory_region((void *)end, b->pages + b->pages_size - end);
#endif
	memset((void *)b->at, garbage, ends);
	memset((void *)(b->at + b->size - ends), garbage, ends);
	b->live = true;
	if (hidden(*b))
		protect(*b, false);
}

void memory_drop(block *b)
{
#if EMU_ASAN
	uintptr_t end = b->at + b->size;
	__asan_unpoison_memory_region((void *)b->pages, b->at - b->pages);
	__asan_unpoison_memory_region((void *)end, b->pages + b->pages_size - end);
#endif
	if (b->shared)
		close(b->shared - 1);
	/* New pages in place of the old ones give the memory back. */
	if (!map(b->pages, b->pages_size, PROT_NONE))
		abort();
	blocks.erase(b->pages + b->pages_size);
}

block *memory_reserve(size_t size)
{
	uintptr_t pages = size > RANGE / 2 ? 0 : place(&ranges[EMULATED_DEVICES + 1], size);
	if (!pages)
		return NULL;
	block &b = blocks[pages + size];
	b = {pages, size, pages, size, ON_DEVICE, -1, NULL, false, false, true, 0, 0};
	return &b;
}

bool memory_map(block *b, int fd, int device)
{
	long got = fd < 0 ? 0
	                  : syscall(SYS_mmap, b->pages, b->pages_size, PROT_NONE,
	                            MAP_SHARED | MAP_FIXED, fd, (off_t)0);
	if (fd < 0 || got == -1) /* that may have left a hole */
		if (!map(b->pages, b->pages_size, PROT_NONE))
			abort();
	b->live = fd >= 0 && got != -1;
	b->device = b->live ? device : -1;
	b->access = 0;
	return got != -1;
}

void memory_access(block *b, int access)
{
	b->access = access;
	protect(*b, !hidden(*b));
}

int memory_descriptor(block *b)
{
	int fd = b->shared - 1;

	if (fd >= 0)
		return fd;
	fd = (int)syscall(SYS_memfd_create, "emulated-shared", 1u /* MFD_CLOEXEC */);
	if (fd < 0)
		return -1;
	memory_open();
	/* Not write(): AddressSanitizer's refuses the bytes around the block. */
	bool all = syscall(SYS_write, fd, b->pages, b->pages_size) == (long)b->pages_size;
	all = all && syscall(SYS_mmap, b->pages, b->pages_size, PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_FIXED, fd, (off_t)0) != -1;
	memory_close();
	protect(*b, !hidden(*b));
	if (all)
		b->shared = fd + 1;
	else
		close(fd);
	return all ? fd : -1;
}

bool memory_writable(uint64_t at)
{
	const block *b = memory_find(at);
	return !b || !b->mapped || b->access == 3;
}

block *memory_find(uint64_t at)
{
	auto it = blocks.upper_bound((uintptr_t)at);
	if (it == blocks.end() || at - it->second.at >= it->second.size)
		return NULL;
	return &it->second;
}

bool memory_is_ours(uint64_t at)
{
	for (const range &r : ranges)
		if (r.at && at - r.at < RANGE)
			return true;
	return false;
}

bool memory_reaches(int device, uint64_t at, size_t size)
{
	const block *b = memory_find(at);
	return b && b->live && (!b->mapped || b->access) && size <= b->size - (at - b->at) &&
	       (b->kind != ON_DEVICE || device < 0 || b->device == device);
}

void memory_open(void)
{
	if (opened++ == 0 && emulated.protect)
		for (const auto &entry : blocks)
			if (entry.second.kind == ON_DEVICE && entry.second.live)
				protect(entry.second, true);
}

void memory_close(void)
{
	if (--opened == 0 && emulated.protect)
		for (const auto &entry : blocks)
			if (hidden(entry.second))
				protect(entry.second, false);
}
