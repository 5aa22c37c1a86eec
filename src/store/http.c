/*
 * http.c: the store of what a server has under a URL, for reading.
 *
 *	read() --> waiting --(at most 'parallel')--> under way --> answered
 *	              ^------(worth another try)--------+
 *
 * One thread, which the first read starts, does all transfers by libcurl's multi interface, so that
 * connections are used again.  Bytes go from libcurl's buffer to the ranges' spans.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "base/pool.h"
#include "base/try.h"
#include "store/curl.h"
#include "store/http.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What options leave to the library. */
#define PARALLEL 16
#define PARALLEL_MAX 256
#define RETRIES 4
#define CONNECT_MS 10000
#define IDLE_MS 30000

/* The pause before a second try; it doubles, up to the second, and is cut at random to a half. */
#define PAUSE_NS 100000000u
#define PAUSE_MAX_NS 10000000000u

/* How often transfers under way are checked, whether they stand still or are cancelled. */
#define LOOK_MS 20

/* Bytes behind what is wanted that are read, and dropped, to keep a connection. */
#define DROP_BYTES ((uint64_t)256 << 10)

typedef struct http http;

/* A request, from read() to its answer. */
typedef struct transfer {
	struct transfer *next;
	http *http;
	struct call *call;
	size_t index;
	char *url;
	void *easy; /* NULL: not under way */
	unsigned tries;
	uint64_t not_before_ns, moved_ns; /* when it may begin; when bytes came last */
	lade__http_answer answer;
	lade__http_body body;
	uint64_t received; /* bytes of the body */
	bool answered;     /* 'status' says what the head means */
	bool enough;       /* the rest of the body is not wanted */
	bool again;        /* a failure that another try may change */
	bool head_refused; /* then one byte is asked for */
	lade_status status;
	lade_error err;
	char why[256]; /* libcurl's words */
} transfer;

/* The requests of one read(). */
typedef struct call {
	lade_reading *reading;
	size_t left;
	transfer transfers[];
} call;

struct http {
	lade__curl curl;
	lade_store *store; /* its own, not counted */
	lade_http_options options;
	char *base;
	void *headers; /* libcurl's list */
	/* Shared with the thread. */
	pthread_mutex_t mutex;
	transfer *incoming;
	bool stop;
	_Atomic pid_t process; /* that has started the thread; 0: none has */
	pthread_t thread;
	void *multi;
	/* The thread's. */
	transfer *waiting;
	transfer **active; /* 'parallel' places */
	unsigned active_count;
	void **idle; /* handles for further transfers */
	unsigned idle_count;
	uint64_t random;
};

static lade_range *range_of(const transfer *t)
{
	return lade_reading_range(t->call->reading, t->index);
}

/* ---- what libcurl calls ---------------------------------------------------------------------- */

static size_t on_header(char *line, size_t one, size_t size, void *ctx)
{
	transfer *t = ctx;
	t->moved_ns = lade__now_ns();
	lade__http_line(&t->answer, line, one * size);
	return one * size;
}

/* Looks at the head, once: at the first byte of the body, or at its end. */
static void look_at_head(transfer *t)
{
	long code = 0;
	if (t->answered)
		return;
	t->http->curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
	t->answer.code = (int)code;
	t->answered = true;
	t->status = lade__http_judge(&t->answer, range_of(t), &t->body, &t->again, &t->err);
	const lade_range *range = range_of(t);
	bool whole = range->kind != LADE_RANGE_REST || range->off;
	if (t->status == LADE_OK && code == 200 && range->dst.size && whole)
		lade__store_is_whole(t->http->store);
}

