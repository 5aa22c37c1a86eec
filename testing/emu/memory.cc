/*
 * memory.cc: shared memory and its shadow, atomics, ordered accesses, asynchronous copies, and the
 * hooks that the compiler calls in kernels.
 *
 * Kernels of a checked build are compiled with -fsanitize=thread and linked without TSan: the calls
 * that the compiler then puts before each load and store come here, and are our checks.  With
 * -fsanitize-coverage=trace-pc each basic block calls too, so that every endless loop is found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <emu/machine.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#if EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

static bool checked;

/*
 * Checked programs are linked with --wrap for memset and its like, which then come to the hooks
 * below; the emulator's own calls must not.  Elsewhere the __real names are missing.
 */
#define MISSING extern "C" __attribute__((weak))
MISSING void *__real_memset(void *to, int byte, size_t size);
MISSING void *__real_memcpy(void *to, const void *from, size_t size);
MISSING void *__real_memmove(void *to, const void *from, size_t size);

static void fill(void *to, int byte, size_t size)
{
	(__real_memset ? __real_memset : memset)(to, byte, size);
}

static void copy(void *to, const void *from, size_t size)
{
	(__real_memcpy ? __real_memcpy : memcpy)(to, from, size);
}

bool emu_checked(void)
{
	return checked;
}

/* ---- Shared memory --------------------------------------------------------------------------- */
/*
 * An arena: | gap | variable | gap | variable | gap ... and, so that its end is exact, right before
 * the arena's last gap: | gap | dynamic | gap |.  The dynamic part begins at a multiple of 128.
 */
static void open_bytes(emu_block_state *b, size_t off, size_t size)
{
	emu_machine *m = emu__machine;
	unsigned char garbage = m->config.seed ? (unsigned char)(emu_random(m) >> 56) : 0xA5;
#if EMU_ASAN
	__asan_unpoison_memory_region(b->arena + off, size);
#endif
	fill(b->arena + off, garbage, size);
	memset(b->shadow + off, EMU_BYTE_UNWRITTEN, size);
}

void emu_memory_begin(emu_block_state *b)
{
	emu_machine *m = emu__machine;
	size_t off = EMU_ARENA - EMU_GAP - (m->config.shared + 127) / 128 * 128;
	/* Of the arena before, only what this launch or the last one opened is not a gap. */
	memset(b->shadow, EMU_BYTE_GAP, EMU_STATIC_MAX + 2 * EMU_GAP * (EMU_VARIABLES + 1));
	if (m->next_block <= m->slots)
		memset(b->shadow, EMU_BYTE_GAP, EMU_ARENA);
#if EMU_ASAN
	__asan_poison_memory_region(b->arena, EMU_ARENA);
#endif
	b->variables = 0;
	b->dynamic = b->arena + off;
	if (m->config.shared)
		open_bytes(b, off, m->config.shared);
}

/* A static variable is opened in a block when the block's first lane comes to its declaration. */
void *emu_shared(const void *key, const char *name, size_t size, size_t align)
{
	emu_machine *m = emu__machine;
	emu_block_state *b = emu_self()->warp->block;
	unsigned i = 0;
	while (i < m->variables && m->variable[i].key != key)
		i++;
	emu_variable *v = &m->variable[i];
	if (i == m->variables) {
		if (i == EMU_VARIABLES)
			emu_fail(EMU_LIMIT, "more than %d shared variables", EMU_VARIABLES);
		size_t start = i ? v[-1].off + v[-1].size + EMU_GAP : (size_t)EMU_GAP;
		m->static_size += (size + align - 1) / align * align;
		if (m->static_size > EMU_STATIC_MAX ||
		    m->static_size + m->config.shared > EMU_SHARED_MAX)
			emu_fail(EMU_BAD_LAUNCH,
			         "'%s' makes %zu bytes of static shared memory (at most %d), and "
			         "%zu with the dynamic part (at most %d)",
			         name, m->static_size, EMU_STATIC_MAX,
			         m->static_size + m->config.shared, EMU_SHARED_MAX);
		*v = {key, name, size, (start + 63) / 64 * 64};
		m->variables++;
	}
	if (b->shadow[v->off] == EMU_BYTE_GAP)
		open_bytes(b, v->off, size);
	return b->arena + v->off;
}

void *emu_shared_dynamic(void)
{
	return emu_self()->warp->block->dynamic;
}

