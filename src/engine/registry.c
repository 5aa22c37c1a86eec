/*
 * registry.c: the algorithms and implementations that an engine knows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/options.h"
#include "checksum/checksum.h"
#include "codec/codecs.h"
#include "engine/engine.h"
#include "engine/spec.h"
#include "filter/filters.h"

#include <stdlib.h>
#include <string.h>

#define LADE_X(name) &lade__codec_##name,
static const lade__set *const builtin_sets[] = {LADE__CODECS(LADE_X) & lade__filters,
                                                &lade__checksums};
#undef LADE_X
#define BUILTIN_SETS (sizeof builtin_sets / sizeof *builtin_sets)

/* The index-th of the library's own algorithms; NULL past the last. */
static const lade_algorithm *builtin_algorithm(size_t index)
{
	for (size_t s = 0; s < BUILTIN_SETS; s++)
		for (const lade_algorithm *const *a = builtin_sets[s]->algorithms; *a; a++)
			if (index-- == 0)
				return *a;
	return NULL;
}

/* ---- finding -------------------------------------------------------------------------- */

const lade_algorithm *lade_engine_algorithm(const lade_engine *engine, size_t index)
{
	if (!engine)
		return builtin_algorithm(index);
	return index < engine->registry.slot_count ? engine->registry.slots[index].algorithm : NULL;
}

const lade_algorithm *lade__engine_find_name(const lade_engine *engine, const char *name,
                                             size_t length)
{
	const lade_algorithm *algorithm;
	for (size_t i = 0; (algorithm = lade_engine_algorithm(engine, i)); i++)
		if (lade__name_equal(algorithm->name, name, length))
			return algorithm;
	return NULL;
}

const lade_algorithm *lade_engine_find(const lade_engine *engine, const char *name)
{
	return name ? lade__engine_find_name(engine, name, strlen(name)) : NULL;
}

const lade_algorithm *lade__engine_find_id(const lade_engine *engine, unsigned id)
{
	const lade_algorithm *algorithm;
	for (size_t i = 0; (algorithm = lade_engine_algorithm(engine, i)); i++)
		if (algorithm->id == id)
			return algorithm;
	return NULL;
}

uint16_t lade__engine_slot(const lade_engine *engine, const lade_algorithm *algorithm)
{
	const lade_algorithm *at;
	for (size_t i = 0; (at = lade_engine_algorithm(engine, i)); i++)
		if (at == algorithm)
			return (uint16_t)i;
	return UINT16_MAX;
}

const lade__slot *lade__registry_slot(const lade__registry *registry, unsigned hint,
                                      const lade_algorithm *algorithm)
{
	if (hint < registry->slot_count && registry->slots[hint].algorithm == algorithm)
		return &registry->slots[hint];
	for (size_t i = 0; i < registry->slot_count; i++)
		if (registry->slots[i].algorithm == algorithm)
			return &registry->slots[i];
	return NULL;
}

/* ---- adding --------------------------------------------------------------------------- */

/* Room for one more in a table; the limit lets an index + 1 fit 16 bits. */
static bool grow(void **table, size_t *cap, size_t count, size_t entry_size)
{
	if (count < *cap)
		return true;
	size_t cap_new = *cap ? 2 * *cap : 64;
	if (cap_new > 32768)
		return false;
	void *table_new = realloc(*table, cap_new * entry_size);
	if (!table_new)
		return false;
	*table = table_new;
	*cap = cap_new;
	return true;
}

static lade_status add_slot(lade__registry *r, const lade_algorithm *algorithm,
                            lade_algorithm *owned, lade_error *err)
{
	if (!grow((void **)&r->slots, &r->slot_cap, r->slot_count, sizeof *r->slots))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "no memory for algorithm %zu",
		                 r->slot_count);
	r->slots[r->slot_count++] = (lade__slot){.algorithm = algorithm, .owned = owned};
	return LADE_OK;
}

/* Adds 'entry', whose 'next' is not set. */
static lade_status add_entry(lade__registry *r, lade__slot *slot, lade__entry entry,
                             lade_error *err)
{
	if (!grow((void **)&r->entries, &r->entry_cap, r->entry_count, sizeof *r->entries))
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for implementation %zu", r->entry_count);
	uint16_t *first = &slot->first[entry.record.direction];
	entry.next = *first;
	r->entries[r->entry_count++] = entry;
	*first = (uint16_t)r->entry_count;
	return LADE_OK;
}

