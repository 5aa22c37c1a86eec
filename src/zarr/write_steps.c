/*
 * write_steps.c: runs the steps of a chain, which most often is one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/write.h"

#include "base/try.h"

#include <stdlib.h>

lade_status lade__steps_make(const lade__zwrite *w, const lade_zarr_step *steps, size_t count,
                             size_t largest, lade__steps *out, lade_error *err)
{
	if (count > LADE__STEPS_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the chain has %zu steps, at most %d can run", count,
		                 LADE__STEPS_MAX);
	out->count = count ? count : 1;
	for (size_t i = 0; i < out->count; i++) {
		if (count && !steps[i].spec)
			return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                 "codec '%.80s': %.200s", steps[i].name, steps[i].why);
		out->spec[i] = count ? steps[i].spec : w->copy;
		out->header[i] = count ? steps[i].header_size : 0;
		out->n5 |= count && steps[i].header == LADE_ZARR_HEADER_N5;
		lade_workload work = {
			.direction = LADE_ENCODE, .count = 1, .largest = largest, .total = largest};
		lade_status status =
			lade__route_host(w->engine, out->spec[i], work, &out->encode[i], err);
		work.direction = LADE_DECODE;
		if (status == LADE_OK)
			status = lade__route_host(w->engine, out->spec[i], work, &out->decode[i],
			                          err);
		if (status != LADE_OK)
			return status;
		largest = lade_spec_bound(out->spec[i], largest);
	}
	return LADE_OK;
}

size_t lade__steps_bound(const lade__steps *steps, size_t size)
{
	for (size_t i = 0; i < steps->count; i++) {
		size = lade_spec_bound(steps->spec[i], size);
		if (size > SIZE_MAX / 4)
			return SIZE_MAX;
		size += steps->header[i];
	}
	return size;
}

static lade_status too_large(size_t size, lade_error *err)
{
	return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET, "no codec can hold %zu bytes", size);
}

static lade_status no_memory(size_t size, lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
	                 "no memory for %zu bytes of an encoded chunk", size);
}

/* numcodecs' LZ4 has the size of the data in front. */
static lade_status put_header(size_t header, size_t size, uint8_t *to, lade_error *err)
{
	if (header && (header != 4 || size > INT32_MAX))
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu bytes in a block whose header has %zu bytes", size, header);
	if (header)
		lade__le_put(to, size, header);
	return LADE_OK;
}

lade_status lade__steps_encode(const lade__coder *coder, lade_segment src,
                               const lade_layout *layout, lade__encoded *out, lade_error *err)
{
	const lade__steps *steps = coder->steps;
	lade_worker *worker = coder->worker;
	lade__encoded now = {0};
	lade_layout_sizes sizes = {.chunk_size = src.size};
	lade_status status = LADE_OK;
	if (layout)
		TRY(lade_layout_measure(layout, LADE_ENCODE, src.size, &sizes, err));
	size_t size = sizes.chunk_size;
	for (size_t i = 0; i < steps->count; i++) {
		const lade__pipe pipe = {worker, &steps->encode[i], &coder->w->job};
		size_t bound = lade_spec_bound(steps->spec[i], size), got;
		lade__encoded next = {.owned = steps->count > 1};
		if (bound > SIZE_MAX / 4)
			TRY(too_large(size, err));
		bound += steps->header[i];
		next.data = next.owned ? malloc(bound + 1)
		                       : lade__worker_block(worker, LADE__SCRATCH_GROUP, bound + 1);
		if (!next.data)
			TRY(no_memory(bound, err));
		lade_item item = {.spec = steps->spec[i], .src = &src, .src_count = 1,
		                  .layout = i ? NULL : layout,
		                  .dst = lade_host_span(next.data + steps->header[i],
		                                        bound - steps->header[i])};
		if (!steps->n5) /* whose header the caller writes */
			status = put_header(steps->header[i], size, next.data, err);
		if (status == LADE_OK)
			status = lade__item_encode(&pipe, &item, &got, err);
		if (now.owned)
			free(now.data);
		now = next;
		if (status != LADE_OK)
			goto out;
		now.size = size = got + steps->header[i];
		src = (lade_segment){.data = now.data, .size = size};
	}
	*out = now;
	return LADE_OK;
out:
	if (now.owned)
		free(now.data);
	return status;
}

static lade_status take_header(const lade__steps *steps, size_t i, lade_segment *src,
                               lade_error *err)
{
	size_t header = steps->header[i];
	if (header == 0)
		return LADE_OK;
	if (src->size < header)
		return lade_fail(err, LADE_E_TRUNCATED, src->size,
		                 "the header of a block: want %zu bytes, have %zu", header,
		                 src->size);
	src->decoded_size = steps->n5 ? 0 : lade__le32(src->data);
	src->data = (const uint8_t *)src->data + header;
	src->size -= header;
	return LADE_OK;
}

lade_status lade__steps_decode(const lade__coder *coder, lade_segment src, lade_span dst,
                               bool exact, size_t *size, lade_error *err)
{
	const lade__steps *steps = coder->steps;
	uint8_t *now = NULL;
	lade_status status = LADE_OK;
	for (size_t i = steps->count; i-- > 0;) {
		const lade__pipe pipe = {coder->worker, &steps->decode[i], &coder->w->job};
		lade__steps before = *steps;
		before.count = i;
		/* Other encoders than ours may need a little more. */
		size_t cap = i ? lade__steps_bound(&before, dst.size) : 0;
		cap += cap / 4 + 4096;
		uint8_t *next = i ? malloc(cap) : NULL;
		lade_item item = {.spec = steps->spec[i], .src = &src, .src_count = 1,
		                  .dst = i ? lade_host_span(next, cap) : dst};
		status = i && !next ? no_memory(cap, err)
		                    : take_header(steps, i, &src, err);
		if (status == LADE_OK)
			status = lade__item_decode(&pipe, &item, size, err);
		if (status == LADE_E_NOSPACE && (i || exact))
			status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
			                   "it decodes to more than %zu bytes", item.dst.size);
		free(now);
		now = next;
		if (status != LADE_OK)
			break;
		src = (lade_segment){.data = now, .size = *size};
	}
	free(now);
	if (status == LADE_OK && exact && *size != dst.size)
		status = lade_fail(err, LADE_E_CORRUPT, LADE_NO_OFFSET,
		                   "it decodes to %zu bytes, want %zu", *size, dst.size);
	return status;
}
