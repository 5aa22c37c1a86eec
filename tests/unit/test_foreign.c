/*
 * test_foreign.c: other tools' formats: whole files, cut files, spoiled files, files in a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "guard.h"

#include <lade/lade.h>
#include <libdeflate.h>
#include <lz4.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#define SEED 0x1F2E3D4C5B6A7988ull

static lade_engine *engine;

/* ---- bytes -------------------------------------------------------------------------------- */

typedef struct bytes {
	uint8_t *data;
	size_t size, cap;
} bytes;

static void put(bytes *b, const void *data, size_t size)
{
	if (b->size + size > b->cap) {
		b->cap = (b->size + size) * 2;
		b->data = realloc(b->data, b->cap);
		assert_non_null(b->data);
	}
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

static void drop(bytes *b)
{
	free(b->data);
	*b = (bytes){0};
}

/* Text-like: some structure, some noise. */
static bytes sample(size_t size, uint64_t seed)
{
	bytes b = {malloc(size + 1), size, size + 1};
	rng r = {SEED ^ seed};
	for (size_t i = 0; i < size; i++) {
		uint64_t v = rng_next(&r);
		b.data[i] =
			(v & 7) == 0 || i < 64 ? (uint8_t)(v >> 8) : b.data[i - 1 - (v >> 8) % 64];
	}
	return b;
}

/* ---- inputs and outputs -------------------------------------------------------------------- */

typedef struct feed {
	const uint8_t *data;
	size_t size, pos;
	size_t step;    /* at most so many bytes at a time; 0: any */
	size_t fail_at; /* reading at or behind it fails; SIZE_MAX: never */
} feed;

static lade_status feed_read(void *ctx, void *dst, size_t cap, size_t *got, lade_error *err)
{
	feed *f = ctx;
	size_t n = f->size - f->pos;
	if (f->pos >= f->fail_at)
		return lade_fail(err, LADE_E_IO, f->pos, "the test's input fails at %zu", f->pos);
	if (f->step && n > f->step)
		n = f->step;
	if (n > cap)
		n = cap;
	if (n)
		memcpy(dst, f->data + f->pos, n);
	f->pos += n;
	*got = n;
	return LADE_OK;
}

typedef struct sink {
	bytes out;
	size_t room; /* writing more than this fails */
} sink;

static lade_status sink_write(void *ctx, const void *src, size_t size, lade_error *err)
{
	sink *s = ctx;
	if (s->out.size + size > s->room)
		return lade_fail(err, LADE_E_IO, s->room, "the test's output is full");
	put(&s->out, src, size);
	return LADE_OK;
}

/* Decodes all of a file; the decoded bytes so far in '*out'. */
static lade_status decode(lade_format format, const void *data, size_t size, size_t step,
                          size_t cap, const lade_foreign_options *options, bytes *out,
                          lade_error *err)
{
	guard src = guard_copy(data, size, 1);
	feed f = {src.data, size, 0, step, SIZE_MAX};
	lade_foreign_reader *r = NULL;
	guard dst = guard_new(cap, 1);
	lade_status status = lade_foreign_reader_new(engine, format, (lade_input){&f, feed_read},
	                                             options, &r, err);
	while (status == LADE_OK) {
		size_t got = 77;
		status = lade_foreign_reader_read(r, dst.data, cap, &got, err);
		if (status != LADE_OK) {
			assert_int_equal(got, 0);
			/* A failure stays. */
			assert_int_equal(lade_foreign_reader_read(r, dst.data, cap, &got, NULL),
			                 status);
			break;
		}
		if (got == 0) {
			assert_int_equal(lade_foreign_reader_read(r, dst.data, cap, &got, err),
			                 LADE_OK);
			assert_int_equal(got, 0);
			break;
		}
		assert_true(got <= cap);
		put(out, dst.data, got);
	}
	lade_foreign_reader_free(r);
	guard_free(&src);
	guard_free(&dst);
	return status;
}

static bytes encode(lade_format format, const bytes *data, lade_foreign_options options,
                    size_t step)
{
	sink s = {{0}, SIZE_MAX};
	lade_foreign_writer *w;
	lade_error err;
	options.struct_size = sizeof options;
	assert_int_equal(lade_foreign_writer_new(engine, format, (lade_output){&s, sink_write},
	                                         &options, &w, &err),
	                 LADE_OK);
	for (size_t i = 0; i < data->size; i += step) {
		size_t n = data->size - i < step ? data->size - i : step;
		assert_int_equal(lade_foreign_writer_write(w, data->data + i, n, &err), LADE_OK);
	}
	assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_OK);
	lade_foreign_writer_free(w);
	return s.out;
}

