/*
 * dtype.c: the element types' names, sizes and classes, and the reversal of their bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/dtype.h>

#include <string.h>

/* One entry a type, at the index of its number; the header's list gives them. */
typedef struct entry {
	const char *text; /* native: little-endian, or '|' for one byte */
	uint8_t size;
	char class;
} entry;

static const entry entries[] = {
#define LADE_X(name, value, text, size, cls) [value] = {text, size, cls},
	LADE_DTYPE_LIST(LADE_X)
#undef LADE_X
};
#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

/* What the list does not have: the big-endian text (NULL where the order of bytes means
 * nothing), and NumPy's name (for the last two, ml_dtypes'). */
static const struct {
	const char *big, *name;
} spelling[ENTRY_COUNT] = {
	[LADE_B1] = {NULL, "bool"},
	[LADE_I1] = {NULL, "int8"},
	[LADE_U1] = {NULL, "uint8"},
	[LADE_I2] = {">i2", "int16"},
	[LADE_U2] = {">u2", "uint16"},
	[LADE_I4] = {">i4", "int32"},
	[LADE_U4] = {">u4", "uint32"},
	[LADE_I8] = {">i8", "int64"},
	[LADE_U8] = {">u8", "uint64"},
	[LADE_F2] = {">f2", "float16"},
	[LADE_F4] = {">f4", "float32"},
	[LADE_F8] = {">f8", "float64"},
	[LADE_BF16] = {">bfloat16", "bfloat16"},
	[LADE_F8_E4M3] = {NULL, "float8_e4m3fn"},
};

static const entry *entry_of(lade_dtype dtype)
{
	unsigned number = dtype & ~(unsigned)LADE_DTYPE_BIG;
	if (number == LADE_DTYPE_NONE || number >= ENTRY_COUNT)
		return NULL;
	if (lade_dtype_is_big(dtype) && !spelling[number].big)
		return NULL;
	return &entries[number];
}

lade_status lade_dtype_parse(const char *text, lade_dtype *out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	*out = LADE_DTYPE_NONE;
	if (!text)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "text is NULL");
	char order = text[0];
	bool prefix = order == '<' || order == '>' || order == '=' || order == '|';
	const char *rest = text + prefix;
	for (unsigned i = 1; i < ENTRY_COUNT; i++) {
		const entry *e = &entries[i];
		const char *bare = e->text + (e->text[0] == '<' || e->text[0] == '|');
		if (strcmp(rest, bare) != 0 && (prefix || strcmp(rest, spelling[i].name) != 0))
			continue;
		bool big = order == '>' && e->size > 1;
		*out = (lade_dtype)(i | (big ? LADE_DTYPE_BIG : 0));
		return LADE_OK;
	}
	return lade_fail(err, LADE_E_DTYPE, 0, "\"%.40s\" is not a known data type", text);
}

const char *lade_dtype_text(lade_dtype dtype)
{
	if (dtype == LADE_DTYPE_NONE)
		return "none";
	const entry *e = entry_of(dtype);
	if (!e)
		return "?";
	if (lade_dtype_is_big(dtype))
		return spelling[dtype & ~(unsigned)LADE_DTYPE_BIG].big;
	return e->text;
}

size_t lade_dtype_size(lade_dtype dtype)
{
	const entry *e = entry_of(dtype);
	return e ? e->size : 0;
}

char lade_dtype_class(lade_dtype dtype)
{
	const entry *e = entry_of(dtype);
	return (char)(e ? e->class : 0);
}

/* Loads and stores by memcpy: any alignment; compilers make shuffles of these loops. */
#define SWAP_LOOP(type, swap)                                  \
	for (size_t i = 0; i < count; i++) {                   \
		type v;                                        \
		memcpy(&v, from + i * sizeof v, sizeof v);     \
		v = swap(v);                                   \
		memcpy(to + i * sizeof v, &v, sizeof v);       \
	}

void lade_byteswap(const void *src, void *dst, size_t count, size_t size)
{
	const uint8_t *from = src;
	uint8_t *to = dst;
	if (count == 0)
		return;
	switch (size) {
	case 1:
		memmove(to, from, count);
		break;
	case 2:
		SWAP_LOOP(uint16_t, __builtin_bswap16)
		break;
	case 4:
		SWAP_LOOP(uint32_t, __builtin_bswap32)
		break;
	case 8:
		SWAP_LOOP(uint64_t, __builtin_bswap64)
		break;
	}
}
