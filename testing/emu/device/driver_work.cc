/*
 * driver_work.cc: the driver's functions for memory, copies and kernels, and those for graphs, that
 * only tests call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/api.h"

#include <string.h>

#include <string>

struct module {
	int device;
	std::string image; /* empty: of nvcc's making, any kernel may be in it */
};

struct function {
	module *of;
	const kernel *k;
	int shared_max;
};

struct graph {
	std::vector<op> ops;
	int device;
};

static auto &functions = *new std::vector<function *>;

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t held(int device)
{
	uint64_t size = memory_used[device];
	for (const pool *p : pools)
		if (p->device == device)
			size += p->reserved;
	return size;
}

API cuMemGetInfo_v2(size_t *left, size_t *total)
{
	ENTER_DEVICE;
	*total = DEVICE_MEMORY;
	*left = DEVICE_MEMORY - held(device);
	return OK;
}

static int take(memory_kind kind, int device, size_t size, uint64_t *out)
{
	UNSAFE;
	REFUSE(size == 0, INVALID_VALUE);
	block *b = memory_take(kind, device, size, NULL);
	REFUSE(!b, OUT_OF_MEMORY);
	memory_begin(b);
	*out = b->at;
	return OK;
}

/* A block of the right kind that begins there; its giving back is counted at once. */
static block *leave(uint64_t ptr, memory_kind kind, memory_kind other)
{
	block *b = memory_find(ptr);
	if (!b || b->at != ptr || b->leaving || b->mapped || (b->kind != kind && b->kind != other))
		return NULL;
	size_t whole = (b->size + 255) / 256 * 256;
	b->leaving = true;
	emulated.blocks--;
	if (b->from)
		b->from->used -= whole;
	else if (b->kind == ON_DEVICE)
		memory_used[b->device] -= whole;
	return b;
}

API cuMemAlloc_v2(lade__address *ptr, size_t size)
{
	ENTER_DEVICE;
	return take(ON_DEVICE, device, size, ptr);
}

API cuMemAllocManaged(lade__address *ptr, size_t size, unsigned)
{
	ENTER_DEVICE;
	REFUSE(!emulated.device[device].managed, NOT_SUPPORTED);
	return take(MANAGED, device, size, ptr);
}

/* Waits for all work of the device. */
API cuMemFree_v2(lade__address ptr)
{
	guard locked;
	int rc = fails(__func__);
	REFUSE(!ptr, rc);
	UNSAFE;
	block *b = memory_find(ptr);
	REFUSE(!b || b->leaving || b->mapped, INVALID_VALUE);
	emulated.syncs++;
	device_drain(b->device);
	b = leave(ptr, ON_DEVICE, MANAGED);
	REFUSE(!b, INVALID_VALUE);
	memory_drop(b);
	return rc;
}

API cuMemHostAlloc(void **ptr, size_t size, unsigned)
{
	ENTER_DEVICE;
	uint64_t at = 0;
	int rc = take(PINNED, device, size, &at);
	*ptr = (void *)(uintptr_t)at;
	return rc;
}

/* Waits for nothing: a driver does not promise to. */
API cuMemFreeHost(void *ptr)
{
	guard locked;
	int rc = fails(__func__);
	UNSAFE;
	block *b = leave(lade__address_of(ptr), PINNED, PINNED);
	REFUSE(!b, INVALID_VALUE);
	memory_drop(b);
	return rc;
}

API cuMemPoolCreate(void **out, const lade__pool_props *props)
{
	ENTER_DEVICE;
	UNSAFE;
	int of = props->location_id;
	REFUSE(props->alloc_type != 1 || props->location_type != 1, INVALID_VALUE);
	REFUSE(of < 0 || of >= EMULATED_DEVICES || !emulated.device[of].pools, NOT_SUPPORTED);
	dawdle();
	pool *p = new pool{of, 0, 0, 0, false};
	pools.push_back(p);
	handles.insert(p);
	emulated.pools++;
	*out = p;
	return OK;
}

API cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	guard locked;
	int rc = fails(__func__);
	REFUSE(device < 0 || device >= EMULATED_DEVICES || peer < 0 || peer >= EMULATED_DEVICES,
	       INVALID_DEVICE);
	*can = device != peer;
	return rc;
}

API cuMemPoolSetAccess(void *handle, const lade__pool_access *access, size_t count)
{
	ENTER;
	pool *p = known<pool>(handle);
	REFUSE(!p, INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		int to = access[i].location_id;
		REFUSE(access[i].location_type != 1 || to < 0 || to >= EMULATED_DEVICES ||
		               to == p->device || access[i].flags != 3,
		       INVALID_VALUE);
		p->shared = true;
	}
	return OK;
}

API cuMemPoolDestroy(void *handle)
{
	guard locked;
	int rc = fails(__func__);
	REFUSE(!handles.erase(handle), INVALID_VALUE);
	emulated.pools--;
	return rc;
}

#define POOL(p, handle)              \
	pool *p = known<pool>(handle); \
	REFUSE(!p, INVALID_VALUE)

API cuMemPoolSetAttribute(void *handle, int what, void *value)
{
	ENTER;
	POOL(p, handle);
	UNSAFE;
	REFUSE(what != 4, INVALID_VALUE);
	p->threshold = *static_cast<uint64_t *>(value);
	return OK;
}

API cuMemPoolGetAttribute(void *handle, int what, void *value)
{
	ENTER;
	POOL(p, handle);
	UNSAFE;
	REFUSE(what != 4 && what != 5 && what != 7, INVALID_VALUE);
	*static_cast<uint64_t *>(value) = what == 4 ? p->threshold :
	                                  what == 5 ? p->reserved : p->used;
	return OK;
}

API cuMemPoolTrimTo(void *handle, size_t keep)
{
	ENTER;
	POOL(p, handle);
	UNSAFE;
	if (p->reserved > keep)
		p->reserved = keep > p->used ? keep : p->used;
	return OK;
}

/* A graph would have nodes for these two, of memory of its own; liblade never wants that. */
API cuMemAllocFromPoolAsync(lade__address *ptr, size_t size, void *handle, void *to)
{
	ENTER_DEVICE;
	POOL(p, handle);
	STREAM(s, to);
	UNSAFE;
	REFUSE(size == 0, INVALID_VALUE);
	op o = operation(TAKE);
	block *b = memory_take(ON_DEVICE, p->device, size, p);
	REFUSE(!b, OUT_OF_MEMORY);
	*ptr = b->at;
	o.memory = b;
	return stream_add(s, (op &&)o);
}

API cuMemFreeAsync(lade__address ptr, void *to)
{
	guard locked;
	int rc = fails(__func__);
	/* Without a context only a stream that is none of the default ones is known. */
	REFUSE((uintptr_t)to <= 2 && !in_context(), INVALID_CONTEXT);
	stream *s = stream_of(to, in_context() ? device_now() : 0);
	if (!s) { /* which ends programs on a device, too */
		fprintf(stderr, "emulated driver: cuMemFreeAsync() on a stream that is gone\n");
		abort();
	}
	UNSAFE;
	op o = operation(GIVE);
	o.memory = leave(ptr, ON_DEVICE, ON_DEVICE);
	REFUSE(!o.memory, INVALID_VALUE);
	int added = stream_add(s, (op &&)o);
	return added ? added : rc;
}

