/*
 * sample.c: the files that 'bench' and 'suggest' measure, mapped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/npy.h"

static int sample_fail(const char *path, const char *why)
{
	cli_error("%s: %s", path, why);
	return CLI_FAILED;
}

int sample_open(const char *path, sample *out)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*out = (sample){.name = path};
	if (fd < 0)
		return sample_fail(path, strerror(errno));
	if (fstat(fd, &st) != 0) {
		close(fd);
		return sample_fail(path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode) || st.st_size == 0) {
		close(fd);
		return sample_fail(path, S_ISREG(st.st_mode) ? "the file is empty"
							     : "not a regular file");
	}
	out->map_size = (size_t)st.st_size;
	out->map = mmap(NULL, out->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
	int failed = errno;
	close(fd);
	if (out->map == MAP_FAILED)
		return sample_fail(path, strerror(failed));
	out->data = out->map;
	out->size = out->map_size;
	npy header;
	if (npy_read(out->data, out->size, &header) == NULL &&
	    header.header_size + header.data_size <= out->size && header.data_size > 0) {
		out->data += header.header_size;
		out->size = (size_t)header.data_size;
		out->dtype = header.dtype;
	}
	return CLI_OK;
}

void sample_close(sample *s)
{
	munmap(s->map, s->map_size);
}
