/*
 * frame.h: writes and reads .lade frames: chunks with a checksum each, readable from any offset or
 * from a pipe (docs/format/frame.md).
 *
 *	lade_output output = {file, write_file};     // a FILE, and a function that calls fwrite()
 *	lade_frame_options options = {.struct_size = sizeof options, .spec = spec};
 *	lade_frame_writer *writer;
 *	if (lade_frame_writer_new(engine, output, &options, &writer, &err) ||
 *	    lade_frame_writer_write(writer, field, sizeof field, &err) ||
 *	    lade_frame_writer_finish(writer, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_frame_writer_free(writer);
 *	fclose(file);
 *
 *	lade_frame *frame;
 *	lade_frame_range range = {.off = 4096, .dst = lade_host_span(back, 1000)};
 *	if (lade_frame_open_path(engine, "x.lade", NULL, &frame, &err) ||
 *	    lade_frame_read(frame, &range, 1, NULL, NULL, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_frame_close(frame);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_H
#define LADE_FRAME_H

#include <lade/batch.h>
#include <lade/checksum.h>
#include <lade/io.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checksums ------------------------------------------------------------------------ */

/* Whether readers verify the checksums of chunks.  The default is safe. */
typedef enum lade_verify {
	LADE_VERIFY_IF_PRESENT = 0,
	LADE_VERIFY_REQUIRED = 1, /* frames without checksums fail with LADE_E_NO_CHECKSUM */
	LADE_VERIFY_NEVER = 2,    /* damaged chunks may be returned with LADE_OK */
} lade_verify;

/* ---- writing ------------------------------------------------------------------------- */

#define LADE_NDIM_MAX 32

/* The least and the most decoded bytes of a chunk. */
#define LADE_FRAME_CHUNK_MIN 16
#define LADE_FRAME_CHUNK_MAX 0x7FFFFFFF /* 2 GiB - 1 */

/* Zero-initialise, set struct_size and spec, then the fields you need. */
typedef struct lade_frame_options {
	size_t struct_size;
	const lade_spec *spec;  /* NULL: "copy" */
	size_t chunk_size;      /* decoded bytes; 0: 1 MiB; LADE_FRAME_CHUNK_MIN to _MAX */
	lade_checksum checksum; /* LADE_XXH64 (also for 0) or LADE_CRC32C */
	bool no_checksums;      /* store none: readers cannot find damaged chunks */
	lade_dtype dtype;       /* the elements' type or LADE_DTYPE_NONE; divides chunk_size */
	unsigned ndim;          /* entries of 'shape'; 0 with a 'shape' is a scalar */
	const uint64_t *shape;  /* NULL: none; else it determines 'size' */
	bool fortran_order;     /* the first index varies fastest */
	bool has_size;          /* exactly 'size' decoded bytes will be written */
	uint64_t size;
	unsigned threads;       /* 0: the engine's */
	const lade_dict *dict;  /* not stored in the frame: readers need the same one */
	lade_stream stream;     /* lade_frame_encode_device() runs after its work */
	lade_cancel *cancel;    /* ends a writer's calls, which then cannot go on; or NULL */
} lade_frame_options;

typedef struct lade_frame_writer lade_frame_writer;

/*
 * Writes a frame in order; its length need not be known.  Threads encode chunks while earlier
 * chunks are written.  _finish() writes the index and must be called: readers refuse a frame
 * without it as truncated.  After a failure every call fails with the same error.
 *
 * Memory:  4 chunks for each thread (chunks below 256 KiB count as 256 KiB), the codecs' scratch
 *          memory, and 8 bytes for every 4096 chunks
 * Fails:   LADE_E_ARG (an option), LADE_E_STATE, LADE_E_LIMIT, LADE_E_NOMEM, what encoding fails
 *          with, and what the output fails with
 * Threads: one caller, on whose thread 'output' is called
 * Owns:    the caller, until lade_frame_writer_free() (NULL is fine).  The writer references the
 *          spec and copies the shape; engine and dictionary must outlive it
 * Source:  docs/format/frame.md
 */
LADE_API lade_status lade_frame_writer_new(lade_engine *engine, lade_output output,
                                           const lade_frame_options *options,
                                           lade_frame_writer **out, lade_error *err);