/* "'table', byte 12" for an address in the arena of the running lane's block. */
static const char *name_of(const emu_block_state *b, size_t off)
{
	static __thread char text[160];
	const emu_machine *m = emu__machine;
	size_t dynamic = (size_t)(b->dynamic - b->arena);
	if (off + EMU_GAP >= dynamic && m->config.shared) {
		snprintf(text, sizeof(text), "dynamic shared memory, byte %td of %zu",
		         (ptrdiff_t)off - (ptrdiff_t)dynamic, m->config.shared);
		return text;
	}
	for (unsigned i = m->variables; i-- > 0;) {
		const emu_variable *v = &m->variable[i];
		if (off < v->off && i)
			continue;
		snprintf(text, sizeof(text), "shared '%s', byte %td of %zu", v->name,
		         (ptrdiff_t)off - (ptrdiff_t)v->off, v->size);
		return text;
	}
	snprintf(text, sizeof(text), "shared memory of no variable");
	return text;
}

/* For a plain access: the code's address, for addr2line; for a primitive, its name and line. */
static const char *code_of(const char *what, emu_site site, const void *code)
{
	static __thread char text[320];
	const emu_lane *self = emu_self();
	Dl_info info;
	if (what) {
		const char *slash = strrchr(site.file, '/');
		snprintf(text, sizeof(text), "%s at %s:%d", what, slash ? slash + 1 : site.file,
		         site.line);
	} else if (dladdr(code, &info)) {
		snprintf(text, sizeof(text), "after %s, code %s+0x%zx",
		         emu_where(self->op.kind, self->op.at), info.dli_fname,
		         (size_t)((uintptr_t)code - (uintptr_t)info.dli_fbase));
	} else {
		snprintf(text, sizeof(text), "after %s", emu_where(self->op.kind, self->op.at));
	}
	return text;
}

/* 'at' is in the arenas.  One byte at a time: a word may be written in part. */
static void check_shared(const volatile void *at, size_t size, bool reads, bool writes,
                         const char *what, emu_site site, const void *code)
{
	emu_block_state *b = emu_self()->warp->block;
	size_t off = (size_t)((uintptr_t)at - (uintptr_t)b->arena);
	if (off >= EMU_ARENA || size > EMU_ARENA - off)
		emu_fail(EMU_RANGE, "touches shared memory of another block, or beyond its own; %s",
		         code_of(what, site, code));
	for (size_t i = off; i < off + size; i++) {
		if (b->shadow[i] == EMU_BYTE_GAP)
			emu_fail(EMU_RANGE, "%s out of range: %s; %s", writes ? "write" : "read",
			         name_of(b, i), code_of(what, site, code));
		if (reads && checked && b->shadow[i] == EMU_BYTE_UNWRITTEN)
			emu_fail(EMU_UNWRITTEN, "reads what was never written: %s; %s",
			         name_of(b, i), code_of(what, site, code));
		if (writes)
			b->shadow[i] = EMU_BYTE_WRITTEN;
	}
}

static inline bool is_shared(const volatile void *at)
{
	return (uintptr_t)at - emu__arenas < emu__arenas_size;
}

/* 'at' is not shared memory. */
static inline void check_global(const volatile void *at, size_t size, bool writes,
                                const char *what, emu_site site, const void *code)
{
	const emu_machine *m = emu__machine;
	if (!m->config.global || (uintptr_t)at - (uintptr_t)m->stacks < m->stacks_size ||
	    m->config.global(at, size))
		return;
	emu_fail(EMU_GLOBAL, "a %s of %zu bytes at %p, which the device does not have; %s",
	         writes ? "write" : "read", size, const_cast<const void *>(at),
	         code_of(what, site, code));
}

void emu_touch(const volatile void *at, unsigned size, bool reads, bool writes, const char *what,
               emu_site site)
{
	if ((uintptr_t)at & (size - 1))
		emu_fail(EMU_MISALIGNED, "%s at %s:%d: address %p is no multiple of %u", what,
		         site.file, site.line, const_cast<const void *>(at), size);
	if (is_shared(at))
		check_shared(at, size, reads, writes, what, site, NULL);
	else
		check_global(at, size, writes, what, site, NULL);
}

/* ---- Ordered accesses and atomics ------------------------------------------------------------ */
static uint64_t load(const volatile void *from, unsigned size)
{
	switch (size) {
	case 2:
		return *static_cast<const volatile uint16_t *>(from);
	case 4:
		return *static_cast<const volatile uint32_t *>(from);
	default:
		return *static_cast<const volatile uint64_t *>(from);
	}
}

static void store(volatile void *to, unsigned size, uint64_t value)
{
	switch (size) {
	case 2:
		*static_cast<volatile uint16_t *>(to) = (uint16_t)value;
		break;
	case 4:
		*static_cast<volatile uint32_t *>(to) = (uint32_t)value;
		break;
	default:
		*static_cast<volatile uint64_t *>(to) = value;
	}
}

