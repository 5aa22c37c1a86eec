/*
 * codec.c: the methods of liblade.Codec; its constructor's keywords are read in _codec.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec.h"

#include <string.h>

/* ---- making ----------------------------------------------------------------------------- */

lade_engine *py_engine(py_state *st, unsigned threads, lade_engine **own)
{
	lade_engine_options options = {.struct_size = sizeof(options), .threads = threads};
	lade_engine *engine = lade_engine_default();
	lade_error err = {LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for the engine"};

	if (engine && threads > lade_engine_threads(engine))
		engine = lade_engine_new(&options, own, &err) ? NULL : *own;
	if (!engine)
		py_raise(st, &err, SIZE_MAX);
	return engine;
}

void py_engine_free(lade_engine *own)
{
	if (!own)
		return;
	Py_BEGIN_ALLOW_THREADS
	lade_engine_free(own);
	Py_END_ALLOW_THREADS
}

void py_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
	Py_DECREF(type);
}

/* The module's state, from the type or one of its bases. */
static py_state *state_of(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	while (type) {
		py_state *st = PyType_GetModuleState(type);
		if (st && st->codec_type == type)
			return st;
		PyErr_Clear();
		type = (PyTypeObject *)PyType_GetSlot(type, Py_tp_base);
	}
	PyErr_SetString(PyExc_SystemError, "the module's state is gone");
	return NULL;
}

/* __init__(pipeline, kind, chunk_size, checksums, verify, threads, flags, where, device, stream) */
static int codec_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"pipeline", "kind",  "chunk_size", "checksums", "verify",
	                        "threads",  "flags", "where",      "device_id", "cuda_stream",
	                        NULL};
	py_codec *codec = (py_codec *)self;
	const char *text = NULL;
	int kind = 0, checksums = true, verify = 0, where = 0, device = 0;
	Py_ssize_t chunk_size = 65536;
	unsigned threads = 0, flags = 0;
	PyObject *stream = NULL;
	lade_error err;

	if (codec->st) {
		PyErr_SetString(PyExc_RuntimeError, "a Codec is made only once");
		return -1;
	}
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "z|inpiIIiiO:Codec", names, &text, &kind,
	                                 &chunk_size, &checksums, &verify, &threads, &flags,
	                                 &where, &device, &stream) ||
	    !py_stream_arg(stream, &codec->stream))
		return -1;
	if (kind < 0 || kind > 3 || verify < 0 || verify > LADE_VERIFY_NEVER ||
	    chunk_size < LADE_FRAME_CHUNK_MIN || chunk_size > LADE_FRAME_CHUNK_MAX ||
	    threads > 4096) {
		PyErr_Format(PyExc_ValueError,
		             "bitstream_kind %d (0 to 3), verify %d (0 to 2), "
		             "uncomp_chunk_size "
		             "%zd (16 to 2 GiB - 1) or threads %u (at most 4096) is not possible",
		             kind, verify, chunk_size, threads);
		return -1;
	}
	codec->st = state_of(self);
	if (!codec->st || !(codec->engine = py_engine(codec->st, threads, &codec->own)))
		return -1;
	if (text && lade_spec_parse(NULL, text, &codec->spec, &err)) {
		py_raise(codec->st, &err, SIZE_MAX);
		return -1;
	}
	codec->kind = (py_kind)kind;
	codec->chunk_size = (size_t)chunk_size;
	codec->checksums = checksums;
	codec->verify = (lade_verify)verify;
	codec->threads = threads;
	codec->flags = flags;
	codec->where = (lade_where)where;
	codec->device = device;
	codec->stream_object = Py_XNewRef(py_stream_keeper(stream));
	codec->prefix = lade_bare_head(codec->spec, (lade_bare)kind, NULL);
	return 0;
}

static int codec_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((py_codec *)self)->stream_object);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static void codec_dealloc(PyObject *self)
{
	py_codec *codec = (py_codec *)self;

	PyObject_GC_UnTrack(self);
	lade_spec_unref(codec->spec);
	Py_XDECREF(codec->stream_object);
	py_engine_free(codec->own);
	py_free(self);
}

/* ---- arguments -------------------------------------------------------------------------- */

static bool is_many(const py_codec *codec, PyObject *source)
{
	return py_is_list(source) || Py_TYPE(source) == codec->st->batch_type;
}

