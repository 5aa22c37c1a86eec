/*
 * linked.c: which versions of other libraries are there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <lade/status.h>

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

static const char *xxhash_version(void)
{
	static const char *const texts[] = {"0.8.0", "0.8.1", "0.8.2", "0.8.3", "0.8.4"};
	const unsigned count = sizeof texts / sizeof texts[0], patch = XXH_versionNumber() - 800;

	/* It reports only a number. */
	return patch < count ? texts[patch] : "above 0.8.4";
}

static const char *libdeflate_version(void)
{
	return LIBDEFLATE_VERSION_STRING;
}

/* Only C++ can read Snappy's headers: its version comes from CMakeLists.txt. */
static const char *snappy_version(void)
{
	return LADE_SNAPPY_VERSION;
}

static const struct {
	const char *name;
	const char *(*version)(void);
	bool compiled;
} libraries[] = {
	{"blosc", blosc_get_version_string, false},
	{"libdeflate", libdeflate_version, true},
	{"lz4", LZ4_versionString, false},
	{"snappy", snappy_version, true},
	{"xxhash", xxhash_version, false},
	{"zlib", zlibVersion, false},
	{"zstd", ZSTD_versionString, false},
};

const char *lade_linked(size_t index, const char **version, bool *compiled)
{
	bool there = index < sizeof libraries / sizeof libraries[0];

	if (version)
		*version = there ? libraries[index].version() : NULL;
	if (compiled)
		*compiled = there && libraries[index].compiled;
	return there ? libraries[index].name : NULL;
}
