/*
 * kernel_test.h: cmocka for C++, and the running of a kernel under several seeds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_KERNEL_TEST_H
#define LADE_TESTS_KERNEL_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern "C" {
#include <cmocka.h>
}

#include <gpu/kernels/device.cuh>

enum {
	KERNEL_SEEDS = 8
};

/* Launches under seeds 0..7 and wants each to succeed; 'check' runs after each. */
template <typename F, typename G> static inline void kernel_runs(emu_config config, F body, G check)
{
	for (config.seed = 0; config.seed < KERNEL_SEEDS; config.seed++) {
		emu_result r = emu_launch(config, body);
		if (!r.ok)
			print_error("seed %llu: %s\n", (unsigned long long)config.seed, r.message);
		assert_true(r.ok);
		check();
	}
}

/* Launches under each seed and wants each to fail with 'error' and a message that holds 'words'. */
template <typename F>
static inline void kernel_fails(emu_config config, emu_error error, const char *words, F body)
{
	for (config.seed = 0; config.seed < KERNEL_SEEDS; config.seed++) {
		emu_result r = emu_launch(config, body);
		if (r.ok || r.error != error || !strstr(r.message, words))
			print_error("seed %llu: want error %d with \"%s\", have %d: \"%s\"\n",
			            (unsigned long long)config.seed, error, words, r.error,
			            r.message);
		assert_false(r.ok);
		assert_int_equal(r.error, error);
		assert_non_null(strstr(r.message, words));
		assert_non_null(strstr(r.message, config.kernel));
	}
}

#endif
