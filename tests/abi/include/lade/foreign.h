/*
 * foreign.h: whole files in other tools' formats, read and written in order: .zst, .gz, .zz
 * (zlib), .lz4 (LZ4 frames) and .sz (framed Snappy).
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

/* Bytes that lade_format_detect() wants to see at most. */
#define LADE_FORMAT_PEEK 16

/* What a file that begins with these bytes is; skippable zstd and LZ4 frames look alike, and
 * are taken as LADE_FORMAT_ZST, which reads both. */
LADE_API lade_format lade_format_detect(const void *data, size_t size);

/* "zst"; "?" for none.  And back. */
LADE_API const char *lade_format_name(lade_format format);
LADE_API lade_format lade_format_find(const char *name);

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_foreign_options {
	size_t struct_size;
	unsigned threads;    /* 0: the engine's */
	int level;           /* writing: the format's own scale; 0: its default */
	/*
	 * Reading: larger windows are refused with LADE_E_LIMIT; 0: 128 MiB.  Writing .zst: the
	 * window, a power of two, through which far matches are searched, too (zstd --long);
	 * 0: the level's own.
	 */
	uint64_t max_window;
	bool checksum;       /* writing: with the format's checksum (.gz and .zz always have it) */
	bool ignore_checksum; /* reading: .zst, .lz4, .sz, and .gz and .zz */
	bool strict;   /* reading .gz, .zz: all by zlib, as with LADE_BATCH_STRICT; slower */
	uint64_t size; /* writing: all decoded bytes, if known: stored where the format can */
	const lade_dict *dict; /* reading .zst, .lz4, .zz; writing .zst */
	/* Of all calls, or NULL; a writer is of no more use then.  Freeing a writer of .zst with
	 * several threads waits for the parts that libzstd's threads have begun, one of several MiB
	 * each: seconds at high levels. */
	lade_cancel *cancel;
} lade_foreign_options;

typedef struct lade_foreign_reader lade_foreign_reader;
typedef struct lade_foreign_writer lade_foreign_writer;

/*
 * Decodes a file as it comes: concatenated frames and members, skippable frames, unknown content
 * sizes.  read() gives '*got' from 1 to 'cap', or 0 at the end of a complete file.
 * Fails: LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_CHECKSUM (err->offset counts encoded bytes),
 *        LADE_E_LIMIT, LADE_E_DICT, LADE_E_UNSUPPORTED, LADE_E_NOMEM, and what the input fails with
 * Threads: one caller; 'input' is called on its thread only, but by copy().  After a failure every
 *        call fails with the same error.
 * Owns:  the caller, until the free (NULL is fine); engine and dictionary outlive the reader
 * Source: the formats' documents above
 */
LADE_API lade_status lade_foreign_reader_new(lade_engine *engine, lade_format format,
                                             lade_input input,
                                             const lade_foreign_options *options,
                                             lade_foreign_reader **out, lade_error *err);
LADE_API lade_status lade_foreign_reader_read(lade_foreign_reader *reader, void *dst, size_t cap,
                                              size_t *got, lade_error *err);
/* Decodes the rest to 'output', in order: one of the engine's threads calls the input and decodes
 * while the caller's writes.  After a failure of any kind the reader is of no more use. */
LADE_API lade_status lade_foreign_reader_copy(lade_foreign_reader *reader, lade_output output,
                                              lade_error *err);
/* Frames (.zst, .lz4), members (.gz) or streams (.zz, .sz) that have begun so far; skippable frames
 * are not counted. */
LADE_API uint64_t lade_foreign_reader_frames(const lade_foreign_reader *reader);
LADE_API void lade_foreign_reader_free(lade_foreign_reader *reader);

/*
 * Writes .zst, .gz or .lz4; finish() writes the end and must be called: what was written without it
 * is refused by readers as truncated (a .gz file may seem complete).
 * Fails: LADE_E_ARG (format, level, window), LADE_E_STATE (after finish(); other than
 *        options.size bytes), LADE_E_NOMEM, and what the output fails with
 * Threads: one caller; 'input' and 'output' are called on its thread only.  After a failure every
 *        call fails with the same error.
 * Owns:  the caller, until the free (NULL is fine); engine and dictionary outlive the writer
 */
LADE_API lade_status lade_foreign_writer_new(lade_engine *engine, lade_format format,
                                             lade_output output,
                                             const lade_foreign_options *options,
                                             lade_foreign_writer **out, lade_error *err);
LADE_API lade_status lade_foreign_writer_write(lade_foreign_writer *writer, const void *data,
                                               size_t size, lade_error *err);
/* Writes all that 'input' gives, to its end. */
LADE_API lade_status lade_foreign_writer_copy(lade_foreign_writer *writer, lade_input input,
                                              lade_error *err);
LADE_API lade_status lade_foreign_writer_finish(lade_foreign_writer *writer, lade_error *err);
LADE_API void lade_foreign_writer_free(lade_foreign_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
