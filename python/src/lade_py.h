/*
 * lade_py.h: what the files of the extension share.
 *
 * Everything hangs on the module's state; nothing here is global.  Functions that return a
 * PyObject * or a bool report failure as Python does, with an exception set.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_PY_H
#define LADE_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <lade/lade.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* As without the limited API: any object's pointer will do. */
#ifdef Py_LIMITED_API
#define Py_XDECREF(object) Py_XDECREF((PyObject *)(object))
#undef Py_NewRef
#undef Py_XNewRef
#define Py_NewRef(object) _Py_NewRef((PyObject *)(object))
#define Py_XNewRef(object) _Py_XNewRef((PyObject *)(object))
#endif
/* Puts 'object' in the place of another, which is dropped. */
#define PY_REPLACE(place, object)                 \
	do {                                      \
		PyObject *old_ = (PyObject *)(place); \
		(place) = (object);               \
		Py_XDECREF(old_);                 \
	} while (0)

#define PY_NDIM_MAX 32
#define PY_STATUS_COUNT 25

/* ---- state ------------------------------------------------------------------------------ */

/* An array whose last reference was dropped by a thread that may not touch the interpreter. */
typedef struct py_dropped {
	struct py_dropped *next;
	PyObject *object;
} py_dropped;

typedef struct py_results py_results;
typedef struct py_kept py_kept;

enum { PY_ALLOC_DEVICE, PY_ALLOC_PINNED, PY_ALLOC_HOST, PY_ALLOC_COUNT };

typedef struct py_state {
	PyTypeObject *array_type, *batch_type, *codec_type;
	PyTypeObject *store_type, *node_type, *plan_type; /* of Zarr */
	PyObject *error[PY_STATUS_COUNT];      /* exception classes by status */
	PyObject *kind_device, *kind_host;     /* members of ArrayBufferKind */
	PyObject *stream_class;                /* CudaStream */
	PyObject *dtype_class;                 /* DType */
	PyObject *allocator[PY_ALLOC_COUNT];   /* callables, or NULL */
	atomic_flag allocator_lock;            /* held for a pointer's reading or exchange */
	PyObject *name_cai, *name_ai, *name_dlpack, *name_dlpack_device, *name_exchange;
	_Atomic(PyTypeObject *) tensor_type; /* the first with DLPack's C functions, and */
	_Atomic(const struct py_exchange *) exchange; /* these; or NULL */
	size_t bytes_at;           /* where the bytes of a bytes object begin */
	PyTypeObject *numpy_array; /* numpy.ndarray, once one was seen; or NULL */
	enum { NUMPY_UNKNOWN, NUMPY_KNOWN, NUMPY_OTHER } numpy;
	lade_spec *copy;                       /* what moves bytes between places */
	_Atomic(py_dropped *) dropped;
	struct py_homes *homes;
	py_kept *kept; /* what streams still use, the oldest first */
	py_kept **kept_last;
	atomic_flag kept_lock;
	bool main_interpreter;
	_Atomic size_t blocks, block_bytes;    /* allocated by arrays, and not yet freed */
	_Atomic size_t block_count;            /* ever allocated */
} py_state;

/* For a few instructions only. */
static inline void py_lock(atomic_flag *lock)
{
	while (atomic_flag_test_and_set_explicit(lock, memory_order_acquire))
		;
}

static inline void py_unlock(atomic_flag *lock)
{
	atomic_flag_clear_explicit(lock, memory_order_release);
}

/* ---- element types ---------------------------------------------------------------------- */

/* 'kind' is that of type strings (b i u f c V), or 'e': bfloat16 and float8_e4m3. */
typedef struct py_dtype {
	char kind;
	bool big;
	uint32_t size; /* bytes */
} py_dtype;

#define PY_BYTES ((py_dtype){'u', false, 1})

bool py_dtype_parse(const char *text, py_dtype *out);  /* a type string, or a lade_dtype's name */
bool py_dtype_from_object(PyObject *object, py_dtype *out); /* str, numpy's dtype or type */
bool py_dtype_from_format(const char *format, Py_ssize_t size, py_dtype *out);
void py_dtype_text(py_dtype dtype, char text[24]);
const char *py_dtype_format(py_dtype dtype); /* for struct; NULL: there is none */
bool py_dtype_from_dlpack(unsigned code, unsigned bits, unsigned lanes, py_dtype *out);
bool py_dtype_to_dlpack(py_dtype dtype, uint8_t *code, uint8_t *bits);

/* ---- Array ------------------------------------------------------------------------------ */

typedef struct py_array {
	PyObject_HEAD
	py_state *st;
	char *data;
	size_t size; /* bytes of all elements */
	size_t cap;  /* bytes that are there, from 'data' on */
	lade_place place;
	py_dtype dtype;
	int ndim;
	bool readonly, contiguous, has_view;
	bool pins;    /* 'owner' is an Array that must not be resized meanwhile */
	bool exposed; /* somebody has the address: never to be resized */
	Py_ssize_t *shape, *strides; /* 'dims', or allocated together */
	Py_ssize_t dims[8];
	Py_buffer view;   /* of the source, if 'has_view' */
	PyObject *owner;  /* keeps the memory alive; NULL with a view, a block or 'memory' */
	lade_array *memory; /* of the library's, or NULL */
	bool lent;        /* nobody else has 'memory', or 'owner' of a function of the caller's */
	void *block;      /* the array's own memory, from lade_allocator_default() */
	size_t block_size;
	bool shared;      /* others got the address and may use it on streams of their own */
	/* What orders the memory's use; 0: the default stream.  Between calls never another's
	 * stream: py_array_leave(). */
	uintptr_t stream;
	PyObject *stream_object; /* keeps the stream alive, or NULL */
	py_results *results;     /* of the work that writes the memory, or NULL */
	size_t result;           /* which of them */
	bool unsized;            /* the results have the size; until then it is what is there */
	bool batched;            /* it is one of many: errors have its number */
	bool like_owner;         /* shaped as 'owner' is, if it has that size */
	_Atomic Py_ssize_t exports; /* py_pin(): buffers given out; negative: memory is exchanged */
	PyObject *weakrefs;
} py_array;

extern PyType_Spec py_array_spec;

/* Slots of the type. */
int py_array_traverse(PyObject *self, visitproc visit, void *arg);
int py_array_clear(PyObject *self);
void py_array_dealloc(PyObject *self);

/* An array without memory and shape. */
py_array *py_array_empty(py_state *st);
/* Dimensions of elements of array->dtype, from which size and contiguity follow; 'strides' NULL: in
 * C order. */
bool py_array_shape(py_array *array, Py_ssize_t ndim, const Py_ssize_t *shape,
                    const Py_ssize_t *strides);
/* The integers of a tuple. */
bool py_dims_arg(PyObject *tuple, Py_ssize_t dims[PY_NDIM_MAX]);
/* One dimension of size / dtype.size elements.  'size' is a multiple. */
bool py_array_flat(py_array *array, py_dtype dtype, size_t size);
/* A flat array of bytes with memory of its own. */
py_array *py_array_new(py_state *st, size_t size, lade_place place, uintptr_t stream);
/* A flat array of bytes on memory of the library's; takes the reference, also on failure. */
py_array *py_array_own(py_state *st, lade_array *memory);
/* Whether such memory comes from a function of the caller's. */
bool py_has_allocator(py_state *st, lade_kind kind);
/* Raises why there is no such block. */
void py_no_block(py_state *st, size_t size, lade_place place, uintptr_t stream);
/* Gives the unused end of an array's own block back, where that is worth it. */
void py_array_shrink(py_array *array, size_t size);
/* Makes room for 'cap' bytes in an array that owns its memory; contents are lost.  Fails as the
 * exchange below. */
bool py_array_grow(py_array *array, size_t cap);
/*
 * Two flat arrays of bytes with memory of their own exchange it.  'a' has one pin, the caller's,
 * and 'b' nobody else knows; false and an InputError when 'a' has got another pin since the
 * caller has looked: other threads run while a call works, and without the interpreter's lock
 * always.
 */
bool py_array_swap(py_array *a, py_array *b);
/* From here on memory and shape stay as they are, until the other one. */
void py_pin(py_array *array);
void py_unpin(py_array *array);
/* True when the array's memory is its own, and nobody looks at it but the caller, who counts as
 * 'pins' of its exports. */
bool py_array_resizable(const py_array *array, Py_ssize_t pins);
/* A flat view of 'size' bytes at 'data' that keeps 'owner'. */
py_array *py_array_part(py_state *st, PyObject *owner, char *data, size_t size,
                        lade_place place, py_dtype dtype, bool readonly, uintptr_t stream);
