/*
 * test_frame_damage.c: frames cut off at every byte, with every bit flipped, and with every
 * kind of lie behind checks that are right.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame_kit.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <cmocka.h>
#include <xxhash.h>

static lade_engine *engine;

static int setup(void **state)
{
	(void)state;
	lade_engine_options options = {.struct_size = sizeof options, .threads = 2};
	return lade_engine_new(&options, &engine, NULL) != LADE_OK;
}

static int teardown(void **state)
{
	(void)state;
	lade_engine_free(engine);
	return 0;
}

/*
 * A frame with every part and every kind of chunk: coded, stored, constant, own spec, a short
 * last one.
 *
 *       0 header 64          | total size 10..: 5 chunks of 32, the last of 20
 *      64 chunk 0, ...
 */
enum { CHUNK = 32, CHUNKS = 5, SIZE = CHUNK * 4 + 20 };

typedef struct sample {
	kit_bytes frame;
	uint8_t data[SIZE];
	size_t chunk[CHUNKS + 1]; /* offsets; the last is the page's */
	size_t list, footer;
} sample;

static uint64_t get(const kit_bytes *f, size_t off, size_t size)
{
	uint64_t v = 0;
	for (size_t i = size; i-- > 0;)
		v = v << 8 | f->data[off + i];
	return v;
}

static void put(kit_bytes *f, size_t off, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		f->data[off + i] = (uint8_t)(value >> 8 * i);
}

