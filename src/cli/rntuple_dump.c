/*
 * rntuple_dump.c: 'lade rntuple dump', entries as lines, or a column as a .npy file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/rntuple.h"
#include "cli/table.h"
#include "cli/work.h"

typedef struct dump {
	const rntuple_settings *s;
	const rntuple_node *node;
	uint64_t first, end; /* entries */
	uint64_t *fields;
	size_t count;
	cli_out *out;
} dump;

/* ---- lines ---------------------------------------------------------------------------------- */

/* One line, to 'out'. */
static bool put_line(const dump *d, rntuple_step *step, FILE *out, uint64_t index)
{
	bool text = d->s->format == RNTUPLE_TEXT, good = true;

	fputs(text ? "" : "{", out);
	for (size_t i = 0; i < d->count && good; i++) {
		const char *path = lade_rntuple_field_at(d->node->tuple, d->fields[i])->path;
		if (i)
			fputc(text ? '\t' : ',', out);
		if (!text) {
			json_string(out, path);
			fputc(':', out);
		}
		good = rntuple_put(step, out, d->fields[i], index);
	}
	fputs(text ? "\n" : "}\n", out);
	return good;
}

static lade_status write_text(const dump *d, cli_text *t, lade_error *err)
{
	lade_output to = cli_out_output(d->out);

	if (fclose(t->file) != 0)
		cli_need(NULL);
	lade_status status = to.write(to.ctx, t->text, t->size, err);
	free(t->text);
	return status;
}

static lade_status write_titles(const dump *d, lade_error *err)
{
	cli_text t;

	cli_text_open(&t);
	for (size_t i = 0; i < d->count; i++) {
		fputs(i ? "\t" : "", t.file);
		json_string(t.file, lade_rntuple_field_at(d->node->tuple, d->fields[i])->path);
	}
	fputc('\n', t.file);
	return write_text(d, &t, err);
}

static lade_status write_lines(const dump *d, lade_error *err)
{
	enum { AT_ONCE = 4096 };
	lade_status status = d->s->format == RNTUPLE_TEXT ? write_titles(d, err) : LADE_OK;
	rntuple_step step;

	rntuple_step_open(&step, d->s, d->node);
	for (size_t i = 0; i < d->count; i++)
		rntuple_step_want(&step, d->fields[i]);
	for (uint64_t at = d->first; at < d->end && status == LADE_OK;) {
		uint64_t from = at;
		status = rntuple_step_read(&step, &at, d->end);
		uint64_t to = at < d->end ? at : d->end;
		while (from < to && status == LADE_OK) {
			cli_text t;
			cli_text_open(&t);
			for (size_t i = 0; i < AT_ONCE && from < to && status == LADE_OK;
			     i++, from++)
				if (!put_line(d, &step, t.file, from - step.entries.first))
					status = step.err.status;
			progress_add(0, 0);
			lade_status written = write_text(d, &t, err);
			status = status == LADE_OK ? written : status;
			if (status != LADE_OK && written == LADE_OK)
				*err = step.err;
		}
		if (status != LADE_OK && step.err.status == status)
			*err = step.err;
	}
	rntuple_step_close(&step);
	return status;
}

/* ---- .npy ----------------------------------------------------------------------------------- */

/* The shape: entries, and the sizes of fixed arrays; below collections only elements. */
static void find_shape(const dump *d, uint64_t column, uint64_t elements, npy *header)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(d->node->tuple, column);
	uint64_t field = c->field, sizes[LADE_NDIM_MAX], all = 1;
	const lade_rntuple_field *f;
	unsigned n = 0;

	header->ndim = 1;
	header->shape[0] = elements;
	if (c->position || c->kind != LADE_RNTUPLE_VALUES)
		return;
	for (;; field = f->parent) {
		f = lade_rntuple_field_at(d->node->tuple, field);
		bool counts = f->role == LADE_RNTUPLE_COLLECTION || f->role == LADE_RNTUPLE_VARIANT;
		if ((counts && field != c->field) || n + 1 == LADE_NDIM_MAX)
			return;
		if (f->array_size) {
			sizes[n++] = f->array_size;
			all *= f->array_size;
		}
		if (f->parent == field)
			break;
	}
	header->ndim = n + 1;
	header->shape[0] = all ? elements / all : 0;
	for (unsigned i = 0; i < n; i++)
		header->shape[1 + i] = sizes[n - 1 - i];
}

static lade_status write_header(const dump *d, uint64_t column, uint64_t elements, lade_error *err)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(d->node->tuple, column);
	lade_output to = cli_out_output(d->out);
	npy header = {.dtype = c->dtype};
	char bytes[NPY_HEADER_MAX + 64];

	find_shape(d, column, elements, &header);
	size_t size =
		c->dtype == LADE_DTYPE_NONE
			? npy_write_descr(&header, "[('index', '<i8'), ('tag', '<i4')]", bytes)
			: npy_write(&header, bytes);
	return to.write(to.ctx, bytes, size, err);
}