/* ---- files made by the formats' own libraries ------------------------------------------------ */

static void add_zst(bytes *b, const bytes *data)
{
	size_t cap = ZSTD_compressBound(data->size);
	void *p = malloc(cap);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	put(b, p, ZSTD_compress2(c, p, cap, data->data, data->size));
	ZSTD_freeCCtx(c);
	free(p);
}

static void add_lz4(bytes *b, const bytes *data)
{
	LZ4F_preferences_t pref = {.frameInfo = {.contentChecksumFlag = LZ4F_contentChecksumEnabled,
	                                         .blockChecksumFlag = LZ4F_blockChecksumEnabled}};
	size_t cap = LZ4F_compressFrameBound(data->size, &pref);
	void *p = malloc(cap);
	put(b, p, LZ4F_compressFrame(p, cap, data->data, data->size, &pref));
	free(p);
}

static void add_legacy(bytes *b, const bytes *data)
{
	put(b, "\x02\x21\x4C\x18", 4);
	for (size_t i = 0; i < data->size; i += 8 << 20) {
		int n = (int)(data->size - i < 8 << 20 ? data->size - i : 8 << 20);
		int cap = LZ4_compressBound(n);
		char *p = malloc((size_t)cap);
		uint32_t size = (uint32_t)LZ4_compress_default((char *)data->data + i, p, n, cap);
		put(b, &size, 4);
		put(b, p, size);
		free(p);
	}
}

static void add_gz(bytes *b, const bytes *data)
{
	z_stream z = {0};
	uint8_t out[4096];
	gz_header head = {.name = (Bytef *)"a name", .hcrc = 1};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
	deflateSetHeader(&z, &head);
	z.next_in = data->data;
	z.avail_in = (uInt)data->size;
	int rc;
	do {
		z.next_out = out;
		z.avail_out = sizeof out;
		rc = deflate(&z, Z_FINISH);
		put(b, out, sizeof out - z.avail_out);
	} while (rc == Z_OK);
	assert_int_equal(rc, Z_STREAM_END);
	deflateEnd(&z);
}

static void add_zz(bytes *b, const bytes *data)
{
	uLongf cap = compressBound(data->size);
	void *p = malloc(cap);
	assert_int_equal(compress(p, &cap, data->data, data->size), Z_OK);
	put(b, p, cap);
	free(p);
}

static void add_sz_chunk(bytes *b, unsigned type, const void *data, size_t size)
{
	uint32_t head = type | (uint32_t)size << 8;
	put(b, &head, 4);
	put(b, data, size);
}

static void add_sz(bytes *b, const bytes *data)
{
	add_sz_chunk(b, 0xFF, "sNaPpY", 6);
	for (size_t i = 0; i < data->size; i += 65536) {
		size_t n = data->size - i < 65536 ? data->size - i : 65536;
		char buf[4 + 80000];
		size_t size = 80000;
		uint32_t crc = (uint32_t)lade_checksum_of(LADE_CRC32C, data->data + i, n);
		crc = (crc >> 15 | crc << 17) + 0xA282EAD8u;
		memcpy(buf, &crc, 4);
		bool stored = i / 65536 % 3 == 2;
		if (stored)
			memcpy(buf + 4, data->data + i, size = n);
		else
			snappy_compress((char *)data->data + i, n, buf + 4, &size);
		add_sz_chunk(b, stored, buf, 4 + size);
		add_sz_chunk(b, 0xFE, "\0\0\0", 3);
		add_sz_chunk(b, 0x80, "skip me", 7);
	}
}

typedef struct kind {
	lade_format format;
	const char *name;
	void (*add)(bytes *b, const bytes *data);
	bool checked; /* all decoded bytes are under a checksum */
	bool ends;    /* the format has an end of its own, so that a cut file is known to be cut */
} kind;