/* A copy in other memory, contiguous; waits until it is there. */
py_array *py_array_copy(py_array *array, lade_place place, uintptr_t stream);
/* Waits for the work that writes the array; raises what it failed with, each time. */
bool py_array_wait(py_array *array);
/* The same, and without results waits for the array's stream. */
bool py_array_synchronize(py_array *array);
/* Waits where the size is not known before. */
bool py_array_sized(py_array *array);
/* Ties an array to a result. */
void py_array_tie(py_array *array, py_results *results, size_t i, bool unsized);
/* Orders the array's use by another stream from now on. */
void py_array_on_stream(py_array *array, uintptr_t stream, PyObject *stream_object);

/* An array that is given to the caller.  Where it is on 'stream', 'object' stays as long as its
 * memory, which is given back on that stream; where its stream is another's, it goes home.  False:
 * an exception. */
bool py_array_leave(py_array *array, uintptr_t stream, PyObject *object);

/* Others get the address of the array's memory. */
void py_array_share(py_array *array);
/* Drops what other threads left behind. */
void py_drain(py_state *st);

/* ---- results of enqueued work ----------------------------------------------------------- */

/* The results that a source hangs on. */
typedef struct py_parent {
	py_results *results;
	size_t item;
} py_parent;

struct py_codec;
/* Room on the device for sizes and statuses; one reference, the caller's. */
py_results *py_results_new(py_state *st, const struct py_codec *codec, int32_t device,
                           size_t count);
py_results *py_results_ref(py_results *r); /* NULL is fine */
void py_results_unref(py_results *r);
uint64_t *py_results_sizes(const py_results *r); /* device memory */
uint32_t *py_results_statuses(const py_results *r);
/* Where sizes come from: the data, or a config (with room for as much, or maybe not). */
typedef enum py_want { PY_WANT_DATA, PY_WANT_CONFIG, PY_WANT_CONFIG_ROOM } py_want;
/* The items must have these sizes; the table, from malloc(), is the results' from now on. */
void py_results_want(py_results *r, uint64_t *sizes, py_want want);
/* The sizes of item 'first' and later, to be read by work on the same stream; NULL once fetched. */
const uint64_t *py_results_lend(py_results *r, size_t first);
/* Item 'i', whose source is an item of 'parent', fails where that does; raises a known failure
 * under the name of item 'index'. */
bool py_results_after(py_state *st, py_results *r, size_t i, py_results *parent, size_t item,
                      size_t index);
bool py_results_fetched(const py_results *r);
/* Waits for the work and fetches what became of it; an exception only where the device failed. */
bool py_results_wait(py_state *st, py_results *r);
/* Once fetched: raises what item 'i' failed with, under the name of item 'index'. */
bool py_results_check(py_state *st, const py_results *r, size_t i, size_t index);
/* Once fetched: an item's size; 0 and false where it failed. */
bool py_results_size(const py_results *r, size_t i, size_t *size);

/* The call that the results are of is over: they are on 'stream' from now on. */
void py_results_on_stream(py_results *r, uintptr_t stream);

/* Keeps objects until all that was enqueued on a stream, whose home is 'home', is done; the home
 * goes on behind that. */
void py_keep(py_state *st, int32_t device, uintptr_t stream, uintptr_t home, PyObject *objects);
void py_kept_sweep(py_state *st); /* lets go of what is done */
void py_kept_wait(py_state *st);
/* Lets 'stream' go on behind what is enqueued on 'other'. */
bool py_follow(py_state *st, int32_t device, uintptr_t stream, uintptr_t other);

/* ---- homes of streams ------------------------------------------------------------------- */

struct py_homes *py_homes_new(void);
void py_homes_free(struct py_homes *homes);

/* Whether a handle can be used for as long as 'keeper', which may be NULL, lives. */
bool py_stream_lives(uintptr_t stream, PyObject *keeper);
bool py_is_home(py_state *st, uintptr_t stream);
/* The stream on which a call leaves behind what it did on 'stream': this one, or its home. */
uintptr_t py_home(py_state *st, int32_t device, uintptr_t stream, PyObject *keeper);
/* '*stream' becomes that, behind all that is enqueued on it now; DeviceError. */
bool py_go_home(py_state *st, int32_t device, uintptr_t *stream, PyObject *keeper);
/* If 'home' is one, it goes on behind all that is enqueued on the device now. */
void py_home_after_all(py_state *st, int32_t device, uintptr_t home);

