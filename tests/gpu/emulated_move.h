/*
 * emulated_move.h: bytes to and from the emulated devices, by the driver's own calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_EMULATED_MOVE_H
#define LADE_TESTS_EMULATED_MOVE_H

#include "gpu/device.h"
#include "gpu/emulated.h"

/* Copies 'size' bytes, of which a device may have either side, and waits.  These calls do not fail
 * and are not counted, whatever the test says of others.  Include cmocka.h before. */
static inline void emulated_move(int32_t device, void *to, const void *from, size_t size)
{
	emulated_state *emu = emulated_open();
	lade__device *d;
	lade_error *err = NULL;
	assert_non_null(emu);
	int fail_at = emu->fail_at, calls = emu->calls;
	if (size == 0)
		return;
	emu->fail_at = 0;
	assert_int_equal(lade__device_use(device, &d, NULL), LADE_OK);
	assert_int_equal(LADE__CU(d, cuMemcpyAsync, lade__address_of(to), lade__address_of(from),
	                          size, NULL),
	                 LADE_OK);
	assert_int_equal(LADE__CU(d, cuStreamSynchronize, NULL), LADE_OK);
	lade__device_leave(d);
	emu->fail_at = fail_at;
	emu->calls = calls;
}

#endif