static const kind kinds[] = {
	{LADE_FORMAT_ZST, "zst", add_zst, true, true},
	{LADE_FORMAT_LZ4, "lz4", add_lz4, true, true},
	{LADE_FORMAT_LZ4, "legacy lz4", add_legacy, false, false},
	{LADE_FORMAT_GZ, "gz", add_gz, true, true},
	{LADE_FORMAT_ZZ, "zz", add_zz, true, true},
	{LADE_FORMAT_SZ, "sz", add_sz, true, false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* ---- tests -------------------------------------------------------------------------- */

static void decodes_in_any_steps(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 100, 65535, 65536, 65537, 300000};
	static const size_t steps[] = {1, 7, 4096, 0};
	static const size_t caps[] = {1, 13, 65536, 1 << 20, 3 << 20};

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			bytes data = sample(sizes[i], i), file = {0};
			kinds[k].add(&file, &data);
			assert_int_equal(lade_format_detect(file.data, file.size), kinds[k].format);
			for (size_t s = 0; s < 4; s++) {
				for (size_t c = 0; c < 5; c++) {
					if (sizes[i] > 70000 && (steps[s] == 1 || caps[c] < 100) &&
					    s != c)
						continue;
					bytes out = {0};
					lade_error err;
					assert_int_equal(decode(kinds[k].format, file.data,
					                        file.size, steps[s], caps[c], NULL,
					                        &out, &err),
					                 LADE_OK);
					assert_int_equal(out.size, data.size);
					if (data.size)
						assert_memory_equal(out.data, data.data, data.size);
					drop(&out);
				}
			}
			drop(&file);
			drop(&data);
		}
	}
}

static void decodes_files_in_a_row(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		bytes file = {0}, want = {0}, out = {0};
		lade_error err;
		for (size_t i = 0; i < 5; i++) {
			bytes data = sample(i * i * 1000, i);
			if (kinds[k].format == LADE_FORMAT_ZST ||
			    kinds[k].format == LADE_FORMAT_LZ4)
				put(&file, "\x53\x2A\x4D\x18\x05\0\0\0hello", 13);
			kinds[k].add(&file, &data);
			put(&want, data.data, data.size);
			drop(&data);
		}
		assert_int_equal(
			decode(kinds[k].format, file.data, file.size, 1000, 777, NULL, &out, &err),
			LADE_OK);
		assert_int_equal(out.size, want.size);
		assert_memory_equal(out.data, want.data, want.size);
		drop(&out);
		/* Zero bytes may follow a gzip file, nothing else may. */
		if (kinds[k].format == LADE_FORMAT_GZ) {
			put(&file, "\0\0\0\0\0", 5);
			assert_int_equal(decode(kinds[k].format, file.data, file.size, 1000, 777,
			                        NULL, &out, &err),
			                 LADE_OK);
			drop(&out);
		}
		size_t at = file.size;
		put(&file, "\x10garbage", 8);
		assert_int_equal(
			decode(kinds[k].format, file.data, file.size, 1000, 777, NULL, &out, &err),
			kinds[k].format == LADE_FORMAT_SZ ? LADE_E_UNSUPPORTED : LADE_E_CORRUPT);
		assert_int_equal(err.offset, at);
		drop(&out);
		drop(&file);
		drop(&want);
	}
}

static void mixes_frames(void **state)
{
	bytes a = sample(5000, 1), file = {0}, want = {0}, out = {0};
	lade_error err;

	(void)state;
	put(&file, "\x5F\x2A\x4D\x18\0\0\0\0", 8);
	assert_int_equal(lade_format_detect(file.data, file.size), LADE_FORMAT_ZST);
	add_lz4(&file, &a);
	add_zst(&file, &a);
	add_legacy(&file, &a);
	add_lz4(&file, &a);
	for (int i = 0; i < 4; i++)
		put(&want, a.data, a.size);
	assert_int_equal(decode(LADE_FORMAT_ZST, file.data, file.size, 3, 999, NULL, &out, &err),
	                 LADE_OK);
	assert_int_equal(out.size, want.size);
	assert_memory_equal(out.data, want.data, want.size);
	drop(&a);
	drop(&file);
	drop(&want);
	drop(&out);
}