/* CUpointer_attribute */
API cuPointerGetAttribute(void *value, int attribute, lade__address ptr)
{
	ENTER;
	REFUSE(!in_context(), INVALID_CONTEXT);
	const block *b = memory_find(ptr);
	REFUSE(!b || b->leaving || (b->mapped && !b->live), INVALID_VALUE);
	switch (attribute) {
	case 1: /* the context */
		*static_cast<void **>(value) = &contexts[b->device];
		return OK;
	case 2: /* 1: of the host, 2: of a device */
		*static_cast<unsigned *>(value) = b->kind == PINNED ? 1 : 2;
		return OK;
	case 3: /* the address on the device */
	case 4: /* and on the host */
		REFUSE(attribute == 4 && b->kind == ON_DEVICE, INVALID_VALUE);
		*static_cast<uint64_t *>(value) = ptr;
		return OK;
	case 8: /* managed */
		*static_cast<unsigned *>(value) = b->kind == MANAGED;
		return OK;
	case 9: /* the device's number */
		*static_cast<int *>(value) = b->device;
		return OK;
	case 10: /* whether cuIpcGetMemHandle() takes it */
		*static_cast<unsigned *>(value) = b->kind == ON_DEVICE && !b->mapped && !b->from;
		return OK;
	case 11: /* where its block begins */
		*static_cast<uint64_t *>(value) = b->at;
		return OK;
	case 12: /* and how large it is */
		*static_cast<size_t *>(value) = b->size;
		return OK;
	default:
		return INVALID_VALUE;
	}
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Up to this many bytes of the process's own memory are taken when a copy is enqueued. */
#define STAGED_MAX ((size_t)64 << 10)

enum source_order {
	IN_STREAM_ORDER = 1,
	DURING_THE_CALL = 2,
	AT_ANY_TIME = 3
};

/* All of it is in a block, or nothing in any. */
static bool sound(uint64_t at, size_t size)
{
	const block *b = memory_find(at);
	return b ? size <= b->size - (at - b->at) : !memory_is_ours(at);
}

static bool pageable(uint64_t at)
{
	return !memory_is_ours(at);
}

static int add_copy(stream *s, uint64_t dst, uint64_t src, size_t size, source_order order)
{
	REFUSE(size == 0, OK);
	REFUSE(!dst || !src || !sound(dst, size) || !sound(src, size), INVALID_VALUE);
	REFUSE(!memory_writable(dst), INVALID_VALUE);
	if (s->of && (pageable(src) || pageable(dst))) {
		s->of->invalid = true;
		return CAPTURE_UNSUPPORTED;
	}
	op o = operation(COPY);
	o.dst = dst;
	o.src = src;
	o.size = size;
	bool now = order == DURING_THE_CALL ||
	           (order == AT_ANY_TIME && emulated.seed != EMULATED_LAZY && (chance() & 1)) ||
	           (pageable(src) && size <= STAGED_MAX);
	/* In blocks the device reads; what is there now may be garbage, which is the point. */
	if (now && (pageable(src) || memory_reaches(-1, src, size))) {
		const unsigned char *from = (const unsigned char *)(uintptr_t)src;
		memory_open();
		o.staged = true;
		o.bytes.assign(from, from + size);
		memory_close();
	}
	return stream_add(s, (op &&)o);
}

/* Memory of a pool of another device, which no other was given access to. */
static bool out_of_reach(lade__address at, int device)
{
	const block *b = memory_find(at);
	return b && b->from && b->device != device && !b->from->shared;
}

API cuMemcpyAsync(lade__address dst, lade__address src, size_t size, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	REFUSE(size && (out_of_reach(dst, device_now()) || out_of_reach(src, device_now())),
	       INVALID_VALUE);
	return add_copy(s, dst, src, size, IN_STREAM_ORDER);
}

API cuMemcpyHtoDAsync_v2(lade__address dst, const void *src, size_t size, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	REFUSE(size && pageable(dst), INVALID_VALUE);
	return add_copy(s, dst, lade__address_of(src), size, IN_STREAM_ORDER);
}

API cuMemcpyDtoHAsync_v2(void *dst, lade__address src, size_t size, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	REFUSE(size && pageable(src), INVALID_VALUE);
	return add_copy(s, lade__address_of(dst), src, size, IN_STREAM_ORDER);
}

/* The copies of a batch have no order among themselves. */
API cuMemcpyBatchAsync_v2(lade__address *dsts, lade__address *srcs, size_t *sizes, size_t count,
                          lade__copy_attributes *attributes, size_t *first,
                          size_t attribute_count, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	REFUSE(s->legacy || !count || !attribute_count || attribute_count > count || first[0] != 0,
	       INVALID_VALUE);
	if (s->of) {
		s->of->invalid = true;
		return CAPTURE_UNSUPPORTED;
	}
	std::vector<int> orders(count);
	for (size_t a = 0; a < attribute_count; a++) {
		size_t end = a + 1 < attribute_count ? first[a + 1] : count;
		REFUSE(first[a] >= end || end > count, INVALID_VALUE);
		REFUSE(attributes[a].source_order < IN_STREAM_ORDER ||
		       attributes[a].source_order > AT_ANY_TIME, INVALID_VALUE);
		for (size_t i = first[a]; i < end; i++)
			orders[i] = attributes[a].source_order;
	}
	for (size_t i = 0; i < count; i++)
		REFUSE(!sizes[i] || !sound(dsts[i], sizes[i]) || !sound(srcs[i], sizes[i]),
		       INVALID_VALUE);
	bool back = emulated.seed == EMULATED_LAZY || (chance() & 1);
	for (size_t n = 0; n < count; n++) {
		size_t i = back ? count - 1 - n : n;
		int rc = add_copy(s, dsts[i], srcs[i], sizes[i], (source_order)orders[i]);
		REFUSE(rc, rc);
	}
	return OK;
}

static int add_fill(stream *s, uint64_t dst, unsigned value, unsigned width, size_t size)
{
	REFUSE(size == 0, OK);
	REFUSE(pageable(dst) || !sound(dst, size) || dst % width, INVALID_VALUE);
	REFUSE(!memory_writable(dst), INVALID_VALUE);
	op o = operation(FILL);
	o.dst = dst;
	o.value = value;
	o.width = width;
	o.size = size;
	return stream_add(s, (op &&)o);
}

API cuMemsetD8Async(lade__address dst, unsigned char value, size_t size, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	return add_fill(s, dst, value, 1, size);
}

API cuMemsetD32Async(lade__address dst, unsigned value, size_t count, void *to)
{
	ENTER_DEVICE;
	STREAM_HERE(s, to);
	REFUSE(count > DEVICE_MEMORY, INVALID_VALUE);
	return add_fill(s, dst, value, 4, count * 4);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* What the driver loads is a fat binary; ours has another version and its name (images.c.in). */
struct image {
	uint32_t magic;
	uint16_t version, header;
	uint64_t size;
	char name[48];
};

API cuModuleLoadDataEx(void **out, const void *data, unsigned, int *, void **)
{
	ENTER_DEVICE;
	UNSAFE;
	image i;
	memcpy(&i, data, 16);
	REFUSE(i.magic != 0xBA55ED50 || (uintptr_t)data % 16, INVALID_IMAGE);
	memset(i.name, 0, sizeof(i.name));
	if (i.version == 0xFFFF)
		memcpy(&i, data, sizeof(i));
	dawdle();
	module *m = new module{device, i.name};
	handles.insert(m);
	emulated.modules++;
	*out = m;
	return OK;
}

API cuModuleGetFunction(void **out, void *handle, const char *name)
{
	ENTER_DEVICE;
	module *m = known<module>(handle);
	REFUSE(!m, INVALID_HANDLE);
	for (const kernel *k = kernels; k; k = k->next)
		if (!strcmp(k->name, name) && (m->image.empty() || m->image == k->image)) {
			function *f = new function{m, k, 48 << 10};
			functions.push_back(f);
			handles.insert(f);
			*out = f;
			return OK;
		}
	return NOT_FOUND;
}

API cuModuleUnload(void *handle)
{
	guard locked;
	int rc = fails(__func__);
	module *m = known<module>(handle);
	REFUSE(!m, INVALID_HANDLE);
	for (function *f : functions)
		if (f->of == m)
			handles.erase(f);
	forget(m);
	emulated.modules--;
	return rc;
}

#define FUNCTION(f, handle)                  \
	function *f = known<function>(handle); \
	REFUSE(!f, INVALID_HANDLE)

/* CUfunction_attribute */
API cuFuncGetAttribute(int *value, int attribute, void *handle)
{
	ENTER_DEVICE;
	FUNCTION(f, handle);
	switch (attribute) {
	case 0: /* threads of a block */
		*value = 1024;
		return OK;
	case 1: /* static shared memory */
	case 3: /* local memory */
		*value = 0;
		return OK;
	case 4: /* registers */
		*value = 32;
		return OK;
	case 6: /* whose machine code */
		*value = 10 * emulated.device[device].major + emulated.device[device].minor;
		return OK;
	case 8: /* dynamic shared memory that may be asked for */
		*value = f->shared_max;
		return OK;
	default:
		return INVALID_VALUE;
	}
}

API cuFuncSetAttribute(void *handle, int attribute, int value)
{
	ENTER_DEVICE;
	FUNCTION(f, handle);
	REFUSE(attribute != 8 || value < 0 || value > 227 << 10, INVALID_VALUE);
	f->shared_max = value;
	return OK;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *handle, int threads,
                                                size_t shared)
{
	ENTER_DEVICE;
	FUNCTION(f, handle);
	REFUSE(threads < 1 || threads > 1024, INVALID_VALUE);
	*blocks = shared > (size_t)f->shared_max ? 0 : shared > 113 << 10 ? 1 : 2;
	return OK;
}

API cuLaunchKernel(void *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *to,
                   void **arguments, void **extra)
{
	ENTER_DEVICE;
	FUNCTION(f, handle);
	STREAM_HERE(s, to);
	uint64_t threads = (uint64_t)block_x * block_y * block_z;
	REFUSE(f->of->device != device, INVALID_HANDLE);
	REFUSE(!grid_x || !grid_y || !grid_z || !threads || threads > 1024, INVALID_VALUE);
	REFUSE(grid_x > 0x7FFFFFFF || grid_y > 65535 || grid_z > 65535, INVALID_VALUE);
	REFUSE(shared > (unsigned)f->shared_max || !arguments || extra, INVALID_VALUE);
	op o = operation(LAUNCH);
	o.what = f->k;
	o.bytes.resize(f->k->size);
	f->k->pack(arguments, o.bytes.data());
	const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
	memcpy(o.grid, grid, sizeof(grid));
	memcpy(o.threads, block, sizeof(block));
	o.shared = shared;
	return stream_add(s, (op &&)o);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

API cuStreamBeginCapture_v2(void *handle, int mode)
{
	ENTER_DEVICE;
	STREAM(s, handle);
	REFUSE(mode < 0 || mode > 2, INVALID_VALUE);
	return capture_begin(s);
}

API cuStreamEndCapture(void *handle, void **out)
{
	ENTER_DEVICE;
	STREAM(s, handle);
	graph *g = new graph{{}, device};
	int rc = capture_end(s, &g->ops);
	*out = NULL;
	if (rc) {
		delete g;
		return rc;
	}
	handles.insert(g);
	emulated.graphs++;
	*out = g;
	return OK;
}

API cuGraphInstantiateWithFlags(void **out, void *handle, unsigned long long)
{
	ENTER;
	graph *g = known<graph>(handle);
	REFUSE(!g, INVALID_HANDLE);
	graph *copy = new graph(*g);
	handles.insert(copy);
	emulated.graphs++;
	*out = copy;
	return OK;
}

/* A graph runs in the order in which it was captured. */
API cuGraphLaunch(void *handle, void *to)
{
	ENTER_DEVICE;
	STREAM(s, to);
	graph *g = known<graph>(handle);
	REFUSE(!g, INVALID_HANDLE);
	UNSAFE;
	for (const op &o : g->ops) {
		int rc = stream_add(s, op(o));
		REFUSE(rc, rc);
	}
	return OK;
}

static int graph_destroy(const char *name, void *handle)
{
	guard locked;
	int rc = fails(name);
	graph *g = known<graph>(handle);
	REFUSE(!g, INVALID_HANDLE);
	forget(g);
	emulated.graphs--;
	return rc;
}

API cuGraphExecDestroy(void *handle)
{
	return graph_destroy(__func__, handle);
}

API cuGraphDestroy(void *handle)
{
	return graph_destroy(__func__, handle);
}
