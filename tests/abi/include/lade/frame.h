/*
 * frame.h: the .lade container (docs/format/frame.md): chunks behind one spec, checksummed,
 * seekable, readable from a pipe.  And the two bare kinds, without a container.
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

/* Whether readers verify the checksums of chunks.  Zero is safe. */
typedef enum lade_verify {
	LADE_VERIFY_IF_PRESENT = 0,
	LADE_VERIFY_REQUIRED = 1, /* a frame without checksums: LADE_E_NO_CHECKSUM */
	LADE_VERIFY_NEVER = 2,    /* damaged bytes may come back with LADE_OK */
} lade_verify;

/* ---- writing ------------------------------------------------------------------------- */

#define LADE_NDIM_MAX 32

/* A chunk's decoded bytes, from and to. */
#define LADE_FRAME_CHUNK_MIN 16
#define LADE_FRAME_CHUNK_MAX (1 << 30)

/* Zero-initialise, set struct_size and spec, then what is wanted. */
typedef struct lade_frame_options {
	size_t struct_size;
	const lade_spec *spec;  /* NULL: "copy" */
	size_t chunk_size;      /* decoded bytes; 0: 1 MiB; LADE_FRAME_CHUNK_MIN to _MAX */
	lade_checksum checksum; /* LADE_XXH64 (also for 0) or LADE_CRC32C */
	bool no_checksums;      /* stores none: readers cannot find damaged chunks */
	lade_dtype dtype;       /* what the bytes are, or LADE_DTYPE_NONE; divides chunk_size */
	unsigned ndim;          /* of 'shape'; 0 with a 'shape' is a scalar */
	const uint64_t *shape;  /* NULL: none; else 'size' follows from it */
	bool fortran_order;     /* the first index varies fastest */
	bool has_size;          /* 'size' decoded bytes will come: no more, no less */
	uint64_t size;
	unsigned threads;       /* 0: the engine's */
	const lade_dict *dict;  /* not noted in the frame: readers must be given the same */
	lade_stream stream;     /* lade_frame_encode_device() runs behind its work */
	lade_cancel *cancel;    /* of a writer's calls, which is of no more use then; or NULL */
} lade_frame_options;

typedef struct lade_frame_writer lade_frame_writer;

/*
 * Writes a frame as the bytes come; the length need not be known.  Chunks are encoded in
 * parallel while earlier ones are written.  finish() writes the index and must be called; free()
 * without it leaves a frame that readers refuse as truncated.
 * Memory:  4 chunks a thread (chunks below 256 KiB count as 256 KiB), the codecs' scratch,
 *          and 8 bytes for every 4096 chunks
 * Fails:   LADE_E_ARG (an option), LADE_E_STATE, LADE_E_LIMIT, LADE_E_NOMEM, what encoding fails
 *          with, and what the output does
 * Threads: one caller, and 'output' is called on its thread only.  After a failure every
 *          call fails with the same error.
 * Owns:    the caller, until lade_frame_writer_free() (NULL is fine).  The spec is counted up and
 *          the shape copied; engine and dictionary outlive the writer
 * Source:  docs/format/frame.md
 */
LADE_API lade_status lade_frame_writer_new(lade_engine *engine, lade_output output,
                                           const lade_frame_options *options,
                                           lade_frame_writer **out, lade_error *err);
LADE_API lade_status lade_frame_writer_write(lade_frame_writer *writer, const void *data,
                                             size_t size, lade_error *err);
/* Writes what 'input' gives, to its end, on the caller's thread: reading, encoding and writing
 * go on at once.  May be mixed with the calls above. */
LADE_API lade_status lade_frame_writer_copy(lade_frame_writer *writer, lade_input input,
                                            lade_error *err);
/* Writes 'size' decoded bytes as one chunk with a spec of its own (NULL: the frame's). The
 * chunks before it must be complete, and every chunk but the last holds chunk_size bytes. */
LADE_API lade_status lade_frame_writer_chunk(lade_frame_writer *writer, const lade_spec *spec,
                                             const void *data, size_t size, lade_error *err);
LADE_API lade_status lade_frame_writer_finish(lade_frame_writer *writer, lade_error *err);
LADE_API void lade_frame_writer_free(lade_frame_writer *writer);

/* The bytes that a frame of 'size' decoded bytes can take at most, chunks with a spec of their own
 * left out; SIZE_MAX: too large, or the options are not valid. */
LADE_API size_t lade_frame_bound(const lade_frame_options *options, size_t size);