static void refuses_cut_files(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		bytes data = sample(700, 9), file = {0};
		kinds[k].add(&file, &data);
		size_t accepted = 0;
		for (size_t cut = 0; cut < file.size; cut++) {
			bytes out = {0};
			lade_error err;
			lade_status status = decode(kinds[k].format, file.data, cut,
			                            cut & 1 ? 1 : 0, 500, NULL, &out, &err);
			if (status == LADE_OK) {
				accepted++;
			} else {
				assert_int_equal(status, LADE_E_TRUNCATED);
				assert_true(err.offset == cut);
			}
			assert_true(out.size <= data.size);
			if (out.size)
				assert_memory_equal(out.data, data.data, out.size);
			drop(&out);
		}
		/* Where a format has no end, the cuts between its chunks make whole files. */
		if (kinds[k].ends)
			assert_int_equal(accepted, 0);
		else
			assert_true(accepted <= 3);
		drop(&file);
		drop(&data);
	}
}

static void survives_flipped_bits(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		bytes data = sample(600, 10), file = {0};
		kinds[k].add(&file, &data);
		size_t refused = 0;
		for (size_t bit = 0; bit < file.size * 8; bit++) {
			bytes out = {0};
			lade_error err;
			file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			lade_status status = decode(kinds[k].format, file.data, file.size, 0, 4096,
			                            NULL, &out, &err);
			refused += status != LADE_OK;
			/* Where the checksum covers everything, what is accepted is right (a
			 * flag, a name or a skipped chunk may have changed). */
			if (status == LADE_OK && kinds[k].checked && kinds[k].ends) {
				if (out.size)
					assert_memory_equal(out.data, data.data, data.size);
			}
			if (status == LADE_OK && kinds[k].format == LADE_FORMAT_SZ)
				assert_true(out.size == data.size || out.size == 0);
			if (status != LADE_OK)
				assert_true(err.message[0]);
			file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			drop(&out);
		}
		/* Legacy blocks are under no checksum: only their sizes are noticed. */
		assert_true(refused > (kinds[k].checked ? file.size * 6 : 32));
		drop(&file);
		drop(&data);
	}
}

/* A spoiled checksum is LADE_E_CHECKSUM, and nothing when checksums are ignored. */
static void ignores_checksums_when_told(void **state)
{
	lade_foreign_options ignore = {.struct_size = sizeof ignore, .ignore_checksum = true};

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		if (!kinds[k].checked)
			continue;
		bytes data = sample(5000, 11), file = {0};
		kinds[k].add(&file, &data);
		/* The checksum stands at the end; before the length in .gz; at byte 14 in .sz. */
		size_t at = kinds[k].format == LADE_FORMAT_GZ   ? file.size - 8
		            : kinds[k].format == LADE_FORMAT_SZ ? 14
		                                                : file.size - 1;
		file.data[at] ^= 0x40;
		bytes out = {0};
		lade_error err;
		assert_int_equal(
			decode(kinds[k].format, file.data, file.size, 0, 9999, NULL, &out, &err),
			LADE_E_CHECKSUM);
		drop(&out);
		assert_int_equal(
			decode(kinds[k].format, file.data, file.size, 0, 9999, &ignore, &out, &err),
			LADE_OK);
		assert_int_equal(out.size, data.size);
		assert_memory_equal(out.data, data.data, data.size);
		drop(&out);
		drop(&file);
		drop(&data);
	}
}

static void passes_on_input_failures(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		bytes data = sample(200000, 12), file = {0};
		kinds[k].add(&file, &data);
		feed f = {file.data, file.size, 0, 1000, file.size / 2};
		lade_foreign_reader *r;
		lade_error err;
		uint8_t buf[3000];
		size_t got = 0;
		lade_status status;
		assert_int_equal(lade_foreign_reader_new(engine, kinds[k].format,
		                                         (lade_input){&f, feed_read}, NULL, &r,
		                                         &err),
		                 LADE_OK);
		do
			status = lade_foreign_reader_read(r, buf, sizeof buf, &got, &err);
		while (status == LADE_OK && got);
		assert_int_equal(status, LADE_E_IO);
		assert_non_null(strstr(err.message, "the test's input fails"));
		lade_foreign_reader_free(r);
		drop(&file);
		drop(&data);
	}
}

