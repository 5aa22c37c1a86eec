/*
 * spill.c: what was used least recently makes room: it goes compressed to memory, then to files,
 * and comes back when it is opened.
 *
 * The worker does one task at a time, and nobody waits for it but those who need the block:
 *
 *     PACK:   memory --> compressed --SWAP--> keeper --> the broker forgets the memory
 *     STORE:  compressed --> file ----SWAP--> keeper --> the broker forgets the compressed one
 *     UNPACK: either --> memory ------SWAP--> keeper --> the broker removes the file
 *
 * At each step broker or keeper has the block, whoever is killed.  A file whose SWAP the keeper has
 * not seen is removed by the next broker.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "share/spill.h"

#include <lade/checksum.h>

#include "base/support.h"
#include "base/try.h"
#include "share/broker.h"
#include "share/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIES 3
/* After a failure, until files, a block or the worker are tried again. */
#define AGAIN_MS 2000
/* Compressed blocks may have that part of the memory before they go to files. */
#define PACKED_PART 4
/* A block that would take more than 7/8 compressed stays as it is. */
#define WORTH(size) ((size) - (size) / 8)
#define SUM_SIZE 8

static bool has_files(const lade__spill *s)
{
	return s->path && lade__broker_now() >= s->again;
}

static bool has_room_in_files(const lade__broker *b, uint64_t size)
{
	const lade__spill *s = &b->spill;

	return has_files(s) && (!s->file_cap || (b->shelf.file_bytes <= s->file_cap &&
	                                         size <= s->file_cap - b->shelf.file_bytes));
}

/* ---- files ------------------------------------------------------------------------------ */

static void file_name(char name[LADE__FILE_NAME], uint64_t number, bool version)
{
	snprintf(name, LADE__FILE_NAME, version ? LADE__FILE_VERSION : LADE__FILE_BLOCK,
	         (unsigned long long)number);
}

static void remove_file(const lade__spill *s, uint64_t number, bool version)
{
	char name[LADE__FILE_NAME];

	file_name(name, number, version);
	if (s->path)
		unlinkat(s->folder, name, 0);
}

/* Of the shelf: a file is not needed any more.  Without memory to note that, it goes at once. */
static void gone(void *ctx, uint64_t number, bool version)
{
	lade__spill *s = &((lade__broker *)ctx)->spill;

	if (s->dropping && s->unneeded_count == s->unneeded_cap) {
		size_t cap = s->unneeded_cap ? s->unneeded_cap * 2 : 16;
		lade__unneeded *larger = realloc(s->unneeded, cap * sizeof *larger);
		if (larger) {
			s->unneeded = larger;
			s->unneeded_cap = cap;
		}
	}
	if (s->dropping && s->unneeded_count < s->unneeded_cap)
		s->unneeded[s->unneeded_count++] =
			(lade__unneeded){s->dropping, number, version};
	else
		remove_file(s, number, version);
}

void lade__spill_dropped(lade__broker *b, uint64_t version)
{
	lade__spill *s = &b->spill;

	for (size_t i = s->unneeded_count; i-- > 0;) {
		if (s->unneeded[i].dropped != version)
			continue;
		remove_file(s, s->unneeded[i].number, s->unneeded[i].version);
		s->unneeded[i] = s->unneeded[--s->unneeded_count];
	}
}

/* Bytes of a regular file; false: there is none. */
static bool file_size(const lade__spill *s, uint64_t number, uint64_t *size)
{
	char name[LADE__FILE_NAME];
	struct stat st;

	file_name(name, number, false);
	if (!s->path || fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || st.st_size < 0)
		return false;
	*size = (uint64_t)st.st_size;
	return true;
}

