/*
 * gpu.c: the option --gpu[=N], and memory that a device reads and writes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/gpu.h"

#include "cli/commands.h"

/* Pinned memory comes in pages. */
#define ALIGN 256

int cli_gpu_parse(const char *text, int32_t *device)
{
	uint64_t value = 0;

	if (text && !cli_parse_uint(text, 0, LADE_DEVICES_MAX - 1, &value))
		return cli_usage("--gpu=%s: want a device's number, 0 to %d", text,
		                 LADE_DEVICES_MAX - 1);
	*device = (int32_t)value;
	return CLI_OK;
}

int cli_gpu_check(int32_t device)
{
	const lade_device_info *info;
	lade_error err = {.offset = LADE_NO_OFFSET};

	if (lade_device_get_info(device, &info, &err) != LADE_OK)
		return cli_lade_error("--gpu", &err);
	if (info->kernels)
		return CLI_OK;
	const char *built = lade_device_kernels();
	if (built)
		cli_error("--gpu: device %d (%s, compute capability %d.%d) runs none of the "
		          "kernels that this build has (%s)",
		          (int)device, info->name, (int)info->major, (int)info->minor, built);
	else
		cli_error("--gpu: this build has no kernels (it was made without nvcc)");
	return CLI_FAILED;
}

lade_status cli_buffer_new(size_t size, int32_t device, lade_span *out, lade_error *err)
{
	lade_place place = {LADE_HOST, 0};

	if (device != CLI_NO_GPU)
		place = (lade_place){LADE_PINNED, device};
	const lade_allocator *a = lade_allocator_default(place.kind);
	*out = (lade_span){a->alloc(a->ctx, size, ALIGN, place, NULL), size, place};
	if (!out->data)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for a buffer of %zu bytes%s", size,
		                 place.kind == LADE_PINNED ? ", pinned" : "");
	return LADE_OK;
}

void cli_buffer_free(lade_span *buffer)
{
	const lade_allocator *a = lade_allocator_default(buffer->place.kind);

	if (buffer->data)
		a->free(a->ctx, buffer->data, buffer->size, ALIGN, buffer->place, NULL);
	buffer->data = NULL;
}