/*
 * A whole frame, from a device's memory to the same one's: the device encodes the chunks and puts
 * the frame together, behind the work of the options' stream, and the call waits for that once.
 * Chunks of one element are not marked as constant.  'options' as above; 'size' need not be told.
 * Memory:  on the device, what lade_frame_bound() says and the codecs' workspace
 * Fails:   LADE_E_ARG; LADE_E_UNSUPPORTED where the spans lie elsewhere, the device has no kernels
 *          for the spec, a stage is lossy, a dictionary is given, the frame has more than 2^20
 *          chunks, or the stream is captured (a writer does most of that); LADE_E_NOSPACE,
 *          LADE_E_NO_DEVICE, LADE_E_DEVICE, LADE_E_NOMEM, and what encoding fails with
 * Threads: any number of callers per engine
 */
LADE_API lade_status lade_frame_encode_device(lade_engine *engine,
                                              const lade_frame_options *options, lade_cspan src,
                                              lade_span dst, size_t *dst_size,
                                              lade_error *err);

/* ---- reading, anywhere ------------------------------------------------------------------ */

enum {
	LADE_CHUNK_STORED = 1,   /* the decoded bytes themselves */
	LADE_CHUNK_CONSTANT = 2, /* one element (or byte), repeated */
	LADE_CHUNK_OWN_SPEC = 4, /* its own spec stands before the payload */
};

typedef struct lade_frame_info {
	const lade_spec *spec;
	uint64_t size;         /* decoded bytes of all; LADE_SIZE_UNKNOWN in a pipe until the end */
	uint64_t encoded_size; /* bytes of the whole frame; likewise */
	uint64_t chunk_count;  /* likewise */
	size_t chunk_size;     /* decoded bytes of every chunk but the last */
	lade_checksum checksum; /* LADE_CHECKSUM_NONE when there are none */
	lade_dtype dtype;
	bool has_shape;
	unsigned ndim;
	uint64_t shape[LADE_NDIM_MAX];
	bool fortran_order;
	unsigned version;
} lade_frame_info;

typedef struct lade_frame_chunk {
	uint64_t off;         /* of the payload, from the frame's first byte */
	size_t size;          /* encoded bytes */
	size_t decoded_size;
	uint32_t flags;       /* LADE_CHUNK_... */
	uint64_t checksum;    /* of the decoded bytes; 0 without */
} lade_frame_chunk;

enum {
	/* lade_frame_open_path() maps the file and decodes from there without a copy.  For files
	 * that nobody makes shorter meanwhile: that is a SIGBUS.  Without it the file is read by
	 * pread(), where it is an error. */
	LADE_FRAME_MAP = 1,
	/* Chunks are decoded as with LADE_BATCH_STRICT. */
	LADE_FRAME_STRICT = 2,
	/* lade_frame_copy() and pipes: 'threads' of the engine decode, and the caller's thread is
	 * none of them, so that one thread decodes while another one reads and writes.  It is one
	 * of them if the engine has no more threads. */
	LADE_FRAME_APART = 4,
};

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_frame_read_options {
	size_t struct_size;
	lade_verify verify; /* whether checksums of chunks are verified; 0: if present */
	uint32_t flags;     /* LADE_FRAME_... */
	unsigned threads;
	const lade_dict *dict;
	size_t max_chunk_size; /* refuse larger chunks with LADE_E_LIMIT; 0: 1 GiB */
	/*
	 * Where lade_frame_read() decodes; pipes are decoded on the host.  LADE_WHERE_AUTO is the
	 * host, and for ranges on a device whichever is expected to be done first.
	 * LADE_WHERE_DEVICE: a device (that of a range, else 'device') decodes what it has kernels
	 * for, many chunks at a time, with the verdicts of LADE_FRAME_STRICT; the host reads, and
	 * decodes the rest.  Ranges in pinned memory are written by the device itself.
	 * Checksums are verified where the decoded bytes are.
	 */
	lade_where where;
	int32_t device;
	/* Of opening; of all calls of a pipe, which then is of no more use; or NULL. */
	lade_cancel *cancel;
} lade_frame_read_options;

typedef struct lade_frame lade_frame;

/*
 * Opens a frame for reading anywhere.  Header, footer and the list of index pages are checked
 * here, a page when one of its chunks is first wanted, a chunk when it is read.  The source
 * outlives the frame and stays the caller's.
 * _memory: a map or a buffer, borrowed until the close; decoded from without a copy.
 * _path: a file, kept open until the close.
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
 * Likewise, of a frame in a device's memory: header and index come to the host, behind the work of
 * 'stream' (of that device; NULL: its default stream), which must not be captured.  The memory is
 * borrowed until the close.  lade_frame_read() of all of it to memory of the same device is done
 * there, behind the stream's work, if the device has kernels for the spec.
 * Fails: also LADE_E_UNSUPPORTED, LADE_E_NO_DEVICE, LADE_E_DEVICE
 */
LADE_API lade_status lade_frame_open_device(lade_engine *engine, lade_cspan src,
                                            lade_stream stream,
                                            const lade_frame_read_options *options,
                                            lade_frame **out, lade_error *err);