uint64_t emu_load(const volatile void *from, unsigned size, emu_site at)
{
	emu_lane *self = emu_self();
	emu_step();
	emu_touch(from, size, true, false, "an ordered load", at);
	uint64_t value = load(from, size);
	if (self->polled == from && self->polled_value == value) {
		emu_yield();
		value = load(from, size);
	}
	self->polled = from;
	self->polled_value = value;
	return value;
}

void emu_store(volatile void *to, unsigned size, uint64_t value, emu_site at)
{
	emu_step();
	emu_touch(to, size, false, true, "an ordered store", at);
	store(to, size, value);
}

static uint64_t add_real(uint64_t old, uint64_t value, unsigned size)
{
	if (size == 4)
		return emu_bits(emu_value<float>(old) + emu_value<float>(value));
	return emu_bits(emu_value<double>(old) + emu_value<double>(value));
}

static uint64_t combine(emu_atom op, unsigned size, uint64_t old, uint64_t value, uint64_t expected)
{
	int64_t old_s = size == 4 ? (int32_t)old : (int64_t)old;
	int64_t value_s = size == 4 ? (int32_t)value : (int64_t)value;
	switch (op) {
	case EMU_ADD:
		return old + value;
	case EMU_SUB:
		return old - value;
	case EMU_EXCH:
		return value;
	case EMU_CAS:
		return old == expected ? value : old;
	case EMU_MIN_S:
		return old_s < value_s ? old : value;
	case EMU_MIN_U:
		return old < value ? old : value;
	case EMU_MAX_S:
		return old_s > value_s ? old : value;
	case EMU_MAX_U:
		return old > value ? old : value;
	case EMU_AND:
		return old & value;
	case EMU_OR:
		return old | value;
	case EMU_XOR:
		return old ^ value;
	case EMU_INC:
		return old >= value ? 0 : old + 1;
	case EMU_DEC:
		return old == 0 || old > value ? value : old - 1;
	default:
		return add_real(old, value, size);
	}
}

uint64_t emu_atomic(emu_atom op, void *address, unsigned size, uint64_t value, uint64_t expected,
                    emu_site at)
{
	emu_lane *self = emu_self();
	emu_step();
	emu_touch(address, size, true, true, "an atomic", at);
	uint64_t old = load(address, size);
	uint64_t now = combine(op, size, old, value, expected);
	store(address, size, now);
	/* An atomic that changes nothing, twice, is a lock being waited for. */
	if (now != old) {
		self->polled = NULL;
	} else if (self->polled == address && self->polled_value == old) {
		self->polled = NULL;
		emu_yield();
	} else {
		self->polled = address;
		self->polled_value = old;
	}
	return old;
}

/* ---- Asynchronous copies --------------------------------------------------------------------- */
void emu_copy_async(void *to, const void *from, unsigned size, unsigned from_size, emu_site at)
{
	emu_lane *self = emu_self();
	emu_step();
	if (from_size > size)
		emu_fail(EMU_RANGE, "cp.async at %s:%d reads %u bytes of %u", at.file, at.line,
		         from_size, size);
	if ((uintptr_t)from & (size - 1))
		emu_fail(EMU_MISALIGNED, "cp.async at %s:%d: source %p is no multiple of %u",
		         at.file, at.line, from, size);
	if (!is_shared(to) || is_shared(from))
		emu_fail(EMU_RANGE, "cp.async at %s:%d goes from global to shared memory only",
		         at.file, at.line);
	emu_touch(to, size, false, false, "cp.async", at);
	if (from_size)
		check_global(from, from_size, false, "cp.async", at, NULL);
	if (self->copies == EMU_COPIES)
		emu_fail(EMU_LIMIT, "cp.async at %s:%d: more than %d copies in flight in a lane",
		         at.file, at.line, EMU_COPIES);
	self->copy[self->copies++] = {to, from, size, from_size, self->group};
}

void emu_copy_commit(void)
{
	emu_self()->group++;
}

void emu_copy_wait(unsigned groups_left)
{
	emu_lane *self = emu_self();
	unsigned done = 0;
	emu_step();
	/* Groups below 'limit' are waited for; copies not yet committed belong to none of them. */
	uint64_t limit = self->group > groups_left ? self->group - groups_left : 0;
	while (done < self->copies && self->copy[done].group < limit) {
		const emu_copy *c = &self->copy[done++];
		emu_touch(c->to, c->size, false, true, "cp.async", self->op.at);
		copy(c->to, c->from, c->from_size);
		fill((char *)c->to + c->from_size, 0, c->size - c->from_size);
	}
	self->copies -= done;
	memmove(self->copy, self->copy + done, self->copies * sizeof(*self->copy));
}

