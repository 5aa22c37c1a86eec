/*
 * client.c: connections, and what is asked over them.
 *
 * One question at a time: the connection's mutex is held from the question to the answer.  Versions
 * and arrays do not need the connection, so that they outlive it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/client.h"

#include "base/options.h"
#include "base/try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_DEFAULT 10000
/* What the broker has for the answer, however little the caller wants to wait for the name. */
#define ANSWER_MS 20

/* ---- questions -------------------------------------------------------------------------- */

static void hang_up(lade_share *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Connects if there is no connection.  One that a fork() copied is the parent's. */
static lade_status dial(lade_share *s, lade_error *err)
{
	uid_t uid;
	pid_t pid;
	lade_status status = LADE_OK;

	if (s->fd >= 0 && s->pid == getpid())
		return LADE_OK;
	hang_up(s);
	TRY(lade__socket_connect(s->path, &s->fd, err));
	lade__socket_timeout(s->fd, s->timeout_ms);
	TRY(lade__socket_peer(s->fd, &uid, &pid, err));
	if (s->own && uid != geteuid() && uid != 0)
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: the broker is user %u's",
		              s->path, (unsigned)uid));
	s->pid = getpid();
	/* What the last connection had open is not open in this one. */
	pthread_mutex_lock(&s->cache_mutex);
	s->generation++;
	for (lade_share_version *v = s->cache; v; v = v->next)
		v->cached = false;
	s->cache = NULL;
	s->release_count = 0;
	pthread_mutex_unlock(&s->cache_mutex);
out:
	if (status != LADE_OK)
		hang_up(s);
	return status;
}

lade_status lade__share_begin(lade_share *s, lade__wire_kind kind, lade_error *err)
{
	pthread_mutex_lock(&s->mutex);
	lade_status status = dial(s, err);
	if (status != LADE_OK) {
		pthread_mutex_unlock(&s->mutex);
		return status;
	}
	s->bound = false;
	s->wait_ms = 0;
	lade__wire_begin(&s->out, kind, ++s->request);
	return LADE_OK;
}

/* Sends what was released while others asked; the mutex is held.  Of a connection that has ended,
 * or that is a parent's, nothing is left to release. */
static void send_releases(lade_share *s)
{
	pthread_mutex_lock(&s->cache_mutex);
	while (s->release_count && s->fd >= 0 && s->pid == getpid()) {
		lade__wire_begin(&s->out, LADE__RELEASE, 0);
		lade__wire_put(&s->out, s->releases[--s->release_count], 8);
		if (lade__wire_send(s->fd, &s->out))
			hang_up(s);
	}
	s->release_count = 0;
	pthread_mutex_unlock(&s->cache_mutex);
}

void lade__share_end(lade_share *s)
{
	bool more;

	do {
		send_releases(s);
		pthread_mutex_unlock(&s->mutex);
		pthread_mutex_lock(&s->cache_mutex);
		more = s->release_count;
		pthread_mutex_unlock(&s->cache_mutex);
	} while (more && pthread_mutex_trylock(&s->mutex) == 0);
}

/* How far a question came when the broker ended. */
typedef enum ended { ENDED_NOT = 0, ENDED_BEFORE, ENDED_AFTER } ended;

static lade_status exchange(lade_share *s, lade__wire_kind want, ended *end, lade_error *err)
{
	int rc = lade__wire_send(s->fd, &s->out);
	lade_status status;

	*end = ENDED_NOT;
	if (rc == EAGAIN)
		goto late;
	if (rc && rc != EPIPE && rc != ECONNRESET && rc != ENOTCONN)
		return lade_fail(err, rc == EMSGSIZE ? LADE_E_LIMIT : LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: sending %zu bytes and %zu descriptors: %s", s->path,
		                 s->out.size, s->out.fd_count, strerror(rc));
	/* A broker that refuses a connection says why, and ends it. */
	status = lade__socket_await(s->fd, s->timeout_ms < UINT32_MAX - s->wait_ms
	                                           ? s->timeout_ms + s->wait_ms
	                                           : UINT32_MAX,
	                            err);
	if (status == LADE_OK)
		status = lade__wire_receive(s->fd, &s->in, err);
	if (status == LADE_E_STATE)
		goto late;
	if (status != LADE_OK) {
		/* What an answer that did not come had opened goes with the connection. */
		hang_up(s);
		return status;
	}
	if (!s->in.size) {
		*end = rc ? ENDED_BEFORE : ENDED_AFTER;
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: the broker ended before it answered", s->path);
	}
	if (lade__packet_kind(&s->in) == LADE__FAILED) {
		status = lade__read_failed(&s->in, err);
		lade__packet_close(&s->in);
		/* It refused the connection. */
		if (lade__packet_request(&s->in) != s->request)
			hang_up(s);
		return status;
	}
	if (lade__packet_kind(&s->in) == want && lade__packet_request(&s->in) == s->request)
		return LADE_OK;
	lade__packet_close(&s->in);
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
	                 "%s: the broker answers with a message of kind %d, want %d", s->path,
	                 (int)lade__packet_kind(&s->in), (int)want);
