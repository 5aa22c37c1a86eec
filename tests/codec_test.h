/*
 * codec_test.h: what the tests of the codecs share: records called directly, data of several kinds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_CODEC_TEST_H
#define LADE_TESTS_CODEC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "codec/codecs.h"
#include "batch/host/item.h"
#include "guard.h"

/* One codec with its options, ready to run on one worker. */
typedef struct codec {
	lade_spec *spec;
	lade_stage stage;
	const lade_implementation *encode_record, *decode_record;
	const lade_codec_ops *encoder, *decoder;
	lade_run enc, dec;
} codec;

static lade_engine *codec_engine;
static lade_worker *codec_worker;

static inline int codec_setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	if (lade_engine_new(&options, &codec_engine, NULL) != LADE_OK)
		return -1;
	codec_worker = lade__worker_take(codec_engine);
	return codec_worker ? 0 : -1;
}

static inline int codec_teardown(void **state)
{
	(void)state;
	lade__worker_give(codec_worker);
	lade_engine_free(codec_engine);
	return 0;
}

static inline const lade_implementation *codec_record(const char *name, lade_direction direction)
{
	return lade__codec_find(name, direction);
}

static inline void *codec_state_new(const lade_implementation *record)
{
	const lade_allocator *host = lade_allocator_default(LADE_HOST);
	return record->state_new ? record->state_new(record->ctx, host) : NULL;
}

static inline codec codec_open(const char *text)
{
	codec c = {0};
	lade_error err = {0};
	if (lade_spec_parse(NULL, text, &c.spec, &err) != LADE_OK)
		fail_msg("%s: %s", text, err.message);
	c.stage = *lade_spec_stage(c.spec, 0);
	c.encode_record = codec_record(c.stage.algorithm->name, LADE_ENCODE);
	c.decode_record = codec_record(c.stage.algorithm->name, LADE_DECODE);
	c.encoder = c.encode_record->codec;
	c.decoder = c.decode_record->codec;
	c.enc = c.dec = (lade_run){.worker = codec_worker, .cpu = lade_cpu_detect()};
	c.enc.state = codec_state_new(c.encode_record);
	c.dec.state = codec_state_new(c.decode_record);
	return c;
}

static inline void codec_close(codec *c)
{
	if (c->encode_record->state_free)
		c->encode_record->state_free(c->encode_record->ctx, c->enc.state);
	if (c->decode_record->state_free)
		c->decode_record->state_free(c->decode_record->ctx, c->dec.state);
	lade_spec_unref(c->spec);
}

static inline lade_status codec_encode(codec *c, const void *src, size_t size, void *dst,
                                       size_t cap, size_t *got, lade_error *err)
{
	c->enc.stage = &c->stage;
	return c->encoder->run(&c->enc, lade_host_cspan(src, size), lade_host_span(dst, cap), got,
	                       err);
}

static inline lade_status codec_decode(codec *c, const void *src, size_t size, void *dst,
                                       size_t cap, size_t *got, lade_error *err)
{
	c->dec.stage = &c->stage;
	return c->decoder->run(&c->dec, lade_host_cspan(src, size), lade_host_span(dst, cap), got,
	                       err);
}

static inline size_t codec_bound(const codec *c, size_t size)
{
	return c->stage.algorithm->bound(&c->stage, size);
}

/* Kinds of data: smooth 4-byte numbers, noise, zeros, words. */
enum { DATA_NUMBERS, DATA_NOISE, DATA_ZEROS, DATA_WORDS, DATA_KINDS };

static inline void data_fill(uint8_t *p, size_t size, int kind, rng *r)
{
	static const char words[8][9] = {"lade ", "cargo ", "aboard ", "ship ",
	                                 "a ",    "of ",    "array ",  "chunk\n"};
	uint32_t walk = (uint32_t)rng_next(r);
	for (size_t i = 0; i < size;) {
		if (kind == DATA_NUMBERS) {
			walk += (uint32_t)rng_below(r, 100);
			for (int k = 0; k < 4 && i < size; k++)
				p[i++] = (uint8_t)(walk >> 8 * k);
		} else if (kind == DATA_WORDS) {
			for (const char *w = words[rng_below(r, 8)]; *w && i < size; w++)
				p[i++] = (uint8_t)*w;
		} else {
			p[i++] = kind == DATA_NOISE ? (uint8_t)rng_next(r) : 0;
		}
	}
}

#define assert_status(status, want, err) \
	do { \
		lade_status got_status_ = (status); \
		if (got_status_ != (want)) \
			fail_msg("%s, want %s: %s", lade_status_name(got_status_), \
			         lade_status_name(want), (err).message); \
	} while (0)

#endif