/* A version that was noted, with its checksum, to b->in.  All its blocks are in files. */
static lade_status read_note(lade__broker *b, uint64_t version, lade__record *r,
                             lade__block room[LADE__WIRE_FDS], lade_error *err)
{
	char name[LADE__FILE_NAME];
	uint64_t unused;
	ssize_t size = -1;

	file_name(name, version, true);
	int fd = openat(b->spill.folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		size = pread(fd, b->in.bytes, LADE__WIRE_MAX, 0);
		close(fd);
	}
	if (size < LADE__WIRE_HEAD + SUM_SIZE ||
	    lade__le64(b->in.bytes + size - SUM_SIZE) !=
	            lade_checksum_of(LADE_XXH64, b->in.bytes, (size_t)size - SUM_SIZE))
		return lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET, "%s: damaged", name);
	b->in.size = (size_t)size - SUM_SIZE;
	b->in.fd_count = 0;
	lade_status status = lade__read_record(&b->in, r, room, err);
	for (size_t i = 0; status == LADE_OK && i < r->block_count; i++)
		if (room[i].kind != LADE__BLOCK_FILE ||
		    !file_size(&b->spill, room[i].version, &unused))
			status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                   "%s: block %zu is in no file", name, i);
	if (status == LADE_OK && r->version != version)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET, "%s: of version %llu", name,
		                   (unsigned long long)r->version);
	return status;
}

static bool same_files(const lade__kept *kept, const lade__record *r)
{
	for (size_t i = 0; i < kept->record.block_count; i++)
		if (i >= r->block_count || kept->memories[i]->form != LADE__BLOCK_FILE ||
		    kept->memories[i]->ino != r->blocks[i].version)
			return false;
	return true;
}

/* A version that keeper and broker have lost, or one that the keeper has: then blocks may have left
 * their files since it was noted. */
static lade_status take_note(lade__broker *b, uint64_t version, lade_error *err)
{
	lade__block room[LADE__WIRE_FDS];
	lade__record r;
	lade__kept *kept = lade__shelf_find(&b->shelf, version);
	lade_status status;

	status = read_note(b, version, &r, room, err);
	if (kept) {
		kept->noted = status == LADE_OK && same_files(kept, &r);
		if (!kept->noted)
			remove_file(&b->spill, version, true);
		return LADE_OK;
	}
	if (status == LADE_OK)
		status = lade__shelf_add(&b->shelf, &r, 0, &kept, err);
	if (status == LADE_E_NOMEM)
		return status;
	if (status == LADE_OK) {
		kept->visible = true;
		kept->noted = 1;
		b->unsent++;
	} else {
		remove_file(&b->spill, version, true);
	}
	return LADE_OK;
}

/* One pass over the folder: versions are taken, then blocks that nobody has go; or all goes. */
typedef enum pass { TAKE_VERSIONS, DROP_BLOCKS, DROP_ALL } pass;

static lade_status scan(lade__broker *b, pass what, lade_error *err)
{
	lade__spill *s = &b->spill;
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	lade_status status = LADE_OK;
	struct dirent *e;

	if (!dir) {
		status = lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", s->path,
		                   strerror(errno));
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (status == LADE_OK && (e = readdir(dir))) {
		char *end, same[LADE__FILE_NAME];
		unsigned long long number = strtoull(e->d_name, &end, 16);
		bool version = !strcmp(end, ".version"), part = !strcmp(end, ".part");
		if (end != e->d_name + 16 || (!version && !part && strcmp(end, ".lade")))
			continue; /* not ours */
		snprintf(same, sizeof same, "%016llx%s", number, end);
		if (strcmp(same, e->d_name))
			continue;
		if (part || what == DROP_ALL) {
			unlinkat(s->folder, same, 0);
		} else if (version && what == TAKE_VERSIONS) {
			status = take_note(b, number, err);
		} else if (!version && what == DROP_BLOCKS) {
			s->last_file = s->last_file < number ? number : s->last_file;
			if (!lade__shelf_memory(&b->shelf, LADE__DEV_FILE, number))
				remove_file(s, number, false);
		}
	}
	closedir(dir);
	return status;
}