/*
 * Sorts a vectorcall's arguments into 'out', one for each name; the first 'positional' may come
 * without theirs.  The first one is a must; nvCOMP calls it 'srcs' where it is many.
 */
static bool parse(const py_codec *codec, const char *function, PyObject *const *args,
                  Py_ssize_t nargs, PyObject *kwnames, const char *const *names, int positional,
                  PyObject **out)
{
	Py_ssize_t count = kwnames ? PyTuple_Size(kwnames) : 0;

	if (nargs > positional) {
		PyErr_Format(PyExc_TypeError,
		             "%s() takes at most %d positional arguments, %zd were given", function,
		             positional, nargs);
		return false;
	}
	for (Py_ssize_t i = 0; i < nargs; i++)
		out[i] = args[i];
	for (Py_ssize_t k = 0; k < count; k++) {
		PyObject *name = PyTuple_GetItem(kwnames, k);
		PyObject *value = args[nargs + k];
		int i = 0;
		while (names[i] && PyUnicode_CompareWithASCIIString(name, names[i]))
			i++;
		if (!names[i] && !PyUnicode_CompareWithASCIIString(name, "srcs")) {
			if (value == Py_None)
				continue;
			if (out[0] || !is_many(codec, value)) {
				PyErr_Format(PyExc_TypeError,
				             out[0] ? "%s() takes '%s' or 'srcs', not both"
				                    : "%s(): srcs is a list of arrays or a "
				                      "BatchArray; one array is given as '%s'",
				             function, names[0]);
				return false;
			}
			i = 0;
		}
		if (!names[i]) {
			PyErr_Format(PyExc_TypeError,
			             "%s() got an unexpected keyword argument '%U'", function,
			             name);
			return false;
		}
		if (out[i]) {
			PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
			             function, name);
			return false;
		}
		out[i] = value;
	}
	if (!out[0]) {
		PyErr_Format(PyExc_TypeError, "%s() wants the argument '%s'", function, names[0]);
		return false;
	}
	return true;
}

/* One end of a range: an integer of any type. */
static bool read_end(const char *name, PyObject *given, unsigned long long *end)
{
	PyObject *number = PyNumber_Index(given);

	if (!number) {
		py_no_integer(name, given);
		return false;
	}
	*end = PyLong_AsUnsignedLongLong(number);
	if (PyErr_Occurred())
		py_no_integer(name, number);
	Py_DECREF(number);
	return !PyErr_Occurred();
}

/* (start, stop) in units of 'unit' bytes; stop None: to the end. */
static bool read_range(const char *name, PyObject *range, size_t unit, py_call *call)
{
	const unsigned long long most = ULLONG_MAX / 2 / unit;
	PyObject *start, *stop;
	unsigned long long from, to = most;

	if (!PyTuple_Check(range) || !PyArg_ParseTuple(range, "OO", &start, &stop)) {
		PyErr_Clear();
		PyErr_Format(PyExc_TypeError, "%s: a tuple (start, stop) is wanted", name);
		return false;
	}
	if (!read_end(name, start, &from) || (stop != Py_None && !read_end(name, stop, &to)))
		return false;
	if (from >= to || to > most) {
		PyErr_Format(PyExc_ValueError, "%s: %llu to %llu is empty or too large", name, from,
		             to);
		return false;
	}
	call->range_off = from * unit;
	call->range_size = stop == Py_None ? 0 : (to - from) * unit;
	return true;
}

static bool read_errors(PyObject *errors, py_call *call)
{
	if (!errors || errors == Py_None)
		return true;
	if (PyUnicode_Check(errors) && !PyUnicode_CompareWithASCIIString(errors, "return")) {
		call->return_errors = true;
		return true;
	}
	if (PyUnicode_Check(errors) && !PyUnicode_CompareWithASCIIString(errors, "raise")) {
		call->wait = true;
		return true;
	}
	PyErr_Format(PyExc_ValueError, "errors is %R, it can be 'raise' or 'return'", errors);
	return false;
}

