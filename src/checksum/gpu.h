/*
 * gpu.h: checksums on devices.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CHECKSUM_GPU_H
#define LADE_CHECKSUM_GPU_H

#include "gpu/work.h"

#include <lade/checksum.h>

/* The stages': of LADE_CHECKSUM_LIST's number n, 2 n - 2 encodes and 2 n - 1 decodes. */
extern const lade__gpu_implementation lade__checksum_gpu[];

/* Whether there are kernels for it: the CRCs, Adler-32 and XXH64. */
bool lade__gpu_checksum_known(lade_checksum kind);

/* The bytes of workspace for the checksums of such a batch, of which 'largest' (0: not known) is
 * the largest.  SIZE_MAX: too many. */
size_t lade__gpu_checksum_workspace(lade_checksum kind, size_t count, uint64_t largest);

/*
 * Enqueues the kernels that store the checksums of the sources of 'work' in 'sums', 8 bytes each,
 * and what became of them in its 'status'.  What 'work' says of destinations and 'stage' is not
 * read.
 * Fails: LADE_E_DEVICE, LADE_E_UNSUPPORTED
 */
lade_status lade__gpu_checksum_tell(const lade__gpu_work *work, lade_checksum kind,
                                    lade__address sums, lade_error *err);

#endif
