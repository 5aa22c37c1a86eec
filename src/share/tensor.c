/*
 * tensor.c: arrays of numbers with a shape, as columns that Arrow's libraries know.
 *
 * One dimension is a column of numbers.  With more the rows are fixed-size lists, and the schema
 * has the extension type arrow.fixed_shape_tensor, whose shape is that of a row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/share.h>

#include "base/options.h"
#include "base/support.h"
#include "base/try.h"
#include "share/arrow.h"
#include "share/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENSION "ARROW:extension:name"
#define TENSOR "arrow.fixed_shape_tensor"
#define PARAMETERS "ARROW:extension:metadata"

/* Formats of numbers, by type. */
static const struct {
	char format;
	lade_dtype dtype;
} formats[] = {
	{'c', LADE_I1}, {'C', LADE_U1}, {'s', LADE_I2}, {'S', LADE_U2}, {'i', LADE_I4},
	{'I', LADE_U4}, {'l', LADE_I8}, {'L', LADE_U8}, {'e', LADE_F2}, {'f', LADE_F4},
	{'g', LADE_F8},
};
#define FORMATS (sizeof formats / sizeof *formats)

static void keep_schema(struct ArrowSchema *s)
{
	s->release = NULL;
}

static void keep_array(struct ArrowArray *a)
{
	a->release = NULL;
}

/* ---- publishing ------------------------------------------------------------------------- */

/* | pairs 4 | twice: | size 4 | key | size 4 | value | |: the encoding of the C data interface. */
typedef struct metadata {
	size_t size;
	char bytes[1024]; /* 32 numbers of 20 digits fit */
} metadata;

static void put_text(metadata *m, const char *text)
{
	int32_t size = (int32_t)strlen(text);

	memcpy(m->bytes + m->size, &size, sizeof size);
	memcpy(m->bytes + m->size + sizeof size, text, (size_t)size);
	m->size += sizeof size + (size_t)size;
}

static void put_shape(metadata *m, const lade_share_tensor *t)
{
	const int32_t pairs = 2;
	char text[800] = "{\"shape\":[";
	size_t at = strlen(text);

	for (unsigned i = 1; i < t->ndim; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu", i > 1 ? "," : "",
		                       (unsigned long long)t->shape[i]);
	snprintf(text + at, sizeof text - at, "]}");
	memcpy(m->bytes, &pairs, sizeof pairs);
	m->size = sizeof pairs;
	put_text(m, EXTENSION);
	put_text(m, TENSOR);
	put_text(m, PARAMETERS);
	put_text(m, text);
}

/* Rows, and elements of a row. */
static lade_status measure(const lade_share_tensor *t, int64_t *rows, int64_t *row,
                           lade_error *err)
{
	uint64_t count = t->ndim ? t->shape[0] : 1, one = 1;

	if (t->ndim > LADE_SHARE_NDIM_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%u dimensions, at most %d",
		                 t->ndim, LADE_SHARE_NDIM_MAX);
	for (unsigned i = 1; i < t->ndim; i++)
		if (__builtin_mul_overflow(one, t->shape[i], &one) || one > INT32_MAX)
			return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
			                 "a row has more than %d elements", INT32_MAX);
	if (count > INT64_MAX / 8 / (one ? one : 1))
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "too large: %llu rows",
		                 (unsigned long long)count);
	*rows = (int64_t)count;
	*row = (int64_t)one;
	if (!t->data && count && one)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "data is NULL");
	return LADE_OK;
}

lade_status lade_share_publish_tensor(lade_share *share, const char *name,
                                      const lade_share_tensor *given, lade_share_published *out,
                                      lade_error *err)
{
	lade_share_tensor t;
	metadata m = {0};
	char format[2] = "", list[24];
	int64_t rows, row;
	size_t i = 0;
	lade_status status = lade__options_read(&t, sizeof t, given, "lade_share_tensor", err);

	if (status == LADE_OK)
		status = measure(&t, &rows, &row, err);
	if (status != LADE_OK)
		return status;
	while (i < FORMATS && formats[i].dtype != t.dtype)
		i++;
	if (i == FORMATS)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "numbers of type %s cannot be a column", lade_dtype_text(t.dtype));
	format[0] = formats[i].format;
	const void *buffers[] = {NULL, t.data};
	struct ArrowSchema numbers = {.format = format, .name = "item", .release = keep_schema};
	struct ArrowArray elements = {.length = rows * row,
	                              .n_buffers = 2,
	                              .buffers = buffers,
	                              .release = keep_array};
	struct ArrowSchema *schemas[] = {&numbers};
	struct ArrowArray *arrays[] = {&elements};
	struct ArrowSchema lists = {.format = list,
	                            .name = "",
	                            .n_children = 1,
	                            .children = schemas,
	                            .release = keep_schema};
	struct ArrowArray all = {.length = rows,
	                         .n_buffers = 1,
	                         .buffers = buffers,
	                         .n_children = 1,
	                         .children = arrays,
	                         .release = keep_array};
	const struct ArrowArray *batches[] = {t.ndim > 1 ? &all : &elements};
	lade_share_table table = {.struct_size = sizeof table,
	                          .schema = t.ndim > 1 ? &lists : &numbers,
	                          .batches = batches,
	                          .batch_count = 1,
	                          .copy = t.copy,
	                          .wait_ms = t.wait_ms};
	numbers.name = t.ndim > 1 ? "item" : "";
	snprintf(list, sizeof list, "+w:%lld", (long long)row);
	if (t.ndim > 1) {
		put_shape(&m, &t);
		lists.metadata = m.bytes;
	}
	return lade_share_publish(share, name, &table, out, err);
}

/* ---- opening ---------------------------------------------------------------------------- */

