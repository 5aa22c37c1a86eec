/*
 * pipeline.h: specs from short texts, completed by what is known of the data: "shuffle|zstd"
 * for float64 elements at level 3 is "shuffle(8)|zstd(level=3)".
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CLI_PIPELINE_H
#define LADE_CLI_PIPELINE_H

#include <lade/spec.h>

#define PIPELINE_NO_LEVEL INT64_MIN

/*
 * Makes a spec of 'text'.  In each stage, options that the text leaves out are filled in: the
 * element's size and data type from 'dtype' (unless that is LADE_DTYPE_NONE), and the level of
 * codecs that have one (unless it is PIPELINE_NO_LEVEL).
 * Fails: as lade_spec_parse(); LADE_E_DTYPE when a stage wants to know the type and none is known
 */
lade_status pipeline_parse(const char *text, lade_dtype dtype, int64_t level, lade_spec **out,
			   lade_error *err);

/* True when a stage of 'text' has an option "level" that the text leaves out and that can be
 * 'level'. */
bool pipeline_takes_level(const char *text, int64_t level);

/*
 * Takes the next piece of a list off '*list': up to a 'mark' that stands outside brackets.  Blanks
 * around it are left out.  Gives it in memory to be freed, or NULL at the end.
 */
char *pipeline_next(const char **list, char mark);

#endif