/* Takes bytes of the body.  Less than 'size' ends the transfer. */
static size_t on_body(char *data, size_t one, size_t size, void *ctx)
{
	transfer *t = ctx;
	size *= one;
	look_at_head(t);
	t->moved_ns = lade__now_ns();
	if (t->status != LADE_OK)
		return 0;
	uint64_t at = t->body.at + t->received, end = t->body.off + t->body.size;
	t->received += size;
	if (at < end && at + size > t->body.off) {
		size_t skip = at < t->body.off ? (size_t)(t->body.off - at) : 0;
		size_t into = at < t->body.off ? 0 : (size_t)(at - t->body.off);
		size_t n = size - skip < end - at - skip ? size - skip : (size_t)(end - at - skip);
		t->status = lade_reading_put(t->call->reading, t->index, into,
		                             lade_host_cspan(data + skip, n), &t->err);
		if (t->status != LADE_OK)
			return 0;
	}
	if (at + size <= end)
		return size;
	const lade_range *range = range_of(t);
	if (t->body.to_end && range->kind == LADE_RANGE_REST) {
		t->status = lade_fail(&t->err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                      "it has more than %zu bytes from %" PRIu64 " on",
		                      range->dst.size, range->off);
		return 0;
	}
	/* A body of unknown size may have no end. */
	uint64_t rest = at + size - end;
	if (t->answer.length != LADE_SIZE_UNKNOWN)
		rest = t->answer.length - t->received;
	if (rest <= DROP_BYTES)
		return size;
	t->enough = true;
	return 0;
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void answer(transfer *t, lade_status status, const lade_error *err)
{
	call *c = t->call;
	free(t->url);
	lade_reading_done(c->reading, t->index, status, err);
	if (--c->left == 0)
		free(c);
}

static void put_waiting(http *h, transfer *t)
{
	t->next = h->waiting;
	h->waiting = t;
}

/* Sets a handle up for a transfer. */
static void set_options(http *h, transfer *t, void *easy)
{
	const lade__curl *c = &h->curl;
	const lade_range *range = range_of(t);
	char text[48];
	c->easy_setopt(easy, CURLOPT_URL, t->url);
	c->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	c->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	c->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	/* Headers may have credentials, which are for this server only. */
	c->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, h->options.header_count ? 0L : 1L);
	c->easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
	c->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)h->options.connect_ms);
	c->easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L << 10);
	c->easy_setopt(easy, CURLOPT_HTTPHEADER, h->headers);
	if (h->options.ca_file)
		c->easy_setopt(easy, CURLOPT_CAINFO, h->options.ca_file);
	c->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	c->easy_setopt(easy, CURLOPT_HEADERDATA, t);
	c->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	c->easy_setopt(easy, CURLOPT_WRITEDATA, t);
	c->easy_setopt(easy, CURLOPT_PRIVATE, t);
	c->easy_setopt(easy, CURLOPT_ERRORBUFFER, t->why);
	if (range->dst.size == 0 && !t->head_refused)
		c->easy_setopt(easy, CURLOPT_NOBODY, 1L);
	else if (range->dst.size == 0)
		c->easy_setopt(easy, CURLOPT_RANGE, "0-0");
	else if (lade__http_range(range, text))
		c->easy_setopt(easy, CURLOPT_RANGE, text);
}

static void begin(http *h, transfer *t)
{
	void *easy = h->idle_count ? h->idle[--h->idle_count] : h->curl.easy_init();
	lade_error err;
	if (easy) {
		set_options(h, t, easy);
		t->answer = (lade__http_answer){.length = LADE_SIZE_UNKNOWN,
		                                .total = LADE_SIZE_UNKNOWN};
		t->received = 0;
		t->answered = t->enough = t->again = false;
		t->status = LADE_OK;
		t->why[0] = 0;
		t->moved_ns = lade__now_ns();
		t->tries++;
	}
	if (!easy || h->curl.multi_add_handle(h->multi, easy) != 0) {
		if (easy)
			h->curl.easy_cleanup(easy);
		answer(t,
		       lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "libcurl has no memory for a transfer"),
		       &err);
		return;
	}
	t->easy = easy;
	h->active[h->active_count++] = t;
}

/* Takes a transfer out of those under way; its handle can be used again. */
static void end(http *h, transfer *t)
{
	h->curl.multi_remove_handle(h->multi, t->easy);
	h->curl.easy_reset(t->easy);
	h->idle[h->idle_count++] = t->easy;
	t->easy = NULL;
	for (unsigned i = 0; i < h->active_count; i++)
		if (h->active[i] == t)
			h->active[i] = h->active[--h->active_count];
}