late:
	return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: no answer within %u ms", s->path,
	                 s->timeout_ms);
}

lade_status lade__share_ask(lade_share *s, lade__wire_kind want, bool again, lade_error *err)
{
	lade_error own;
	ended end;
	lade_status status = exchange(s, want, &end, &own);

	if (end == ENDED_BEFORE && s->bound) {
		hang_up(s);
		status = lade_fail(&own, LADE_E_STATE, LADE_NO_OFFSET,
		                   "%s: the broker that had what is shared has ended", s->path);
	} else if (end == ENDED_BEFORE || (end == ENDED_AFTER && again)) {
		hang_up(s);
		status = dial(s, &own);
		if (status == LADE_OK)
			status = exchange(s, want, &end, &own);
	}
	/* After any of these the next answer may be another question's. */
	if (status == LADE_E_IO || status == LADE_E_CORRUPT || status == LADE_E_VERSION)
		hang_up(s);
	if (status != LADE_OK && err)
		*err = own;
	return status;
}

void lade__share_release(lade_share *s, uint64_t version, uint64_t generation)
{
	pthread_mutex_lock(&s->cache_mutex);
	if (generation != s->generation) {
		pthread_mutex_unlock(&s->cache_mutex);
		return;
	}
	if (s->release_count == s->release_cap) {
		size_t cap = s->release_cap ? s->release_cap * 2 : 16;
		uint64_t *larger = realloc(s->releases, cap * sizeof *larger);
		if (larger) {
			s->releases = larger;
			s->release_cap = cap;
		}
	}
	/* Without memory the broker holds it until the connection ends. */
	if (s->release_count < s->release_cap)
		s->releases[s->release_count++] = version;
	pthread_mutex_unlock(&s->cache_mutex);
	if (pthread_mutex_trylock(&s->mutex) == 0)
		lade__share_end(s);
}

/* ---- connections ------------------------------------------------------------------------ */

lade_status lade_share_connect(const lade_share_options *given, lade_share **out, lade_error *err)
{
	lade_share_options o;
	lade_share *s;
	lade_status status = lade__options_read(&o, sizeof o, given, "lade_share_options", err);

	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = NULL;
	if (status != LADE_OK)
		return status;
	s = calloc(1, sizeof *s);
	if (!s)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a connection");
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_mutex_init(&s->cache_mutex, NULL);
	s->fd = -1;
	s->own = !o.path;
	s->timeout_ms = o.timeout_ms ? o.timeout_ms : TIMEOUT_DEFAULT;
	s->areas = lade__areas_new();
	if (!s->areas)
		TRY(lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a connection"));
	TRY(lade__socket_path(o.path, "", false, s->path, err));
	TRY(dial(s, err));
	*out = s;
	s = NULL;
out:
	lade__share_unref(s);
	return status;
}

void lade__share_unref(lade_share *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	hang_up(s);
	lade__areas_unref(s->areas);
	pthread_mutex_destroy(&s->mutex);
	pthread_mutex_destroy(&s->cache_mutex);
	free(s->releases);
	free(s);
}

void lade_share_close(lade_share *s)
{
	if (!s)
		return;
	/* The broker drops what the connection holds; versions keep their maps. */
	pthread_mutex_lock(&s->mutex);
	hang_up(s);
	pthread_mutex_unlock(&s->mutex);
	lade__share_unref(s);
}

/* ---- names ------------------------------------------------------------------------------ */

lade_status lade__share_name(const char *name, lade_error *err)
{
	if (!name)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "name is NULL");
	if (lade__name_valid(name, strlen(name)))
		return LADE_OK;
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
	                 "a name of %zu bytes: want 1 to %d, without '@' and control characters",
	                 strlen(name), LADE__NAME_MAX);
}

lade_status lade_share_remove(lade_share *s, const char *name, uint64_t version, lade_error *err)
{
	lade_status status = s ? lade__share_name(name, err)
	                       : lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "share is NULL");

	if (status == LADE_OK)
		status = lade__share_begin(s, LADE__REMOVE, err);
	if (status != LADE_OK)
		return status;
	lade__wire_put(&s->out, version, 8);
	lade__wire_bytes(&s->out, name, strlen(name));
	status = lade__share_ask(s, LADE__DONE, true, err);
	lade__share_end(s);
	return status;
}

