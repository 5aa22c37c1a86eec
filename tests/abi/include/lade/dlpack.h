/*
 * dlpack.h: exchanges arrays with other libraries by DLPack (https://dmlc.github.io/dlpack),
 * without a copy, in both directions.
 *
 *	lade_array *array;
 *	struct DLManagedTensor *managed;
 *	if (lade_array_new(12, LADE_PLACE_HOST, NULL, &array, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	lade_tensor tensor = {.struct_size = sizeof tensor, .array = array,
 *	                      .data = lade_array_span(array).data, .type = {2, 32, 1},
 *	                      .ndim = 1, .shape = {3}, .strides = {4}};     // 3 floats
 *	lade_status status = lade_tensor_give(&tensor, &managed, &err);
 *	lade_array_unref(array);                 // the tensor has a reference of its own
 *	if (status == LADE_OK)
 *		lade_tensor_drop(managed);       // or pass it on
 *
 * This header needs no header of DLPack's: it only names DLPack's structs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_DLPACK_H
#define LADE_DLPACK_H

#include <lade/array.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;          /* before 1.0 */
struct DLManagedTensorVersioned; /* 1.x */

/* DLPack's description of an element type. */
typedef struct lade_tensor_type {
	uint8_t code; /* 0 signed, 1 unsigned, 2 float, 4 bfloat16, 5 complex, 6 bool, ... */
	uint8_t bits; /* a multiple of 8 */
	uint16_t lanes;
} lade_tensor_type;

/* Elements of one type with a shape, in the memory of an array. */
typedef struct lade_tensor {
	size_t struct_size; /* sizeof(lade_tensor) */
	lade_array *array;  /* its span contains all elements */
	void *data;         /* element (0, 0, ...) */
	lade_tensor_type type;
	bool read_only;
	size_t ndim;                      /* 0 to LADE_DIMS_MAX */
	size_t shape[LADE_DIMS_MAX];
	ptrdiff_t strides[LADE_DIMS_MAX]; /* bytes, of any sign */
} lade_tensor;

/*
 * Take over a tensor of another library.  '*out' describes it; set out->struct_size before the
 * call.  out->array calls the tensor's deleter when its last reference is dropped, in the thread
 * that drops it.  The producer must have made the memory ready for the caller's stream, as DLPack
 * requires.
 *
 * The call checks all fields and refuses counts, strides and offsets that no memory can have, and
 * types whose elements are not whole bytes.  Check the type itself: any type code is accepted.
 *
 * Fails: LADE_E_ARG, LADE_E_VERSION (a major version other than 1), LADE_E_DTYPE,
 *        LADE_E_UNSUPPORTED (a device that is neither CPU nor CUDA), LADE_E_LIMIT (more than
 *        LADE_DIMS_MAX dimensions), LADE_E_RANGE, LADE_E_NOMEM; the tensor stays the caller's
 * Owns:  the caller gets one reference to out->array
 */
LADE_API lade_status lade_tensor_take(struct DLManagedTensor *managed, lade_tensor *out,
                                      lade_error *err);
LADE_API lade_status lade_tensor_take_versioned(struct DLManagedTensorVersioned *managed,
                                                lade_tensor *out, lade_error *err);

/*
 * Make a tensor for another library.  The tensor has its own reference to tensor->array, which its
 * deleter drops; any thread may call the deleter.  Call lade_array_follow() first if the consumer's
 * stream must wait for the work that fills the memory.
 * lade_tensor_give_versioned() makes a tensor of version 1.1; 'copied' says that nobody else has
 * the memory.
 *
 * Fails: LADE_E_ARG: strides that are no multiple of the element's size; a shape, place or strides
 *        that do not fit the array; read-only memory, which the unversioned struct cannot express.
 *        LADE_E_RANGE: strides that no memory can have.  LADE_E_NOMEM
 * Owns:  the caller, until it calls (*out)->deleter(*out) or passes the tensor on
 */
LADE_API lade_status lade_tensor_give(const lade_tensor *tensor, struct DLManagedTensor **out,
                                      lade_error *err);
LADE_API lade_status lade_tensor_give_versioned(const lade_tensor *tensor, bool copied,
                                                struct DLManagedTensorVersioned **out,
                                                lade_error *err);

/* Call the deleter of a tensor that nobody took. */
LADE_API void lade_tensor_drop(struct DLManagedTensor *managed);
LADE_API void lade_tensor_drop_versioned(struct DLManagedTensorVersioned *managed);

/* Convert a place to and from DLPack's device type (kDLCPU 1, kDLCUDA 2, kDLCUDAHost 3,
 * kDLCUDAManaged 13) and device number.
 * Fails: LADE_E_UNSUPPORTED for other types; LADE_E_ARG */
LADE_API void lade_place_to_dlpack(lade_place place, int32_t *type, int32_t *id);
LADE_API lade_status lade_place_from_dlpack(int32_t type, int32_t id, lade_place *out,
                                            lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
