/*
 * dtype.c: element types: type strings, struct formats, DLPack's codes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_py.h"

#include <string.h>

/* Type string's kind and size, struct's format (little-endian, big-endian), DLPack's code. */
static const struct row {
	char kind;
	uint32_t size;
	const char *format, *big_format;
	uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10 float8_e4m3fn */
} rows[] = {
	{'b', 1, "?", "?", 6},     {'i', 1, "b", "b", 0},    {'u', 1, "B", "B", 1},
	{'i', 2, "h", ">h", 0},    {'u', 2, "H", ">H", 1},   {'i', 4, "i", ">i", 0},
	{'u', 4, "I", ">I", 1},    {'i', 8, "q", ">q", 0},   {'u', 8, "Q", ">Q", 1},
	{'f', 2, "e", ">e", 2},    {'f', 4, "f", ">f", 2},   {'f', 8, "d", ">d", 2},
	{'c', 8, "Zf", ">Zf", 5},  {'c', 16, "Zd", ">Zd", 5}, {'e', 2, NULL, NULL, 4},
	{'e', 1, NULL, NULL, 10},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static const struct row *row_of(py_dtype dtype)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (rows[i].kind == dtype.kind && rows[i].size == dtype.size)
			return &rows[i];
	return NULL;
}

/* Records, strings, times and longer reals are bytes of their size; 0: it is none of these. */
static unsigned long opaque_size(const char *p)
{
	char *end;
	unsigned long size = *p && p[1] >= '1' && p[1] <= '9' ? strtoul(p + 1, &end, 10) : 0;

	if (!size || size > 1u << 20)
		return 0;
	if (*p == 'm' || *p == 'M')
		return size == 8 && (!*end || (*end == '[' && strchr(end, ']'))) ? size : 0;
	if (*end)
		return 0;
	if (*p == 'U')
		return size * 4;
	return *p == 'V' || *p == 'S' || (*p == 'f' && size > 8) || (*p == 'c' && size > 16) ? size
	                                                                                    : 0;
}

/* What lade_dtype_parse() does not know; 'float' and 'int' are what numpy takes Python's types for,
 * 'half' and 'double' are its other names of theirs, and 'f1' is nvCOMP's text. */
static const struct {
	const char *text;
	char kind;
	uint32_t size;
} named[] = {
	{"c8", 'c', 8},       {"c16", 'c', 16},   {"complex64", 'c', 8}, {"complex128", 'c', 16},
	{"complex", 'c', 16}, {"float", 'f', 8},  {"int", 'i', 8},       {"f1", 'e', 1},
	{"half", 'f', 2},     {"single", 'f', 4}, {"double", 'f', 8},
};

bool py_dtype_parse(const char *text, py_dtype *out)
{
	const char *p = text;
	bool big = *p == '>';
	lade_dtype known;

	if (strchr("<>|=", *p) && *p)
		p++;
	if (opaque_size(p)) {
		*out = (py_dtype){'V', false, (uint32_t)opaque_size(p)};
		return true;
	}
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (!strcmp(p, named[i].text)) {
			*out = (py_dtype){named[i].kind, big, named[i].size};
			return true;
		}
	}
	if (lade_dtype_parse(text, &known, NULL) || known == LADE_DTYPE_NONE)
		return false;
	*out = (py_dtype){lade_dtype_class(known), lade_dtype_is_big(known),
	                  (uint32_t)lade_dtype_size(known)};
	return true;
}

bool py_dtype_from_object(PyObject *object, py_dtype *out)
{
	PyObject *text = NULL;
	const char *utf8;
	bool ok = false;

	if (PyUnicode_Check(object)) {
		text = Py_NewRef(object);
	} else {
		/* numpy.dtype has 'str'; numpy.float32 and its kin have '__name__'. */
		text = PyObject_GetAttrString(object, "str");
		if (!text || !PyUnicode_Check(text)) {
			Py_CLEAR(text);
			PyErr_Clear();
			text = PyObject_GetAttrString(object, "__name__");
		}
	}
	if (text && PyUnicode_Check(text) && (utf8 = PyUnicode_AsUTF8AndSize(text, NULL))) {
		ok = py_dtype_parse(utf8, out);
		/* Types of ml_dtypes are known by their names alone. */
		if (ok && out->kind == 'V' && out->size <= 2 && !PyUnicode_Check(object)) {
			PyObject *name = PyObject_GetAttrString(object, "name");
			py_dtype named;
			utf8 = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL)
			                                     : NULL;
			if (utf8 && py_dtype_parse(utf8, &named) && named.kind == 'e')
				*out = named;
			PyErr_Clear();
			Py_XDECREF(name);
		}
		if (!ok)
			PyErr_Format(PyExc_TypeError, "data type \"%s\" is not known", utf8);
	} else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_AttributeError)) {
		PyErr_Format(PyExc_TypeError, "%R is no data type", object);
	}
	Py_XDECREF(text);
	return ok;
}

bool py_dtype_from_format(const char *format, Py_ssize_t size, py_dtype *out)
{
	const char *p = format ? format : "B";
	bool big = false;
	/* Native sizes may differ from the standard ones ("l"): the item's size decides. */
	static const char kinds[] = "?bbiBu" "hiHu" "iiIu" "liLu" "qiQu" "niNu" "ef" "ff" "df";

	if (size < 1 || size > 1 << 20)
		return false;
	if (*p && strchr("@=<>!|", *p)) {
		big = *p == '>' || *p == '!';
		p++;
	}
	*out = (py_dtype){'V', false, (uint32_t)size};
	if (p[0] == 'Z' && p[1] && !p[2]) {
		out->kind = 'c';
	} else if (p[0] == 'c' && !p[1]) {
		out->kind = 'u';
	} else if (p[0] && !p[1]) {
		for (const char *k = kinds; *k; k += 2)
			if (k[0] == p[0])
				out->kind = k[1];
	}
	if (!row_of(*out))
		out->kind = 'V';
	out->big = big && size > 1 && out->kind != 'V';
	return true;
}

void py_dtype_text(py_dtype dtype, char text[24])
{
	if (dtype.kind == 'e')
		PyOS_snprintf(text, 24, "%s", dtype.size == 2 ? "bfloat16" : "float8_e4m3");
	else
		PyOS_snprintf(text, 24, "%c%c%u",
		              dtype.size == 1 || dtype.kind == 'V' ? '|' : dtype.big ? '>' : '<',
		              dtype.kind, (unsigned)dtype.size);
}

const char *py_dtype_format(py_dtype dtype)
{
	const struct row *row = row_of(dtype);

	if (!row)
		return NULL;
	return dtype.big ? row->big_format : row->format;
}

bool py_dtype_from_dlpack(unsigned code, unsigned bits, unsigned lanes, py_dtype *out)
{
	if (lanes != 1 || bits % 8)
		return false;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		if (rows[i].code == code && rows[i].size * 8 == bits) {
			*out = (py_dtype){rows[i].kind, false, rows[i].size};
			return true;
		}
	}
	return false;
}

bool py_dtype_to_dlpack(py_dtype dtype, uint8_t *code, uint8_t *bits)
{
	const struct row *row = row_of(dtype);

	if (!row || dtype.big)
		return false;
	*code = row->code;
	*bits = (uint8_t)(row->size * 8);
	return true;
}