static lade_status open_folder(lade__spill *s, lade_error *err)
{
	struct stat st;

	if (mkdir(s->path, 0700) && errno != EEXIST)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", s->path,
		                 strerror(errno));
	s->folder = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->folder < 0 || fstat(s->folder, &st))
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s: %s", s->path,
		                 strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return lade_fail(err, LADE_E_IO, LADE_NO_OFFSET,
		                 "%s: others may write to it: owner %u, mode %o, want owner %u",
		                 s->path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777,
		                 (unsigned)geteuid());
	/* A worker of one that was killed may just be starting. */
	for (int i = 0; i < LADE__LOCK_TRIES; i++) {
		if (!flock(s->folder, LOCK_EX | LOCK_NB))
			return LADE_OK;
		usleep(LADE__LOCK_MS * 1000);
	}
	return lade_fail(err, LADE_E_STATE, LADE_NO_OFFSET, "%s: a broker has it", s->path);
}

lade_status lade__spill_start(lade__broker *b, const char *path, lade_error *err)
{
	lade__spill *s = &b->spill;
	lade_status status = LADE_OK;

	s->path = path;
	b->shelf.gone = gone;
	b->shelf.gone_ctx = b;
	if (!path)
		return LADE_OK;
	s->notes = true; /* of what was in files when an earlier broker was killed */
	TRY(open_folder(s, err));
	TRY(scan(b, TAKE_VERSIONS, err));
	for (size_t i = 0; i < b->shelf.memory_count; i++) {
		lade__memory *m = b->shelf.memories[i];
		if (m->form != LADE__BLOCK_FILE)
			continue;
		s->last_file = s->last_file < m->ino ? m->ino : s->last_file;
		if (file_size(s, m->ino, &m->taken))
			b->shelf.file_bytes += m->taken;
	}
	TRY(scan(b, DROP_BLOCKS, err));
out:
	/* Without the lock the files are not this broker's to remove. */
	if (status != LADE_OK)
		s->path = NULL;
	return status;
}

/* ---- the worker ------------------------------------------------------------------------- */