static void limits_windows(void **state)
{
	bytes data = sample(3 << 20, 13), file = {0}, out = {0};
	lade_foreign_options options = {.struct_size = sizeof options};
	lade_error err;

	(void)state;
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 21);
	size_t cap = ZSTD_compressBound(data.size);
	void *p = malloc(cap);
	put(&file, p, ZSTD_compress2(c, p, cap, data.data, data.size));
	ZSTD_freeCCtx(c);
	free(p);
	options.max_window = (2 << 20) - 1;
	assert_int_equal(
		decode(LADE_FORMAT_ZST, file.data, file.size, 0, 65536, &options, &out, &err),
		LADE_E_LIMIT);
	assert_non_null(strstr(err.message, "2097152"));
	options.max_window = 2 << 20;
	drop(&out);
	assert_int_equal(
		decode(LADE_FORMAT_ZST, file.data, file.size, 0, 65536, &options, &out, &err),
		LADE_OK);
	assert_int_equal(out.size, data.size);
	drop(&out);
	/* The default is 128 MiB: a header that asks for 128 MiB passes (and the block is
	 * missing), one for the next size is refused. */
	assert_int_equal(
		decode(LADE_FORMAT_ZST, "\x28\xB5\x2F\xFD\x00\x88", 6, 0, 10, NULL, &out, &err),
		LADE_E_TRUNCATED);
	assert_int_equal(
		decode(LADE_FORMAT_ZST, "\x28\xB5\x2F\xFD\x00\x89", 6, 0, 10, NULL, &out, &err),
		LADE_E_LIMIT);
	drop(&file);
	drop(&data);
	drop(&out);
}

static void wants_the_dictionary(void **state)
{
	bytes data = sample(4000, 14), words = sample(3000, 14), out = {0};
	lade_dict *dict;
	lade_error err;

	(void)state;
	assert_int_equal(lade_dict_new(words.data, words.size, &dict, &err), LADE_OK);
	lade_foreign_options with = {.struct_size = sizeof with, .dict = dict, .checksum = true};

	bytes file = encode(LADE_FORMAT_ZST, &data, with, 999);
	assert_int_equal(decode(LADE_FORMAT_ZST, file.data, file.size, 0, 100, &with, &out, &err),
	                 LADE_OK);
	assert_int_equal(out.size, data.size);
	assert_memory_equal(out.data, data.data, data.size);
	drop(&out);
	assert_int_not_equal(
		decode(LADE_FORMAT_ZST, file.data, file.size, 0, 100, NULL, &out, &err), LADE_OK);
	drop(&out);
	drop(&file);

	/* A zstd header with dictionary number 7. */
	assert_int_equal(decode(LADE_FORMAT_ZST, "\x28\xB5\x2F\xFD\x01\x58\x07\x01\0\0", 10, 0, 100,
	                        NULL, &out, &err),
	                 LADE_E_DICT);

	z_stream z = {0};
	uint8_t buf[8000];
	assert_int_equal(deflateInit(&z, 6), Z_OK);
	deflateSetDictionary(&z, words.data, (uInt)words.size);
	z.next_in = data.data;
	z.avail_in = (uInt)data.size;
	z.next_out = buf;
	z.avail_out = sizeof buf;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	size_t size = sizeof buf - z.avail_out;
	deflateEnd(&z);
	assert_int_equal(decode(LADE_FORMAT_ZZ, buf, size, 5, 100, NULL, &out, &err), LADE_E_DICT);
	assert_int_equal(decode(LADE_FORMAT_ZZ, buf, size, 5, 100, &with, &out, &err), LADE_OK);
	assert_int_equal(out.size, data.size);
	assert_memory_equal(out.data, data.data, data.size);
	drop(&out);
	lade_dict_free(dict);
	drop(&words);
	drop(&data);
}

/*
 * A zstd frame that says how much it holds must hold it, also where it ends in an empty block and
 * comes in small pieces: libzstd 1.5.4 itself looks only when it gets the frame whole.
 */
static void zst_content_size_is_checked(void **state)
{
	/* Magic, descriptor (one segment, a size of one byte), 5 bytes said; then empty blocks of
	 * three zero bytes each, more than are read ahead; the last one's first byte is 1. */
	uint8_t file[6 + 3 * 26] = {0x28, 0xB5, 0x2F, 0xFD, 0x20, 5};

	(void)state;
	file[sizeof file - 3] = 1;
	for (size_t step = 1; step <= sizeof file; step++) {
		bytes out = {0};
		lade_error err = {0};
		assert_int_equal(decode(LADE_FORMAT_ZST, file, sizeof file, step, 100, NULL, &out,
		                        &err),
		                 LADE_E_CORRUPT);
		assert_int_equal(out.size, 0);
		drop(&out);
	}
}

