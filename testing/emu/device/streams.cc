/*
 * streams.cc: what is enqueued on the emulated devices' streams, and when it runs.
 *
 * Lazy: an operation runs when a stream or an event is waited for that comes after it, by the order
 * of a stream, by an event, or by the rules of the default stream; nothing else runs then.  Eager:
 * it runs at once.  Under any other seed some operations run at each call, of any stream.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "emu/device/inside.h"

#include <emu/machine.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <map>
#include <tuple>

/* Blocks of a launch that run interleaved, as they would on 2 SMs. */
#define RESIDENT 4u

std::vector<stream *> &streams = *new std::vector<stream *>;
std::set<const void *> &gone_streams = *new std::set<const void *>;
std::vector<event *> &events = *new std::vector<event *>;
int device_error[EMULATED_DEVICES];
int captures;
kernel *kernels;
static uint64_t tickets;
static capture ended; /* of events that were recorded in a capture that is over */

double now(void)
{
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t chance(void)
{
	static uint64_t seed, random;
	if (seed != emulated.seed || !random) {
		seed = emulated.seed;
		random = seed * 0x9E3779B97F4A7C15ULL | 1;
	}
	random ^= random >> 12;
	random ^= random << 25;
	random ^= random >> 27;
	return random * 0x2545F4914F6CDD1DULL >> 16;
}

void device_fail(int device, int code, const char *format, ...)
{
	char text[sizeof(emulated.message)];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "emulated device %d: %s\n", device, text);
	if (!*emulated.message)
		memcpy(emulated.message, text, sizeof(text));
	if (!device_error[device])
		device_error[device] = code;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int running; /* the device whose kernel runs */

/* The code and the constants of the kernels. */
extern "C" const char __ehdr_start __attribute__((visibility("hidden")));
extern "C" const char _end __attribute__((visibility("hidden")));

/* ---- Memory that changes --------------------------------------------------------------------- */
/*
 * Lanes that load a word by one instruction get one value, as a device gives them, whatever the
 * memory is by then.  Loads of one place belong to one instruction if the lanes of the warp have
 * met at as many primitives, and have loaded the place as often since.
 */
struct load_key {
	uint64_t met;
	uintptr_t at;
	size_t size;
	unsigned turn;

	bool operator<(const load_key &o) const
	{
		return std::tie(met, at, size, turn) < std::tie(o.met, o.at, o.size, o.turn);
	}
};

struct load_value {
	unsigned char bytes[16];
};

struct warp_loads {
	uint3 block;
	std::map<load_key, load_value> values;
	struct {
		uint64_t met;
		std::map<std::pair<uintptr_t, size_t>, unsigned> turns;
	} lane[32];
};

static std::map<const emu_warp_state *, warp_loads> &loads =
	*new std::map<const emu_warp_state *, warp_loads>;

static void change(const emulated_change &c, uintptr_t at, size_t size)
{
	if (!c.most) {
		for (size_t i = 0; i < size; i++)
			if (chance() & 1 && at + i - c.at < c.size)
				*(unsigned char *)(at + i) = (unsigned char)(chance() >> 5);
		return;
	}
	size_t i = (at - c.at) / 8;
	*(uint64_t *)(c.at + 8 * i) = c.most[i] ? chance() % (c.most[i] + 1) : 0;
}

/* Gives a place that changes the value that the running lane is to find there. */
static void look(const emulated_change &c, uintptr_t at, size_t size)
{
	const emu_lane *self = emu_self();
	warp_loads &warp = loads[self->warp];
	if (memcmp(&warp.block, &self->block, sizeof(warp.block)) != 0) {
		warp = {};
		warp.block = self->block;
	}
	auto &lane = warp.lane[self->index];
	if (lane.met != self->met) {
		lane.met = self->met;
		lane.turns.clear();
		/* No lane of a warp is far behind the others. */
		while (!warp.values.empty() && warp.values.begin()->first.met + 64 < self->met)
			warp.values.erase(warp.values.begin());
	}
	size_t known = size < sizeof(load_value::bytes) ? size : sizeof(load_value::bytes);
	load_key key = {self->met, at, size, lane.turns[{at, size}]++};
	auto found = warp.values.find(key);
	if (found != warp.values.end()) {
		memcpy((void *)at, found->second.bytes, known);
		return;
	}
	if (chance() % (uint64_t)emulated.change_every == 0)
		change(c, at, size);
	memcpy(warp.values[key].bytes, (const void *)at, known);
}

/* Asked for each access of a kernel; no block comes or goes meanwhile. */
static bool kernel_reaches(const volatile void *at, size_t size)
{
	for (int i = 0; i < emulated.changing_count && at; i++) {
		const emulated_change &c = emulated.changing[i];
		if ((uintptr_t)at - c.at < c.size && size <= c.size - ((uintptr_t)at - c.at))
			look(c, (uintptr_t)at, size);
	}
	static const block *last[2];
	uintptr_t address = (uintptr_t)at;
	if (!at) {
		last[0] = last[1] = NULL;
		return false;
	}
	for (const block *b : last)
		if (b && address - b->at < b->size && size <= b->size - (address - b->at))
			return true;
	if (memory_reaches(running, address, size)) {
		last[1] = last[0];
		last[0] = memory_find(address);
		return true;
	}
	return address - (uintptr_t)&__ehdr_start < (size_t)(&_end - &__ehdr_start);
}

static int code_of(emu_error error)
{
	switch (error) {
	case EMU_GLOBAL:
		return ILLEGAL_ADDRESS;
	case EMU_MISALIGNED:
		return MISALIGNED_ADDRESS;
	case EMU_STEPS:
		return LAUNCH_TIMEOUT;
	default:
		return LAUNCH_FAILED;
	}
}

static void run_kernel(int device, const op &o)
{
	alignas(16) unsigned char arguments[4096]; /* the most that a launch takes */
	emu_config config;

	memcpy(arguments, o.bytes.data(), o.bytes.size());
	config.kernel = o.what->name;
	config.grid = dim3(o.grid[0], o.grid[1], o.grid[2]);
	config.block = dim3(o.threads[0], o.threads[1], o.threads[2]);
	config.shared = o.shared;
	config.seed = emulated.seed > EMULATED_EAGER ? chance() | 1 : 0;
	config.resident = RESIDENT;
	if (emulated.steps)
		config.steps = emulated.steps;
	config.global = kernel_reaches;
	running = device;
	kernel_reaches(NULL, 0);
	loads.clear();
	emulated.launches++;
	emu_result r = emu_launch(config, [&] { o.what->call(arguments); });
	if (!r.ok)
		device_fail(device, code_of(r.error), "%s", r.message);
}

static bool reached(int device, uint64_t at, size_t size, const char *what)
{
	if (memory_reaches(-1, at, size))
		return true;
	/* What is not ours is the process's own memory, which the driver copies for the device. */
	if (!memory_is_ours(at))
		return true;
	device_fail(device, ILLEGAL_ADDRESS, "%s of %zu bytes at %#llx, where no memory of that "
	            "size is (any more)", what, size, (unsigned long long)at);
	return false;
}

static void run_copy(int device, const op &o)
{
	const void *from = o.staged ? o.bytes.data() : (const void *)(uintptr_t)o.src;
	emulated.copies++;
	if ((o.staged || reached(device, o.src, o.size, "a copy's source")) &&
	    reached(device, o.dst, o.size, "a copy's destination"))
		memmove((void *)(uintptr_t)o.dst, from, o.size);
}

static void run_fill(int device, const op &o)
{
	if (!memory_reaches(device, o.dst, o.size)) {
		device_fail(device, ILLEGAL_ADDRESS, "%zu bytes are set at %#llx, where no memory "
		            "of that size is", o.size, (unsigned long long)o.dst);
		return;
	}
	if (o.width == 1)
		memset((void *)(uintptr_t)o.dst, (int)o.value, o.size);
	else
		for (size_t i = 0; i < o.size; i += 4)
			memcpy((void *)(uintptr_t)(o.dst + i), &o.value, 4);
}

/* After an error only what others wait for, or what gives back, is done. */
static void run(int device, const op &o)
{
	bool well = !device_error[device];
	switch (o.kind) {
	case COPY:
		if (well)
			run_copy(device, o);
		break;
	case FILL:
		if (well)
			run_fill(device, o);
		break;
	case LAUNCH:
		if (well)
			run_kernel(device, o);
		break;
	case RECORD:
		o.mark->awaited.erase(o.generation);
		o.mark->time = now();
		break;
	case WAIT:
		break;
	case TAKE:
		memory_begin(o.memory);
		break;
	case GIVE:
		memory_drop(o.memory);
		break;
	}
}

/* ---- The order ------------------------------------------------------------------------------- */

static stream *recorder_of(const event *e, uint64_t generation)
{
	for (stream *s : streams)
		for (const op &o : s->ops)
			if (o.kind == RECORD && o.mark == e && o.generation == generation)
				return s;
	return NULL;
}

/* Whose first operation must run before that of 's', which is not empty; NULL: nobody's. */
static stream *blocker_of(const stream *s)
{
	const op &head = s->ops.front();
	if (head.kind == WAIT && head.mark->awaited.count(head.generation))
		return recorder_of(head.mark, head.generation);
	if (!s->legacy && !s->blocking)
		return NULL;
	for (stream *t : streams)
		if (t != s && t->device == s->device && !t->ops.empty() &&
		    (s->legacy ? t->blocking : t->legacy) && t->ops.front().ticket < head.ticket)
			return t;
	return NULL;
}

void stream_step(stream *s)
{
	if (s->ops.empty())
		return;
	/* What blocks was enqueued earlier, so this ends. */
	while (stream *t = blocker_of(s))
		s = t;
	op head = (op &&)s->ops.front();
	s->ops.pop_front();
	emulated.pending--;
	memory_open();
	run(s->device, head);
	memory_close();
	if (!s->dead || !s->ops.empty())
		return;
	for (size_t i = 0; i < streams.size(); i++)
		if (streams[i] == s) {
			streams.erase(streams.begin() + (ptrdiff_t)i);
			break;
		}
	gone_streams.insert(s);
}

void event_step(event *e)
{
	if (e->awaited.count(e->recorded))
		stream_step(recorder_of(e, e->recorded));
}

void stream_drain(stream *s)
{
	memory_open();
	while (!s->ops.empty()) {
		bool last = s->dead && s->ops.size() == 1 && !blocker_of(s);
		stream_step(s);
		if (last)
			break;
	}
	memory_close();
}

void event_drain(event *e)
{
	memory_open();
	while (e->awaited.count(e->recorded))
		event_step(e);
	memory_close();
}

void device_drain(int device)
{
	bool any = true;
	while (any) {
		any = false;
		for (stream *s : streams)
			if (s->device == device && !s->ops.empty()) {
				stream_drain(s);
				any = true;
				break;
			}
	}
}

/* Runs something, anywhere. */
static void progress(stream *s)
{
	if (emulated.seed == EMULATED_LAZY)
		return;
	if (emulated.seed == EMULATED_EAGER) {
		stream_drain(s);
		return;
	}
	for (unsigned left = (unsigned)(chance() & 3); left; left--)
		stream_step(streams[(size_t)(chance() % streams.size())]);
}

static op operation(op_kind kind)
{
	op o = {};
	o.kind = kind;
	return o;
}

int stream_add(stream *s, op &&work)
{
	if (s->of) {
		if (s->of->invalid)
			return CAPTURE_INVALIDATED;
		s->captured++;
		s->unjoined = true;
		s->of->ops.push_back((op &&)work);
		return OK;
	}
	if (s->legacy)
		for (const stream *t : streams)
			if (t->of && t->blocking && t->device == s->device) {
				t->of->invalid = true;
				return CAPTURE_IMPLICIT;
			}
	if (device_error[s->device])
		return device_error[s->device];
	work.ticket = ++tickets;
	emulated.pending++;
	s->ops.push_back((op &&)work);
	progress(s);
	return OK;
}

int stream_record(stream *s, event *e)
{
	if (s->of) {
		if (s->of->invalid)
			return CAPTURE_INVALIDATED;
		e->of = s->of;
		e->origin = s;
		e->captured = s->captured;
		return OK;
	}
	op o = operation(RECORD);
	o.mark = e;
	o.generation = e->recorded + 1;
	e->of = NULL;
	/* Before it is added, since it may run there. */
	e->awaited.insert(++e->recorded);
	int rc = stream_add(s, (op &&)o);
	if (rc)
		e->awaited.erase(e->recorded--);
	return rc;
}

int stream_wait(stream *s, event *e)
{
	if (s->of && s->of->invalid)
		return CAPTURE_INVALIDATED;
	if (e->of == &ended)
		return CAPTURED_EVENT;
	if (e->of) {
		if (s->legacy || (s->of && s->of != e->of))
			return s->legacy ? CAPTURE_IMPLICIT : CAPTURE_MERGE;
		if (!s->of)
			s->captured = 0;
		s->of = e->of;
		s->unjoined = true;
		if (e->origin != s && e->captured == e->origin->captured)
			e->origin->unjoined = false;
		return OK;
	}
	if (s->of) {
		s->of->invalid = true;
		return CAPTURE_ISOLATION;
	}
	if (!e->recorded)
		return OK;
	op o = operation(WAIT);
	o.mark = e;
	o.generation = e->recorded;
	return stream_add(s, (op &&)o);
}

/* ---- Captures -------------------------------------------------------------------------------- */

int capture_begin(stream *s)
{
	if (s->legacy)
		return CAPTURE_UNSUPPORTED;
	if (s->of)
		return INVALID_VALUE;
	s->of = new capture{s, false, {}};
	s->captured = 0;
	captures++;
	return OK;
}

int capture_end(stream *s, std::vector<op> *ops)
{
	capture *c = s->of;
	if (!c)
		return INVALID_VALUE;
	if (c->origin != s)
		return CAPTURE_UNMATCHED;
	int rc = c->invalid ? CAPTURE_INVALIDATED : OK;
	for (stream *t : streams)
		if (t->of == c) {
			if (t != s && t->unjoined && !rc)
				rc = CAPTURE_UNJOINED;
			t->of = NULL;
		}
	for (event *e : events)
		if (e->of == c)
			e->of = &ended;
	if (!rc)
		ops->swap(c->ops);
	delete c;
	captures--;
	return rc;
}

void captures_invalidate(void)
{
	for (stream *s : streams)
		if (s->of)
			s->of->invalid = true;
}
