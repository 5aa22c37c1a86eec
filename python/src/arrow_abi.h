/*
 * arrow_abi.h: the structs of the Arrow C data interface, and of its device form.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ARROW_ABI_H
#define LADE_ARROW_ABI_H

#include <stdint.h>

struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

struct ArrowDeviceArray {
	struct ArrowArray array;
	int64_t device_id;
	int32_t device_type; /* as DLPack's */
	void *sync_event;
	int64_t reserved[3];
};

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif
