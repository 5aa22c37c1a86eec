/*
 * devices.c: 'lade devices', the GPUs of this machine and whether they work.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/table.h"

static const char help[] =
	"Usage: lade devices [OPTION]...\n"
	"List the GPUs of this machine, one in a row; or say why there are none.\n"
	"\n"
	"  -c, --check   run a small kernel on each and compare its result\n"
	"      --json    print JSON instead of text\n"
	"  -h, --help    print this\n"
	"\n"
	"kernels: which of the library's kernels run there: machine code (sm_90), or intermediate\n"
	"         code that the driver compiles when it is first used (compute_90)\n"
	"free:    memory that nobody has taken, with --check only\n"
	"\n"
	"Exit code: 0 done, also where there are no devices; 1 the driver or a check failed, or\n"
	"--check found no device; 2 wrong usage.\n";

typedef struct settings {
	bool check, json;
} settings;

/* What became of a device; the table and the JSON say the same. */
typedef struct report {
	const lade_device_info *info;
	lade_status check;
	uint64_t free_size, reserve_size;
	lade_error err;
} report;

enum { DEVICE, NAME, COMPUTE, MEMORY, FREE, SMS, CLOCK, DRIVER, KERNELS, PCI, CHECK };
static const char *const titles[] = {"device", "name",   "compute", "memory", "free", "SMs",
                                     "MHz",    "driver", "kernels", "PCI",    "check"};

/* ---- looking --------------------------------------------------------------------------------- */

static void look(int32_t device, const settings *s, report *r)
{
	r->err.offset = LADE_NO_OFFSET;
	r->check = lade_device_get_info(device, &r->info, &r->err);
	if (r->check != LADE_OK || !s->check)
		return;
	r->check = lade_device_check(device, &r->err);
	if (r->check == LADE_OK)
		r->check = lade_device_memory(device, &r->free_size, &r->reserve_size, &r->err);
}

/* ---- telling --------------------------------------------------------------------------------- */

/* "GPU-" and the digits as nvidia-smi writes them: 41 bytes. */
static void uuid_text(const uint8_t *uuid, char *text, size_t cap)
{
	size_t at = (size_t)snprintf(text, cap, "GPU");

	/* Hyphens before bytes 0, 4, 6, 8 and 10, as everywhere. */
	for (size_t i = 0; i < 16; i++) {
		const char *mark = i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
		at += (size_t)snprintf(text + at, cap - at, "%s%02x", mark, uuid[i]);
	}
}

static void add_row(table *t, const report *r, const settings *s)
{
	const lade_device_info *d = r->info;
	char size[16];

	table_row(t);
	table_set(t, DEVICE, "%d", (int)d->device);
	table_set(t, NAME, "%s", d->name);
	table_set(t, COMPUTE, "%d.%d", (int)d->major, (int)d->minor);
	table_set(t, MEMORY, "%s", cli_format_size(d->memory_size, size));
	table_set(t, SMS, "%u", (unsigned)d->multiprocessors);
	table_set(t, CLOCK, "%u", (unsigned)(d->clock_khz / 1000));
	table_set(t, DRIVER, "%d.%d", (int)(d->driver_version / 1000),
	          (int)(d->driver_version % 1000 / 10));
	table_set(t, KERNELS, "%s", d->kernels ? d->kernels : "none");
	table_set(t, PCI, "%s", d->pci);
	if (!s->check)
		return;
	table_set(t, CHECK, "%s", r->check == LADE_OK ? "works" : "FAILS");
	if (r->check == LADE_OK)
		table_set(t, FREE, "%s", cli_format_size(r->free_size, size));
}

