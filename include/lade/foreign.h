/*
 * foreign.h: reads and writes whole files of other tools, in order: .zst, .gz, .zz (zlib), .lz4
 * (LZ4 frames) and .sz (framed Snappy).
 *
 *	lade_output output = {file, write_file};     // a FILE, and a function that calls fwrite()
 *	lade_foreign_writer *writer;
 *	if (lade_foreign_writer_new(engine, LADE_FORMAT_GZ, output, NULL, &writer, &err) ||
 *	    lade_foreign_writer_write(writer, field, sizeof field, &err) ||
 *	    lade_foreign_writer_finish(writer, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_foreign_writer_free(writer);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FOREIGN_H
#define LADE_FOREIGN_H

#include <lade/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lade_format {
	LADE_FORMAT_UNKNOWN = 0,
	LADE_FORMAT_LADE = 1,
	LADE_FORMAT_ZST = 2, /* RFC 8878 */
	LADE_FORMAT_GZ = 3,  /* RFC 1952 */
	LADE_FORMAT_ZZ = 4,  /* RFC 1950 */
	LADE_FORMAT_LZ4 = 5, /* LZ4 frame format 1.6, also legacy frames when reading */
	LADE_FORMAT_SZ = 6,  /* Snappy framing format, 2013-10-25 */
} lade_format;

/* The most bytes that lade_format_detect() needs. */
#define LADE_FORMAT_PEEK 16

/* The format of a file that begins with these bytes.  Skippable frames look alike in zstd and LZ4:
 * they count as LADE_FORMAT_ZST, whose reader reads both. */
LADE_API lade_format lade_format_detect(const void *data, size_t size);

/* The name, such as "zst"; "?" for an unknown format. */
LADE_API const char *lade_format_name(lade_format format);
/* The format of that name; LADE_FORMAT_UNKNOWN if there is none. */
LADE_API lade_format lade_format_find(const char *name);

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_foreign_options {
	size_t struct_size;
	unsigned threads;    /* 0: the engine's */
	int level;           /* writing: on the format's own scale; 0: its default */
	/*
	 * Reading: larger windows fail with LADE_E_LIMIT; 0: 128 MiB.  Writing .zst: the window, a
	 * power of two, in which matches are also searched far back (zstd --long); 0: the level's.
	 */
	uint64_t max_window;
	bool checksum;       /* writing: add the format's checksum (.gz and .zz always have it) */
	bool ignore_checksum; /* reading: do not verify checksums */
	bool strict;   /* reading .gz, .zz: with zlib only, as LADE_BATCH_STRICT; slower */
	uint64_t size; /* writing: all decoded bytes, if known; stored if the format can */
	const lade_dict *dict; /* reading .zst, .lz4, .zz; writing .zst */
	/* Ends any call of the reader or writer; or NULL.  A cancelled writer cannot go on.
	 * Freeing a .zst writer with several threads waits for the parts that libzstd's threads
	 * have begun, several MiB each: seconds at high levels. */
	lade_cancel *cancel;
} lade_foreign_options;

typedef struct lade_foreign_reader lade_foreign_reader;
typedef struct lade_foreign_writer lade_foreign_writer;

/*
 * Reads a file in order.  Concatenated frames and members, skippable frames and unknown content
 * sizes are fine.  _read() stores up to 'cap' bytes, and their number in '*got': at least 1, or 0
 * at the end of a complete file.  After a failure every call fails with the same error.
 *
 * Fails:   LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_CHECKSUM (err->offset counts encoded bytes),
 *          LADE_E_LIMIT, LADE_E_DICT, LADE_E_UNSUPPORTED, LADE_E_NOMEM, and what the input fails
 *          with
 * Threads: one caller, on whose thread 'input' is called (but see _copy())
 * Owns:    the caller, until _free() (NULL is fine); engine and dictionary must outlive the reader
 * Source:  the formats' documents above
 */
LADE_API lade_status lade_foreign_reader_new(lade_engine *engine, lade_format format,
                                             lade_input input,
                                             const lade_foreign_options *options,
                                             lade_foreign_reader **out, lade_error *err);
LADE_API lade_status lade_foreign_reader_read(lade_foreign_reader *reader, void *dst, size_t cap,
                                              size_t *got, lade_error *err);
/* Decodes the rest to 'output' in order.  One of the engine's threads calls the input and decodes,
 * while the caller's thread writes.  After any failure the reader cannot go on. */
LADE_API lade_status lade_foreign_reader_copy(lade_foreign_reader *reader, lade_output output,
                                              lade_error *err);
/* The number of frames (.zst, .lz4), members (.gz) or streams (.zz, .sz) that have begun so far,
 * without skippable frames. */
LADE_API uint64_t lade_foreign_reader_frames(const lade_foreign_reader *reader);
LADE_API void lade_foreign_reader_free(lade_foreign_reader *reader);

/*
 * Writes .zst, .gz or .lz4.  _finish() writes the end and must be called: readers refuse a file
 * without its end as truncated (a .gz file may seem complete).  After a failure every call fails
 * with the same error.
 *
 * Fails:   LADE_E_ARG (format, level, window), LADE_E_STATE (after _finish(); more or fewer bytes
 *          than options.size), LADE_E_NOMEM, and what the output fails with
 * Threads: one caller, on whose thread 'input' and 'output' are called
 * Owns:    the caller, until _free() (NULL is fine); engine and dictionary must outlive the writer
 */
LADE_API lade_status lade_foreign_writer_new(lade_engine *engine, lade_format format,
                                             lade_output output,
                                             const lade_foreign_options *options,
                                             lade_foreign_writer **out, lade_error *err);
LADE_API lade_status lade_foreign_writer_write(lade_foreign_writer *writer, const void *data,
                                               size_t size, lade_error *err);
/* Writes everything that 'input' gives, to its end. */
LADE_API lade_status lade_foreign_writer_copy(lade_foreign_writer *writer, lade_input input,
                                              lade_error *err);
LADE_API lade_status lade_foreign_writer_finish(lade_foreign_writer *writer, lade_error *err);
LADE_API void lade_foreign_writer_free(lade_foreign_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