void emu_store_late(void *to, const void *from, emu_site at)
{
	emu_machine *m = emu__machine;
	emu_step();
	if (is_shared(to) || !is_shared(from))
		emu_fail(EMU_RANGE, "a bulk store at %s:%d goes from shared to global memory only",
		         at.file, at.line);
	emu_touch(from, 16, true, false, "a bulk store", at);
	emu_touch(to, 16, false, true, "a bulk store", at);
	if (m->lates == m->lates_cap) {
		size_t cap = 2 * m->lates_cap + 1024;
		emu_late *late = (emu_late *)realloc(m->late, cap * sizeof(*late));
		if (!late)
			emu_fail(EMU_LIMIT, "no memory for %zu bulk stores", cap);
		m->late = late;
		m->lates_cap = cap;
	}
	emu_late *one = &m->late[m->lates++];
	one->to = to;
	copy(one->bytes, from, 16);
	/* What is not there stops the kernel here. */
	copy(to, to, 16);
}

void emu_memory_end(emu_machine *m)
{
	for (size_t i = 0; i < m->lates; i++)
		copy(m->late[i].to, m->late[i].bytes, 16);
}

/* ---- The compiler's hooks -------------------------------------------------------------------- */
static inline void hook(const volatile void *at, size_t size, bool reads, bool writes, bool aligned,
                        const void *code)
{
	emu_step();
	if (__builtin_expect(!emu__place, 0))
		return;
	if (aligned && ((uintptr_t)at & (size - 1)))
		emu_fail(EMU_MISALIGNED, "a %s of %zu bytes at %p; %s", writes ? "write" : "read",
		         size, const_cast<const void *>(at), code_of(NULL, {}, code));
	if (is_shared(at))
		check_shared(at, size, reads, writes, NULL, {}, code);
	else
		check_global(at, size, writes, NULL, {}, code);
}

#define HOOK(name, size, reads, writes, aligned)                                                   \
	extern "C" void __tsan_##name(void *at)                                                    \
	{                                                                                          \
		hook(at, size, reads, writes, aligned, __builtin_return_address(0));               \
	}
#define HOOKS(size)                                                                                \
	HOOK(read##size, size, true, false, true)                                                  \
	HOOK(write##size, size, false, true, true)                                                 \
	HOOK(read_write##size, size, true, true, true)                                             \
	HOOK(volatile_read##size, size, true, false, true)                                         \
	HOOK(volatile_write##size, size, false, true, true)                                        \
	HOOK(unaligned_read##size, size, true, false, false)                                       \
	HOOK(unaligned_write##size, size, false, true, false)                                      \
	HOOK(unaligned_read_write##size, size, true, true, false)                                  \
	HOOK(unaligned_volatile_read##size, size, true, false, false)                              \
	HOOK(unaligned_volatile_write##size, size, false, true, false)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

/* The types are those that GCC declares for itself. */
extern "C" void __tsan_read_range(void *at, long size)
{
	hook(at, (size_t)size, true, false, false, __builtin_return_address(0));
}

extern "C" void __tsan_write_range(void *at, long size)
{
	hook(at, (size_t)size, false, true, false, __builtin_return_address(0));
}

/* Compilers make such calls of loops and of stores in a row. */
static inline void hook_range(const void *at, size_t size, bool writes, const void *code)
{
	/* No step is taken: the emulator's own calls come here too, and must not be left. */
	if (emu__place && size && is_shared(at))
		check_shared(at, size, !writes, writes, NULL, {}, code);
}

extern "C" void *__wrap_memset(void *to, int byte, size_t size)
{
	hook_range(to, size, true, __builtin_return_address(0));
	return __real_memset(to, byte, size);
}

extern "C" void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	hook_range(from, size, false, __builtin_return_address(0));
	hook_range(to, size, true, __builtin_return_address(0));
	return __real_memcpy(to, from, size);
}

extern "C" void *__wrap_memmove(void *to, const void *from, size_t size)
{
	hook_range(from, size, false, __builtin_return_address(0));
	hook_range(to, size, true, __builtin_return_address(0));
	return __real_memmove(to, from, size);
}

extern "C" void __tsan_vptr_update(void *, void *)
{
}

extern "C" void __tsan_vptr_read(void *)
{
}

extern "C" void __tsan_func_entry(void *)
{
}

extern "C" void __tsan_func_exit(void *)
{
}

/* Called by a constructor in every file that is compiled for checking. */
extern "C" void __tsan_init(void)
{
	checked = true;
}

/* Weak, as libFuzzer has one too; kernels that are fuzzed count accesses, and no blocks. */
extern "C" __attribute__((weak)) void __sanitizer_cov_trace_pc(void)
{
	emu_step();
}
