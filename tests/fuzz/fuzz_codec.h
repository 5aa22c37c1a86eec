/*
 * fuzz_codec.h: what the fuzz targets of the codecs share.  The including file names its specs.
 *
 *     | mode 1 | which 1 | room 2 | bytes |
 *
 * mode bit 0: the bytes are decoded, or (1) encoded and decoded again; bit 1: with a
 * dictionary; bits 2 and 3: so many CPU levels below the machine's.  'which' picks the spec.
 * 'room' is the destination's size: in steps of 16 bytes when decoding, the bytes that are missing
 * to the bound when encoding.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_FUZZ_CODEC_H
#define LADE_TESTS_FUZZ_CODEC_H

#include "codec/codecs.h"
#include "batch/host/item.h"

#include <stdlib.h>
#include <string.h>

typedef struct fuzz_codec {
	lade_spec *spec;
	const lade_stage *stage;
	const lade_codec_ops *encoder, *decoder;
} fuzz_codec;

/* What lives from input to input: one context for all specs, as a worker has it. */
static lade_engine *fuzz_engine;
static lade_worker *fuzz_worker;
static lade_dict *fuzz_dict;
static lade_run fuzz_enc, fuzz_dec;

static inline void expect(bool ok)
{
	if (!ok)
		abort();
}

static inline fuzz_codec fuzz_open(const char *text)
{
	fuzz_codec c = {0};
	expect(lade_spec_parse(NULL, text, &c.spec, NULL) == LADE_OK);
	c.stage = lade_spec_stage(c.spec, 0);
	const lade_implementation *enc = lade__codec_find(c.stage->algorithm->name, LADE_ENCODE);
	const lade_implementation *dec = lade__codec_find(c.stage->algorithm->name, LADE_DECODE);
	c.encoder = enc->codec;
	c.decoder = dec->codec;
	if (!fuzz_engine) {
		lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
		const lade_allocator *host = lade_allocator_default(LADE_HOST);
		static const char dict[] = "a dictionary for lade: cargo aboard, arrays of chunks";
		expect(lade_engine_new(&options, &fuzz_engine, NULL) == LADE_OK);
		expect(lade_dict_new(dict, sizeof dict, &fuzz_dict, NULL) == LADE_OK);
		fuzz_worker = lade__worker_take(fuzz_engine);
		fuzz_enc = (lade_run){.worker = fuzz_worker};
		fuzz_dec = fuzz_enc;
		if (enc->state_new)
			fuzz_enc.state = enc->state_new(NULL, host);
		if (dec->state_new)
			fuzz_dec.state = dec->state_new(NULL, host);
	}
	fuzz_enc.stage = fuzz_dec.stage = c.stage;
	return c;
}

/* A failure says so, with a place in the source. */
static inline void fuzz_failed(lade_status status, const lade_error *err, size_t size, size_t got)
{
	expect(got == 0 && err->status == status && err->message[0]);
	expect(err->offset == LADE_NO_OFFSET || err->offset <= size);
	expect(status != LADE_E_INTERNAL && status != LADE_E_ARG && status != LADE_E_STATE);
}

static inline void fuzz_decode(const fuzz_codec *c, const uint8_t *data, size_t size, size_t room)
{
	uint8_t *dst = malloc(room + 1);
	lade_error err = {0};
	size_t got = 1;
	uint64_t told = 0;
	expect(dst != NULL);
	memset(dst, 0, room);
	dst[room] = 0x5A;
	lade_status status = c->decoder->run(&fuzz_dec, lade_host_cspan(data, size),
	                                     lade_host_span(dst, room), &got, &err);
	expect(dst[room] == 0x5A);
	lade_status sized = c->stage->algorithm->decoded_size(c->stage, data, size, &told, NULL);
	if (status != LADE_OK) {
		fuzz_failed(status, &err, size, got);
		free(dst);
		return;
	}
	expect(got <= room);
	expect(sized == LADE_E_UNKNOWN_SIZE || (sized == LADE_OK && told == got));
	/* Exact room is enough; the middle alone is the same (what a decoder has no range for, the
	 * engine cuts out itself). */
	uint8_t *exact = malloc(got ? got : 1);
	size_t again = 0, off = got / 3, part = got / 2;
	expect(exact != NULL);
	memset(exact, 0, got);
	status = c->decoder->run(&fuzz_dec, lade_host_cspan(data, size), lade_host_span(exact, got),
	                         &again, &err);
	/* liblz4 judges the rules for a block's end by the room, and takes matches of offset 0,
	 * which copy what the destination had. */
	bool loose = strncmp(c->stage->algorithm->name, "lz4", 3) == 0;
	expect(loose || (status == LADE_OK && again == got && memcmp(dst, exact, got) == 0));
	if (c->decoder->run_range && part > 0 && off + part <= got) {
		status = c->decoder->run_range(&fuzz_dec, lade_host_cspan(data, size), off,
		                               lade_host_span(exact, part), &err);
		expect(loose || status == LADE_OK);
	}
	free(exact);
	free(dst);
}

static inline void fuzz_encode(const fuzz_codec *c, const uint8_t *data, size_t size,
                               size_t missing)
{
	size_t bound = c->stage->algorithm->bound(c->stage, size), got = 1, back = 0;
	size_t room = bound > missing ? bound - missing : 0;
	uint8_t *packed = malloc(room + 1), *dst = malloc(size + 1);
	lade_error err = {0};
	expect(packed && dst);
	lade_status status = c->encoder->run(&fuzz_enc, lade_host_cspan(data, size),
	                                     lade_host_span(packed, room), &got, &err);
	if (status != LADE_OK) {
		fuzz_failed(status, &err, size, got);
		expect(status == LADE_E_NOSPACE && room < bound);
	} else {
		expect(got <= room);
		status = c->decoder->run(&fuzz_dec, lade_host_cspan(packed, got),
		                         lade_host_span(dst, size), &back, &err);
		expect(status == LADE_OK && back == size);
		const lade_algorithm *a = c->stage->algorithm;
		bool lossy = a->is_lossy && a->is_lossy(c->stage);
		expect(size == 0 || lossy || memcmp(dst, data, size) == 0);
	}
	free(packed);
	free(dst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CODEC(specs) \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) \
	{ \
		static fuzz_codec codecs[sizeof specs / sizeof specs[0]]; \
		if (size < 4) \
			return 0; \
		size_t which = data[1] % (sizeof specs / sizeof specs[0]); \
		if (!codecs[which].spec) \
			codecs[which] = fuzz_open(specs[which]); \
		const fuzz_codec *c = &codecs[which]; \
		size_t room = (size_t)data[2] | (size_t)data[3] << 8; \
		int level = (int)lade_cpu_detect() - (data[0] >> 2 & 3); \
		fuzz_enc.cpu = level < LADE_CPU_PLAIN ? LADE_CPU_PLAIN : (lade_cpu)level; \
		fuzz_dec.cpu = fuzz_enc.cpu; \
		fuzz_enc.stage = fuzz_dec.stage = c->stage; \
		fuzz_enc.dict = fuzz_dec.dict = data[0] & 2 ? fuzz_dict : NULL; \
		if (data[0] & 1) \
			fuzz_encode(c, data + 4, size - 4, room); \
		else \
			fuzz_decode(c, data + 4, size - 4, room * 16); \
		return 0; \
	}

#endif
