/*
 * write_steps.c: runs the steps of a chain, which most often is one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "zarr/write.h"

#include "base/try.h"
#include "zarr/chain.h"
#include "zarr/mask.h"

#include <stdlib.h>

lade_status lade__steps_make(const lade__zwrite *w, const lade_zarr_step *steps, size_t count,
                             size_t largest, lade__steps *out, lade_error *err)
{
	if (count > LADE__STEPS_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "the chain has %zu steps, at most %d can run", count,
		                 LADE__STEPS_MAX);
	out->count = count ? count : 1;
	out->step = count ? steps : NULL;
	for (size_t i = 0; i < count; i++)
		for (size_t k = i - steps[i].mask_count; k < i; k++) {
			size_t extra;
			out->masked[k] = true;
			out->skipped[k] = steps[k].spec && !lade__spec_adds(steps[k].spec, &extra);
		}
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

/* numcodecs' LZ4 has the size of the data in front; 'conditional' what ran; N5 is the caller's. */
static lade_status put_header(const lade__steps *steps, size_t i, size_t size, uint64_t ran,
                              uint8_t *to, lade_error *err)
{
	lade_zarr_header kind = steps->step ? steps->step[i].header : LADE_ZARR_HEADER_NONE;
	if (kind == LADE_ZARR_HEADER_SIZE && size > INT32_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%zu bytes in a block whose header has 4 bytes", size);
	if (kind == LADE_ZARR_HEADER_SIZE)
		lade__le_put(to, size, 4);
	for (size_t k = 0; k < steps->header[i] && kind == LADE_ZARR_HEADER_MASK; k++)
		to[k] = k < 8 ? (uint8_t)(ran >> 8 * k) : 0;
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
	uint64_t ran = 0;  /* of a group of conditional steps */
	unsigned step = 0; /* in the group */
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
		status = put_header(steps, i, size, ran, next.data, err);
		if (status == LADE_OK)
			status = lade__item_encode(&pipe, &item, &got, err);
		bool skip = status == LADE_OK && steps->skipped[i] &&
		            got + steps->header[i] >= size;
		ran = steps->masked[i] ? ran | (uint64_t)!skip << step : 0;
		step = steps->masked[i] ? step + 1 : 0;
		if (skip) {
			free(next.data); /* it is owned: the chain has more steps */
			continue;
		}
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

lade_status lade__steps_decode(const lade__coder *coder, lade_segment src, lade_span dst,
                               bool exact, size_t *size, lade_error *err)
{
	const lade__steps *steps = coder->steps;
	uint8_t *now = NULL;
	lade_status status = LADE_OK;
	lade__mask mask = {0};
	for (size_t i = steps->count; i-- > 0;) {
		if (!lade__mask_next(&mask))
			continue;
		const lade__pipe pipe = {coder->worker, &steps->decode[i], &coder->w->job};
		lade__steps before = *steps;
		before.count = i;
		/* Other encoders than ours may need a little more. */
		size_t cap = i ? lade__steps_bound(&before, dst.size) : 0;
		cap += cap / 4 + 4096;
		uint8_t *next = i ? malloc(cap) : NULL;
		lade_item item = {.spec = steps->spec[i], .src = &src, .src_count = 1,
		                  .dst = i ? lade_host_span(next, cap) : dst};
		status = i && !next    ? no_memory(cap, err)
		         : steps->step ? lade__step_header(&steps->step[i], &mask, &src, err)
		                       : LADE_OK;
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
