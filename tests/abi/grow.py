#!/usr/bin/env python3
"""grow.py FROM TO: public headers whose growing structs all have new fields at their ends, as a
later version's may.  Every struct of the headers is in one of the two lists below; a new one must
be put into one of them: may it grow, and what then says which size the caller has?

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

# What says a caller's size: the struct's own struct_size; a size in the options of the calls that
# take it; or the library makes it, and callers only see pointers to it.
GROWING = {
    "struct_size": """lade_engine_options lade_batch_options lade_async_options lade_algorithm
        lade_implementation lade_frame_options lade_frame_read_options lade_foreign_options
        lade_measure_options lade_suggest_options lade_apart_options lade_layout
        lade_array_options lade_tensor lade_io_options lade_file_options
        lade_codec_ops lade_tile_ops lade_checksum_ops
        lade_bare_options lade_decode_new_options lade_frame_range_options lade_frames_options
        lade_frame_copy_options lade_source_ops lade_sink_ops lade_call
        lade_arrays lade_store_report lade_store_async lade_store_entry lade_store_listing
        lade_store_plan lade_store_ops lade_directory_options lade_zip_options
        lade_zip_write_options lade_http_options lade_zarr_options lade_zarr_array lade_zarr_codec
        lade_zarr_selection lade_zarr_shape lade_zarr_box lade_zarr_place lade_zarr_target
        lade_zarr_read_options lade_zarr_report lade_zarr_plan_info
        lade_zarr_description lade_zarr_create_options lade_zarr_source
        lade_zarr_write_options lade_zarr_write_report lade_zarr_append
        lade_rntuple_options lade_rntuple_read_options lade_rntuple_report
        lade_rntuple_page lade_rntuple_steps_options lade_rntuple_step
        lade_rntuple_writer_options lade_rntuple_write_report lade_rntuple_repair_options
        lade_share_options lade_share_table lade_share_tensor lade_share_published
        lade_share_open_options lade_share_listing lade_share_event lade_share_statistics
        lade_share_serve_options""",
    "options": """lade_item lade_segment lade_item_output lade_result lade_candidate
        lade_measurement lade_range lade_write lade_frame_range lade_zarr_index
        lade_rntuple_target lade_rntuple_new_field lade_rntuple_fill""",
    "pointers": """lade_run lade_workload lade_elements lade_pieces lade_frame_info lade_device_info
        lade_suggestion lade_suggestions lade_rntuple_info lade_rntuple_field
        lade_rntuple_column lade_share_info""",
}
# Given by value, or in arrays without a size: these stay as they are for ever.
FROZEN = """lade_error lade_place lade_span lade_cspan lade_allocator lade_value lade_option
    lade_stage lade_carry lade_crc32_spec lade_region lade_layout_sizes lade_source lade_sink
    lade_input lade_output lade_frame_chunk lade_object_version lade_tensor_type
    lade_part lade_store_route lade_zarr_type lade_zarr_field lade_zarr_run lade_zarr_axis
    lade_zarr_step lade_zarr_chain lade_zarr_shard lade_zarr_extent lade_zarr_edges
    lade_rntuple_part"""

FIELDS = "\n\tuint64_t test_grown[3];\n"


def main():
    source, target = map(pathlib.Path, sys.argv[1:3])
    growing = set(" ".join(GROWING.values()).split())
    frozen = set(FROZEN.split())
    seen, wrong = set(), []
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.glob("*.h")):
        text = path.read_text()
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", "", m.group()), text, flags=re.S)
        pattern = r"^(?:typedef )?(?:struct|union) (lade_\w+) \{\n(.*?)\n\}[ \w]*;"
        for m in re.finditer(pattern, text, re.S | re.M):
            name, body = m.group(1), m.group(2)
            seen.add(name)
            own = "size_t struct_size" in body
            if name not in growing | frozen:
                wrong.append(f"{path}: {name} is in none of the lists of tests/abi/grow.py")
            if own != (name in GROWING["struct_size"].split()):
                wrong.append(f"{path}: {name}: struct_size or none, the list says otherwise")

        def grow(m):
            if m.group(1) not in growing:
                return m.group()
            return m.group()[: m.end(2) - m.start()] + FIELDS + m.group()[m.end(2) + 1 - m.start():]

        text = re.sub(pattern, grow, text, flags=re.S | re.M)
        written = target / path.name
        if not written.exists() or written.read_text() != text:
            written.write_text(text)
    wrong += [f"{name} is in a list of tests/abi/grow.py and in no header"
              for name in sorted((growing | frozen) - seen)]
    print("\n".join(wrong) or f"{len(growing)} structs have grown, {len(frozen)} never will")
    return 1 if wrong else 0


sys.exit(main())