/* ---- intake ----------------------------------------------------------------------------- */

/* Any object as an Array; itself if it is one. */
py_array *py_array_from(py_state *st, PyObject *object, uintptr_t stream);
/* The array, on a device, is ready on the stream 'ready', a number as those of its interface, or
 * at once; from here on 'stream' orders its use, where that is not 0. */
bool py_array_ready_on(py_array *array, uintptr_t ready, uintptr_t stream);
/* The array of an object whose type has DLPack's C functions, which take a tenth of the time.
 * NULL without an exception: it has none, or they do not serve it, and __dlpack__() may. */
py_array *py_array_exchange(py_state *st, PyObject *object, uintptr_t stream);
py_array *py_array_from_dlpack(py_state *st, PyObject *object, uintptr_t stream, PyObject *copy);
PyObject *py_array_dlpack(py_array *array, PyObject *stream, PyObject *max_version,
                          PyObject *dl_device, PyObject *copy);

/*
 * The memory of one source or destination for the time of a call.  'array' is there when the
 * object had to become an Array, or is one: it is not resized meanwhile, by other threads or as
 * the destination of the same call.  'view' is there when a buffer is held.
 */
typedef struct py_mem {
	char *data;
	size_t size;
	lade_place place;
	py_array *array;
	py_array *scratch; /* what a strided destination is copied from at the end */
	Py_buffer *view; /* allocated: most sources are bytes or Arrays, and tables of them long */
} py_mem;

/* Contiguous objects give their memory, strided ones an Array that is not contiguous. */
bool py_mem_get(py_state *st, PyObject *object, bool writable, uintptr_t stream, py_mem *out);
/* The same of bytes, and of a contiguous numpy array of numbers, which the caller keeps: nothing is
 * to be released.  False: it is neither. */
bool py_mem_simple(py_state *st, PyObject *object, bool writable, py_mem *out);
bool py_numpy_get(py_state *st, PyObject *object, bool writable, py_mem *out);
/* The same of what is known to be a numpy array, without more.  False: not so, or that cannot be
 * told. */
bool py_numpy_look(PyObject *object, bool writable, char **data, size_t *size);
/* To be read at once: waits for what writes it. */
bool py_mem_read(py_state *st, PyObject *object, py_mem *out);
/* Strided memory becomes a contiguous copy in the same place. */
bool py_mem_flatten(py_mem *mem);
void py_mem_release(py_mem *mem);
/* Puts another array (the caller's reference to it) into the place of the one that is held. */
void py_mem_replace(py_mem *mem, py_array *array);
bool py_is_list(PyObject *object); /* a list or tuple */

/* ---- strides ---------------------------------------------------------------------------- */

/* The layout of an array that is a whole chunk, in the span of 'extent' bytes at 'first'; it
 * borrows the array's tables. */
lade_layout py_layout(const py_array *array, char **first, size_t *extent);
/* A strided array with elements of another type; ValueError where they have another size. */
py_array *py_array_seen_as(py_array *array, py_dtype dtype);
/* Copy a strided array to and from contiguous memory, of devices behind the work of 'stream'; they
 * wait.  Of fewer bytes than the array has, its others stay; 'src' has room for all. */
lade_status py_gather(const py_array *array, lade_span dst, uintptr_t stream, lade_error *err);
lade_status py_scatter(const py_array *array, const py_array *src, size_t size, uintptr_t stream,
                       lade_error *err);

/* ---- BatchArray ------------------------------------------------------------------------- */

typedef struct py_piece {
	char *data;
	size_t size;
} py_piece;

/* Pieces of a result's block begin at multiples of this, so that kernels load words. */
#define PY_PIECE_ALIGN ((size_t)16)

static inline size_t py_padded(size_t size)
{
	return (size + PY_PIECE_ALIGN - 1) & ~(PY_PIECE_ALIGN - 1);
}

