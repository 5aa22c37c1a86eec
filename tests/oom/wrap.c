/*
 * wrap.c: the calls that can be made to fail, and the loop over them (oom.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "oom.h"

#define LZ4F_STATIC_LINKING_ONLY
#define ZSTD_STATIC_LINKING_ONLY
#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

/* ---- the switch ------------------------------------------------------------------------- */

static atomic_bool armed, hit;
static atomic_long calls;
static long fail_at;
static int fail_mode;

void oom_arm(long k, int mode)
{
	fail_at = k;
	fail_mode = mode;
	atomic_store(&calls, 0);
	atomic_store(&hit, false);
	atomic_store(&armed, true);
}

bool oom_disarm(void)
{
	atomic_store(&armed, false);
	return atomic_load(&hit);
}

/* Counts a call; true when it is to fail. */
static bool fails(void)
{
	if (!atomic_load(&armed))
		return false;
	long k = atomic_fetch_add(&calls, 1);
	if (fail_at < 0 || k < fail_at || (k > fail_at && fail_mode == OOM_FAIL_ONE))
		return false;
	atomic_store(&hit, true);
	return true;
}

/* ---- the live blocks -------------------------------------------------------------------- */

/* Open addressing; a block that is gone leaves GONE, so that those behind it are found. */
#define SLOTS 65536
#define GONE ((void *)1)
static void *slots[SLOTS];
static size_t live;
static atomic_bool tracking;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t slot_of(const void *ptr)
{
	return (size_t)(((uintptr_t)ptr >> 4) * 0x9E3779B97F4A7C15ULL >> 48) % SLOTS;
}

static void *took(void *ptr)
{
	if (!ptr || !atomic_load(&tracking))
		return ptr;
	pthread_mutex_lock(&mutex);
	size_t i = slot_of(ptr);
	while (slots[i] && slots[i] != GONE)
		i = (i + 1) % SLOTS;
	slots[i] = ptr;
	if (++live > SLOTS / 2)
		abort(); /* the table is made for small scenarios */
	pthread_mutex_unlock(&mutex);
	return ptr;
}

static void gave(const void *ptr)
{
	if (!ptr || !atomic_load(&tracking))
		return;
	pthread_mutex_lock(&mutex);
	for (size_t i = slot_of(ptr); slots[i]; i = (i + 1) % SLOTS) {
		if (slots[i] == ptr) {
			slots[i] = GONE;
			live--;
			break;
		}
	}
	pthread_mutex_unlock(&mutex);
}

void oom_track(void)
{
	pthread_mutex_lock(&mutex);
	memset(slots, 0, sizeof slots);
	live = 0;
	pthread_mutex_unlock(&mutex);
	atomic_store(&tracking, true);
}

size_t oom_live(void)
{
	pthread_mutex_lock(&mutex);
	size_t n = live;
	pthread_mutex_unlock(&mutex);
	return n;
}

/* ---- the C library's -------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *ptr);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **out, size_t align, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *ptr);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : took(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : took(__real_calloc(count, size));
}

void *__wrap_realloc(void *ptr, size_t size)
{
	if (fails())
		return NULL;
	gave(ptr);
	return took(__real_realloc(ptr, size));
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : took(__real_aligned_alloc(align, size));
}

int __wrap_posix_memalign(void **out, size_t align, size_t size)
{
	if (fails())
		return ENOMEM;
	int rc = __real_posix_memalign(out, align, size);
	if (rc == 0)
		took(*out);
	return rc;
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : took(__real_strdup(text));
}

void __wrap_free(void *ptr)
{
	gave(ptr);
	__real_free(ptr);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	if (!fails())
		return __real_mmap(at, size, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
	return fails() ? EAGAIN : __real_pthread_create(thread, attr, body, arg);
}

/* ---- the codec libraries' --------------------------------------------------------------- */

