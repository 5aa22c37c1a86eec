/*
 * spec.h: the inside of a spec, and what its text and binary readers share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_ENGINE_SPEC_H
#define LADE_ENGINE_SPEC_H

#include <lade/spec.h>

#include <stdatomic.h>

/* text and bytes are in the same block, behind the struct. */
struct lade_spec {
	atomic_uint refs;
	uint8_t count;
	uint16_t slot[LADE_STAGES_MAX]; /* the algorithms' places in an engine's registry: a hint */
	lade_stage stage[LADE_STAGES_MAX];
	const char *text;
	const uint8_t *bytes;
	size_t bytes_size;
};

/* Checks one value of 'stage' against the option's limits. */
lade_status lade__value_check(const lade_stage *stage, size_t index, lade_error *err);

/* Checks all values of 'stage', also against each other. */
lade_status lade__stage_check(const lade_stage *stage, lade_error *err);

/* True when the value must not be written: it is the default and the option is not 'always'. */
bool lade__value_is_silent(const lade_option *option, lade_value value);

/*
 * Fails with LADE_E_LIMIT: one of 'count' stages has no bound for what 'size' bytes come to before
 * it.  Names it, and the most that it takes.
 */
lade_status lade__bound_fail(const lade_stage *stage, size_t count, size_t size, lade_error *err);

/* The option by its name, in any case; algorithm->option_count when there is none. */
size_t lade__option_find(const lade_algorithm *algorithm, const char *name, size_t length);

/* True when two names of one length are equal, ASCII letters in any case. */
bool lade__name_equal(const char *name, const char *text, size_t length);

/* Fills the options' defaults; required ones get 0. */
void lade__stage_defaults(lade_stage *stage, const lade_algorithm *algorithm);

/* Text and bytes of the stages; with cap 0 just the size (the text's without its NUL). */
size_t lade__spec_print(const lade_stage *stages, size_t count, char *text, size_t cap);
size_t lade__spec_pack(const lade_stage *stages, size_t count, uint8_t *bytes, size_t cap);

#endif
