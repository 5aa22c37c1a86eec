/* SPDX-License-Identifier: Apache-2.0 */
#include <lade/lade.h>
#include <stdio.h>

/* A chunk of 2 x 3 numbers, stored in C order. */
static const float chunk[2][3] = {{1, 2, 3}, {4, 5, 6}};
static float array[10][20]; /* it goes, transposed, to rows 5 to 7, columns 8 and 9 */

int main(void)
{
	lade_engine *engine = lade_engine_default();
	lade_spec *spec;
	lade_error err;
	unsigned char packed[256];
	size_t size;
	if (lade_spec_parse(NULL, "shuffle(4)|zstd", &spec, &err) ||
	    lade_encode(engine, spec, lade_host_cspan(chunk, sizeof chunk),
	                lade_host_span(packed, sizeof packed), &size, &err))
		return fprintf(stderr, "%s\n", err.message);

	size_t shape[2] = {2, 3}; /* of the chunk */
	size_t order[2] = {1, 0}; /* the array's rows are the chunk's axis 1; its columns, axis 0 */
	ptrdiff_t strides[2] = {sizeof array[0], sizeof array[0][0]}; /* of the array */
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = sizeof(float), .ndim = 2,
	                      .shape = shape, .order = order, .strides = strides,
	                      .offset = 5 * sizeof array[0] + 8 * sizeof array[0][0]};
	lade_segment segment = {.data = packed, .size = size};
	lade_item item = {.src = &segment, .src_count = 1, .layout = &layout,
	                  .dst = lade_host_span(array, sizeof array)};
	if (lade_decode_into(engine, spec, &item, 1, NULL, NULL, &err))
		return fprintf(stderr, "%s\n", err.message);

	for (int i = 0; i < 3; i++)
		printf("%g %g\n", array[5 + i][8], array[5 + i][9]); /* 1 4, 2 5, 3 6 */
	lade_spec_unref(spec);
	return array[7][9] != chunk[1][2];
}
