/*
 * demo_arrays.c: makes the array files of "make demo", so that it needs no NumPy.
 *
 *     demo_arrays FOLDER
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

static uint64_t seed = 20240607;

/* xorshift64*: the upper bits are the better ones. */
static double uniform(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (double)((seed * 0x2545F4914F6CDD1DULL) >> 11) / 9007199254740992.0;
}

/* A sum of uniform numbers is near enough to a normal one. */
static double normal(void)
{
	double sum = -6;
	for (int i = 0; i < 12; i++)
		sum += uniform();
	return sum;
}

/* The .npy format, version 1.0: magic, version, length of the header, the header as a Python
 * dictionary padded with spaces to a multiple of 64 bytes, then the elements. */
static void save(const char *folder, const char *name, const char *type, const char *shape,
                 const void *data, size_t size)
{
	char path[4096], head[256], header[256];
	snprintf(path, sizeof path, "%s/%s.npy", folder, name);
	snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
	         type, shape);
	size_t total = (10 + strlen(header) + 1 + 63) / 64 * 64;
	memset(head, ' ', total);
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	head[8] = (char)((total - 10) & 0xFF);
	head[9] = (char)((total - 10) >> 8);
	memcpy(head + 10, header, strlen(header));
	head[total - 1] = '\n';
	FILE *file = fopen(path, "wb");
	if (!file || fwrite(head, 1, total, file) != total || fwrite(data, 1, size, file) != size ||
	    fclose(file)) {
		fprintf(stderr, "cannot write %s\n", path);
		exit(1);
	}
	printf("%s: %s of type %s, %.1f MiB\n", path, shape, type, (double)size / 1048576);
}

static void *room(size_t size)
{
	void *p = malloc(size);
	if (!p) {
		fprintf(stderr, "no memory\n");
		exit(1);
	}
	return p;
}

/* Eight days of a temperature field at 0.25 degrees, to a hundredth of a degree. */
static void temperature(const char *folder)
{
	enum { DAYS = 8, LAT = 721, LON = 1440 };
	size_t size = (size_t)DAYS * LAT * LON * sizeof(float), n = 0;
	float *field = room(size);
	for (int day = 0; day < DAYS; day++)
		for (int lat = 0; lat < LAT; lat++)
			for (int lon = 0; lon < LON; lon++) {
				double wave =
					sin(lon * 2 * PI / LON * 5 + day) * cos(lat * PI / LAT * 3);
				double value = 300 - 60 * fabs(2.0 * lat / LAT - 1) + 6 * wave;
				field[n++] = (float)(floor((value + 0.05 * normal()) * 100) / 100);
			}
	save(folder, "temperature", "<f4", "8, 721, 1440", field, size);
	free(field);
}

/* An image of a detector: counts above a pedestal, and a few bright spots. */
static void detector(const char *folder)
{
	enum { FRAMES = 4, SIDE = 2048 };
	size_t count = (size_t)FRAMES * SIDE * SIDE;
	uint16_t *image = room(count * 2);
	for (size_t i = 0; i < count; i++)
		image[i] = (uint16_t)(100 + 4 * normal());
	for (int spot = 0; spot < 2000; spot++)
		image[(size_t)(uniform() * (double)count)] = (uint16_t)(1000 + 30000 * uniform());
	save(folder, "detector", "<u2", "4, 2048, 2048", image, count * 2);
	free(image);
}

/* Times of events in nanoseconds, in order. */
static void times(const char *folder)
{
	size_t count = 2000000;
	int64_t *stamps = room(count * 8), now = 1700000000000000000;
	for (size_t i = 0; i < count; i++)
		stamps[i] = now += (int64_t)(-1000 * log(1 - uniform())) + 1;
	save(folder, "times", "<i8", "2000000,", stamps, count * 8);
	free(stamps);
}

/* Which cells are sea: long runs. */
static void mask(const char *folder)
{
	size_t count = (size_t)4096 * 4096;
	uint8_t *sea = room(count);
	for (size_t i = 0; i < count; i++)
		sea[i] = sin((double)(i % 4096) / 300) + sin((double)(i / 4096) / 450) > 0.2;
	save(folder, "sea_mask", "|b1", "4096, 4096", sea, count);
	free(sea);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: demo_arrays FOLDER\n");
		return 2;
	}
	temperature(argv[1]);
	detector(argv[1]);
	times(argv[1]);
	mask(argv[1]);
	return 0;
}
