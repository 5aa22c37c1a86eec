/*
 * map.c: a map of signs, which shows how well parts of an array or a table are compressed.
 *
 * The more bytes are stored for an element, the darker a sign is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/map.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/table.h"

#define MARGIN CLI_MAP_MARGIN
#define SHADES 4

size_t cli_map_divide(uint64_t count, size_t most, uint64_t *of_sign)
{
	*of_sign = count > most ? (count - 1) / most + 1 : 1;
	return count ? (size_t)((count - 1) / *of_sign + 1) : 1;
}

/* ---- shading ------------------------------------------------------------------------------- */

/* Decoded bytes for each stored one; where decoded sizes are not known, stored bytes of a part. */
static double measure_of(const cli_sign *sign)
{
	double stored = (double)(sign->stored ? sign->stored : 1);

	return sign->decoded ? (double)sign->decoded / stored : stored / (double)sign->present;
}

/* The ranges of the shades, equal in their logarithms; the first is the darkest. */
typedef struct shades {
	double least, most;
	size_t count;
	bool sizes; /* of parts, not ratios */
	uint64_t parts[SHADES];
} shades;

/* The lower end of range 'i'; of 'count', the upper end of the last. */
static double range_end(const shades *s, size_t i)
{
	return s->least * pow(s->most / s->least, (double)i / (double)s->count);
}

static size_t range_of(const shades *s, const cli_sign *sign)
{
	double value = measure_of(sign);
	size_t i = s->count - 1;

	while (i > 0 && value < range_end(s, i))
		i--;
	return i;
}

/* Many bytes are dark: a small ratio, or a large part. */
static size_t shade_of(const shades *s, size_t range)
{
	return s->sizes ? s->count - 1 - range : range;
}

static void find_shades(const cli_map *c, shades *s)
{
	*s = (shades){.least = INFINITY};
	for (size_t i = 0; i < c->rows * c->columns; i++) {
		if (c->signs[i].present == 0)
			continue;
		double value = measure_of(&c->signs[i]);
		s->least = fmin(s->least, value);
		s->most = fmax(s->most, value);
		s->sizes = c->signs[i].decoded == 0;
	}
	/* What differs by less than 2 % looks the same. */
	s->count = s->most > s->least * 1.02 ? SHADES : 1;
	for (size_t i = 0; i < c->rows * c->columns; i++)
		if (c->signs[i].present)
			s->parts[range_of(s, &c->signs[i])] += c->signs[i].present;
}

/* ---- drawing ------------------------------------------------------------------------------- */

static const char *shade_text(size_t shade)
{
	static const char *const blocks[SHADES] = {"█", "▓", "▒", "░"};
	static const char *const letters[SHADES] = {"#", "*", "+", "-"};

	return (table_has_blocks() ? blocks : letters)[shade];
}

static const char *missing_text(void)
{
	return table_has_blocks() ? "·" : ".";
}

static void draw_signs(const cli_map *c, const shades *s, unsigned repeat)
{
	for (size_t row = 0; row < c->rows; row++) {
		printf("%*s", MARGIN, "");
		if (c->labels)
			printf("%-*s ", c->label_width, c->labels[row]);
		for (size_t column = 0; column < c->columns; column++) {
			const cli_sign *sign = &c->signs[row * c->columns + column];
			const char *text = missing_text();
			if (sign->present)
				text = shade_text(shade_of(s, range_of(s, sign)));
			table_style(stdout, sign->present ? "32" : "2");
			for (unsigned i = 0; i < repeat; i++)
				fputs(text, stdout);
			table_style(stdout, "0");
		}
		putchar('\n');
	}
}

static void print_range(const cli_map *c, const shades *s, size_t range)
{
	double from = range_end(s, range), to = range_end(s, range + 1);
	char low[16], high[16];

	if (s->sizes) {
		cli_format_size((uint64_t)from, low);
		cli_format_size((uint64_t)to, high);
	} else {
		snprintf(low, sizeof low, "%.4g", from);
		snprintf(high, sizeof high, "%.4g", to);
	}
	if (s->count == 1)
		printf("%*s%s  %s%-18s", MARGIN, "", shade_text(0), s->sizes ? "" : "ratio ", low);
	else
		printf("%*s%s  %8s to %-8s", MARGIN, "", shade_text(shade_of(s, range)), low, high);
	printf("  %10" PRIu64 " %s%s\n", s->parts[range], c->what, s->parts[range] == 1 ? "" : "s");
}

void cli_map_draw(const cli_map *c, size_t width)
{
	size_t margin = MARGIN + (c->labels ? (size_t)c->label_width + 1 : 0);
	shades s;

	find_shades(c, &s);
	draw_signs(c, &s, 2 * c->columns + margin <= width ? 2 : 1);
	for (size_t i = 0; i < s.count; i++)
		if (s.parts[s.sizes ? s.count - 1 - i : i])
			print_range(c, &s, s.sizes ? s.count - 1 - i : i);
	if (c->missing)
		printf("%*s%s  missing\n", MARGIN, "", missing_text());
}
