/*
 * format.c: how many bytes the buffers of an Arrow array have: the C interface has no sizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "lade_node.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of elements and bytes: sums and products with 16 do not overflow. */
#define COUNT_MAX ((int64_t)1 << 56)

/* ---- formats ------------------------------------------------------------------------------- */

/* The bytes of a value of a fixed size; 0: the format is none of those. */
static uint64_t fixed_width(const char *f)
{
	static const char *const ones[] = {"cC", "sSe", "iIf", "lLg"};
	static const char *const times[] = {"tdD4", "tdm8", "tts4", "ttm4", "ttu8", "ttn8",
	                                    "tDs8", "tDm8", "tDu8", "tDn8", "tiM4", "tiD8"};

	if (f[0] && !f[1])
		for (size_t i = 0; i < 4; i++)
			if (strchr(ones[i], f[0]))
				return (uint64_t)1 << i;
	if (!strncmp(f, "ts", 2) && f[2] && strchr("smun", f[2]) && f[3] == ':')
		return 8;
	if (!strcmp(f, "tin"))
		return 16;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (!strncmp(f, times[i], 3) && !f[3])
			return (uint64_t)(times[i][3] - '0');
	if (!strncmp(f, "w:", 2))
		return strtoull(f + 2, NULL, 10);
	if (!strncmp(f, "d:", 2)) {
		const char *comma = strchr(f, ',');
		comma = comma ? strchr(comma + 1, ',') : NULL;
		return comma ? strtoull(comma + 1, NULL, 10) / 8 : 16;
	}
	return 0;
}

static bool is_one_of(const char *format, const char *const *list)
{
	while (*list && strcmp(*list, format))
		list++;
	return *list != NULL;
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Element 'index' of 'width' bytes, of any alignment. */
static int64_t element(const void *data, size_t width, uint64_t index)
{
	int32_t small;
	int64_t large;

	memcpy(width == 4 ? (void *)&small : (void *)&large, (const char *)data + index * width,
	       width);
	return width == 4 ? small : large;
}

static lade_status of_offsets(const struct ArrowArray *a, size_t i, size_t width, uint64_t *size,
                              lade_error *err)
{
	uint64_t end = (uint64_t)(a->offset + a->length);

	*size = a->length || a->buffers[1] ? (end + 1) * width : 0;
	if (i != 2)
		return LADE_OK;
	int64_t last = a->length ? element(a->buffers[1], width, end) : 0;
	if (last < 0 || last > COUNT_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "the last offset is %lld",
		                 (long long)last);
	*size = (uint64_t)last;
	return LADE_OK;
}

static lade_status of_views(const struct ArrowArray *a, size_t i, uint64_t *size, lade_error *err)
{
	size_t last = (size_t)a->n_buffers - 1;

	*size = i == 1 ? (uint64_t)(a->offset + a->length) * 16 : (uint64_t)(last - 2) * 8;
	if (i == 1 || i == last)
		return LADE_OK;
	int64_t bytes = element(a->buffers[last], 8, i - 2);
	if (bytes < 0 || bytes > COUNT_MAX)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "the size of strings is %lld",
		                 (long long)bytes);
	*size = (uint64_t)bytes;
	return LADE_OK;
}

lade_status node_buffer_size(const struct ArrowSchema *schema, const struct ArrowArray *a, size_t i,
                             uint64_t *size, lade_error *err)
{
	static const char *const bare[] = {"n", "+r", "+s", NULL};
	static const char *const texts[] = {"u", "z", "+l", "+m", NULL};
	static const char *const large[] = {"U", "Z", "+L", NULL};
	const char *f = schema->format;
	uint64_t end = (uint64_t)(a->offset + a->length), width;

	*size = 0;
	if (!strncmp(f, "+ud:", 4) || !strncmp(f, "+us:", 4)) {
		*size = i ? end * 4 : end;
		return LADE_OK;
	}
	if (i == 0) {
		*size = (end + 7) / 8;
		return LADE_OK;
	}
	if (is_one_of(f, texts))
		return of_offsets(a, i, 4, size, err);
	if (is_one_of(f, large))
		return of_offsets(a, i, 8, size, err);
	if (!strcmp(f, "vu") || !strcmp(f, "vz"))
		return of_views(a, i, size, err);
	if (!strcmp(f, "b"))
		*size = (end + 7) / 8;
	else if (!strcmp(f, "+vl") || !strcmp(f, "+vL"))
		*size = end * (f[2] == 'l' ? 4 : 8);
	else if (!is_one_of(f, bare) && strncmp(f, "+w:", 3)) {
		width = fixed_width(f);
		if ((!width && strcmp(f, "w:0")) || __builtin_mul_overflow(end, width, size) ||
		    *size > (uint64_t)COUNT_MAX)
			return lade_fail(
				err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
				"the format '%.60s' is not known, or %llu values of it are "
				"too many",
				f, (unsigned long long)end);
	}
	return LADE_OK;
}