/* The entries of one answer, which are given to the visitor without the mutex. */
static lade_status visit_entries(lade__cursor *c, uint64_t count, const lade_share_listing *l,
                                 char last[LADE__NAME_MAX + 1], bool *more, lade_error *err)
{
	size_t prefix = l->prefix ? strlen(l->prefix) : 0;
	lade__record r;

	for (uint64_t i = 0; i < count; i++) {
		lade__read_entry(c, &r);
		/* Names ascend, or the listing would not end. */
		if (c->bad || strcmp(r.name, last) <= 0)
			return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
			                 "entry %llu of a listing is not valid",
			                 (unsigned long long)i);
		strcpy(last, r.name);
		int order = strncmp(r.name, prefix ? l->prefix : "", prefix);
		if (order > 0)
			*more = false;
		if (order)
			continue;
		lade_share_info info = lade__share_info(&r);
		lade_status status = l->visit(l->ctx, &info);
		if (status != LADE_OK)
			return lade_fail(err, status, LADE_NO_OFFSET, "the listing was ended");
	}
	*more = *more && count;
	return LADE_OK;
}

lade_status lade_share_list(lade_share *s, const lade_share_listing *given, lade_error *err)
{
	lade_share_listing l;
	char last[LADE__NAME_MAX + 1] = "";
	uint8_t *copy = NULL;
	bool more = true;
	lade_status status = lade__options_read(&l, sizeof l, given, "lade_share_listing", err);

	if (status == LADE_OK && (!s || !l.visit))
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                   s ? "visit" : "share");
	if (status == LADE_OK && l.prefix && strlen(l.prefix) > LADE__NAME_MAX)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "a prefix of %zu bytes, at most %d", strlen(l.prefix),
		                   LADE__NAME_MAX);
	if (status != LADE_OK)
		return status;
	copy = malloc(LADE__WIRE_MAX);
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for a listing");
	while (more) {
		TRY(lade__share_begin(s, LADE__LIST, err));
		lade__wire_bytes(&s->out, last, strlen(last));
		status = lade__share_ask(s, LADE__ENTRIES, true, err);
		lade__cursor c = lade__packet_body(&s->in);
		if (status == LADE_OK) {
			memcpy(copy, c.at, c.left);
			c.at = copy;
			lade__packet_close(&s->in);
		}
		lade__share_end(s);
		TRY(status);
		more = lade__take(&c, 4) == 1;
		TRY(visit_entries(&c, lade__take(&c, 4), &l, last, &more, err));
	}
out:
	free(copy);
	return status;
}

lade_status lade_share_statistics_get(lade_share *s, lade_share_statistics *out, lade_error *err)
{
	lade_share_statistics n = {.struct_size = sizeof n};
	size_t size = out ? out->struct_size : 0;
	lade_status status;

	if (!s || size < sizeof size || size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_share_statistics: struct_size is %zu, want %zu", size,
		                 sizeof n);
	status = lade__share_begin(s, LADE__STATS, err);
	if (status != LADE_OK)
		return status;
	status = lade__share_ask(s, LADE__NUMBERS, true, err);
	if (status == LADE_OK) {
		uint64_t *to[] = {&n.names,       &n.versions,       &n.bytes,        &n.bytes_cap,
		                  &n.descriptors, &n.descriptor_cap, &n.clients,      &n.client_cap,
		                  &n.held,        &n.published,      &n.opened,       &n.removed,
		                  &n.refused,     &n.keeper_pid,     &n.keeper_starts,
		                  &n.compressed,  &n.disk,           &n.disk_cap,
		                  &n.evicted,     &n.stored,         &n.returned,
		                  &n.waiting};
		lade__cursor c = lade__packet_body(&s->in);
		lade__packet_close(&s->in);
		for (size_t i = 0; i < sizeof to / sizeof *to; i++)
			*to[i] = lade__take(&c, 8);
		lade__struct_copy(out, size, &n, sizeof n);
		out->struct_size = size;
	}
	lade__share_end(s);
	return status;
}

/* ---- waiting ---------------------------------------------------------------------------- */