/* The slot of one of the library's own algorithms. */
static lade__slot *builtin_slot(lade__registry *r, const char *name)
{
	lade__slot *slot = r->slots;
	while (strcmp(slot->algorithm->name, name) != 0)
		slot++;
	return slot;
}

static lade_status add_set(lade__registry *r, const lade__set *set, lade_error *err)
{
	lade_status status = LADE_OK;
	for (const lade_implementation *const *p = set->implementations; status == LADE_OK && *p;
	     p++)
		status = add_entry(r, builtin_slot(r, (*p)->algorithm),
		                   (lade__entry){.record = **p}, err);
	for (const lade__gpu_implementation *const *p = set->gpu; status == LADE_OK && p && *p; p++)
		status = add_entry(r, builtin_slot(r, (*p)->record.algorithm),
		                   (lade__entry){.record = (*p)->record, .gpu = (*p)->codec}, err);
	return status;
}

lade_status lade__registry_init(lade__registry *registry, lade_error *err)
{
	memset(registry, 0, sizeof *registry);
	const lade_algorithm *algorithm;
	lade_status status = LADE_OK;
	for (size_t i = 0; status == LADE_OK && (algorithm = builtin_algorithm(i)); i++)
		status = add_slot(registry, algorithm, NULL, err);
	for (size_t s = 0; status == LADE_OK && s < BUILTIN_SETS; s++)
		status = add_set(registry, builtin_sets[s], err);
	if (status != LADE_OK)
		lade__registry_reset(registry);
	return status;
}

void lade__registry_reset(lade__registry *registry)
{
	for (size_t i = 0; i < registry->slot_count; i++)
		free(registry->slots[i].owned);
	for (size_t i = 0; i < registry->entry_count; i++)
		free(registry->entries[i].owned);
	free(registry->slots);
	free(registry->entries);
	memset(registry, 0, sizeof *registry);
}

/* ---- a caller's own --------------------------------------------------------------------- */

static bool name_is_good(const char *name)
{
	size_t n = name ? strlen(name) : 0;
	if (n == 0 || n > 31 || name[0] < 'a' || name[0] > 'z')
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

static lade_status bad_field(lade_error *err, const char *record, const char *what)
{
	return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "%s: %s", record, what);
}

static lade_status check_option(const lade_algorithm *a, const lade_option *option, lade_error *err)
{
	if (!name_is_good(option->name))
		return bad_field(err, a->name,
		                 "an option's name is not of the form [a-z][a-z0-9_-]*");
	if ((unsigned)option->type > LADE_OPTION_DTYPE)
		return bad_field(err, a->name, "an option's type is unknown");
	if (option->type == LADE_OPTION_ENUM && (!option->names || !option->names[0]))
		return bad_field(err, a->name, "an option of type ENUM has no names");
	if (option->required || option->type == LADE_OPTION_DTYPE)
		return LADE_OK;
	lade_stage stage = {.algorithm = a};
	size_t index = (size_t)(option - a->options);
	stage.option[index] = option->fallback;
	return lade__value_check(&stage, index, err);
}

lade_status lade_engine_add_algorithm(lade_engine *engine, const lade_algorithm *algorithm,
                                      lade_error *err)
{
	if (!engine || !algorithm)
		return bad_field(err, "algorithm", "engine or record is NULL");
	lade_algorithm read, *a = &read;
	lade_status status = lade__options_read(a, sizeof *a, algorithm, "algorithm", err);
	if (status != LADE_OK)
		return status;
	if (!name_is_good(a->name))
		return bad_field(err, "algorithm",
		                 "its name is not of the form [a-z][a-z0-9_-]*, 1 to 31");
	if (lade_engine_find(engine, a->name))
		return bad_field(err, a->name, "an algorithm of that name exists already");
	if (a->id)
		return bad_field(err, a->name, "only the library's own algorithms have an id");
	if ((unsigned)a->kind > LADE_STAGE_FILTER)
		return bad_field(err, a->name,
		                 "kind must be LADE_STAGE_CODEC or LADE_STAGE_FILTER");
	if (!a->bound || !a->decoded_size)
		return bad_field(err, a->name, "bound and decoded_size must be given");
	if (a->size_field && a->size_field != 4 && a->size_field != 8)
		return bad_field(err, a->name, "size_field must be 0, 4 or 8");
	if (a->option_count > LADE_OPTIONS_MAX || (a->option_count && !a->options))
		return bad_field(err, a->name, "at most 8 options, and the list must be given");
	for (size_t i = 0; i < a->option_count; i++) {
		status = check_option(a, &a->options[i], err);
		if (status != LADE_OK)
			return status;
	}
	lade_algorithm *copy = malloc(sizeof *copy);
	if (!copy)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for algorithm \"%s\"", a->name);
	*copy = *a;
	status = add_slot(&engine->registry, copy, copy, err);
	if (status != LADE_OK)
		free(copy);
	return status;
}