LADE_API lade_status lade_frame_writer_write(lade_frame_writer *writer, const void *data,
                                             size_t size, lade_error *err);
/* Writes everything that 'input' gives, to its end; reading, encoding and writing run at the same
 * time.  'input' is called on the caller's thread.  May be mixed with _write(). */
LADE_API lade_status lade_frame_writer_copy(lade_frame_writer *writer, lade_input input,
                                            lade_error *err);
/* Writes 'size' bytes as one chunk, with its own spec (NULL: the frame's).  Earlier chunks must be
 * complete: every chunk but the last has chunk_size bytes. */
LADE_API lade_status lade_frame_writer_chunk(lade_frame_writer *writer, const lade_spec *spec,
                                             const void *data, size_t size, lade_error *err);
LADE_API lade_status lade_frame_writer_finish(lade_frame_writer *writer, lade_error *err);
LADE_API void lade_frame_writer_free(lade_frame_writer *writer);

/* The most bytes that a frame of 'size' decoded bytes can have, if no chunk has its own spec.
 * SIZE_MAX: it is too large, or the options are not valid. */
LADE_API size_t lade_frame_bound(const lade_frame_options *options, size_t size);

/*
 * Writes a whole frame from a device's memory to the same device's memory.  The device encodes the
 * chunks and assembles the frame, after the work of the options' stream; the call waits once.
 * Chunks of one repeated element are not marked as constant.  'size' of the options may be left
 * out.
 *
 * Memory:  on the device, lade_frame_bound() bytes and the codecs' workspace
 * Fails:   LADE_E_ARG; LADE_E_UNSUPPORTED if the spans are elsewhere, the device has no kernels for
 *          the spec, a stage is lossy, there is a dictionary, the frame has more than 2^20 chunks,
 *          or the stream is being captured (use a writer for most of these); LADE_E_NOSPACE,
 *          LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, and what encoding fails with
 * Threads: any number of callers per engine
 * Owns:    nothing; both spans stay the caller's
 */
LADE_API lade_status lade_frame_encode_device(lade_engine *engine,
                                              const lade_frame_options *options, lade_cspan src,
                                              lade_span dst, size_t *dst_size,
                                              lade_error *err);

/* ---- reading, anywhere ------------------------------------------------------------------ */

enum {
	LADE_CHUNK_STORED = 1,   /* not encoded: the payload is the decoded bytes */
	LADE_CHUNK_CONSTANT = 2, /* the payload is one element, repeated */
	LADE_CHUNK_OWN_SPEC = 4, /* the chunk has its own spec, in front of the payload */
};

typedef struct lade_frame_info {
	const lade_spec *spec;
	/* In a pipe these three are LADE_SIZE_UNKNOWN until its end. */
	uint64_t size;         /* decoded bytes */
	uint64_t encoded_size; /* bytes of the whole frame */
	uint64_t chunk_count;
	size_t chunk_size;     /* decoded bytes of every chunk but the last */
	lade_checksum checksum; /* LADE_CHECKSUM_NONE: chunks have none */
	lade_dtype dtype;
	bool has_shape;
	unsigned ndim;
	uint64_t shape[LADE_NDIM_MAX];
	bool fortran_order;
	unsigned version;
} lade_frame_info;

typedef struct lade_frame_chunk {
	uint64_t off;         /* from the frame's first byte to the payload */
	size_t size;          /* encoded bytes */
	size_t decoded_size;
	uint32_t flags;       /* LADE_CHUNK_... */
	uint64_t checksum;    /* of the decoded bytes; 0: none */
} lade_frame_chunk;

