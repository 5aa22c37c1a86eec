/*
 * copier.h: the process that copies a device's memory to the host, for those who cannot map it.
 *
 * It is the broker's, started when it is first wanted: so the broker itself has no device, and
 * waits for none.  It ends when the broker closes the connection, and its context with it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_COPIER_H
#define LADE_SHARE_COPIER_H

#include "share/wire.h"

/* Starts it; '*out' is a connection.  A message COPY, a record whose blocks are of a device, is
 * answered with the request's COPY, whose blocks are memfds of the same size, or with FAILED.
 * Fails: LADE_E_IO */
lade_status lade__copier_start(int *out, lade_error *err);

#endif