/* The functions that the engine will call must be there. */
static lade_status check_functions(const lade_implementation *p, const lade_algorithm *a,
                                   lade_error *err)
{
	if (p->checksum)
		return p->checksum->run ? LADE_OK
		                        : bad_field(err, p->name, "checksum.run must be given");
	if (p->codec) {
		if (!p->codec->run)
			return bad_field(err, p->name, "codec.run must be given");
		if (!p->codec->parts != !p->codec->run_part)
			return bad_field(err, p->name,
			                 "codec.parts and codec.run_part go together");
		return LADE_OK;
	}
	if (p->tile->kind < LADE_TILE_IN_ORDER || p->tile->kind > LADE_TILE_SCATTER)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: tile.kind is %d, from %d to %d are possible", p->name,
		                 (int)p->tile->kind, LADE_TILE_IN_ORDER, LADE_TILE_SCATTER);
	if (!p->tile->run || !p->tile->sizes)
		return bad_field(err, p->name, "tile.run and tile.sizes must be given");
	if (!(a->flags & LADE_ALGORITHM_FIXED_SIZE))
		return bad_field(err, p->name, "tiles need LADE_ALGORITHM_FIXED_SIZE");
	return LADE_OK;
}

/* Copies the table that a caller's record has to 'to', where the record then points. */
static lade_status copy_ops(lade_implementation *p, const lade_algorithm *a, lade__ops *to,
                            lade_error *err)
{
	int count = !!p->codec + !!p->tile + !!p->checksum;
	if (count != 1)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: want 1 of codec, tile and checksum, have %d:%s%s%s", p->name,
		                 count, p->codec ? " codec" : "", p->tile ? " tile" : "",
		                 p->checksum ? " checksum" : "");
	if ((a->kind == LADE_STAGE_CHECKSUM) != (p->checksum != NULL))
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: want %s for %s, have %s", p->name,
		                 a->kind == LADE_STAGE_CHECKSUM ? "checksum" : "codec or tile",
		                 a->name,
		                 p->codec  ? "codec"
		                 : p->tile ? "tile"
		                           : "checksum");
	lade_status status;
	if (p->codec) {
		status = lade__options_read(&to->codec, sizeof to->codec, p->codec, "codec", err);
		p->codec = &to->codec;
	} else if (p->tile) {
		status = lade__options_read(&to->tile, sizeof to->tile, p->tile, "tile", err);
		p->tile = &to->tile;
	} else {
		status = lade__options_read(&to->checksum, sizeof to->checksum, p->checksum,
		                            "checksum", err);
		p->checksum = &to->checksum;
	}
	return status == LADE_OK ? check_functions(p, a, err) : status;
}

lade_status lade_engine_add_implementation(lade_engine *engine,
                                           const lade_implementation *implementation,
                                           lade_error *err)
{
	if (!engine || !implementation)
		return bad_field(err, "implementation", "engine or record is NULL");
	lade_implementation read, *p = &read;
	lade_status status =
		lade__options_read(p, sizeof *p, implementation, "implementation", err);
	if (status != LADE_OK)
		return status;
	if (!p->name || !p->algorithm)
		return bad_field(err, "implementation", "name and algorithm must be given");
	const lade_algorithm *a = lade_engine_find(engine, p->algorithm);
	if (!a)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "%s: no algorithm is called \"%s\"", p->name, p->algorithm);
	if ((unsigned)p->direction > LADE_DECODE)
		return bad_field(err, p->name, "direction must be LADE_ENCODE or LADE_DECODE");
	if (!p->state_new != !p->state_free)
		return bad_field(err, p->name, "state_new and state_free go together");
	lade__ops *ops = malloc(sizeof *ops);
	if (!ops)
		return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET,
		                 "no memory for implementation \"%s\"", p->name);
	status = copy_ops(p, a, ops, err);
	lade__registry *r = &engine->registry;
	if (status == LADE_OK)
		status = add_entry(r, &r->slots[lade__engine_slot(engine, a)],
		                   (lade__entry){.record = *p, .owned = ops}, err);
	if (status != LADE_OK)
		free(ops);
	return status;
}