/* Has a transfer wait for its next try, if it has one left. */
static bool try_again(http *h, transfer *t)
{
	unsigned doubled = t->tries < 8 ? t->tries - 1 : 7;
	uint64_t pause = (uint64_t)PAUSE_NS << doubled;
	if (t->tries > h->options.retries)
		return false;
	h->random = h->random * 6364136223846793005u + 1442695040888963407u;
	pause = pause / 2 + pause / 2 * (h->random >> 48) / 65536;
	pause = pause > t->answer.retry_ns ? pause : t->answer.retry_ns;
	pause = pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
	t->not_before_ns = lade__now_ns() + pause;
	lade_store_report *report = t->call->reading->note;
	if (report) {
		__atomic_fetch_add(&report->request_count, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&report->retry_count, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&report->moved_size, t->received, __ATOMIC_RELAXED);
	}
	put_waiting(h, t);
	return true;
}

/* The value's size, which only the end of the body shows. */
static lade_status size_by_end(transfer *t)
{
	lade_range *range = range_of(t);
	uint64_t total = t->body.at + t->received, off;
	lade_status status = lade_range_place(range, total, &off, &range->size, &t->err);
	range->object_size = total;
	return status;
}

/* What has become of a transfer: libcurl's code, and what the head and the body were. */
static void judge(transfer *t, int code)
{
	if (!t->answered && code == 0)
		look_at_head(t);
	if (t->answered && t->status != LADE_OK)
		return;
	const lade_range *range = range_of(t);
	if (code != 0 && !t->enough) {
		t->again = CURL_WORTH_A_RETRY(code);
		t->status = lade_fail(&t->err, LADE_E_IO, LADE_NO_OFFSET, "%s",
		                      t->why[0] ? t->why : t->http->curl.easy_strerror(code));
	} else if (range->dst.size && t->body.to_end && !t->enough) {
		t->status = size_by_end(t);
	} else if (range->dst.size && t->body.at + t->received < t->body.off + t->body.size) {
		t->again = true;
		t->status = lade_fail(&t->err, LADE_E_TRUNCATED, LADE_NO_OFFSET,
		                      "the server gave %" PRIu64 " bytes, announced were more",
		                      t->received);
	}
}