enum {
	/* lade_frame_open_path() maps the file and decodes from the mapping without a copy.  Do not
	 * use it for files that may shrink: the process would get SIGBUS.  Without this flag the
	 * file is read with pread(), and a shorter file is an error. */
	LADE_FRAME_MAP = 1,
	/* Chunks are decoded as with LADE_BATCH_STRICT. */
	LADE_FRAME_STRICT = 2,
	/* lade_frame_copy() and pipes: 'threads' threads of the engine decode, besides the caller's
	 * thread, which reads and writes meanwhile.  If the engine has too few threads, the
	 * caller's thread decodes too. */
	LADE_FRAME_APART = 4,
};

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_frame_read_options {
	size_t struct_size;
	lade_verify verify; /* whether to verify the checksums of chunks; 0: if present */
	uint32_t flags;     /* LADE_FRAME_... */
	unsigned threads;
	const lade_dict *dict;
	size_t max_chunk_size; /* larger chunks fail with LADE_E_LIMIT; 0: 2 GiB - 1 */
	/*
	 * Where lade_frame_read() decodes; pipes decode on the host.  LADE_WHERE_AUTO: the host;
	 * for ranges on a device, the side expected to finish first.  LADE_WHERE_DEVICE: the
	 * range's device, or else 'device', decodes many chunks at a time, as strictly as
	 * LADE_FRAME_STRICT.  The host reads the chunks, and decodes those without kernels.  The
	 * device writes ranges in pinned memory itself.  Checksums are verified where the decoded
	 * bytes are.
	 */
	lade_where where;
	int32_t device;
	/* Ends the opening, or any call of a pipe, which then cannot go on; or NULL. */
	lade_cancel *cancel;
} lade_frame_read_options;

typedef struct lade_frame lade_frame;

/*
 * Open a frame for reading at any offset.  The call checks the header, the footer and the list of
 * index pages.  Later calls check an index page at its first use, and each chunk they read.
 *
 * lade_frame_open(): from a source (io.h), which must outlive the frame and stays the caller's.
 * lade_frame_open_memory(): from memory, borrowed until the close; chunks are decoded in place.
 * lade_frame_open_path(): from a file, which stays open until the close.
 *
 * Fails:   LADE_E_VERSION, LADE_E_CORRUPT, LADE_E_TRUNCATED, LADE_E_CHECKSUM (with the offset),
 *          LADE_E_NO_CHECKSUM, LADE_E_LIMIT, LADE_E_NOT_FOUND, LADE_E_CHANGED, LADE_E_IO,
 *          LADE_E_NOMEM, LADE_E_CANCELLED
 * Threads: an open frame may be read from several threads at once
 */
LADE_API lade_status lade_frame_open(lade_engine *engine, lade_source source,
                                     const lade_frame_read_options *options, lade_frame **out,
                                     lade_error *err);
LADE_API lade_status lade_frame_open_memory(lade_engine *engine, const void *data, size_t size,
                                            const lade_frame_read_options *options,
                                            lade_frame **out, lade_error *err);
LADE_API lade_status lade_frame_open_path(lade_engine *engine, const char *path,
                                          const lade_frame_read_options *options,
                                          lade_frame **out, lade_error *err);
LADE_API void lade_frame_close(lade_frame *frame); /* NULL is fine */

/*
 * Opens a frame in a device's memory, borrowed until the close.  The call copies header and index
 * to the host, after the work of 'stream' (NULL: the device's default stream), which must not be
 * captured.  If the device has kernels for the spec, lade_frame_read() of the whole frame to memory
 * of the same device runs there, after the work of the stream.
 *
 * Fails: as lade_frame_open(); LADE_E_UNSUPPORTED, LADE_E_NO_DEVICE, LADE_E_DEVICE
 */
LADE_API lade_status lade_frame_open_device(lade_engine *engine, lade_cspan src,
                                            lade_stream stream,
                                            const lade_frame_read_options *options,
                                            lade_frame **out, lade_error *err);

/* What the header says (valid until the close), and what the index says about one chunk.
 * Fails: LADE_E_RANGE past the last chunk, and as opening does */
LADE_API const lade_frame_info *lade_frame_get_info(const lade_frame *frame);
LADE_API lade_status lade_frame_get_chunk(lade_frame *frame, uint64_t index,
                                          lade_frame_chunk *out, lade_error *err);

/* A range of the decoded bytes: dst.size bytes from 'off' on, which go to 'dst'. */
typedef struct lade_frame_range {
	uint64_t off;
	lade_span dst;
} lade_frame_range;

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_frame_range_options {
	size_t struct_size;
	size_t range_size, result_size; /* sizeof of these structs; 0: as in 0.2.0 */
	lade_cancel *cancel; /* ends the call between chunks; or NULL */
} lade_frame_range_options;