typedef struct py_batch {
	PyObject_HEAD
	py_state *st;
	size_t count;
	py_piece *pieces; /* NULL where 'arrays' were given */
	lade_place place; /* of all pieces */
	py_dtype dtype;
	bool readonly;
	PyObject *owner;  /* keeps the pieces alive */
	_Atomic(PyObject *) arrays; /* a list of Array, which then counts, or NULL */
	PyObject *replaced;         /* a list of those whose place another took, or NULL */
	uintptr_t stream;
	PyObject *stream_object;        /* keeps the stream alive, or NULL */
	PyObject *weakrefs;
	py_results *results;            /* of the work that writes the pieces, or NULL */
	Py_ssize_t result, result_step; /* which of them is the first piece's, and the next one's */
	bool unsized;                   /* the results have the sizes */
} py_batch;

extern PyType_Spec py_batch_spec;

/* As those of Array; the index is the piece's. */
bool py_batch_wait(py_batch *batch);
bool py_batch_sized(py_batch *batch);
void py_batch_tie(py_batch *batch, py_results *results, bool unsized);
py_batch *py_batch_pieces(py_state *st, size_t count, PyObject *owner, lade_place place,
                          py_dtype dtype, uintptr_t stream);
PyObject *py_batch_arrays(py_state *st, PyObject *sources, uintptr_t stream);
/* As py_array_leave(), of an array, a batch with its arrays, or a list; others are left alone.
 * Gives 'out' again, which may be NULL; NULL, and 'out' is let go: an exception. */
PyObject *py_leave(py_state *st, PyObject *out, uintptr_t stream, PyObject *object);
PyObject *py_batch_table(py_state *st, PyObject *buffer, PyObject *offsets, PyObject *sizes,
                         uintptr_t stream);

/* The rows of an array of two or more dimensions: a batch, or a tuple of strided arrays. */
PyObject *py_batch_rows(py_state *st, PyObject *object, uintptr_t stream);

/* ---- Codec ------------------------------------------------------------------------------ */

typedef enum py_kind {
	PY_NATIVE = 0,
	PY_RAW = 1,
	PY_WITH_SIZE = 2,
	PY_WITH_SIZE_16 = 3,
} py_kind;

typedef struct py_codec {
	PyObject_HEAD
	py_state *st;
	lade_engine *engine; /* the process's, or 'own' */
	lade_engine *own;
	lade_spec *spec; /* NULL: the frame has it */
	py_kind kind;
	size_t chunk_size;
	bool checksums; /* are stored */
	lade_verify verify;
	unsigned threads;
	uint32_t flags;
	size_t prefix; /* bytes before RAW */
	lade_where where;
	int32_t device;
	uintptr_t stream;
	PyObject *stream_object;     /* keeps the stream alive, or NULL */
	atomic_bool no_sizes;          /* the data had no sizes: they are not asked for any more */
	/* By direction, of the device that was asked about last: 2 * number + 2, and 1 where it has
	 * all kernels; 0: none was. */
	_Atomic int64_t able[2];
} py_codec;

extern PyType_Spec py_codec_spec;

/* The process's engine, or one with more threads, which is the caller's ('*own'); NULL: an
 * exception is set. */
lade_engine *py_engine(py_state *st, unsigned threads, lade_engine **own);
void py_engine_free(lade_engine *own); /* NULL is fine */

/* The end of what a type's dealloc does. */
void py_free(PyObject *self);

/* ---- calls that may take long ------------------------------------------------------------- */

/*
 * The interpreter is let go of from py_wait_begin() to py_wait_end().  If the call is long,
 * signals' handlers run meanwhile: 'cancel' is for its options, and is set once a handler has
 * raised.  py_wait_end() is false then, with the exception set.
 */
typedef struct py_wait {
	PyThreadState *saved;
	lade_cancel *cancel; /* NULL: the call is short */
	PyObject *raised;
} py_wait;

void py_wait_begin(py_wait *wait, bool is_long);
bool py_wait_end(py_wait *wait);
/* The poll function of a token; 'wait' has what PyEval_SaveThread() gave. */
bool py_wait_poll(void *wait);

/* ---- work: no interpreter is needed there ----------------------------------------------- */

/*
 * A batch of items of one codec.  py_work_init() makes the tables, of results without failures and
 * unknown sizes; the caller fills items and segments.  A batch of one item needs no memory of its
 * own.
 */