static void finish(http *h, transfer *t, int code)
{
	judge(t, code);
	const lade_range *range = range_of(t);
	bool look = range->dst.size == 0 && !t->head_refused;
	end(h, t);
	if (look && (t->answer.code == 405 || t->answer.code == 501 || t->answer.code == 403 ||
	             (t->status == LADE_OK && range->object_size == LADE_SIZE_UNKNOWN))) {
		t->head_refused = true;
		t->not_before_ns = 0;
		put_waiting(h, t);
		return;
	}
	if (t->status != LADE_OK && t->again && try_again(h, t))
		return;
	if (t->status != LADE_OK && t->tries > 1) {
		lade_error last = t->err;
		lade_fail(&t->err, t->status, last.offset, "%.180s (%u tries)", last.message,
		          t->tries);
	}
	uint64_t useful = t->status == LADE_OK ? range->size : 0;
	lade_store_report *report = t->call->reading->note;
	if (report && t->received > useful)
		__atomic_fetch_add(&report->moved_size, t->received - useful, __ATOMIC_RELAXED);
	answer(t, t->status, &t->err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Begins what may begin; returns the milliseconds until more may. */
static int begin_waiting(http *h)
{
	transfer *later = NULL;
	uint64_t now = lade__now_ns(), next = UINT64_MAX;
	/* The list is the last first: turned round, calls are served in their order. */
	for (transfer *t = h->waiting, *more; t; t = more) {
		more = t->next;
		t->next = later;
		later = t;
	}
	h->waiting = NULL;
	for (transfer *t = later, *more; t; t = more) {
		more = t->next;
		if (lade_reading_cancelled(t->call->reading)) {
			answer(t, LADE_E_CANCELLED, NULL);
		} else if (t->not_before_ns <= now && h->active_count < h->options.parallel) {
			begin(h, t);
		} else {
			next = t->not_before_ns < next ? t->not_before_ns : next;
			put_waiting(h, t);
		}
	}
	return !h->waiting || next <= now ? LOOK_MS : (int)((next - now) / 1000000) + 1;
}

/* Ends what is cancelled, and what stands still. */
static void look_at_active(http *h)
{
	uint64_t now = lade__now_ns(), idle = (uint64_t)h->options.idle_ms * 1000000;
	for (unsigned i = h->active_count; i-- > 0;) {
		transfer *t = h->active[i];
		if (lade_reading_cancelled(t->call->reading)) {
			end(h, t);
			answer(t, LADE_E_CANCELLED, NULL);
		} else if (now > t->moved_ns && now - t->moved_ns > idle) {
			snprintf(t->why, sizeof t->why, "no bytes came for %u ms",
			         h->options.idle_ms);
			t->answered = false;
			finish(h, t, 28);
		}
	}
}

static void finish_done(http *h)
{
	curl_message *m;
	int left;
	while ((m = h->curl.multi_info_read(h->multi, &left))) {
		transfer *t = NULL;
		if (m->what != CURLMSG_DONE)
			continue;
		int code = m->data.result; /* gone when the handle is taken out */
		h->curl.easy_getinfo(m->easy, CURLINFO_PRIVATE, &t);
		finish(h, t, code);
	}
}

static void *work(void *ctx)
{
	http *h = ctx;
	int running;
	for (;;) {
		pthread_mutex_lock(&h->mutex);
		bool stop = h->stop;
		transfer *incoming = h->incoming;
		h->incoming = NULL;
		pthread_mutex_unlock(&h->mutex);
		if (stop)
			return NULL;
		for (transfer *more; incoming; incoming = more) {
			more = incoming->next;
			put_waiting(h, incoming);
		}
		int ms = begin_waiting(h);
		h->curl.multi_perform(h->multi, &running);
		finish_done(h);
		look_at_active(h);
		bool nothing = !h->active_count && !h->waiting;
		ms = nothing ? 60000 : ms < LOOK_MS ? ms : LOOK_MS;
		h->curl.multi_poll(h->multi, NULL, 0, ms, NULL);
	}
}

/* A child of fork() has neither the thread nor, but in name, its connections: it begins anew. */
static void look_for_fork(http *h)
{
	lade__fork_lock();
	if (h->process && h->process != getpid()) {
		pthread_mutex_init(&h->mutex, NULL);
		h->incoming = h->waiting = NULL;
		h->active_count = h->idle_count = 0;
		h->process = 0;
	}
	lade__fork_unlock();
}

/* Starts the thread.  The mutex is held. */
static lade_status start(http *h, lade_error *err)
{
	if (h->process)
		return LADE_OK;
	h->multi = h->curl.multi_init();
	if (!h->multi)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "libcurl has no memory");
	h->curl.multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)h->options.parallel);
	if (pthread_create(&h->thread, NULL, work, h) != 0) {
		h->curl.multi_cleanup(h->multi);
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no thread for transfers");
	}
	h->process = getpid();
	return LADE_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

static call *call_new(http *h, lade_reading *reading, size_t count)
{
	call *c = NULL;
	if (count <= (SIZE_MAX - sizeof *c) / sizeof(transfer))
		c = calloc(1, sizeof *c + count * sizeof(transfer));
	if (!c)
		return NULL;
	c->reading = reading;
	c->left = count;
	for (size_t i = 0; i < count; i++) {
		transfer *t = &c->transfers[i];
		*t = (transfer){.http = h, .call = c, .index = i, .next = t + 1};
		t->url = lade__http_url(h->base, lade_reading_range(reading, i)->key);
		if (t->url)
			continue;
		while (i-- > 0)
			free(c->transfers[i].url);
		free(c);
		return NULL;
	}
	return c;
}

static void http_read(void *ctx, lade_reading *reading, size_t count)
{
	http *h = ctx;
	lade_error err;
	call *c = call_new(h, reading, count);
	lade_status status = c ? LADE_OK
	                       : lade_fail(&err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                                   "no memory to read %zu ranges", count);
	look_for_fork(h);
	pthread_mutex_lock(&h->mutex);
	if (status == LADE_OK)
		status = start(h, &err);
	if (status == LADE_OK) {
		/* Last first, as the list of those that wait. */
		for (size_t i = 0; i < count; i++) {
			c->transfers[i].next = h->incoming;
			h->incoming = &c->transfers[i];
		}
		h->curl.multi_wakeup(h->multi);
	}
	pthread_mutex_unlock(&h->mutex);
	if (status == LADE_OK)
		return;
	for (size_t i = 0; i < count; i++) {
		if (c)
			free(c->transfers[i].url);
		lade_reading_done(reading, i, status, &err);
	}
	free(c);
}

