/*
 * options.h: reads the structs that begin with their size, as callers of other versions give them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_OPTIONS_H
#define LADE_BASE_OPTIONS_H

#include <lade/status.h>

/* A larger struct_size is one that was never set. */
#define LADE__STRUCT_SIZE_MAX 4096

/*
 * Copies the caller's struct at 'from' to 'to', which has 'to_size' bytes; both begin with a size_t
 * struct_size, and the copy's is 'to_size'.  NULL gives zeros.  A shorter struct, of an older
 * version, is filled up with zeros.  A longer one is taken if its surplus bytes are zero: then it
 * asks for nothing that this version lacks.  Reads at most struct_size bytes at 'from'.
 * Fails: LADE_E_ARG with both sizes; 'name' says whose they are
 */
lade_status lade__options_read(void *to, size_t to_size, const void *from, const char *name,
                               lade_error *err);

/*
 * Copies 'from_size' bytes of a caller's struct to 'to' in the same way: zeros fill what is
 * missing.  Returns SIZE_MAX, or the offset of the first surplus byte that is not zero.
 */
size_t lade__struct_copy(void *to, size_t to_size, const void *from, size_t from_size);

/*
 * A call's array in this version's structs.  Set 'own' to the caller's, 'count', and 'own_size' to
 * this version's size: lade__array_open() makes a copy where the caller's size is another.
 * 'what' names an element; NULL: the array is only written, and a copy begins as zeros.
 * Fails: LADE_E_ARG: surplus bytes are not zero; LADE_E_NOMEM
 */
typedef struct lade__array {
	void *own;
	size_t count, own_size;
	unsigned char *caller; /* NULL: there is no copy */
	size_t caller_size;
} lade__array;
lade_status lade__array_open(lade__array *array, size_t caller_size, const char *what,
                             lade_error *err);

/* Frees a copy; 'bring': brings it to the caller first. */
void lade__array_close(lade__array *array, bool bring);

/* The size that a struct had when 'field' was its last one. */
#define LADE__SIZE_TO(type, field) \
	((offsetof(type, field) + sizeof(((type *)0)->field) + (_Alignof(type) - 1)) & \
	 ~(_Alignof(type) - 1))

/* The fields of lade_batch_options that say that a caller's structs are this library's: for calls
 * from within, which must not leave them 0. */
#define LADE__OUR_SIZES                                                                          \
	.struct_size = sizeof(lade_batch_options), .item_size = sizeof(lade_item),               \
	.segment_size = sizeof(lade_segment), .output_size = sizeof(lade_item_output),           \
	.result_size = sizeof(lade_result), .candidate_size = sizeof(lade_candidate)

/* The size that 'size' stands for: itself, or 'first', 0.2.0's.  Fails: LADE_E_ARG: it is less */
lade_status lade__size_given(size_t *size, size_t first, const char *name, lade_error *err);

#endif