/* What header and index say; valid until the close.  get_chunk: LADE_E_RANGE past the last one. */
LADE_API const lade_frame_info *lade_frame_get_info(const lade_frame *frame);
LADE_API lade_status lade_frame_get_chunk(lade_frame *frame, uint64_t index,
                                          lade_frame_chunk *out, lade_error *err);

/* A range of the decoded bytes and where it goes. */
typedef struct lade_frame_range {
	uint64_t off;
	lade_span dst; /* its size is the range's */
} lade_frame_range;

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_frame_range_options {
	size_t struct_size;
	size_t range_size, result_size; /* sizeof of these structs; 0: as in 0.2.0 */
	lade_cancel *cancel; /* ends the call between chunks; or NULL */
} lade_frame_range_options;

/*
 * Reads 'count' ranges as one batch; only the chunks that they touch are read and decoded, each
 * once a call.  Ranges may lie in memory of any kind; those on devices are written behind the work
 * of the device's default stream.  If the device decodes a chunk that such a range wants whole, it
 * decodes the chunk into the range and verifies its checksum there.  All other chunks are verified
 * before they are copied to a device.  'results' as in lade_decode_into(); may be NULL, as
 * 'options' may.
 * Fails: LADE_E_RANGE for a range past the end, LADE_E_NO_DEVICE for one on a device that is not
 *        there, LADE_E_CHANGED for all if the file is not the one that was opened,
 *        LADE_E_CANCELLED, and what decoding and reading fail with
 */
LADE_API lade_status lade_frame_read(lade_frame *frame, const lade_frame_range *ranges,
                                     size_t count, lade_result *results,
                                     const lade_frame_range_options *options,
                                     lade_error *err);

/* Zero-initialise, set struct_size, then what is wanted. */
typedef struct lade_frame_copy_options {
	size_t struct_size;
	/*
	 * Writes 'size' decoded bytes to where they belong, 'off' bytes from the first one.  Called
	 * with output.ctx and instead of output.write, in any order, from several threads at once.
	 * NULL: the output takes bytes in order only.
	 */
	lade_status (*write_at)(void *ctx, uint64_t off, const void *src, size_t size,
	                        lade_error *err);
	lade_cancel *cancel; /* ends the call between chunks; or NULL */
} lade_frame_copy_options;

/*
 * Decodes all of a frame to 'output': reading, decoding and writing go on at once, on the engine's
 * threads or the device that the frame was opened with.  'options' may be NULL.
 * Memory:  3 chunks a thread (chunks below 256 KiB count as 256 KiB) and the codecs' scratch.
 *          With a device, or from a source that is not local: 3 pieces of 32 MiB, or of one
 *          chunk, and what lade_frame_read() takes for each
 * Fails:   as lade_frame_read() for the first chunk that cannot be had, and what the output fails
 *          with.  The bytes before that chunk have been written, those behind it may have been
 * Threads: any number of callers.  output.write is called on the caller's thread
 */
LADE_API lade_status lade_frame_copy(lade_frame *frame, lade_output output,
                                     const lade_frame_copy_options *options, lade_error *err);

/* ---- reading a pipe ----------------------------------------------------------------------- */

typedef struct lade_frame_pipe lade_frame_pipe;

/*
 * Reads a frame in order, from its first byte; the index is checked against the chunks as it
 * comes by.
 * Memory:  as the writer's, and 64 KiB of what may follow the frame (lade_frame_pipe_rest())
 * Fails:   as lade_frame_open(), and what the input fails with
 * Threads: one caller; 'input' is called on its thread only.  A failure is told once the bytes
 *          before it have been given; then every call fails with the same error.
 * Owns:    the caller, until lade_frame_pipe_free() (NULL is fine)
 * Source:  docs/format/frame.md
 */
LADE_API lade_status lade_frame_pipe_new(lade_engine *engine, lade_input input,
                                         const lade_frame_read_options *options,
                                         lade_frame_pipe **out, lade_error *err);
LADE_API const lade_frame_info *lade_frame_pipe_get_info(const lade_frame_pipe *pipe);
/* '*got' from 1 to 'cap', or 0 at the end of the frame (when all has been verified).  Chunks that
 * fit 'cap' whole are decoded to their place in 'dst'; a large 'cap' keeps all threads busy. */
LADE_API lade_status lade_frame_pipe_read(lade_frame_pipe *pipe, void *dst, size_t cap,
                                          size_t *got, lade_error *err);
/* Decodes the rest of the frame to 'output', called on the caller's thread, in order: reading,
 * decoding and writing go on at once. */
LADE_API lade_status lade_frame_pipe_copy(lade_frame_pipe *pipe, lade_output output,
                                          lade_error *err);
/* Bytes taken from the input that follow the frame (at its end); valid until the free. */
LADE_API lade_cspan lade_frame_pipe_rest(const lade_frame_pipe *pipe);
LADE_API void lade_frame_pipe_free(lade_frame_pipe *pipe);

#ifdef __cplusplus
}
#endif

#endif
