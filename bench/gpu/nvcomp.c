/*
 * nvcomp.c: opens nvCOMP's library and finds its calls by their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "nvcomp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "libnvcomp.so.6"

/* Tries a file, or a folder with the library in it or below it, as packages have it. */
static bool try_path(nvcomp_library *library, const char *path)
{
	static const char *const below[] = {"", "/" FILE_NAME, "/lib64/" FILE_NAME,
	                                    "/lib/" FILE_NAME,
	                                    "/nvidia/libnvcomp/lib64/" FILE_NAME};
	char file[4096];
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		int size = snprintf(file, sizeof file, "%s%s", path, below[i]);
		struct stat info;
		if (size < 0 || (size_t)size >= sizeof file || stat(file, &info) != 0 ||
		    !S_ISREG(info.st_mode))
			continue;
		library->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		if (library->handle)
			return true;
		const char *why = dlerror();
		snprintf(library->why, sizeof library->why, "%.250s", why ? why : "dlopen");
	}
	return false;
}

/* POSIX has dlsym() give functions as void pointers, which ISO C does not convert. */
static bool find(const nvcomp_library *library, const char *format, const char *codec,
                 void *function)
{
	char name[128];
	snprintf(name, sizeof name, format, codec);
	void *found = dlsym(library->handle, name);
	memcpy(function, &found, sizeof found);
	return found != NULL;
}

static void open_any(nvcomp_library *library, const char *path)
{
	char program[4096];
	ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
	if (!path)
		path = getenv("LADE_NVCOMP");
	if (path) {
		if (!try_path(library, path) && !library->why[0])
			snprintf(library->why, sizeof library->why, "%.200s: no " FILE_NAME, path);
		return;
	}
	if (size > 0) {
		program[size] = 0;
		*strrchr(program, '/') = 0;
		if (try_path(library, program))
			return;
	}
	library->handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!library->handle && !library->why[0])
		snprintf(library->why, sizeof library->why,
		         "no " FILE_NAME
		         " (pip install nvidia-libnvcomp-cu13, and name its folder)");
}

nvcomp_library nvcomp_open(const char *path)
{
	nvcomp_library library = {0};
	struct {
		uint32_t version, cuda;
	} properties = {0, 0};
	int (*get)(void *properties) = NULL;
	open_any(&library, path);
	if (!library.handle)
		return library;
	if (find(&library, "nvcomp%sProperties", "Get", &get) && get(&properties) == 0)
		library.version = properties.version;
	if (library.version / 1000 != 6) {
		snprintf(library.why, sizeof library.why,
		         "its version is %u, and the calls are known of 6000 to 6999",
		         library.version);
		dlclose(library.handle);
		library.handle = NULL;
	}
	return library;
}

bool nvcomp_find(const nvcomp_library *library, const char *name, nvcomp_codec *codec)
{
	return find(library, "nvcompBatched%sCompressGetTempSize", name, &codec->compress_temp) &&
	       find(library, "nvcompBatched%sCompressGetMaxOutputChunkSize", name,
	            &codec->compress_bound) &&
	       find(library, "nvcompBatched%sCompressAsync", name, &codec->compress) &&
	       find(library, "nvcompBatched%sDecompressGetTempSize", name,
	            &codec->decompress_temp) &&
	       find(library, "nvcompBatched%sDecompressAsync", name, &codec->decompress);
}