static sample make_sample(bool checksums, bool known)
{
	sample s = {0};
	rng r = {7};
	kit_fill(s.data, CHUNK, 1, &r);
	memset(s.data + CHUNK, 'x', CHUNK);
	for (size_t i = 2 * CHUNK; i < SIZE; i++)
		s.data[i] = (uint8_t)(i % 3);
	lade_spec *spec = kit_spec("lz4"), *own = kit_spec("zlib");
	lade_frame_options options = kit_options(spec, CHUNK);
	options.no_checksums = !checksums;
	options.has_size = known;
	options.size = SIZE;
	lade_frame_writer *w;
	assert_int_equal(lade_frame_writer_new(engine, kit_output(&s.frame), &options, &w, NULL),
	                 LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, s.data, 3 * CHUNK, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_chunk(w, own, s.data + 3 * CHUNK, CHUNK, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_write(w, s.data + 4 * CHUNK, 20, NULL), LADE_OK);
	assert_int_equal(lade_frame_writer_finish(w, NULL), LADE_OK);
	lade_frame_writer_free(w);
	lade_spec_unref(spec);
	lade_spec_unref(own);
	size_t off = (size_t)get(&s.frame, 12, 4);
	for (int i = 0; i < CHUNKS; i++) {
		s.chunk[i] = off;
		off += 32 + (get(&s.frame, off + 14, 2) + 15) / 16 * 16 +
		       (get(&s.frame, off + 4, 4) + 15) / 16 * 16;
	}
	s.chunk[CHUNKS] = off;
	s.footer = s.frame.size - 64;
	s.list = s.footer - 48;
	static const uint64_t flags[CHUNKS] = {1, 2, 0, 4, 0};
	for (int i = 0; i < CHUNKS; i++)
		assert_int_equal(get(&s.frame, s.chunk[i] + 12, 2), flags[i]);
	return s;
}

/* ---- checks made right again after a lie ------------------------------------------------- */

static uint64_t check_of(const uint8_t *part, const uint8_t *rest, size_t rest_size, uint64_t first)
{
	return XXH64(rest, rest_size, XXH64(part, 24, first));
}

static void reseal(sample *s)
{
	kit_bytes *f = &s->frame;
	size_t header = (size_t)get(f, 12, 4);
	if (header <= f->size && header >= 64) {
		put(f, header - 8, XXH64(f->data, header - 8, 0), 8);
		put(f, s->footer + 32, get(f, header - 8, 8), 8);
	}
	for (size_t i = 0; i < CHUNKS; i++) {
		uint8_t *c = f->data + s->chunk[i];
		put(f, s->chunk[i] + 24,
		    check_of(c, c + 32, i == 3 ? (size_t)get(f, s->chunk[i] + 14, 2) : 0, i), 8);
	}
	uint8_t *page = f->data + s->chunk[CHUNKS], *list = f->data + s->list;
	put(f, s->chunk[CHUNKS] + 24, check_of(page, page + 32, CHUNKS * 8, 0), 8);
	put(f, s->list + 24, check_of(list, list + 32, 8, 0), 8);
	put(f, s->footer + 48, XXH64(f->data + s->footer, 48, 0), 8);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_truncated(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		sample s = make_sample(true, known);
		for (size_t n = 0; n < s.frame.size; n++) {
			guard part = guard_copy(s.frame.data, n, 1);
			for (int reader = 0; reader < KIT_READERS; reader++) {
				kit_bytes out = {0};
				lade_error err = {0};
				lade_status status =
					kit_decode(engine, (enum kit_reader)reader, part.data, n,
				                   kit_read_options(LADE_VERIFY_REQUIRED), &out,
				                   NULL, &err);
				if (status != LADE_E_TRUNCATED || err.offset != n)
					fail_msg("cut at %zu, %s: %s at %llu: %s", n,
					         kit_reader_names[reader], lade_status_name(status),
					         (unsigned long long)err.offset, err.message);
				assert_true(out.size <= SIZE);
				assert_memory_equal(out.data ? out.data : s.data, s.data, out.size);
				free(out.data);
			}
			guard_free(&part);
		}
		free(s.frame.data);
	}
}

/* Reads all with NULL options: whole, or in ranges that overlap. */
static lade_status read_unasked(const kit_bytes *frame, int way, uint8_t *out, lade_error *err)
{
	kit_input in = {.data = frame->data, .size = frame->size};
	const size_t cut = 2 * CHUNK + 7;
	lade_frame_range all = {0, lade_host_span(out, SIZE)};
	lade_frame_range ranges[] = {{0, lade_host_span(out, cut)},
	                             {CHUNK, lade_host_span(out + SIZE, CHUNK)},
	                             {cut, lade_host_span(out + cut, SIZE - cut)}};
	lade_frame *f;
	lade_status status;
	if (way == 2)
		status = lade_frame_open(engine, kit_source(&in), NULL, &f,
		                         err);
	else
		status = lade_frame_open_memory(engine, frame->data, frame->size, NULL, &f, err);
	if (status != LADE_OK)
		return status;
	status = way ? lade_frame_read(f, ranges, 3, NULL, NULL, err)
	             : lade_frame_read(f, &all, 1, NULL, NULL, err);
	lade_frame_close(f);
	return status;
}

/* Reading without options, and with zeroed ones, is safe. */
static void test_every_byte_unasked(void **state)
{
	(void)state;
	static const lade_frame_read_options zero = {.struct_size = sizeof zero};
	sample s = make_sample(true, true);
	for (size_t at = 0; at < s.frame.size; at++) {
		s.frame.data[at] ^= 0x04;
		for (int way = 0; way < 7; way++) {
			uint8_t out[SIZE + CHUNK];
			kit_bytes piped = {.data = malloc(SIZE), .cap = SIZE};
			kit_input in = {.data = s.frame.data, .size = s.frame.size};
			lade_error err = {0};
			lade_status status =
				way < 3 ? read_unasked(&s.frame, way, out, &err)
					: kit_read_stream(engine, way & 1, &in,
			                                  way & 2 ? NULL : &zero, &piped,
			                                  NULL, &err);
			const uint8_t *got = way < 3 ? out : piped.data;
			if (status == LADE_OK && memcmp(got, s.data, SIZE))
				fail_msg("byte %zu, way %d: wrong data, silently", at, way);
			if (status != LADE_OK && err.status != status)
				fail_msg("byte %zu, way %d: %s without a message", at, way,
				         lade_status_name(status));
			free(piped.data);
		}
		s.frame.data[at] ^= 0x04;
	}
	free(s.frame.data);
}

static void test_every_bit(void **state)
{
	(void)state;
	static const enum kit_reader readers[] = {KIT_MEMORY,      KIT_SOURCE,   KIT_STREAM_READ,
	                                          KIT_STREAM_COPY, KIT_COPY,     KIT_COPY_AT,
	                                          KIT_FAR_COPY};
	for (int known = 0; known < 2; known++) {
		sample s = make_sample(true, known);
		for (size_t bit = 0; bit < s.frame.size * 8; bit++) {
			s.frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
				kit_bytes out = {0};
				lade_error err = {0};
				lade_status status =
					kit_decode(engine, readers[i], s.frame.data, s.frame.size,
				                   kit_read_options(LADE_VERIFY_REQUIRED), &out,
				                   NULL, &err);
				if (status == LADE_OK &&
				    (out.size != SIZE || memcmp(out.data, s.data, SIZE)))
					fail_msg("bit %zu of byte %zu, %s: wrong data, silently",
					         bit % 8, bit / 8, kit_reader_names[readers[i]]);
				/* What comes out in order before a failure is right too. */
				if (status != LADE_OK && out.size && i >= 2)
					assert_memory_equal(out.data, s.data, out.size);
				if (status != LADE_OK && (!err.message[0] || err.status != status))
					fail_msg("bit %zu: %s without a message", bit,
					         lade_status_name(status));
				free(out.data);
			}
			s.frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		free(s.frame.data);
	}
}

/* Without checksums damage to a payload may go unseen, but nothing worse. */
static void test_every_bit_unchecked(void **state)
{
	(void)state;
	sample s = make_sample(false, true);
	for (size_t bit = 0; bit < s.frame.size * 8; bit++) {
		s.frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		for (int reader = KIT_MEMORY; reader <= KIT_STREAM_READ;
		     reader += KIT_STREAM_READ) {
			kit_bytes out = {0};
			lade_error err = {0};
			lade_status status = kit_decode(
				engine, (enum kit_reader)reader, s.frame.data, s.frame.size,
				kit_read_options(LADE_VERIFY_IF_PRESENT), &out, NULL,
				&err);
			if (status == LADE_OK)
				assert_int_equal(out.size, SIZE);
			free(out.data);
		}
		s.frame.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(s.frame.data);
}

enum place { HEADER, CHUNK0, CHUNK1, CHUNK2, CHUNK3, CHUNK4, PAGE, LIST, FOOTER };

typedef struct lie {
	const char *what;
	enum place place;
	size_t off; /* within the part */
	size_t size;
	uint64_t value;
	lade_status status; /* of the readers by index */
	size_t error_off;   /* within the part */
	lade_status stream; /* of the pipe's readers */
} lie;

#define SAME LADE_OK

static const lie lies[] = {
	{"another magic", HEADER, 1, 1, 'M', LADE_E_CORRUPT, 1, SAME},
	{"version 2", HEADER, 8, 2, 2, LADE_E_VERSION, 8, SAME},
	{"version 0", HEADER, 8, 2, 0, LADE_E_VERSION, 8, SAME},
	{"a flag of the future", HEADER, 10, 2, 4, LADE_E_UNSUPPORTED, 10, SAME},
	{"Fortran order without a shape", HEADER, 10, 2, 2, LADE_E_CORRUPT, 32, SAME},
	{"a shape without a dtype", HEADER, 10, 2, 1, LADE_E_CORRUPT, 31, SAME},
	{"header size 65", HEADER, 12, 4, 65, LADE_E_CORRUPT, 12, SAME},
	{"header size 48", HEADER, 12, 4, 48, LADE_E_CORRUPT, 12, SAME},
	{"header size 4112", HEADER, 12, 4, 4112, LADE_E_CORRUPT, 12, SAME},
	{"header size 80", HEADER, 12, 4, 80, LADE_E_CORRUPT, 28, SAME},
	{"one byte fewer in all", HEADER, 16, 8, SIZE - 1, LADE_E_CORRUPT, SIZE_MAX,
         LADE_E_CORRUPT},
	{"a vast total size", HEADER, 16, 8, UINT64_MAX - 1, LADE_E_CORRUPT, SIZE_MAX,
         LADE_E_CORRUPT},
	{"chunk size 15", HEADER, 24, 4, 15, LADE_E_CORRUPT, 24, SAME},
	{"chunk size 0", HEADER, 24, 4, 0, LADE_E_CORRUPT, 24, SAME},
	{"chunk size 2^31", HEADER, 24, 4, (uint64_t)1 << 31, LADE_E_CORRUPT, 24, SAME},
	{"chunk size 33", HEADER, 24, 4, 33, LADE_E_CORRUPT, SIZE_MAX, LADE_E_CORRUPT},
	{"no spec", HEADER, 28, 2, 0, LADE_E_CORRUPT, 28, SAME},
	{"a long spec", HEADER, 28, 2, 2049, LADE_E_CORRUPT, 28, SAME},
	{"a spec cut short", HEADER, 28, 2, 4, LADE_E_CORRUPT, SIZE_MAX, SAME},
	{"checksum 1", HEADER, 30, 1, 1, LADE_E_UNSUPPORTED, 30, SAME},
	{"dtype 99", HEADER, 31, 1, 99, LADE_E_UNSUPPORTED, 31, SAME},
	{"big-endian bytes", HEADER, 31, 1, 0x83, LADE_E_UNSUPPORTED, 31, SAME},
	{"33 dimensions", HEADER, 32, 1, 33, LADE_E_CORRUPT, 28, SAME},
	{"a dimension without a shape", HEADER, 32, 1, 1, LADE_E_CORRUPT, 32, SAME},
	{"a reserved byte", HEADER, 39, 1, 1, LADE_E_CORRUPT, 39, SAME},
	{"an unknown algorithm", HEADER, 42, 1, 200, LADE_E_NOT_FOUND, 42, SAME},
	{"another mark", CHUNK1, 0, 1, 'c', LADE_E_CORRUPT, 0, SAME},
	{"a payload of one byte more", CHUNK0, 4, 4, CHUNK + 1, LADE_E_CORRUPT, 12, SAME},
	{"a payload of 2^31 bytes", CHUNK2, 4, 4, 1u << 31, LADE_E_CORRUPT, 12, SAME},
	{"no payload", CHUNK2, 4, 4, 0, LADE_E_CORRUPT, 12, SAME},
	{"a constant of 3 bytes", CHUNK1, 4, 4, 3, LADE_E_CORRUPT, 12, SAME},
	{"decoded size 31", CHUNK2, 8, 4, 31, LADE_E_CORRUPT, 8, SAME},
	{"decoded size 0", CHUNK4, 8, 4, 0, LADE_E_CORRUPT, 8, SAME},
	{"the last chunk of 21 bytes", CHUNK4, 8, 4, 21, LADE_E_CORRUPT, 8, SAME},
	{"two flags", CHUNK0, 12, 2, 3, LADE_E_UNSUPPORTED, 12, SAME},
	{"a flag of the future", CHUNK0, 12, 2, 8, LADE_E_UNSUPPORTED, 12, SAME},
	{"own spec without a spec", CHUNK2, 12, 2, 4, LADE_E_CORRUPT, 12, SAME},
	{"a spec too long", CHUNK2, 14, 2, 2049, LADE_E_CORRUPT, 14, SAME},
	{"a byte behind the own spec", CHUNK3, 47, 1, 1, LADE_E_CORRUPT, 47, SAME},
	{"a byte behind a payload", CHUNK1, 47, 1, 1, LADE_E_CORRUPT, 47, SAME},
	{"an own spec of another version", CHUNK3, 32, 1, 9, LADE_E_VERSION, 32, SAME},
	{"another checksum", CHUNK2, 16, 8, 1, LADE_E_CHECKSUM, 16, SAME},
	{"another mark", PAGE, 3, 1, 'e', LADE_E_CORRUPT, 0, SAME},
	{"one entry fewer", PAGE, 4, 4, CHUNKS - 1, LADE_E_CORRUPT, 4, SAME},
	{"another first chunk", PAGE, 8, 8, 1, LADE_E_CORRUPT, 8, SAME},
	{"another first offset", PAGE, 16, 8, 80, LADE_E_CORRUPT, 16, SAME},
	{"an entry of 0 bytes", PAGE, 32, 4, 0, LADE_E_CORRUPT, 32, SAME},
	{"an entry of 2^32 - 1 bytes", PAGE, 32, 4, UINT32_MAX, LADE_E_CORRUPT, 32, SAME},
	{"an entry one line longer", PAGE, 32, 4, CHUNK + 16, LADE_E_CORRUPT, 16, SAME},
	{"an entry's flags", PAGE, 32 + 4, 2, 0, LADE_E_CORRUPT, 32, SAME},
	{"a last entry's flags", PAGE, 64 + 4, 2, 9, LADE_E_UNSUPPORTED, 64, LADE_E_CORRUPT},
	{"an entry of one byte less", PAGE, 32 + 16, 4, 1, LADE_E_CORRUPT, SIZE_MAX, SAME},
	{"a byte behind the entries", PAGE, 32 + CHUNKS * 8, 1, 1, LADE_E_CORRUPT, 32 + CHUNKS * 8,
         SAME},
	{"two pages", LIST, 8, 8, 2, LADE_E_CORRUPT, 8, SAME},
	{"a reserved byte", LIST, 4, 1, 1, LADE_E_CORRUPT, 4, SAME},
	{"another count of chunks", LIST, 16, 8, 1, LADE_E_CORRUPT, 16, SAME},
	{"a page at the header", LIST, 32, 8, 0, LADE_E_CORRUPT, 32, SAME},
	{"a page among the chunks", LIST, 32, 8, 80, LADE_E_CORRUPT, 32, SAME},
	{"a page behind the frame", LIST, 32, 8, 1ull << 40, LADE_E_CORRUPT, 32, SAME},
	{"a page that is the list", LIST, 32, 8, UINT64_MAX - 15, LADE_E_CORRUPT, 32, SAME},
	{"a byte behind the list", LIST, 47, 1, 1, LADE_E_CORRUPT, 47, SAME},
	{"another mark", FOOTER, 0, 1, 'f', LADE_E_CORRUPT, 0, SAME},
	{"a reserved byte", FOOTER, 4, 1, 1, LADE_E_CORRUPT, 4, SAME},
	{"no total size", FOOTER, 8, 8, UINT64_MAX, LADE_E_CORRUPT, 8, SAME},
	{"a total of one byte more", FOOTER, 8, 8, SIZE + 1, LADE_E_CORRUPT, SIZE_MAX, SAME},
	{"another count of chunks", FOOTER, 16, 8, CHUNKS + 1, LADE_E_CORRUPT, 16, SAME},
	{"another frame size", FOOTER, 24, 8, 16, LADE_E_CORRUPT, 24, SAME},
	{"a reserved byte", FOOTER, 40, 1, 1, LADE_E_CORRUPT, 40, SAME},
};

static size_t place_off(const sample *s, enum place place)
{
	return place == HEADER ? 0 : place <= PAGE ? s->chunk[place - CHUNK0]
	                         : place == LIST   ? s->list
	                                           : s->footer;
}

static void test_lies(void **state)
{
	(void)state;
	int wrong = 0;
	for (int known = 0; known < 2; known++)
		for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
			const lie *l = &lies[i];
			sample s = make_sample(true, known);
			size_t part = place_off(&s, l->place);
			put(&s.frame, part + l->off, l->value, l->size);
			reseal(&s);
			guard bytes = guard_copy(s.frame.data, s.frame.size, 1);
			for (int reader = 0; reader < KIT_READERS; reader++) {
				kit_bytes out = {0};
				lade_error err = {0};
				lade_status want = reader >= KIT_STREAM_READ && l->stream != SAME
				                           ? l->stream
				                           : l->status;
				lade_status status = kit_decode(
					engine, (enum kit_reader)reader, bytes.data, bytes.size,
					kit_read_options(LADE_VERIFY_REQUIRED), &out, NULL,
					&err);
				bool place_ok = reader >= KIT_STREAM_READ ||
				                l->error_off == SIZE_MAX ||
				                err.offset == part + l->error_off;
				if (status != want || !place_ok) {
					printf("%s (part %d, size %s), %s: %s at part + %lld: %s; "
					       "want %s at part + %zu\n",
					       l->what, (int)l->place, known ? "known" : "unknown",
					       kit_reader_names[reader], lade_status_name(status),
					       (long long)err.offset - (long long)part, err.message,
					       lade_status_name(want), l->error_off);
					wrong++;
				}
				free(out.data);
			}
			guard_free(&bytes);
			free(s.frame.data);
		}
	assert_int_equal(wrong, 0);
}

/* Chunks exchanged with their headers: the check knows each one's place. */
static void test_exchanged_chunks(void **state)
{
	(void)state;
	lade_frame_options options = kit_options(NULL, 16);
	kit_bytes f = kit_frame(engine, &options, "0123456789abcdefFEDCBA9876543210", 32);
	uint8_t block[48];
	memcpy(block, f.data + 64, 48);
	memcpy(f.data + 64, f.data + 112, 48);
	memcpy(f.data + 112, block, 48);
	for (int reader = 0; reader < KIT_READERS; reader++) {
		kit_bytes out = {0};
		assert_int_equal(kit_decode(engine, (enum kit_reader)reader, f.data, f.size,
		                            kit_read_options(LADE_VERIFY_NEVER), &out, NULL,
		                            NULL),
		                 LADE_E_CHECKSUM);
		free(out.data);
	}
	free(f.data);
}

/* One bad chunk fails the ranges that want it, and no others. */
static void test_one_bad_chunk(void **state)
{
	(void)state;
	sample s = make_sample(true, true);
	s.frame.data[s.chunk[2] + 33] ^= 0x55;
	lade_frame *f;
	lade_error err;
	lade_frame_read_options read = kit_read_options(LADE_VERIFY_REQUIRED);
	assert_int_equal(
		lade_frame_open_memory(engine, s.frame.data, s.frame.size, &read, &f, NULL),
		LADE_OK);
	uint8_t a[CHUNK + 5], b[CHUNK], c[10], d[1];
	lade_frame_range ranges[] = {
		{0, lade_host_span(a, CHUNK + 5)},
		{CHUNK + 20, lade_host_span(b, CHUNK)},
		{4 * CHUNK + 10, lade_host_span(c, 10)},
		{SIZE, lade_host_span(d, 1)},
		{SIZE, lade_host_span(NULL, 0)},
	};
	lade_result results[5];
	lade_status status = lade_frame_read(f, ranges, 5, results, NULL, &err);
	assert_int_equal(status, results[1].status);
	assert_true(strstr(err.message, "chunk 2") != NULL);
	assert_true(results[1].status == LADE_E_CORRUPT || results[1].status == LADE_E_CHECKSUM);
	assert_int_equal(results[0].status, LADE_OK);
	assert_int_equal(results[2].status, LADE_OK);
	assert_int_equal(results[3].status, LADE_E_RANGE);
	assert_int_equal(results[4].status, LADE_OK);
	assert_int_equal(results[0].size, CHUNK + 5);
	assert_int_equal(results[1].size, 0);
	assert_memory_equal(a, s.data, CHUNK + 5);
	assert_memory_equal(c, s.data + 4 * CHUNK + 10, 10);
	lade_frame_close(f);
	free(s.frame.data);
}

/* A frame in a file, larger than what is read when it is opened. */
static char *large_frame(uint8_t **data, size_t size, kit_bytes *frame)
{
	rng r = {3};
	lade_spec *spec = kit_spec("lz4");
	lade_frame_options options = kit_options(spec, 4096);
	*data = malloc(size);
	kit_fill(*data, size, 1, &r);
	*frame = kit_frame(engine, &options, *data, size);
	lade_spec_unref(spec);
	return kit_file(frame->data, frame->size);
}

/* A file that changes after it was opened has changed, whatever its bytes look like then. */
static void test_changing_file(void **state)
{
	(void)state;
	enum { LARGE = 100000 };
	uint8_t *data, *back = malloc(LARGE);
	kit_bytes frame;
	char *path = large_frame(&data, LARGE, &frame);
	for (int way = 0; way < 6; way++) {
		lade_result results[2];
		lade_error err = {.message = ""};
		lade_frame *f;
		lade_frame_chunk chunk;
		lade_frame_read_options options = kit_read_options(LADE_VERIFY_IF_PRESENT);
		int fd = open(path, O_RDWR | O_TRUNC);
		assert_int_equal(write(fd, frame.data, frame.size), (ssize_t)frame.size);
		if (way == 5)
			options.flags = LADE_FRAME_MAP;
		assert_int_equal(lade_frame_open_path(engine, path, &options, &f, NULL), LADE_OK);
		lade_frame_range ranges[2] = {{0, lade_host_span(back, LARGE)},
		                              {5000, lade_host_span(back, 10)}};
		assert_int_equal(lade_frame_read(f, ranges, 1, results, NULL, &err), LADE_OK);
		usleep(20000); /* a tick of the clock and more */
		if (way == 0) /* shorter */
			assert_int_equal(ftruncate(fd, 50000), 0);
		if (way == 1 || way == 5) /* damaged */
			assert_int_equal(pwrite(fd, "another thing", 13, 50000), 13);
		if (way == 2) /* the same */
			assert_int_equal(pwrite(fd, frame.data, 100, 0), 100);
		if (way == 3) /* longer */
			assert_int_equal(pwrite(fd, "x", 1, (off_t)frame.size), 1);
		if (way == 4) { /* not this file any more: what was opened is as it was */
			assert_int_equal(unlink(path), 0);
			assert_int_equal(lade_frame_read(f, ranges, 1, results, NULL, &err),
			                 LADE_OK);
			assert_memory_equal(back, data, LARGE);
			lade_frame_close(f);
			close(fd);
			fd = open(path, O_RDWR | O_CREAT, 0600);
			close(fd);
			continue;
		}
		assert_int_equal(lade_frame_read(f, ranges, 2, results, NULL, &err),
		                 LADE_E_CHANGED);
		assert_int_equal(results[0].status, LADE_E_CHANGED);
		if (way < 2)
			assert_true(lade_frame_get_chunk(f, 13, &chunk, &err) == LADE_E_CHANGED ||
			            way == 1);
		lade_frame_close(f);
		close(fd);
	}
	unlink(path);
	free(path);
	free(data);
	free(back);
	free(frame.data);
	lade_error err;
	lade_frame *f;
	assert_int_equal(lade_frame_open_path(engine, "/nowhere/at/all", NULL, &f, &err),
	                 LADE_E_NOT_FOUND);
	assert_int_equal(lade_frame_open_path(engine, "/tmp", NULL, &f, &err), LADE_E_IO);
}

/* A source that is far away: how often it is asked, what of it is lost, and its version. */
typedef struct server {
	const kit_bytes *frame;
	size_t calls, ranges, lost;
	uint8_t version;
} server;

static void server_read(void *ctx, lade_reading *reading, size_t count)
{
	server *s = ctx;
	s->calls++;
	s->ranges += count;
	for (size_t i = 0; i < count; i++) {
		lade_range *range = lade_reading_range(reading, i);
		lade_object_version now = {1, {s->version}};
		lade_error err;
		uint64_t off;
		range->object_size = s->frame->size;
		lade_status status =
			lade_range_place(range, s->frame->size, &off, &range->size, &err);
		if (range->want && !lade_object_version_equal(range->want, &now))
			status = lade_fail(&err, LADE_E_CHANGED, LADE_NO_OFFSET, "412");
		else if (status == LADE_OK && s->lost && off <= s->lost &&
		         s->lost < off + range->size)
			status = lade_fail(&err, LADE_E_IO, off, "the line is dead");
		if (range->version)
			*range->version = now;
		if (status == LADE_OK && range->size)
			memcpy(range->dst.data, s->frame->data + off, range->size);
		lade_reading_done(reading, i, status, &err);
	}
}

/* All chunks of a call are asked for at once; what is lost of one spoils no other. */
static void test_far_source(void **state)
{
	(void)state;
	enum { LARGE = 1000000 };
	static const lade_source_ops ops = {.struct_size = sizeof ops, .read = server_read};
	uint8_t *data, *back = malloc(LARGE);
	kit_bytes frame;
	char *path = large_frame(&data, LARGE, &frame);
	server s = {.frame = &frame, .version = 1};
	lade_result results[3];
	lade_error err = {.message = ""};
	lade_frame *f;
	unlink(path);
	free(path);
	assert_int_equal(lade_frame_open(engine, (lade_source){&ops, &s}, NULL, &f, &err), LADE_OK);
	assert_int_equal(s.calls, 1);
	lade_frame_range ranges[3] = {{0, lade_host_span(back, 300000)},
	                              {300000, lade_host_span(back + 300000, 100000)},
	                              {400000, lade_host_span(back + 400000, 600000)}};
	assert_int_equal(lade_frame_read(f, ranges, 3, results, NULL, &err), LADE_OK);
	assert_memory_equal(back, data, LARGE);
	assert_int_equal(s.calls, 2);
	assert_int_equal(s.ranges, 2 + (LARGE + 4095) / 4096);
	lade_frame_chunk chunk;
	assert_int_equal(lade_frame_get_chunk(f, 80, &chunk, &err), LADE_OK);
	s.lost = (size_t)chunk.off + 5;
	memset(back, 0, LARGE);
	assert_int_equal(lade_frame_read(f, ranges, 3, results, NULL, &err), LADE_E_IO);
	assert_non_null(strstr(err.message, "the line is dead"));
	assert_int_equal(results[0].status, LADE_OK);
	assert_int_equal(results[1].status, LADE_E_IO);
	assert_int_equal(results[2].status, LADE_OK);
	assert_memory_equal(back, data, 300000);
	assert_memory_equal(back + 400000, data + 400000, 600000);
	s.lost = 0;
	s.version = 2;
	assert_int_equal(lade_frame_read(f, ranges, 3, results, NULL, &err), LADE_E_CHANGED);
	assert_int_equal(results[0].status, LADE_E_CHANGED);
	assert_int_equal(lade_frame_get_chunk(f, 80, &chunk, &err), LADE_E_CHANGED);
	lade_frame_close(f);
	free(data);
	free(back);
	free(frame.data);
}

/* Chunks that have not begun when a read is cancelled are left out, and told. */
static void test_cancelled(void **state)
{
	(void)state;
	enum { LARGE = 100000 };
	uint8_t *data, *back = malloc(LARGE);
	kit_bytes frame;
	char *path = large_frame(&data, LARGE, &frame);
	for (int reader = 0; reader < 3; reader++) {
		kit_input in = {.data = frame.data, .size = frame.size};
		lade_cancel *cancel;
		assert_int_equal(lade_cancel_new(NULL, NULL, &cancel, NULL), LADE_OK);
		lade_frame_range_options options = {.struct_size = sizeof options,
		                                    .cancel = cancel};
		lade_frame_range range = {0, lade_host_span(back, LARGE)};
		lade_frame *f;
		lade_status status =
			reader == 0 ? lade_frame_open_path(engine, path, NULL, &f, NULL)
				    : lade_frame_open(engine,
		                                      reader == 1 ? kit_source(&in)
		                                                  : kit_far_source(&in),
		                                      NULL, &f, NULL);
		assert_int_equal(status, LADE_OK);
		assert_int_equal(lade_frame_read(f, &range, 1, NULL, &options, NULL), LADE_OK);
		lade_cancel_set(cancel);
		assert_int_equal(lade_frame_read(f, &range, 1, NULL, &options, NULL),
		                 LADE_E_CANCELLED);
		lade_frame_close(f);
		lade_cancel_free(cancel);
	}
	unlink(path);
	free(path);
	free(data);
	free(back);
	free(frame.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_unasked),
		cmocka_unit_test(test_truncated),        cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_every_bit_unchecked), cmocka_unit_test(test_lies),
		cmocka_unit_test(test_exchanged_chunks), cmocka_unit_test(test_one_bad_chunk),
		cmocka_unit_test(test_changing_file),    cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_far_source),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