/* A constructor of another library, and what it returns when it finds no memory. */
#define WRAP(type, name, failure, parameters, arguments)      \
	type __real_##name parameters;                        \
	type __wrap_##name parameters;                        \
	type __wrap_##name parameters                         \
	{                                                     \
		if (fails())                                  \
			return failure;                       \
		return __real_##name arguments;               \
	}

WRAP(ZSTD_CCtx *, ZSTD_createCCtx, NULL, (void), ())
WRAP(ZSTD_DCtx *, ZSTD_createDCtx, NULL, (void), ())
WRAP(ZSTD_CCtx *, ZSTD_createCCtx_advanced, NULL, (ZSTD_customMem m), (m))
WRAP(ZSTD_DCtx *, ZSTD_createDCtx_advanced, NULL, (ZSTD_customMem m), (m))
WRAP(ZSTD_CDict *, ZSTD_createCDict, NULL, (const void *data, size_t size, int level),
     (data, size, level))
WRAP(ZSTD_DDict *, ZSTD_createDDict, NULL, (const void *data, size_t size), (data, size))
WRAP(struct libdeflate_compressor *, libdeflate_alloc_compressor, NULL, (int level), (level))
WRAP(struct libdeflate_decompressor *, libdeflate_alloc_decompressor, NULL, (void), ())
WRAP(LZ4_stream_t *, LZ4_createStream, NULL, (void), ())
WRAP(LZ4_streamHC_t *, LZ4_createStreamHC, NULL, (void), ())
WRAP(size_t, LZ4F_createDecompressionContext, (size_t)-LZ4F_ERROR_allocation_failed,
     (LZ4F_dctx **out, unsigned version), (out, version))
WRAP(size_t, LZ4F_createCompressionContext, (size_t)-LZ4F_ERROR_allocation_failed,
     (LZ4F_cctx **out, unsigned version), (out, version))
WRAP(XXH32_state_t *, XXH32_createState, NULL, (void), ())
WRAP(XXH64_state_t *, XXH64_createState, NULL, (void), ())
WRAP(XXH3_state_t *, XXH3_createState, NULL, (void), ())
WRAP(int, inflateInit2_, Z_MEM_ERROR, (z_stream *z, int bits, const char *version, int size),
     (z, bits, version, size))
WRAP(int, deflateInit2_, Z_MEM_ERROR,
     (z_stream *z, int level, int method, int bits, int memory, int strategy, const char *version,
      int size),
     (z, level, method, bits, memory, strategy, version, size))

/* ---- the loop --------------------------------------------------------------------------- */

/* Enough for every scenario, and an end for one that never stops failing. */
#define K_MAX 5000

static void check_run(const char *name, long k, lade_status status, const lade_error *err)
{
	if (status != LADE_OK && (k < 0 || status != LADE_E_NOMEM))
		fail_msg("%s, call %ld failed: %s: %s", name, k, lade_status_name(status),
		         err->message);
	if (status != LADE_OK && (err->status != status || !err->message[0]))
		fail_msg("%s, call %ld failed: the error is not filled in", name, k);
	if (oom_live() != 0)
		fail_msg("%s, call %ld failed: %zu blocks are not given back", name, k, oom_live());
}

size_t oom_run(const char *name, oom_scenario scenario, void *ctx)
{
	size_t seen = 0;
	for (int mode = OOM_FAIL_ONE; mode <= OOM_FAIL_FROM; mode++) {
		for (long k = -1;; k++) {
			lade_error err = {0};
			oom_track();
			oom_arm(k, mode);
			lade_status status = scenario(ctx, &err);
			bool came = oom_disarm();
			check_run(name, k, status, &err);
			if (k < 0)
				seen = (size_t)atomic_load(&calls);
			else if (!came)
				break;
			if (k >= K_MAX)
				fail_msg("%s: more than %d calls", name, K_MAX);
		}
	}
	printf("%s: %zu calls failed in turn\n", name, seen);
	return seen;
}
