/*
 * dlpack.h: arrays exchanged with other libraries by DLPack (https://dmlc.github.io/dlpack),
 * without a copy, in both directions.
 *
 * DLPack's structs are those of its own header, dlpack.h, which need not be there: here they are
 * only named.
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

/* An element type as DLPack has it, and the bytes of an element. */
typedef struct lade_tensor_type {
	uint8_t code; /* 0 signed, 1 unsigned, 2 float, 4 bfloat16, 5 complex, 6 bool, ... */
	uint8_t bits; /* a multiple of 8 */
	uint16_t lanes;
} lade_tensor_type;

/* Elements of one type with their shape, in memory that an array keeps. */
typedef struct lade_tensor {
	size_t struct_size; /* sizeof(lade_tensor) */
	lade_array *array;  /* all elements lie in its span */
	void *data;         /* of index (0, 0, ...) */
	lade_tensor_type type;
	bool read_only;
	size_t ndim;                      /* 0 to LADE_DIMS_MAX */
	size_t shape[LADE_DIMS_MAX];
	ptrdiff_t strides[LADE_DIMS_MAX]; /* bytes, of any sign */
} lade_tensor;

/*
 * lade_tensor_take() takes a tensor over: '*out' describes it, and out->array calls its deleter
 * when nobody has it any more, in the thread that drops the last reference.  The tensor's producer
 * must have made the memory ready for the caller's stream, as DLPack's protocol says.
 *
 * All fields are checked: counts, strides and offsets that no memory can have are refused.  A type
 * whose elements are no whole bytes is refused; which types there are is the caller's to say.
 *
 * out->struct_size is to be set before the call.
 * Fails: LADE_E_ARG, LADE_E_VERSION (a major version other than 1), LADE_E_DTYPE,
 *        LADE_E_UNSUPPORTED (a device that is neither CPU nor CUDA), LADE_E_LIMIT (more than
 *        LADE_DIMS_MAX dimensions), LADE_E_RANGE, LADE_E_NOMEM; the tensor stays the caller's
 * Owns:  the caller, one reference to out->array
 */
LADE_API lade_status lade_tensor_take(struct DLManagedTensor *managed, lade_tensor *out,
                                      lade_error *err);
LADE_API lade_status lade_tensor_take_versioned(struct DLManagedTensorVersioned *managed,
                                                lade_tensor *out, lade_error *err);

/*
 * lade_tensor_give() makes a tensor for others, with a reference of its own to tensor->array, which
 * its deleter drops.  Anybody may call the deleter, in any thread.  lade_array_follow() lets a
 * consumer's stream follow the work that fills the memory.
 * lade_tensor_give_versioned() makes one of version 1.1; 'copied' says that nobody else has the
 * memory.
 * Fails: LADE_E_ARG: strides that are no multiple of the element; a shape, a place or strides that
 *        are not possible in the array; read-only memory, which the old struct cannot tell.
 *        LADE_E_RANGE: strides that no memory can have.  LADE_E_NOMEM
 * Owns:  the caller, until it calls (*out)->deleter(*out) or gives the tensor away
 */
LADE_API lade_status lade_tensor_give(const lade_tensor *tensor, struct DLManagedTensor **out,
                                      lade_error *err);
LADE_API lade_status lade_tensor_give_versioned(const lade_tensor *tensor, bool copied,
                                                struct DLManagedTensorVersioned **out,
                                                lade_error *err);

/* Calls the deleter of a tensor that nobody took. */
LADE_API void lade_tensor_drop(struct DLManagedTensor *managed);
LADE_API void lade_tensor_drop_versioned(struct DLManagedTensorVersioned *managed);

/* DLPack's numbers of a place: kDLCPU 1, kDLCUDA 2, kDLCUDAHost 3, kDLCUDAManaged 13.  And back.
 * Fails: LADE_E_UNSUPPORTED */
LADE_API void lade_place_to_dlpack(lade_place place, int32_t *type, int32_t *id);
LADE_API lade_status lade_place_from_dlpack(int32_t type, int32_t id, lade_place *out,
                                            lade_error *err);

#ifdef __cplusplus
}
#endif

#endif
