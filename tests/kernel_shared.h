/*
 * kernel_shared.h: SHARED_name for each kernel: the dynamic shared memory that a launch may ask
 * for, as the host's table has it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_KERNEL_SHARED_H
#define LADE_TESTS_KERNEL_SHARED_H

#include "base/kernels.h"

#define LADE_X(name, image, function, shared) SHARED_##name = (shared),
enum { LADE__KERNELS(LADE_X) };
#undef LADE_X

#endif