/* What is written is read by the formats' own libraries, whatever the pieces and threads. */
static void check_written(lade_format format, const bytes *file, const bytes *data)
{
	uint8_t *p = malloc(data->size + 1);

	if (format == LADE_FORMAT_ZST) {
		assert_int_equal(ZSTD_decompress(p, data->size, file->data, file->size),
		                 data->size);
	} else if (format == LADE_FORMAT_LZ4) {
		LZ4F_dctx *d;
		size_t to = data->size + 1, from = file->size;
		LZ4F_createDecompressionContext(&d, LZ4F_VERSION);
		assert_int_equal(LZ4F_decompress(d, p, &to, file->data, &from, NULL), 0);
		assert_int_equal(to, data->size);
		assert_int_equal(from, file->size);
		LZ4F_freeDecompressionContext(d);
	} else {
		z_stream z = {.next_in = file->data, .avail_in = (uInt)file->size};
		z.next_out = p;
		z.avail_out = (uInt)data->size + 1;
		assert_int_equal(inflateInit2(&z, 31), Z_OK);
		assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
		assert_int_equal(z.avail_in, 0); /* one member: some readers stop there */
		assert_int_equal(z.total_out, data->size);
		inflateEnd(&z);
	}
	if (data->size)
		assert_memory_equal(p, data->data, data->size);
	free(p);
}

static void writes_what_others_read(void **state)
{
	static const size_t sizes[] = {0,           1,           1000,           (1 << 20) - 1,
	                               1 << 20,     (1 << 20) + 1, 2 << 20, (9 << 19) + 5};
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	static const int levels[] = {0, 1, 9};

	(void)state;
	for (size_t f = 0; f < 3; f++) {
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			bytes data = sample(sizes[i], i);
			for (size_t l = 0; l < 3; l++) {
				if (l == 2 && i > 4)
					continue;
				lade_foreign_options options = {.level = levels[l],
				                                .threads = (unsigned)(1 + l),
				                                .checksum = l != 1,
				                                .size = l ? data.size : 0};
				bytes file =
					encode(formats[f], &data, options, l ? 300007 : 5 << 20);
				bytes out = {0};
				lade_error err;
				assert_int_equal(lade_format_detect(file.data, file.size),
				                 formats[f]);
				check_written(formats[f], &file, &data);
				assert_int_equal(decode(formats[f], file.data, file.size, 0,
				                        1 << 20, NULL, &out, &err),
				                 LADE_OK);
				assert_int_equal(out.size, data.size);
				if (data.size)
					assert_memory_equal(out.data, data.data, data.size);
				drop(&out);
				drop(&file);
			}
			drop(&data);
		}
	}
}

/* Incompressible blocks fit their places too. */
static void writes_noise(void **state)
{
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	rng r = {SEED};
	bytes data = {malloc(3 << 20), 3 << 20, 3 << 20};

	(void)state;
	for (size_t i = 0; i < data.size; i++)
		data.data[i] = (uint8_t)(rng_next(&r) >> 11);
	for (size_t f = 0; f < 3; f++) {
		for (int level = 1; level <= 12; level++) {
			bytes file = encode(formats[f], &data,
			                    (lade_foreign_options){.level = level}, 1 << 20);
			check_written(formats[f], &file, &data);
			assert_true(file.size < data.size + data.size / 200);
			drop(&file);
		}
	}
	drop(&data);
}

