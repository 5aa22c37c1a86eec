/*
 * lookup3.c: Bob Jenkins' lookup3 ("hashlittle", 2006), the checksum of HDF5's metadata and of
 * numcodecs' jenkins_lookup3.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"

#include <lade/checksum.h>

#include <string.h>

static inline uint32_t rotate(uint32_t v, int bits)
{
	return v << bits | v >> (32 - bits);
}

/* x -= z, x ^= rotated z, z += y: a line of mix(). */
#define MIX(x, y, z, bits) ((x) -= (z), (x) ^= rotate(z, bits), (z) += (y))
/* A line of final(). */
#define END(x, y, bits) ((x) ^= (y), (x) -= rotate(y, bits))

uint32_t lade_lookup3(const void *data, size_t size, uint32_t init)
{
	const uint8_t *p = data;
	uint8_t last[12] = {0};
	uint32_t a = 0xDEADBEEFU + (uint32_t)size + init, b = a, c = a;

	if (!p || !size)
		return c;
	/* The last 1 to 12 bytes are filled up with zeros. */
	for (; size > 12; size -= 12, p += 12) {
		a += lade__le32(p);
		b += lade__le32(p + 4);
		c += lade__le32(p + 8);
		MIX(a, b, c, 4);
		MIX(b, c, a, 6);
		MIX(c, a, b, 8);
		MIX(a, b, c, 16);
		MIX(b, c, a, 19);
		MIX(c, a, b, 4);
	}
	memcpy(last, p, size);
	a += lade__le32(last);
	b += lade__le32(last + 4);
	c += lade__le32(last + 8);
	END(c, b, 14);
	END(a, c, 11);
	END(b, a, 25);
	END(c, b, 16);
	END(a, c, 4);
	END(b, a, 14);
	END(c, b, 24);
	return c;
}
