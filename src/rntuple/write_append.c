/*
 * write_append.c: goes on with an RNTuple of a file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/write.h"

lade_status lade__rnt_append_open(lade_rntuple_writer *w, lade_error *err)
{
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "rntuple: %s: appending",
	                 w->file.path);
}

lade_status lade_rntuple_repair(const char *path, const lade_rntuple_repair_options *options,
                                bool *mended, lade_error *err)
{
	(void)options;
	(void)mended;
	return lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET, "rntuple: %s: mending", path);
}