static void lose_worker(lade__spill *s)
{
	close(s->worker);
	s->worker = -1;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

static void close_made(lade__task *t)
{
	if (t->made.fd >= 0)
		close(t->made.fd);
	t->made.fd = -1;
}

/* The block may be gone now. */
static void end_task(lade__broker *b)
{
	lade__task *t = &b->spill.task;

	close_made(t);
	t->kind = 0;
	t->swaps = t->later = false;
	lade__shelf_unref(&b->shelf, t->memory);
	t->memory = NULL;
}

static bool uses(const lade__kept *kept, const lade__memory *m)
{
	for (size_t i = 0; i < kept->record.block_count; i++)
		if (kept->memories[i] == m)
			return true;
	return false;
}

bool lade__spill_moves(const lade__broker *b, const lade__kept *kept)
{
	return b->spill.task.swaps && uses(kept, b->spill.task.memory);
}

/* Nobody gets the block. */
static void fail_task(lade__broker *b, const lade_error *why)
{
	lade__spill *s = &b->spill;
	lade__memory *m = s->task.memory;
	lade__kept *kept;

	switch (s->task.kind) {
	case LADE__PACK:
		m->again = lade__broker_now() + AGAIN_MS;
		s->trouble = *why;
		break;
	case LADE__STORE:
		s->trouble = *why;
		s->again = lade__broker_now() + AGAIN_MS;
		break;
	case LADE__UNPACK:
		for (lade__client *c = b->clients; c; c = c->next)
			if (c->state == LADE__CLIENT_OPENS &&
			    (kept = lade__shelf_find(&b->shelf, c->after)) && uses(kept, m))
				lade__broker_open_failed(b, c, why);
		break;
	default:
		kept = lade__shelf_find(&b->shelf, s->task.version);
		if (kept)
			kept->noted = 2;
		break;
	}
	end_task(b);
}

static void put_note(lade__broker *b, lade__kept *kept)
{
	lade__packet *p = &b->spill.note;
	uint8_t sum[SUM_SIZE];

	lade__wire_begin(p, LADE__KEEP, kept->record.version);
	lade__wire_record(p, lade__kept_record(kept));
	lade__le_put(p->bytes, p->size, 4);
	lade__le_put(sum, lade_checksum_of(LADE_XXH64, p->bytes, p->size), SUM_SIZE);
	lade__wire_put(&b->packet, kept->record.version, 8);
	lade__wire_bytes(&b->packet, p->bytes, p->size);
	lade__wire_bytes(&b->packet, sum, SUM_SIZE);
}

/* The block's descriptor for the worker; a file is opened. */
static int task_source(lade__broker *b, bool *close_it, lade_error *err)
{
	const lade__task *t = &b->spill.task;
	char name[LADE__FILE_NAME];

	*close_it = false;
	if (t->kind == LADE__STORE && t->made.fd >= 0)
		return t->made.fd;
	if (t->memory->form != LADE__BLOCK_FILE)
		return t->memory->fd;
	file_name(name, t->memory->ino, false);
	int fd = b->spill.path ? openat(b->spill.folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
	                       : -1;
	if (fd < 0)
		lade_fail(err, LADE_E_IO, LADE_NO_OFFSET, "%s/%s: %s",
		          b->spill.path ? b->spill.path : "no folder was given", name,
		          strerror(b->spill.path ? errno : ENOENT));
	*close_it = true;
	return fd;
}

static void send_task(lade__broker *b)
{
	lade__spill *s = &b->spill;
	lade__task *t = &s->task;
	struct epoll_event event = {EPOLLIN, {.ptr = &s->worker}};
	lade__kept *noted = lade__shelf_find(&b->shelf, t->version);
	lade_error err;
	bool close_it = false;
	int fd = -1;

	if (t->kind == LADE__NOTE && !noted) {
		remove_file(s, t->version, true); /* a worker that ended may have written it */
		end_task(b);
		return;
	}
	if (s->worker < 0) {
		if (t->tries++ == TRIES)
			lade_fail(&err, LADE_E_IO, LADE_NO_OFFSET, "the worker ended %d times",
			          TRIES);
		else if (lade__worker_start(s->folder, &s->worker, &s->pid, &err) != LADE_OK)
			s->worker = -1;
		if (s->worker < 0) {
			s->worker_again = lade__broker_now() + AGAIN_MS;
			fail_task(b, &err);
			return;
		}
		epoll_ctl(b->epoll, EPOLL_CTL_ADD, s->worker, &event);
	}
	if (t->memory) {
		fd = task_source(b, &close_it, &err);
		if (fd < 0) {
			fail_task(b, &err);
			return;
		}
	}
	lade__wire_begin(&b->packet, t->kind, ++t->serial);
	if (t->kind == LADE__NOTE)
		put_note(b, noted);
	else
		lade__wire_put(&b->packet,
		               t->kind == LADE__STORE ? s->last_file + 1 : t->memory->size, 8);
	if (fd >= 0)
		b->packet.fds[b->packet.fd_count++] = fd;
	/* A worker that has ended shows as the end of its connection.  Else it was memory of the
	 * system, or its limit of descriptors on their way. */
	int rc = lade__wire_send(s->worker, &b->packet);
	t->later = rc && rc != EPIPE && rc != ECONNRESET;
	if (close_it)
		close(fd);
}

static void begin(lade__broker *b, lade__wire_kind kind, lade__memory *m, uint64_t version)
{
	lade__task *t = &b->spill.task;

	*t = (lade__task){.kind = kind,
	                  .memory = m,
	                  .version = version,
	                  .serial = t->serial,
	                  .made = {.fd = -1}};
	if (m)
		m->refs++;
	send_task(b);
}

/* Files do not belong to a version any more if one of its blocks leaves its file. */
static void forget_notes(lade__broker *b, const lade__memory *m)
{
	for (size_t i = 0; i < b->shelf.count; i++) {
		lade__kept *kept = b->shelf.versions[i];
		if (kept->noted && uses(kept, m)) {
			remove_file(&b->spill, kept->record.version, true);
			kept->noted = 0;
		}
	}
}

/* The worker has made it: the keeper gets it next. */
static void take_made(lade__broker *b, uint64_t size)
{
	lade__spill *s = &b->spill;
	lade__task *t = &s->task;
	lade__kept *kept;

	if (t->kind == LADE__NOTE) {
		kept = lade__shelf_find(&b->shelf, t->version);
		if (kept && lade__kept_place(kept) == LADE__RECORD_FILE)
			kept->noted = 1;
		else
			remove_file(s, t->version, true);
		end_task(b);
		return;
	}
	t->size = size;
	close_made(t);
	if (t->kind == LADE__STORE) {
		t->made = (lade__block){.kind = LADE__BLOCK_FILE,
		                        .fd = -1,
		                        .version = ++s->last_file,
		                        .size = t->memory->size};
	} else {
		t->made = (lade__block){
			.kind = t->kind == LADE__PACK ? LADE__BLOCK_PACKED : LADE__BLOCK_HOST,
			.fd = b->in.fd_count ? b->in.fds[0] : -1,
			.size = t->memory->size};
		b->in.fd_count = 0;
	}
	struct stat st = {0};
	if (t->kind == LADE__PACK && !fstat(t->made.fd, &st) &&
	    (uint64_t)st.st_size > WORTH(t->memory->size)) {
		t->memory->hard = true;
		if (has_room_in_files(b, (uint64_t)st.st_size)) {
			t->kind = LADE__STORE;
			send_task(b);
		} else {
			end_task(b);
		}
		return;
	}
	/* Those who used it have gone, or somebody has opened it meanwhile. */
	if (t->memory->refs == 1 || (t->kind != LADE__UNPACK && t->memory->held)) {
		if (t->kind == LADE__STORE)
			remove_file(s, t->made.version, false);
		end_task(b);
		return;
	}
	t->swaps = true;
	t->asked = false;
	lade__broker_pump(b);
}

void lade__spill_hear(lade__broker *b)
{
	lade__spill *s = &b->spill;
	lade_status status = lade__wire_receive(s->worker, &b->in, NULL);
	lade_error err;

	if (status == LADE_E_STATE)
		return;
	if (status != LADE_OK || !b->in.size) {
		lose_worker(s);
		if (s->task.kind && !s->task.swaps)
			send_task(b);
	} else if (!s->task.kind || s->task.swaps ||
	           lade__packet_request(&b->in) != s->task.serial) {
		lade__packet_close(&b->in);
	} else if (lade__packet_kind(&b->in) == LADE__FAILED) {
		lade__read_failed(&b->in, &err);
		lade__packet_close(&b->in);
		fail_task(b, &err);
	} else {
		lade__cursor c = lade__packet_body(&b->in);
		take_made(b, lade__take(&c, 8));
		lade__packet_close(&b->in);
	}
}

int lade__spill_ask(lade__broker *b)
{
	lade__task *t = &b->spill.task;

	if (!t->swaps || t->asked)
		return 0;
	lade__wire_begin(&b->packet, LADE__SWAP, t->serial | LADE__SWAPPING);
	lade__wire_put(&b->packet, (uint64_t)t->memory->dev, 8);
	lade__wire_put(&b->packet, (uint64_t)t->memory->ino, 8);
	lade__wire_put(&b->packet, t->made.kind, 8);
	lade__wire_put(&b->packet, t->made.version, 8);
	lade__wire_put(&b->packet, t->made.size, 8);
	if (t->made.fd >= 0)
		b->packet.fds[b->packet.fd_count++] = t->made.fd;
	int rc = lade__wire_send(b->keeper, &b->packet);
	t->asked = rc == 0;
	return rc;
}

void lade__spill_kept(lade__broker *b, const lade_error *failed)
{
	lade__spill *s = &b->spill;
	lade__task *t = &s->task;
	lade__memory *m = t->memory;
	bool was_file = m && m->form == LADE__BLOCK_FILE;
	lade_error err;

	if (!t->swaps)
		return;
	if (!failed) {
		if (was_file)
			forget_notes(b, m);
		lade_status status = lade__shelf_swap(&b->shelf, m, &t->made, &err);
		t->made.fd = -1;
		failed = status == LADE_OK ? NULL : &err;
	}
	if (failed) {
		if (t->kind == LADE__STORE)
			remove_file(s, t->made.version, false);
		fail_task(b, failed);
		return;
	}
	if (t->kind == LADE__STORE) {
		m->taken = t->size;
		b->shelf.file_bytes += t->size;
		s->notes = true;
		s->stored++;
	} else if (t->kind == LADE__PACK) {
		s->packed++;
	} else {
		s->returned++;
	}
	end_task(b);
}

/* ---- what is due ------------------------------------------------------------------------ */

/* The least recently used of a form that nobody has open. */
static lade__memory *victim(const lade__broker *b, uint8_t form, bool hard)
{
	lade__memory *least = NULL;
	int64_t now = lade__broker_now();

	for (size_t i = 0; i < b->shelf.memory_count; i++) {
		lade__memory *m = b->shelf.memories[i];
		if (m->form == form && !m->held && m->size && (hard || !m->hard) &&
		    now >= m->again && (!least || m->used < least->used))
			least = m;
	}
	return least;
}

/* Begins to make room.  False: all that is left is in use, or has nowhere to go. */
static bool evict(lade__broker *b)
{
	const lade__spill *s = &b->spill;

	if (lade__broker_now() < s->worker_again)
		return false;
	lade__memory *packed = victim(b, LADE__BLOCK_PACKED, true);
	lade__memory *raw = victim(b, LADE__BLOCK_HOST, has_files(s));

	if (packed && !has_room_in_files(b, packed->taken))
		packed = NULL;
	if (raw && raw->hard && !has_room_in_files(b, raw->taken))
		raw = victim(b, LADE__BLOCK_HOST, false);
	if (packed && (!raw || b->shelf.packed_bytes > b->bytes_cap / PACKED_PART))
		begin(b, LADE__STORE, packed, 0);
	else if (raw)
		begin(b, LADE__PACK, raw, 0);
	return packed || raw;
}

bool lade__spill_fits(const lade__broker *b, uint64_t size)
{
	uint64_t used = b->shelf.bytes - b->spill.owed;

	return !b->bytes_cap || (used <= b->bytes_cap && size <= b->bytes_cap - used);
}

static void no_room(const lade__broker *b, uint64_t size, const char *name, lade_error *err)
{
	const lade__spill *s = &b->spill;
	int64_t again = s->again > s->worker_again ? s->again : s->worker_again;
	bool trouble = s->trouble.status != LADE_OK && lade__broker_now() < again;

	lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
	          "%llu bytes for '%s', and %llu of %llu are taken%s%.100s",
	          (unsigned long long)size, name,
	          (unsigned long long)(b->shelf.bytes - s->owed),
	          (unsigned long long)b->bytes_cap, trouble ? ": " : "",
	          trouble ? s->trouble.message : "");
}

static lade__memory *absent(const lade__kept *kept)
{
	for (size_t i = 0; i < kept->record.block_count; i++) {
		lade__memory *m = kept->memories[i];
		if (m->form == LADE__BLOCK_PACKED || m->form == LADE__BLOCK_FILE)
			return m;
	}
	return NULL;
}

/* Gives a client its version, or begins what that needs.  False: nothing was to do. */
static bool open_next(lade__broker *b)
{
	lade_error err;

	for (lade__client *c = b->clients; c && b->spill.opening; c = c->next) {
		if (c->state != LADE__CLIENT_OPENS)
			continue;
		lade__kept *kept = lade__shelf_find(&b->shelf, c->after);
		lade__memory *m = kept ? absent(kept) : NULL;
		if (!kept) {
			lade_fail(&err, LADE_E_NOT_FOUND, LADE_NO_OFFSET,
			          "version %llu was removed", (unsigned long long)c->after);
			lade__broker_open_failed(b, c, &err);
		} else if (!m) {
			lade__broker_opened(b, c, kept);
		} else if (m->fd < 0 && lade__broker_descriptors(b) >= b->numbers.descriptor_cap) {
			lade_fail(&err, LADE_E_LIMIT, LADE_NO_OFFSET,
			          "'%s' is in files, and %llu of the broker's %llu descriptors are "
			          "in use or reserved",
			          kept->record.name,
			          (unsigned long long)lade__broker_descriptors(b),
			          (unsigned long long)b->numbers.descriptor_cap);
			lade__broker_open_failed(b, c, &err);
		} else if (lade__spill_fits(b, m->size)) {
			begin(b, LADE__UNPACK, m, 0);
		} else if (!evict(b)) {
			no_room(b, m->size, kept->record.name, &err);
			lade__broker_open_failed(b, c, &err);
		}
		return true;
	}
	return false;
}

/* Gives room to the oldest publication that fits, begins to make some, or refuses the oldest whose
 * time has come.  False: nothing was to do. */
static bool publish_next(lade__broker *b)
{
	lade__kept *late = NULL;
	int64_t now = lade__broker_now();
	lade_error err;

	if (!b->spill.waiting)
		return false;
	for (size_t i = 0; i < b->shelf.count; i++) {
		lade__kept *kept = b->shelf.versions[i];
		if (kept->state != LADE__KEPT_WAITS)
			continue;
		if (lade__spill_fits(b, kept->owed)) {
			lade__broker_admit(b, kept);
			return true;
		}
		if (!late && now >= kept->until)
			late = kept;
	}
	if (evict(b))
		return true;
	if (!late)
		return false;
	no_room(b, late->owed, late->record.name, &err);
	lade__broker_refuse(b, late, &err);
	return true;
}

/* A version whose blocks are all in files gets one of its own. */
static bool note_next(lade__broker *b)
{
	for (size_t i = 0; i < b->shelf.count && b->spill.notes; i++) {
		lade__kept *kept = b->shelf.versions[i];
		if (kept->noted || !kept->visible || !kept->record.block_count)
			continue;
		size_t in_files = 0;
		for (size_t j = 0; j < kept->record.block_count; j++)
			in_files += kept->memories[j]->form == LADE__BLOCK_FILE;
		if (in_files < kept->record.block_count)
			continue;
		begin(b, LADE__NOTE, NULL, kept->record.version);
		return true;
	}
	b->spill.notes = false;
	return false;
}

void lade__spill_work(lade__broker *b)
{
	if (b->spill.task.later)
		send_task(b);
	while (!b->spill.task.kind && (open_next(b) || publish_next(b) || note_next(b)))
		;
}

void lade__spill_end(lade__broker *b, bool all)
{
	lade__spill *s = &b->spill;

	if (s->worker >= 0)
		lose_worker(s);
	if (s->task.kind)
		end_task(b);
	/* Also what the worker was just writing. */
	if (s->path && all)
		scan(b, DROP_ALL, NULL);
	if (s->folder >= 0)
		close(s->folder);
	s->path = NULL;
	s->folder = -1;
	free(s->unneeded);
	s->unneeded = NULL;
	s->unneeded_count = s->unneeded_cap = 0;
}

/* ---- numbers ---------------------------------------------------------------------------- */

void lade__broker_put_numbers(const lade__broker *b, lade__packet *p)
{
	lade_share_statistics n = b->numbers;
	lade__kept *const *v = b->shelf.versions;

	n.names = b->shelf.name_count;
	n.versions = b->shelf.count;
	n.bytes = b->shelf.bytes;
	n.bytes_cap = b->bytes_cap;
	n.descriptors = lade__broker_descriptors(b);
	n.clients = b->client_count;
	n.client_cap = b->client_cap;
	n.compressed = b->shelf.packed_bytes;
	n.disk = b->shelf.file_bytes;
	n.disk_cap = b->spill.path ? b->spill.file_cap : 0;
	n.evicted = b->spill.packed;
	n.stored = b->spill.stored;
	n.returned = b->spill.returned;
	n.waiting = b->spill.waiting + b->spill.opening;
	for (size_t i = 0; i < b->shelf.count; i++)
		n.held += v[i]->held > 0;
	const uint64_t all[] = {n.names,       n.versions,       n.bytes,        n.bytes_cap,
	                        n.descriptors, n.descriptor_cap, n.clients,      n.client_cap,
	                        n.held,        n.published,      n.opened,       n.removed,
	                        n.refused,     n.keeper_pid,     n.keeper_starts,
	                        n.compressed,  n.disk,           n.disk_cap,     n.evicted,
	                        n.stored,      n.returned,       n.waiting};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		lade__wire_put(p, all[i], 8);
}