static bool ready(const py_codec *codec, bool encode)
{
	if (!codec->st) {
		PyErr_SetString(PyExc_RuntimeError, "Codec.__init__() was not called");
		return false;
	}
	if (codec->spec || (!encode && codec->kind == PY_NATIVE))
		return true;
	PyErr_SetString(PyExc_ValueError,
	                encode ? "a Codec without algorithm can only decode"
	                       : "without algorithm only NVCOMP_NATIVE bytes can be decoded");
	return false;
}

/* ---- encode and decode ------------------------------------------------------------------ */

static PyObject *none_is_null(PyObject *object)
{
	return object == Py_None ? NULL : object;
}

static PyObject *encode_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames, bool into)
{
	static const char *const names[] = {"array", "out", "compression_config", "errors", NULL};
	static const char *const into_names[] = {"src", "out", NULL};
	py_codec *codec = (py_codec *)self;
	PyObject *in[4] = {NULL};
	py_call call = {.codec = codec, .encode = true, .dtype = PY_BYTES, .into = into};

	if (!ready(codec, true) || !parse(codec, into ? "encode_into" : "encode", args, nargs,
	                                  kwnames, into ? into_names : names, into ? 2 : 3, in))
		return NULL;
	call.source = in[0];
	call.out = none_is_null(in[1]);
	if (into && !call.out) {
		PyErr_SetString(PyExc_TypeError, "encode_into() wants the argument 'out'");
		return NULL;
	}
	call.config = in[2];
	call.batch = is_many(codec, in[0]);
	if (!read_errors(in[3], &call))
		return NULL;
	return py_call_run(&call);
}

static PyObject *codec_encode(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
	return encode_call(self, args, nargs, kwnames, false);
}

static PyObject *codec_encode_into(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *kwnames)
{
	return encode_call(self, args, nargs, kwnames, true);
}

static PyObject *codec_decode(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
	static const char *const names[] = {
		"src",    "data_type",  "out",           "decompression_config",
		"errors", "byte_range", "element_range", NULL};
	py_codec *codec = (py_codec *)self;
	PyObject *in[7] = {NULL};
	py_call call = {.codec = codec, .dtype = PY_BYTES};

	if (!ready(codec, false) || !parse(codec, "decode", args, nargs, kwnames, names, 4, in))
		return NULL;
	call.source = in[0];
	call.out = none_is_null(in[2]);
	call.config = in[3];
	call.batch = is_many(codec, in[0]);
	if (in[1] && in[1] != Py_None &&
	    !(PyUnicode_Check(in[1]) && !PyUnicode_CompareWithASCIIString(in[1], ""))) {
		if (!py_dtype_from_object(in[1], &call.dtype))
			return NULL;
		call.typed = true;
	}
	if (!read_errors(in[4], &call))
		return NULL;
	if (in[5] && in[5] != Py_None && !read_range("byte_range", in[5], 1, &call))
		return NULL;
	if (in[6] && in[6] != Py_None) {
		if (in[5] && in[5] != Py_None) {
			PyErr_SetString(PyExc_ValueError,
			                "byte_range and element_range cannot both be given");
			return NULL;
		}
		/* Whose elements: those of 'out' would have to be of one size. */
		if (call.out && !call.typed) {
			PyErr_SetString(PyExc_ValueError,
			                "element_range wants a data_type where out= is given");
			return NULL;
		}
		if (!read_range("element_range", in[6], call.dtype.size, &call))
			return NULL;
	}
	return py_call_run(&call);
}

static PyObject *codec_decode_into(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *kwnames)
{
	static const char *const names[] = {"src", "out", "byte_range", NULL};
	py_codec *codec = (py_codec *)self;
	PyObject *in[3] = {NULL};
	py_call call = {.codec = codec, .dtype = PY_BYTES, .into = true};

	if (!ready(codec, false) ||
	    !parse(codec, "decode_into", args, nargs, kwnames, names, 2, in))
		return NULL;
	if (!none_is_null(in[1])) {
		PyErr_SetString(PyExc_TypeError, "decode_into() wants the argument 'out'");
		return NULL;
	}
	call.source = in[0];
	call.out = in[1];
	call.batch = is_many(codec, in[0]);
	if (in[2] && in[2] != Py_None && !read_range("byte_range", in[2], 1, &call))
		return NULL;
	return py_call_run(&call);
}

/* ---- sizes ------------------------------------------------------------------------------ */