static void writer_passes_on_failures(void **state)
{
	static const lade_format formats[] = {LADE_FORMAT_ZST, LADE_FORMAT_GZ, LADE_FORMAT_LZ4};
	bytes data = sample(3 << 20, 15);
	lade_error err;

	(void)state;
	for (size_t f = 0; f < 3; f++) {
		lade_foreign_options options = {.struct_size = sizeof options, .size = 5};
		sink s = {{0}, 100};
		lade_foreign_writer *w;
		assert_int_equal(lade_foreign_writer_new(engine, formats[f],
		                                         (lade_output){&s, sink_write}, NULL, &w,
		                                         &err),
		                 LADE_OK);
		lade_status status = lade_foreign_writer_write(w, data.data, data.size, &err);
		if (status == LADE_OK)
			status = lade_foreign_writer_finish(w, &err);
		assert_int_equal(status, LADE_E_IO);
		assert_int_equal(lade_foreign_writer_write(w, data.data, 1, &err), LADE_E_IO);
		assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_E_IO);
		lade_foreign_writer_free(w);
		drop(&s.out);

		/* Another size than was said. */
		s.room = SIZE_MAX;
		assert_int_equal(lade_foreign_writer_new(engine, formats[f],
		                                         (lade_output){&s, sink_write}, &options,
		                                         &w, &err),
		                 LADE_OK);
		assert_int_equal(lade_foreign_writer_write(w, data.data, 4, &err), LADE_OK);
		assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_E_STATE);
		lade_foreign_writer_free(w);
		drop(&s.out);
		assert_int_equal(lade_foreign_writer_new(engine, formats[f],
		                                         (lade_output){&s, sink_write}, &options,
		                                         &w, &err),
		                 LADE_OK);
		assert_int_equal(lade_foreign_writer_write(w, data.data, 4, &err), LADE_OK);
		assert_int_equal(lade_foreign_writer_write(w, data.data, options.size - 3, &err),
		                 LADE_E_STATE);
		assert_non_null(strstr(err.message, "bytes were written, options.size is"));
		assert_int_equal(lade_foreign_writer_finish(w, &err), LADE_E_STATE);
		lade_foreign_writer_free(w);
		drop(&s.out);

		options = (lade_foreign_options){.struct_size = sizeof options, .level = 99};
		assert_int_equal(lade_foreign_writer_new(engine, formats[f],
		                                         (lade_output){&s, sink_write}, &options,
		                                         &w, &err),
		                 LADE_E_ARG);
		assert_null(w);
		drop(&s.out);
	}
	drop(&data);
}

static void checks_the_window(void **state)
{
	static const uint64_t wrong[] = {1, 1023, 1025, (1 << 20) + 1, UINT64_MAX};
	bytes data = sample(1 << 20, 0);
	lade_error err;
	lade_foreign_writer *w = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		lade_foreign_options options = {.struct_size = sizeof options,
		                                .max_window = wrong[i]};
		sink s = {0};
		assert_int_equal(lade_foreign_writer_new(engine, LADE_FORMAT_ZST,
		                                         (lade_output){&s, sink_write}, &options,
		                                         &w, &err),
		                 LADE_E_ARG);
		assert_non_null(strstr(err.message, "want a power of two from 1024 to"));
		assert_null(w);
	}
	/* Of a frame of unknown size the header says it: RFC 8878, 3.1.1.1.2. */
	bytes file = encode(LADE_FORMAT_ZST, &data,
	                    (lade_foreign_options){.max_window = 1 << 25, .threads = 1}, 1 << 20);
	assert_int_equal(file.data[5], (25 - 10) << 3);
	drop(&file);
	drop(&data);
}