/* The value of a key of a schema's metadata, which were checked when the version was opened; NULL:
 * it has none. */
static const char *find_text(const char *at, const char *key, int32_t *size)
{
	int32_t pairs = 0, length;

	if (at) {
		memcpy(&pairs, at, sizeof pairs);
		at += sizeof pairs;
	}
	for (; pairs > 0; pairs--) {
		memcpy(&length, at, sizeof length);
		at += sizeof length;
		bool found = strlen(key) == (size_t)length && !memcmp(at, key, (size_t)length);
		at += length;
		memcpy(size, at, sizeof *size);
		at += sizeof *size;
		if (found)
			return at;
		at += *size;
	}
	return NULL;
}

/* The numbers of a list behind a key of JSON; at most 'cap', or -1: there is no such list. */
static int read_list(const char *json, const char *key, uint64_t *out, int cap)
{
	const char *at = strstr(json, key);
	int count = 0;

	if (!at)
		return -1;
	at += strlen(key);
	at += strspn(at, " :");
	if (*at++ != '[')
		return -1;
	for (at += strspn(at, " "); *at >= '0' && *at <= '9' && count < cap;) {
		char *end;
		out[count++] = strtoull(at, &end, 10);
		at = end + strspn(end, " ,");
	}
	return *at == ']' ? count : -1;
}

/* {"shape":[3,4]}: the dimensions of a row, in C's order. */
static bool read_shape(const char *text, int32_t size, lade_share_tensor *t, uint64_t row)
{
	char json[1024];
	uint64_t product = 1, order[LADE_SHARE_NDIM_MAX];

	if (!text || size <= 0 || (size_t)size >= sizeof json)
		return false;
	memcpy(json, text, (size_t)size);
	json[size] = 0;
	int count = read_list(json, "\"shape\"", t->shape + 1, LADE_SHARE_NDIM_MAX - 1);
	int ordered = read_list(json, "\"permutation\"", order, LADE_SHARE_NDIM_MAX - 1);
	if (count < 0 || (ordered < 0 ? strstr(json, "\"permutation\"") != NULL : ordered != count))
		return false;
	for (int i = 0; i < count; i++)
		if (__builtin_mul_overflow(product, t->shape[i + 1], &product) ||
		    (ordered > 0 && order[i] != (uint64_t)i))
			return false;
	t->ndim = (unsigned)count + 1;
	return product == row;
}

static bool has_nulls(const struct ArrowArray *a)
{
	return a->null_count && a->n_buffers && a->buffers[0] &&
	       lade__count_nulls(a->buffers[0], (uint64_t)a->offset, (uint64_t)a->length);
}

/* What the arrays say; they are released afterwards, and the version keeps their memory. */
static lade_status take(const struct ArrowSchema *s, const struct ArrowArray *a,
                        lade_share_tensor *out, lade_error *err)
{
	bool lists = !strncmp(s->format, "+w:", 3);
	uint64_t row = lists ? strtoull(s->format + 3, NULL, 10) : 1;
	const struct ArrowSchema *numbers = lists ? s->children[0] : s;
	const struct ArrowArray *elements = lists ? a->children[0] : a;
	int32_t size = 0, extra = 0;
	const char *extension = find_text(s->metadata, EXTENSION, &extra);
	const char *text = find_text(s->metadata, PARAMETERS, &size);
	size_t i = 0;

	if (!strcmp(s->format, "+s"))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "it is a table of %lld columns, no array of numbers: publish a "
		                 "column of it by itself",
		                 (long long)s->n_children);
	while (i < FORMATS && (numbers->format[0] != formats[i].format || numbers->format[1]))
		i++;
	if (i == FORMATS || numbers->dictionary)
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "a column of format '%s' is no array of numbers", numbers->format);
	struct ArrowArray seen = *elements;
	if (lists) {
		seen.offset += a->offset * (int64_t)row;
		seen.length = a->length * (int64_t)row;
	}
	if (has_nulls(a) || has_nulls(&seen))
		return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
		                 "it has nulls: arrays of numbers have none");
	out->dtype = formats[i].dtype;
	out->ndim = 1;
	out->shape[0] = (uint64_t)a->length;
	if (lists) {
		bool tensor = extension && extra == (int32_t)strlen(TENSOR) &&
		              !memcmp(extension, TENSOR, strlen(TENSOR));
		if (tensor && !read_shape(text, size, out, row))
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "a tensor of %llu elements a row: its shape is not known: "
			                 "%.*s",
			                 (unsigned long long)row, size < 80 ? size : 80,
			                 text ? text : "");
		if (!tensor) {
			out->ndim = 2;
			out->shape[1] = row;
		}
	}
	out->data = seen.buffers[1];
	if (out->data)
		out->data = (const uint8_t *)out->data +
		            (size_t)seen.offset * lade_dtype_size(out->dtype);
	return LADE_OK;
}

lade_status lade_share_version_tensor(lade_share_version *v, size_t index, lade_share_tensor *out,
                                      lade_error *err)
{
	struct ArrowSchema schema = {.release = NULL};
	struct ArrowArray array = {.release = NULL};
	lade_share_tensor t = {.struct_size = sizeof t};
	size_t size = out ? out->struct_size : 0;
	lade_status status;

	if (!v || size < sizeof size || size > LADE__STRUCT_SIZE_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "lade_share_tensor: struct_size is %zu, want %zu", size, sizeof t);
	TRY(lade_share_version_schema(v, &schema, err));
	TRY(lade_share_version_array(v, index, &array, err));
	TRY(take(&schema, &array, &t, err));
	lade__struct_copy(out, size, &t, sizeof t);
	out->struct_size = size;
out:
	if (array.release)
		array.release(&array);
	if (schema.release)
		schema.release(&schema);
	return status;
}
