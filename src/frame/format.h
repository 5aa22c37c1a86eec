/*
 * format.h: the numbers of the .lade format (docs/format/frame.md), for the host and for kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FRAME_FORMAT_H
#define LADE_FRAME_FORMAT_H

#include "base/limits.h"

#define LADE_FRAME_HEADER 32u /* bytes of a chunk's, a page's and the list's */
#define LADE_FRAME_PAGE 4096u /* chunks of a page */
#define LADE_FRAME_FOOTER 64u
#define LADE_FRAME_STORED 1u /* a chunk's flag */

/* The four parts' marks, "CHNK", "PAGE", "LIST" and "FOOT", and the last 8 bytes of a frame, as
 * little-endian numbers. */
#define LADE_FRAME_CHUNK_MARK 0x4B4E4843u
#define LADE_FRAME_PAGE_MARK 0x45474150u
#define LADE_FRAME_LIST_MARK 0x5453494Cu
#define LADE_FRAME_FOOT_MARK 0x544F4F46u
#define LADE_FRAME_END 0x894C4144450D0A1Aull

#endif