/*
 * Reads 'count' ranges in one batch.  It reads and decodes only the chunks that the ranges touch,
 * each once.  'results', with 'count' entries, and 'options' may be NULL.
 *
 * Destinations may be in memory of any kind.  Those on a device are written after the work of its
 * default stream.  If a device decodes a chunk that a range on it contains whole, it decodes the
 * chunk into the range and verifies the checksum there.  All other chunks are verified on the host
 * before they are copied to a device.
 *
 * Returns: as lade_decode_into()
 * Fails:   LADE_E_RANGE for a range past the end, LADE_E_NO_DEVICE for a range on a device that is
 *          not there, LADE_E_CHANGED for all ranges if the file is not the one that was opened,
 *          LADE_E_CANCELLED, and what decoding and reading fail with
 * Threads: any number of callers
 */
LADE_API lade_status lade_frame_read(lade_frame *frame, const lade_frame_range *ranges,
                                     size_t count, lade_result *results,
                                     const lade_frame_range_options *options,
                                     lade_error *err);

/* Zero-initialise, set struct_size, then the fields you need. */
typedef struct lade_frame_copy_options {
	size_t struct_size;
	/*
	 * Writes 'size' decoded bytes at offset 'off'.  It is called with output.ctx instead of
	 * output.write, in any order and from several threads at once.  NULL: the output takes
	 * bytes in order only.
	 */
	lade_status (*write_at)(void *ctx, uint64_t off, const void *src, size_t size,
	                        lade_error *err);
	lade_cancel *cancel; /* ends the call between chunks; or NULL */
} lade_frame_copy_options;

/*
 * Decodes a whole frame to 'output'.  Reading, decoding and writing run at the same time, on the
 * engine's threads or on the device that the frame was opened with.  'options' may be NULL.
 *
 * Memory:  3 chunks for each thread (chunks below 256 KiB count as 256 KiB) and the codecs' scratch
 *          memory.  With a device, or from a source that is not local: 3 pieces of 32 MiB, or of
 *          one larger chunk, and what lade_frame_read() needs for each
 * Fails:   as lade_frame_read() for the first chunk that fails, and what the output fails with.
 *          The bytes before that chunk are written; those after it may be
 * Threads: any number of callers; output.write is called on the caller's thread
 */
LADE_API lade_status lade_frame_copy(lade_frame *frame, lade_output output,
                                     const lade_frame_copy_options *options, lade_error *err);

/* ---- reading a pipe ----------------------------------------------------------------------- */

typedef struct lade_frame_pipe lade_frame_pipe;

/*
 * Reads a frame in order, from its first byte, and checks the index against the chunks.  The call
 * returns all bytes before a failure first; after a failure every call fails with the same error.
 *
 * Memory:  as the writer's, and 64 KiB for what may follow the frame (lade_frame_pipe_rest())
 * Fails:   as lade_frame_open(), and what the input fails with
 * Threads: one caller, on whose thread 'input' is called
 * Owns:    the caller, until lade_frame_pipe_free() (NULL is fine)
 * Source:  docs/format/frame.md
 */
LADE_API lade_status lade_frame_pipe_new(lade_engine *engine, lade_input input,
                                         const lade_frame_read_options *options,
                                         lade_frame_pipe **out, lade_error *err);
LADE_API const lade_frame_info *lade_frame_pipe_get_info(const lade_frame_pipe *pipe);
/* Stores up to 'cap' bytes, and their number in '*got': at least 1, or 0 at the end of the frame,
 * when everything is verified.  Chunks that fit are decoded straight to 'dst', so a large 'cap'
 * keeps all threads busy. */
LADE_API lade_status lade_frame_pipe_read(lade_frame_pipe *pipe, void *dst, size_t cap,
                                          size_t *got, lade_error *err);
/* Decodes the rest of the frame to 'output' in order; reading, decoding and writing run at the same
 * time.  'output' is called on the caller's thread. */
LADE_API lade_status lade_frame_pipe_copy(lade_frame_pipe *pipe, lade_output output,
                                          lade_error *err);
/* At the end of the frame: bytes that were read from the input and follow the frame.  Valid until
 * _free(). */
LADE_API lade_cspan lade_frame_pipe_rest(const lade_frame_pipe *pipe);
LADE_API void lade_frame_pipe_free(lade_frame_pipe *pipe);

#ifdef __cplusplus
}
#endif

#endif