/* A count of bytes: an integer of any type, those of numpy's among them that have memory, too. */
static bool is_size(PyObject *source)
{
	return PyLong_Check(source) || (PyIndex_Check(source) && !PySequence_Check(source));
}

static bool bound_of(py_codec *codec, PyObject *source, size_t *bound)
{
	size_t size;

	if (is_size(source)) {
		PyObject *number = PyNumber_Index(source);
		if (!number)
			return false;
		size = PyLong_AsSize_t(number);
		if (PyErr_Occurred())
			PyErr_Format(PyExc_ValueError, "an array cannot have %S bytes", number);
		Py_DECREF(number);
		if (PyErr_Occurred())
			return false;
	} else {
		py_array *array = py_array_from(codec->st, source, 0);
		if (!array || !py_array_sized(array)) {
			Py_XDECREF(array);
			return false;
		}
		size = array->size;
		Py_DECREF(array);
	}
	*bound = py_codec_bound(codec, size);
	if (*bound == SIZE_MAX) {
		PyErr_Format(PyExc_ValueError, "%zu bytes are more than the codec can hold", size);
		return false;
	}
	return true;
}

/* What 'ask' says of one source, or a list of what it says of each of several. */
static PyObject *size_of_each(py_codec *codec, PyObject *source,
                              PyObject *(*ask)(py_codec *codec, PyObject *source))
{
	PyObject *items, *list;
	Py_ssize_t count;

	if (!is_many(codec, source))
		return ask(codec, source);
	items = PySequence_Tuple(source);
	if (!items)
		return NULL;
	count = PyTuple_Size(items);
	list = PyList_New(count);
	for (Py_ssize_t i = 0; list && i < count; i++) {
		PyObject *one = ask(codec, PyTuple_GetItem(items, i));
		if (!one)
			py_blame("item", (size_t)i);
		if (!one || PyList_SetItem(list, i, one))
			Py_CLEAR(list);
	}
	Py_DECREF(items);
	return list;
}

static PyObject *max_size(py_codec *codec, PyObject *source)
{
	size_t bound;

	return bound_of(codec, source, &bound) ? PyLong_FromSize_t(bound) : NULL;
}

static PyObject *decoded_size(py_codec *codec, PyObject *source)
{
	uint64_t size;
	size_t chunk_size;

	return py_call_size(codec, source, &size, &chunk_size) ? PyLong_FromUnsignedLongLong(size)
	                                                       : NULL;
}

static PyObject *decoded_chunks(py_codec *codec, PyObject *source)
{
	uint64_t size;
	size_t chunk_size;

	return py_call_size(codec, source, &size, &chunk_size)
	               ? Py_BuildValue("(Kn)", (unsigned long long)size, (Py_ssize_t)chunk_size)
	               : NULL;
}

static const char *const size_names[] = {"source", NULL};

static PyObject *codec_max_size(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                PyObject *kwnames)
{
	py_codec *codec = (py_codec *)self;
	PyObject *in[1] = {NULL};

	if (!ready(codec, true) ||
	    !parse(codec, "get_max_comp_buffer_size", args, nargs, kwnames, size_names, 1, in))
		return NULL;
	return size_of_each(codec, in[0], max_size);
}

static PyObject *codec_decoded_size(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                    PyObject *kwnames)
{
	py_codec *codec = (py_codec *)self;
	PyObject *in[1] = {NULL};

	if (!ready(codec, false) ||
	    !parse(codec, "get_uncomp_buffer_size", args, nargs, kwnames, size_names, 1, in))
		return NULL;
	return size_of_each(codec, in[0], decoded_size);
}

/* _decoded_chunks(source): (decoded size, bytes of a chunk), or a list of such. */
static PyObject *codec_decoded_chunks(PyObject *self, PyObject *source)
{
	py_codec *codec = (py_codec *)self;

	return ready(codec, false) ? size_of_each(codec, source, decoded_chunks) : NULL;
}

/* ---- explain ---------------------------------------------------------------------------- */

#define CANDIDATES_MAX 256

