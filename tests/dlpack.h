/*
 * dlpack.h: DLPack's structs as its own header has them, versions 0.8 and 1.1, for tests that are
 * the other side of an exchange.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_DLPACK_H
#define LADE_TESTS_DLPACK_H

#include <stdint.h>

typedef struct DLDevice {
	int32_t device_type, device_id;
} DLDevice;

typedef struct DLDataType {
	uint8_t code, bits;
	uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
	void *data;
	DLDevice device;
	int32_t ndim;
	DLDataType dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
	DLTensor dl_tensor;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
	struct {
		uint32_t major, minor;
	} version;
	void *manager_ctx;
	void (*deleter)(struct DLManagedTensorVersioned *self);
	uint64_t flags;
	DLTensor dl_tensor;
} DLManagedTensorVersioned;

#endif