static void add_json(json *j, const report *r, const settings *s)
{
	const lade_device_info *d = r->info;
	char uuid[48];

	uuid_text(d->uuid, uuid, sizeof uuid);
	json_open(j, NULL, '{');
	json_uint(j, "device", (uint64_t)d->device);
	json_text(j, "name", d->name);
	json_text(j, "uuid", uuid);
	json_text(j, "pci", d->pci);
	json_uint(j, "major", (uint64_t)d->major);
	json_uint(j, "minor", (uint64_t)d->minor);
	json_uint(j, "driver_version", (uint64_t)d->driver_version);
	json_uint(j, "memory_size", d->memory_size);
	json_uint(j, "multiprocessors", d->multiprocessors);
	json_uint(j, "threads_max", d->threads_max);
	json_uint(j, "shared_size", d->shared_size);
	json_uint(j, "block_shared_max", d->block_shared_max);
	json_uint(j, "l2_size", d->l2_size);
	json_uint(j, "clock_khz", d->clock_khz);
	json_uint(j, "memory_clock_khz", d->memory_clock_khz);
	json_uint(j, "memory_bus_bits", d->memory_bus_bits);
	json_bool(j, "managed", d->managed);
	json_bool(j, "pools", d->pools);
	json_text(j, "kernels", d->kernels ? d->kernels : "");
	if (s->check) {
		json_bool(j, "works", r->check == LADE_OK);
		if (r->check == LADE_OK)
			json_uint(j, "free_size", r->free_size);
		else
			json_text(j, "why", r->err.message);
	}
	json_close(j, '}');
}

static void print_json(const report *reports, int32_t count, const char *why, const settings *s)
{
	json j = {.out = stdout};
	const char *kernels = lade_device_kernels();

	json_open(&j, NULL, '{');
	json_text(&j, "kernels", kernels ? kernels : "");
	json_open(&j, "devices", '[');
	for (int32_t i = 0; i < count; i++)
		if (reports[i].info)
			add_json(&j, &reports[i], s);
	json_close(&j, ']');
	if (count == 0)
		json_text(&j, "why", why);
	json_close(&j, '}');
}

static void print_text(const report *reports, int32_t count, const char *why, const settings *s)
{
	table t;

	table_init(&t, "rlrrrrrrlll", titles);
	for (int32_t i = 0; i < count; i++)
		if (reports[i].info)
			add_row(&t, &reports[i], s);
	if (count > 0)
		table_print(&t, stdout);
	else
		puts(why);
	table_free(&t);
	if (!lade_device_kernels())
		puts("this build has no kernels (it was made without nvcc): no device can be used");
}

/* ---- the command ----------------------------------------------------------------------------- */

/* True when the command goes on; otherwise '*rc' is its exit code. */
static bool read_options(int argc, char **argv, settings *s, int *rc)
{
	enum { OPT_JSON = 256 };
	static const struct option options[] = {
		{"check", no_argument, NULL, 'c'},
		{"json", no_argument, NULL, OPT_JSON},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*rc = CLI_OK;
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, "ch", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			s->check = true;
			break;
		case OPT_JSON:
			s->json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return false;
		default:
			*rc = cli_usage("devices: no such option: %s", argv[optind - 1]);
			return false;
		}
	}
	if (optind < argc)
		*rc = cli_usage("devices takes no files: %s", argv[optind]);
	return *rc == CLI_OK;
}

int lade_cmd_devices(int argc, char **argv)
{
	settings s = {0};
	lade_error err = {.offset = LADE_NO_OFFSET};
	int32_t count;
	int rc;

	if (!read_options(argc, argv, &s, &rc))
		return rc;
	lade_status status = lade_device_count(&count, &err);
	if (status != LADE_OK && (s.check || status != LADE_E_NO_DEVICE))
		rc = CLI_FAILED;
	report *reports = cli_need(calloc((size_t)count + 1, sizeof *reports));
	for (int32_t i = 0; i < count; i++) {
		look(i, &s, &reports[i]);
		if (reports[i].check == LADE_OK)
			continue;
		cli_error("%s", reports[i].err.message);
		rc = CLI_FAILED;
	}
	(s.json ? print_json : print_text)(reports, count, err.message, &s);
	free(reports);
	return rc;
}