/* One question over a connection of its own, and the answer.  'p' is room. */
static lade_status ask_apart(lade_share *s, lade__packet *p, uint32_t timeout_ms, int *fd,
                             lade_error *err)
{
	lade_status status;
	int rc;

	TRY(lade__socket_connect(s->path, fd, err));
	lade__socket_timeout(*fd, s->timeout_ms);
	rc = lade__wire_send(*fd, p);
	/* As in exchange(): one that refuses says why. */
	if (rc && rc != EPIPE && rc != ECONNRESET && rc != ENOTCONN)
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: sending: %s", s->path,
		              strerror(rc)));
	status = lade__socket_await(*fd, timeout_ms < ANSWER_MS ? ANSWER_MS : timeout_ms, err);
	if (status == LADE_OK)
		status = lade__wire_receive(*fd, p, err);
	if (status == LADE_OK)
		lade__packet_close(p);
	if (status == LADE_OK && !p->size)
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		              "%s: the broker ended before it answered", s->path));
	if (status == LADE_OK && lade__packet_kind(p) == LADE__FAILED)
		TRY(lade__read_failed(p, err));
	if (status == LADE_OK && lade__packet_kind(p) != LADE__DONE)
		TRY(lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		              "%s: the broker answers with a message of kind %d, want %d", s->path,
		              (int)lade__packet_kind(p), LADE__DONE));
out:
	return status;
}

lade_status lade_share_wait(lade_share *s, const char *name, uint64_t after, uint32_t timeout_ms,
                            uint64_t *version, lade_error *err)
{
	lade__packet *p = NULL;
	int fd = -1;
	lade_status status;

	if (!s || !version)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 s ? "version" : "share");
	*version = 0;
	TRY(lade__share_name(name, err));
	p = malloc(sizeof *p);
	TRY(p ? LADE_OK : lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory to wait"));
	lade__wire_begin(p, LADE__WAIT, 1);
	lade__wire_put(p, after, 8);
	lade__wire_bytes(p, name, strlen(name));
	status = ask_apart(s, p, timeout_ms, &fd, err);
	if (status == LADE_E_STATE)
		TRY(lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
		              "'%s' has no version above %llu after %u ms", name,
		              (unsigned long long)after, timeout_ms));
	TRY(status);
	lade__cursor c = lade__packet_body(p);
	*version = lade__take(&c, 8);
out:
	if (fd >= 0)
		close(fd);
	free(p);
	return status;
}

struct lade_share_events {
	int fd;
	lade__packet packet;
};

lade_status lade_share_subscribe(lade_share *s, const char *prefix, lade_share_events **out,
                                 lade_error *err)
{
	size_t size = prefix ? strlen(prefix) : 0;
	lade_share_events *e;
	lade_status status;

	if (!s || !out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s is NULL",
		                 s ? "out" : "share");
	*out = NULL;
	if (size && !lade__name_valid(prefix, size))
		return lade__share_name(prefix, err);
	e = malloc(sizeof *e);
	if (!e)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for events");
	e->fd = -1;
	lade__wire_begin(&e->packet, LADE__SUBSCRIBE, 1);
	lade__wire_bytes(&e->packet, prefix, size);
	status = ask_apart(s, &e->packet, s->timeout_ms, &e->fd, err);
	if (status == LADE_E_STATE)
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: no answer within %u ms",
		                   s->path, s->timeout_ms);
	if (status != LADE_OK) {
		lade_share_events_close(e);
		return status;
	}
	*out = e;
	return LADE_OK;
}

int lade_share_events_fd(const lade_share_events *events)
{
	return events ? events->fd : -1;
}

lade_status lade_share_events_next(lade_share_events *e, uint32_t timeout_ms, lade_share_event *out,
                                   lade_error *err)
{
	lade_share_event event = {.struct_size = sizeof event};
	size_t size = out ? out->struct_size : 0;
	lade_status status;

	if (!e || size < sizeof size || size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_share_event: struct_size is %zu, want %zu", size,
		                 sizeof event);
	status = lade__socket_await(e->fd, timeout_ms, err);
	if (status == LADE_E_STATE)
		return lade_fail(err, LADE_E_NOT_FOUND, LADE_NO_OFFSET, "no event within %u ms",
		                 timeout_ms);
	TRY(status);
	TRY(lade__wire_receive(e->fd, &e->packet, err));
	if (!e->packet.size)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "the broker has ended");
	lade__packet_close(&e->packet);
	lade__cursor c = lade__packet_body(&e->packet);
	event.what = (lade_share_what)lade__take(&c, 4);
	lade__take(&c, 4);
	event.version = lade__take(&c, 8);
	lade__take_name(&c, event.name, event.what == LADE_SHARE_LOST);
	if (c.bad || lade__packet_kind(&e->packet) != LADE__EVENT ||
	    event.what < LADE_SHARE_PUBLISHED || event.what > LADE_SHARE_LOST)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "an event of kind %d and %zu bytes is not valid",
		                 (int)lade__packet_kind(&e->packet), e->packet.size);
	lade__struct_copy(out, size, &event, sizeof event);
	out->struct_size = size;
out:
	return status;
}

void lade_share_events_close(lade_share_events *e)
{
	if (!e)
		return;
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}