/* ---- life ---------------------------------------------------------------------------------- */

static void http_close(void *ctx)
{
	http *h = ctx;
	look_for_fork(h);
	if (h->process) {
		pthread_mutex_lock(&h->mutex);
		h->stop = true;
		h->curl.multi_wakeup(h->multi);
		pthread_mutex_unlock(&h->mutex);
		pthread_join(h->thread, NULL);
		while (h->idle_count)
			h->curl.easy_cleanup(h->idle[--h->idle_count]);
		h->curl.multi_cleanup(h->multi);
	}
	if (h->headers)
		h->curl.slist_free_all(h->headers);
	pthread_mutex_destroy(&h->mutex);
	free((char *)(uintptr_t)h->options.ca_file);
	free(h->active);
	free(h->idle);
	free(h->base);
	free(h);
}

/* Copies the caller's headers: "Name: value". */
static lade_status take_headers(http *h, lade_error *err)
{
	for (size_t i = 0; i <= h->options.header_count; i++) {
		const char *header = i ? h->options.headers[i - 1] : "Accept-Encoding: identity";
		const char *colon = header ? strchr(header, ':') : NULL;
		if (!colon || colon == header)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "header %zu is not 'Name: value'", i - 1);
		for (const char *c = header; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				return lade_fail(err, LADE_E_ARG, (uint64_t)(c - header),
				                 "header %zu has the byte 0x%02x", i - 1,
				                 (unsigned char)*c);
		void *more = h->curl.slist_append(h->headers, header);
		if (!more)
			return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
			                 "no memory for headers");
		h->headers = more;
	}
	return LADE_OK;
}

static lade_status take_options(http *h, const lade_http_options *given, lade_error *err)
{
	lade_http_options *o = &h->options;
	lade_status status = lade__options_read(o, sizeof *o, given, "http options", err);
	const char *ca_file = o->ca_file;
	o->ca_file = NULL;
	if (status != LADE_OK)
		return status;
	if (o->parallel > PARALLEL_MAX || o->retries > 100 || (o->header_count && !o->headers))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "http options: parallel is %u (of %d), retries %u (of 100), "
		                 "headers %zu",
		                 o->parallel, PARALLEL_MAX, o->retries, o->header_count);
	o->parallel = o->parallel ? o->parallel : PARALLEL;
	o->retries = o->flags & LADE_HTTP_NO_RETRIES ? 0 : o->retries ? o->retries : RETRIES;
	o->connect_ms = o->connect_ms ? o->connect_ms : CONNECT_MS;
	o->idle_ms = o->idle_ms ? o->idle_ms : IDLE_MS;
	h->active = calloc(o->parallel, sizeof *h->active);
	h->idle = calloc(o->parallel, sizeof *h->idle);
	o->ca_file = ca_file ? strdup(ca_file) : NULL;
	if (!h->active || !h->idle || (ca_file && !o->ca_file))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	return LADE_OK;
}

lade_status lade_store_http_open(const char *url, const lade_http_options *given, lade_store **out,
                                 lade_error *err)
{
	lade_store_ops ops = {.struct_size = sizeof ops,
	                      .flags = LADE_STORE_PARTS,
	                      .request_ns = 20000000,
	                      .request_rate = 50000000,
	                      .read = http_read,
	                      .close = http_close};
	char shown[128];
	if (!url || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 url ? "out" : "url");
	*out = NULL;
	lade_status status = lade__http_base_check(url, shown, sizeof shown, err);
	if (status != LADE_OK)
		return status;
	http *h = calloc(1, sizeof *h);
	if (!h)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store");
	pthread_mutex_init(&h->mutex, NULL);
	h->random = lade__now_ns();
	h->base = strdup(url);
	if (!h->base)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a store"));
	TRY(take_options(h, given, err));
	TRY(lade__curl_open(&h->curl, h->options.libcurl, err));
	TRY(take_headers(h, err));
	ops.parallel = h->options.parallel;
	TRY(lade__store_new(&ops, h, shown, &h->store, err));
	*out = h->store;
	return LADE_OK;
out:
	http_close(h);
	return status;
}
