/*
 * dtype.h: element types, named by the type strings of the array interface protocol.
 *
 *	lade_dtype type;
 *	if (lade_dtype_parse("float32", &type, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	printf("%s has %zu bytes\n", lade_dtype_text(type), lade_dtype_size(type));  // "<f4", 4
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_DTYPE_H
#define LADE_DTYPE_H

#include <lade/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The types: number (stored in files), type string, size in bytes, class.
 *
 * The classes are 'b' bool, 'i' signed, 'u' unsigned, 'f' IEEE 754 float and 'e' other floats.
 * bfloat16 and float8_e4m3 have no type string in the protocol, so their names are used.  E4M3 is
 * the OCP FP8 variant without infinities ("fn").
 */
#define LADE_DTYPE_LIST(X)                        \
	X(LADE_B1, 1, "|b1", 1, 'b')              \
	X(LADE_I1, 2, "|i1", 1, 'i')              \
	X(LADE_U1, 3, "|u1", 1, 'u')              \
	X(LADE_I2, 4, "<i2", 2, 'i')              \
	X(LADE_U2, 5, "<u2", 2, 'u')              \
	X(LADE_I4, 6, "<i4", 4, 'i')              \
	X(LADE_U4, 7, "<u4", 4, 'u')              \
	X(LADE_I8, 8, "<i8", 8, 'i')              \
	X(LADE_U8, 9, "<u8", 8, 'u')              \
	X(LADE_F2, 10, "<f2", 2, 'f')             \
	X(LADE_F4, 11, "<f4", 4, 'f')             \
	X(LADE_F8, 12, "<f8", 8, 'f')             \
	X(LADE_BF16, 13, "bfloat16", 2, 'e')      \
	X(LADE_F8_E4M3, 14, "float8_e4m3", 1, 'e')

/* A type's number.  Bit 7 is set for big-endian elements, which have 2 bytes or more. */
typedef uint8_t lade_dtype;
enum {
	LADE_DTYPE_NONE = 0, /* plain bytes of no known type */
#define LADE_X(name, value, text, size, cls) name = value,
	LADE_DTYPE_LIST(LADE_X)
#undef LADE_X
	LADE_DTYPE_BIG = 0x80,
};

/*
 * Reads a type string of the list, or one of NumPy's names ("float32", "uint8").  The prefix '>'
 * means big-endian.  The prefixes '<', '=', '|' and none ("f4") mean little-endian.
 *
 * Fails: LADE_E_DTYPE; the message has the text
 */
LADE_API lade_status lade_dtype_parse(const char *text, lade_dtype *out, lade_error *err);

/* The type string, such as ">i2"; "none" for LADE_DTYPE_NONE, "?" for an unknown number. */
LADE_API const char *lade_dtype_text(lade_dtype dtype);

/* Bytes of an element; 0 for LADE_DTYPE_NONE and for an unknown number. */
LADE_API size_t lade_dtype_size(lade_dtype dtype);

/* The class, 'b', 'i', 'u', 'f' or 'e'; 0 for LADE_DTYPE_NONE and for an unknown number. */
LADE_API char lade_dtype_class(lade_dtype dtype);

static inline bool lade_dtype_is_big(lade_dtype dtype)
{
	return (dtype & LADE_DTYPE_BIG) != 0;
}

/*
 * Reverses the bytes of each of 'count' elements of 'size' bytes (1, 2, 4 or 8), from 'src' to
 * 'dst'.  These may be equal, but must not overlap otherwise.  Any alignment.
 */
LADE_API void lade_byteswap(const void *src, void *dst, size_t count, size_t size);

#ifdef __cplusplus
}
#endif

#endif