/* _explain(size, count, encode, source_place, destination_place, device): a list of tuples. */
static PyObject *codec_explain(PyObject *self, PyObject *args)
{
	py_codec *codec = (py_codec *)self;
	lade_segment segment = {0};
	lade_item item = {.src = &segment, .src_count = 1}, *items = NULL;
	lade_batch_options options = {.struct_size = sizeof(options)};
	lade_call call = {.struct_size = sizeof(call), .options = &options};
	lade_candidate *candidates = NULL;
	lade_error err;
	lade_status status;
	unsigned long long size;
	Py_ssize_t count;
	int encode, source, destination, device;
	size_t found = 0;
	PyObject *list = NULL;

	if (!PyArg_ParseTuple(args, "Knpiii", &size, &count, &encode, &source, &destination,
	                      &device) ||
	    !ready(codec, true))
		return NULL;
	if (count < 1 || count > 1 << 24 || source < 0 || source > 3 || destination < 0 ||
	    destination > 3) {
		PyErr_SetString(PyExc_ValueError, "explain: count or place is not possible");
		return NULL;
	}
	candidates = PyMem_Calloc(CANDIDATES_MAX, sizeof(*candidates));
	items = PyMem_Calloc((size_t)count, sizeof(*items));
	if (!candidates || !items) {
		PyErr_NoMemory();
		goto out;
	}
	/* Nothing is run, and no byte is read: the addresses only must not be NULL. */
	segment.data = candidates;
	segment.size = encode ? (size_t)size : lade_spec_bound(codec->spec, (size_t)size);
	segment.decoded_size = (size_t)size;
	segment.place = (lade_place){(lade_kind)source, device};
	item.dst.data = candidates;
	item.dst.size = encode ? lade_spec_bound(codec->spec, (size_t)size) : (size_t)size;
	item.dst.place = (lade_place){(lade_kind)destination, device};
	for (Py_ssize_t i = 0; i < count; i++)
		items[i] = item;
	options.threads = codec->threads;
	options.flags = codec->flags;
	options.where = codec->where;
	options.device = codec->device;
	call.spec = codec->spec;
	call.items = items;
	call.count = (size_t)count;
	call.direction = encode ? LADE_ENCODE : LADE_DECODE;
	Py_BEGIN_ALLOW_THREADS
	status = lade_explain(codec->engine, &call, candidates, CANDIDATES_MAX, &found, &err);
	Py_END_ALLOW_THREADS
	if (status && status != LADE_E_UNSUPPORTED) {
		py_raise(codec->st, &err, SIZE_MAX);
		goto out;
	}
	list = PyList_New(0);
	for (size_t i = 0; list && i < found; i++) {
		const lade_candidate *c = &candidates[i];
		PyObject *row =
			Py_BuildValue("(nsssidOs)", (Py_ssize_t)c->stage,
		                      lade_spec_stage(codec->spec, c->stage)->algorithm->name,
		                      c->implementation, lade_kind_name(c->place), c->priority,
		                      c->cost, c->chosen ? Py_True : Py_False, c->reason);
		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
out:
	PyMem_Free(candidates);
	PyMem_Free(items);
	return list;
}

static PyObject *get_pipeline(PyObject *self, void *unused)
{
	py_codec *codec = (py_codec *)self;

	(void)unused;
	return codec->spec ? PyUnicode_FromString(lade_spec_text(codec->spec)) : Py_NewRef(Py_None);
}

static PyObject *get_threads(PyObject *self, void *unused)
{
	py_codec *codec = (py_codec *)self;

	(void)unused;
	return PyLong_FromUnsignedLong(codec->threads ? codec->threads
	                               : codec->engine ? lade_engine_threads(codec->engine) : 0);
}

static PyObject *get_lossy(PyObject *self, void *unused)
{
	py_codec *codec = (py_codec *)self;

	(void)unused;
	return PyBool_FromLong(codec->spec && lade_spec_is_lossy(codec->spec));
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef methods[] = {
	{"encode", FAST(codec_encode), METH_FASTCALL | METH_KEYWORDS,
         "encode($self, /, array=None, out=None, compression_config=None, *, errors=None, "
         "srcs=None)\n--\n\n"
         "Encodes one array, a list of them, or a BatchArray (which may be given as srcs=).\n\n"
         "array: anything with memory, of any type, shape and strides; its bytes in C order "
         "count.\n"
         "out: writable memory of at least get_max_comp_buffer_size() bytes to be sure, for each\n"
         "    array; an Array that encode() or decode() made grows as needed.\n"
         "compression_config: for arrays of just these sizes, else InputError; nothing hangs on "
         "it.\n"
         "errors: 'raise' the first item's, or 'return' an exception in the item's place; both\n"
         "    wait.  None raises, and for a result on a device when that is waited for.\n\n"
         "Gives an Array of bytes ('|u1', one dimension), or a BatchArray.  Raises TypeError for "
         "what\n"
         "has no memory, InputError (a ValueError) where 'out' is too small."},
	{"decode", FAST(codec_decode), METH_FASTCALL | METH_KEYWORDS,
         "decode($self, /, src=None, data_type='', out=None, decompression_config=None, *, "
         "errors=None, byte_range=None, element_range=None, srcs=None)\n--\n\n"
         "Decodes one array, a list of them, or a BatchArray (which may be given as srcs=).\n\n"
         "src: encoded bytes, anything with memory.\n"
         "data_type: of the result, '<f4' or numpy's; '' for bytes, or what 'out' has, where that\n"
         "    is one array's and the bytes are whole elements.\n"
         "out: writable memory for each result, apart from the others' and from the source;\n"
         "    on the host with any strides.\n"
         "decompression_config: sizes that are known, for formats that do not store them.\n"
         "errors: 'raise' the first item's, or 'return' an exception in the item's place; both\n"
         "    wait.  None raises, and for a result on a device when that is waited for.\n"
         "byte_range, element_range: (start, stop) of the decoded side; stop None: to the end.\n\n"
         "Gives an Array of one dimension (or on 'out', with its shape), or a BatchArray.  Raises\n"
         "CorruptError (a RuntimeError) with the item's index and the bad byte's offset, "
         "InputError\n"
         "(a ValueError) where 'out' is too small or a range passes the end."},
	{"encode_into", FAST(codec_encode_into), METH_FASTCALL | METH_KEYWORDS,
         "encode_into($self, /, src, out)\n--\n\n"
         "Encodes into memory that is there, and gives the count of bytes; for a list, a list.\n"
         "Nothing is allocated.  Raises as encode()."},
	{"decode_into", FAST(codec_decode_into), METH_FASTCALL | METH_KEYWORDS,
         "decode_into($self, /, src, out, *, byte_range=None)\n--\n\n"
         "Decodes into memory that is there, and gives the count of bytes; for a list, a list.\n"
         "Nothing is allocated, unless the strides of 'out' are more than rows.  Raises as "
         "decode()."},
	{"get_max_comp_buffer_size", FAST(codec_max_size), METH_FASTCALL | METH_KEYWORDS,
         "get_max_comp_buffer_size($self, /, source)\n--\n\n"
         "The most bytes that encoding an array, or a number of bytes, can give; for a list, a "
         "list.\n"
         "ValueError where the format cannot hold so much."},
	{"get_uncomp_buffer_size", FAST(codec_decoded_size), METH_FASTCALL | METH_KEYWORDS,
         "get_uncomp_buffer_size($self, /, source)\n--\n\n"
         "The bytes that an encoded array decodes to; for a list, a list.  It is the data's own\n"
         "claim, and CorruptError where that is more than they can give; RAW of LZ4 and the "
         "Deflate\n"
         "family makes none, and is decoded to find out."},
	{"_decoded_chunks", codec_decoded_chunks, METH_O, NULL},
	{"_explain", codec_explain, METH_VARARGS, NULL},
	{0},
};

static PyGetSetDef getset[] = {
	{"pipeline", get_pipeline, NULL, "The canonical text of the pipeline; None without.", NULL},
	{"threads", get_threads, NULL, "Threads that a call uses at most.", NULL},
	{"lossy", get_lossy, NULL, "True if decoding may give other values than were encoded.",
         NULL},
	{0},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "What liblade.Codec is made from; its constructor takes a pipeline's text."},
	{Py_tp_init, codec_init},
	{Py_tp_dealloc, codec_dealloc},
	{Py_tp_traverse, codec_traverse},
	{Py_tp_getset, getset},
	{Py_tp_methods, methods},
	{0, NULL},
};

PyType_Spec py_codec_spec = {
	.name = "liblade._lade.CodecBase",
	.basicsize = sizeof(py_codec),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
	         Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