static void checks_arguments(void **state)
{
	lade_foreign_options bad = {.struct_size = 3};
	lade_foreign_reader *r;
	lade_foreign_writer *w;
	feed f = {0};
	sink s = {0};
	lade_input in = {&f, feed_read};
	lade_output to = {&s, sink_write};
	size_t got;
	lade_error err;

	(void)state;
	assert_int_equal(lade_foreign_reader_new(NULL, LADE_FORMAT_GZ, in, NULL, &r, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_foreign_reader_new(engine, LADE_FORMAT_GZ, in, &bad, &r, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_foreign_reader_new(engine, LADE_FORMAT_LADE, in, NULL, &r, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_foreign_writer_new(engine, LADE_FORMAT_SZ, to, NULL, &w, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_foreign_writer_new(engine, LADE_FORMAT_GZ, to, &bad, &w, &err),
	                 LADE_E_ARG);
	assert_int_equal(lade_foreign_reader_new(engine, LADE_FORMAT_GZ, in, NULL, &r, NULL),
	                 LADE_OK);
	assert_int_equal(lade_foreign_reader_read(r, &got, 0, &got, NULL), LADE_E_ARG);
	lade_foreign_reader_free(r);
	lade_foreign_reader_free(NULL);
	lade_foreign_writer_free(NULL);
	for (size_t k = 1; k <= 6; k++)
		assert_int_equal(lade_format_find(lade_format_name((lade_format)k)), k);
	assert_string_equal(lade_format_name((lade_format)99), "?");
	assert_int_equal(lade_format_find("rar"), LADE_FORMAT_UNKNOWN);
	assert_int_equal(lade_format_detect(NULL, 0), LADE_FORMAT_UNKNOWN);
	assert_int_equal(lade_format_detect("BZh91AY", 7), LADE_FORMAT_UNKNOWN);
}

/* The stream of the format's description: a begin and a stored chunk, checksum included. */
static void reads_the_golden_sz(void **state)
{
	char file[] = "\xFF\x06\x00\x00sNaPpY\x01\x08\x00\x00" "....abcd";
	bytes out = {0};
	lade_error err;

	(void)state;
	/* The CRC-32C, bit by bit, by nothing of the library's. */
	uint32_t crc = ~0u;
	for (int i = 0; i < 4; i++) {
		crc ^= (uint8_t)"abcd"[i];
		for (int b = 0; b < 8; b++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
	}
	crc = ~crc;
	crc = (crc >> 15 | crc << 17) + 0xA282EAD8u;
	memcpy(file + 14, &crc, 4);
	assert_int_equal(decode(LADE_FORMAT_SZ, file, sizeof file - 1, 0, 10, NULL, &out, &err),
	                 LADE_OK);
	assert_int_equal(out.size, 4);
	assert_memory_equal(out.data, "abcd", 4);
	drop(&out);
}

/* ---- memory that runs out ----------------------------------------------------------- */

static int allocs_left;
static long outstanding;

static void *failing_alloc(void *ctx, size_t size, size_t align, lade_place place,
                           lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(LADE_HOST);
	(void)ctx;
	if (allocs_left == 0)
		return NULL;
	allocs_left -= allocs_left > 0;
	outstanding++;
	return a->alloc(a->ctx, size, align, place, stream);
}

static void failing_free(void *ctx, void *ptr, size_t size, size_t align, lade_place place,
                         lade_stream stream)
{
	const lade_allocator *a = lade_allocator_default(LADE_HOST);
	(void)ctx;
	outstanding--;
	a->free(a->ctx, ptr, size, align, place, stream);
}

static void fails_cleanly_without_memory(void **state)
{
	static const lade_allocator failing = {NULL, failing_alloc, failing_free};
	lade_engine_options options = {.struct_size = sizeof options, .threads = 1};
	lade_engine *saved = engine;
	bytes data = sample(100000, 16);
	lade_error err;

	(void)state;
	options.allocators[LADE_HOST] = &failing;
	allocs_left = -1;
	assert_int_equal(lade_engine_new(&options, &engine, &err), LADE_OK);
	long before = outstanding;
	for (size_t k = 0; k < KINDS; k++) {
		bytes file = {0};
		kinds[k].add(&file, &data);
		lade_status status;
		int n = 0;
		do {
			bytes out = {0};
			allocs_left = n++;
			status = decode(kinds[k].format, file.data, file.size, 0, 5000, NULL, &out,
			                &err);
			assert_true(status == LADE_OK || status == LADE_E_NOMEM);
			assert_int_equal(outstanding, before);
			drop(&out);
		} while (status != LADE_OK);
		assert_true(n > 3);
		drop(&file);
	}
	drop(&data);
	allocs_left = -1;
	lade_engine_free(engine);
	assert_int_equal(outstanding, 0);
	engine = saved;
}

static int setup(void **state)
{
	lade_engine_options options = {.struct_size = sizeof options, .threads = 3};
	(void)state;
	printf("seed %llx\n", (unsigned long long)SEED);
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_in_any_steps),
		cmocka_unit_test(decodes_files_in_a_row),
		cmocka_unit_test(mixes_frames),
		cmocka_unit_test(refuses_cut_files),
		cmocka_unit_test(survives_flipped_bits),
		cmocka_unit_test(ignores_checksums_when_told),
		cmocka_unit_test(passes_on_input_failures),
		cmocka_unit_test(limits_windows),
		cmocka_unit_test(wants_the_dictionary),
		cmocka_unit_test(zst_content_size_is_checked),
		cmocka_unit_test(writes_what_others_read),
		cmocka_unit_test(writes_noise),
		cmocka_unit_test(writer_passes_on_failures),
		cmocka_unit_test(checks_the_window),
		cmocka_unit_test(checks_arguments),
		cmocka_unit_test(reads_the_golden_sz),
		cmocka_unit_test(fails_cleanly_without_memory),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
