/*
 * progress.c: one line on standard error, redrawn in place.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

#define INTERVAL 0.1 /* seconds between two drawings */
#define NAME_MAX_SHOWN 30

static struct {
	pthread_mutex_t lock;
	bool on;    /* a file is under way and the line is wanted */
	bool drawn; /* there is a line on the screen */
	const char *name;
	const char *verb;
	uint64_t total, in, out;
	double start, last;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wipe(void)
{
	if (line.drawn) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
		line.drawn = false;
	}
}

/* The last NAME_MAX_SHOWN bytes of a name say most; a cut is made at a whole character. */
static const char *short_name(const char *name)
{
	size_t size = strlen(name);
	if (size <= NAME_MAX_SHOWN)
		return name;
	name += size - NAME_MAX_SHOWN;
	while (((unsigned char)*name & 0xC0) == 0x80)
		name++;
	return name;
}

static void draw(double now)
{
	char in[16], out[16], name[4 * NAME_MAX_SHOWN + 1];
	double seconds = now - line.start;
	double rate = seconds > 0 ? (double)line.in / seconds : 0;

	fprintf(stderr, "\r%s %s: %s -> %s, %.0f MB/s", line.verb,
	        cli_escape(short_name(line.name), name, sizeof name),
	        cli_format_size(line.in, in), cli_format_size(line.out, out), rate / 1e6);
	if (line.total && line.in <= line.total) {
		fprintf(stderr, ", %.0f%%", 100.0 * (double)line.in / (double)line.total);
		if (rate > 0)
			fprintf(stderr, ", %.0f s left", (double)(line.total - line.in) / rate);
	}
	fputs("\033[K", stderr);
	fflush(stderr);
	line.drawn = true;
	line.last = now;
}

void progress_start(const char *name, const char *verb, uint64_t total)
{
	pthread_mutex_lock(&line.lock);
	line.on = cli_verbosity >= 2 && isatty(STDERR_FILENO);
	line.name = name;
	line.verb = verb;
	line.total = total;
	line.in = line.out = 0;
	line.start = line.last = cli_now();
	pthread_mutex_unlock(&line.lock);
}

void progress_add(uint64_t in, uint64_t out)
{
	if (!line.on)
		return;
	pthread_mutex_lock(&line.lock);
	line.in += in;
	line.out += out;
	double now = cli_now();
	if (now - line.last >= INTERVAL)
		draw(now);
	pthread_mutex_unlock(&line.lock);
}

void progress_clear(void)
{
	pthread_mutex_lock(&line.lock);
	wipe();
	pthread_mutex_unlock(&line.lock);
}

void progress_end(void)
{
	pthread_mutex_lock(&line.lock);
	wipe();
	line.on = false;
	pthread_mutex_unlock(&line.lock);
}
