/*
 * call.h: a call's items on the host.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BATCH_HOST_CALL_H
#define LADE_BATCH_HOST_CALL_H

#include "batch/batch.h"

/* A call whose items lie on the host and are done there.  Fails: when nothing could be tried */
lade_status lade__host_call(const lade__call *call, lade__outcome *outcome, lade_error *err);

#endif