typedef struct py_work {
	const py_codec *codec;
	size_t count;
	lade_item *items;
	lade_segment *segments; /* one for each item */
	lade_result *results;
	lade_frame **frames;    /* of a NATIVE decode, opened by py_work_sizes() */
	uint64_t *sizes;
	uint64_t *wanted;        /* decoded sizes of a config, or NULL */
	lade_error *item_errors; /* one for each, or NULL */
	lade_layout *layouts;    /* of strided arrays; NULL: there are none */
	lade_array **arrays;     /* bare results go to new memory in 'place'; or NULL */
	lade_place place;
	void *room;              /* of the tables */
	lade_error err;          /* of the call; its status LADE_OK: all is well */
	size_t failed;           /* the item it is about; SIZE_MAX: none */
	bool fixed;              /* nobody can write to the sources */
	lade_cancel *cancel;     /* of the call that runs, or NULL */
	lade_item one_item;
	lade_segment one_segment;
	lade_result one_result;
	lade_frame *one_frame;
	uint64_t one_size;
} py_work;

/* Notes the failure of one item; the call's error is that of the first. */
void py_work_note(py_work *work, size_t i, const lade_error *err);
/* What a call of the library returned: its error becomes the work's, unless an item before those
 * that failed in it has failed already. */
lade_status py_work_settle(py_work *work, lade_status status, const lade_error *err);
bool py_work_init(py_work *work, const py_codec *codec, size_t count, bool item_errors);
/* The layout of an item, to be filled; NULL: an exception. */
lade_layout *py_work_layout(py_work *work, size_t i);
void py_work_reset(py_work *work);
/* Decoded sizes into work->sizes; LADE_SIZE_UNKNOWN where only decoding finds them. */
lade_status py_work_sizes(py_work *work);
lade_status py_work_decode(py_work *work);
/* Without the interpreter's lock.  LADE_E_CANCELLED: a signal's handler has raised an exception,
 * which is set. */
lade_status py_work_run(py_work *work, bool encode);
lade_status py_work_encode(py_work *work);
/* The bytes of the strided array that an item has a layout of, else 'flat'. */
size_t py_item_size(const lade_item *item, size_t flat);
/* Whether an array has the size that its compression_config was made for. */
bool py_config_fits(uint64_t want, size_t have, lade_error *err);
lade_batch_options py_work_options(const py_work *work);
/* Where bytes that are corrupt, or too many, begin as another codec's do, the message says so. */
void py_hint(const py_codec *codec, const lade_segment *src, lade_error *err);
/* The frames of a work: opened, with their sizes; read; or written. */
void py_frames_open(py_work *work);
lade_status py_frames_read(py_work *work);
lade_status py_frames_write(py_work *work);
size_t py_frame_bound(const py_codec *codec, size_t size);
/* The most bytes that encoding 'size' can give; SIZE_MAX: too large. */
size_t py_codec_bound(const py_codec *codec, size_t size);

/* ---- errors ----------------------------------------------------------------------------- */

/* Sets the exception for a failure; 'index' is the item's, SIZE_MAX for none. */
void py_raise(py_state *st, const lade_error *err, size_t index);
PyObject *py_exception(py_state *st, const lade_error *err, size_t index);
/* A text of the library's: names and paths in it may be no UTF-8, or cut inside a character. */
PyObject *py_message(const char *text);

/* The exception that is set, of an object that was to be an integer, gets a text that names it:
 * TypeError, or ValueError where it is too large. */
void py_no_integer(const char *what, PyObject *given);
/* An index; TypeError, or IndexError where it is too large. */
bool py_index(PyObject *key, Py_ssize_t *index);
/* The items of anything that has some; else a TypeError names the argument. */
PyObject *py_tuple(PyObject *object, const char *what);

PyObject *py_suggest(PyObject *module, PyObject *args);
/* What __reduce__ gives: a function of the module and its arguments (the reference is taken). */
PyObject *py_reduce(const char *function, PyObject *args);

/* Module-level helpers of arguments. */
bool py_stream_arg(PyObject *object, uintptr_t *stream);
/* The address that an integer is; 'what' names it in the TypeError or ValueError. */
bool py_address(PyObject *object, const char *what, char **address);
/* The number of a device that is there; PY_DEVICE_ANY for None and for no object. */
#define PY_DEVICE_ANY (-1)
bool py_device_arg(py_state *st, PyObject *object, int32_t *device);
/* What to hold so that the stream lives: the owner in a CudaStream, or the object, where the stream
 * is its own and dies with it; NULL: of a handle nobody knows.  No new reference. */
PyObject *py_stream_keeper(PyObject *object);

#endif