/* Elements in parts that fit into memory.  Offsets of a part begin with 0; 'base' goes on top. */
static lade_status write_elements(const dump *d, uint64_t column, lade_rntuple_part all,
                                  lade_error *err)
{
	const lade_rntuple_column *c = lade_rntuple_column_at(d->node->tuple, column);
	lade_rntuple_read_options o = {.struct_size = sizeof o,
	                               .target_size = sizeof(lade_rntuple_target)};
	bool offsets = c->kind == LADE_RNTUPLE_OFFSETS;
	uint64_t most = d->s->memory / c->elem_size, base = 0, done = 0;
	lade_output to = cli_out_output(d->out);
	lade_status status = LADE_OK;

	most = most < all.count ? most : all.count;
	uint64_t *data = cli_need(malloc((size_t)(most + 1) * (c->elem_size < 8 ? 8 : 12)));
	do {
		uint64_t n = all.count - done < most ? all.count - done : most;
		size_t size = (size_t)(n + offsets) * c->elem_size, skip = offsets && done ? 8 : 0;
		lade_rntuple_target target = {column, all.first + done, n,
		                              lade_host_span(data, size)};
		status = lade_rntuple_read(d->node->tuple, &target, 1, &o, NULL, err);
		for (uint64_t i = 0; offsets && i <= n; i++)
			data[i] += base;
		base = offsets ? data[n] : 0;
		if (status == LADE_OK)
			status = to.write(to.ctx, (uint8_t *)data + skip, size - skip, err);
		progress_add(size, size);
		done += n;
	} while (done < all.count && status == LADE_OK);
	free(data);
	return status;
}

static lade_status write_npy(const dump *d, lade_error *err)
{
	const char *path = lade_rntuple_field_at(d->node->tuple, d->fields[0])->path;
	lade_rntuple_part entries = {d->first, d->end - d->first}, all;
	uint64_t column;
	lade_status status = lade_rntuple_find(d->node->tuple, path, &column, err);

	if (status == LADE_OK)
		status = lade_rntuple_elements(d->node->tuple, column, entries, NULL, &all, err);
	if (status != LADE_OK)
		return status;
	bool offsets = lade_rntuple_column_at(d->node->tuple, column)->kind == LADE_RNTUPLE_OFFSETS;
	status = write_header(d, column, all.count + offsets, err);
	return status == LADE_OK ? write_elements(d, column, all, err) : status;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Values below collections and arrays have no entry of their own. */
static lade_status check_lines(const dump *d, uint64_t field, lade_error *err)
{
	const lade_rntuple_field *f = lade_rntuple_field_at(d->node->tuple, field);
	const char *path = f->path;

	while (f->parent != field) {
		field = f->parent;
		f = lade_rntuple_field_at(d->node->tuple, field);
		if (f->role != LADE_RNTUPLE_RECORD || f->array_size)
			return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
			                 "field %s is below a collection: dump %s, or .npy", path,
			                 f->path);
	}
	return LADE_OK;
}

/* The fields that are named, or all at the top that can be read. */
static lade_status find_fields(dump *d, lade_error *err)
{
	lade_status status = LADE_OK;
	size_t names = d->s->count - 1;

	d->fields =
		cli_need(calloc((size_t)d->node->info->field_count + names + 1, sizeof *d->fields));
	for (size_t i = 0; i < names && status == LADE_OK; i++) {
		uint64_t *field = &d->fields[d->count++];
		status = lade_rntuple_find_field(d->node->tuple, d->s->names[1 + i], field, err);
		if (status != LADE_OK)
			break;
		const lade_rntuple_field *f = lade_rntuple_field_at(d->node->tuple, *field);
		if (f->hidden)
			status = lade_fail(err, LADE_E_UNSUPPORTED, LADE_NO_OFFSET,
			                   "field %s cannot be read: %s", f->path, f->hidden);
		else if (d->s->format != RNTUPLE_NPY)
			status = check_lines(d, *field, err);
	}
	for (uint64_t i = 0; names == 0 && i < d->node->info->field_count; i++) {
		const lade_rntuple_field *f = lade_rntuple_field_at(d->node->tuple, i);
		if (f->parent == i && !f->hidden)
			d->fields[d->count++] = i;
		else if (f->parent == i)
			cli_warn("%s: field %s is left out: %s", d->node->name, f->path, f->hidden);
	}
	if (status == LADE_OK && d->s->format == RNTUPLE_NPY && d->count != 1)
		status = lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                   "a .npy file has one field, not %zu", d->count);
	return status;
}

static int write_dump(dump *d)
{
	lade_error err = {.offset = LADE_NO_OFFSET};
	const cli_in none = {0};
	cli_out out;
	int rc = CLI_OK;

	cli_out_catch_signals();
	if (!d->s->output || strcmp(d->s->output, "-") == 0)
		cli_out_stdout(&out);
	else
		rc = cli_out_open(&out, d->s->output, d->s->force, true);
	if (rc != CLI_OK)
		return rc;
	if (out.path)
		out.name = out.path;
	d->out = &out;
	progress_start(d->node->name, "reading", 0);
	lade_status status =
		d->s->format == RNTUPLE_NPY ? write_npy(d, &err) : write_lines(d, &err);
	progress_end();
	rc = status == LADE_OK ? cli_out_commit(&out, &none, false)
	                       : cli_lade_error(d->node->name, &err);
	cli_out_abandon(&out);
	return rc;
}

int rntuple_dump(const rntuple_settings *settings, const rntuple_node *node, json *j)
{
	rntuple_settings s = *settings;
	dump d = {.s = &s, .node = node, .first = s.first, .end = s.end};
	lade_error err = {.offset = LADE_NO_OFFSET};
	size_t size = s.output ? strlen(s.output) : 0;
	uint64_t count = node->info->entry_count;
	int rc;

	(void)j;
	if (s.format == RNTUPLE_BY_NAME)
		s.format = size > 4 && strcmp(s.output + size - 4, ".npy") == 0 ? RNTUPLE_NPY
		                                                                : RNTUPLE_JSON;
	if (s.format == RNTUPLE_NPY && !s.force && (!size || strcmp(s.output, "-") == 0) &&
	    isatty(STDOUT_FILENO))
		return cli_usage("a .npy file is not written to a terminal (-o FILE, or -f)");
	d.end = d.end < count ? d.end : count;
	d.first = d.first < d.end ? d.first : d.end;
	rc = find_fields(&d, &err) == LADE_OK ? write_dump(&d) : cli_lade_error(node->name, &err);
	free(d.fields);
	return rc;
}
