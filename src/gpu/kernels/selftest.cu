/*
 * selftest.cu: a kernel that shows that kernels run: lade_device_check().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/kernels/device.cuh"

/* Adds 1 to 'count' words.  A thread a word; a grid of at least 'count' threads, of any shape. */
extern "C" __global__ void lade_selftest_add(uint32_t *words, uint32_t count)
{
	uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
	if (at < count)
		words[at] += 1;
}
