/*
 * kernels.h: the list of all kernels.  One line here, and lade__kernel_launch() knows it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_KERNELS_H
#define LADE_BASE_KERNELS_H

/*
 * X(NAME, image, function, shared): the constant is LADE__KERNEL_NAME; 'image' is the .cu file of
 * src/cuda without its suffix; 'function' is declared extern "C" there; 'shared' is the most
 * dynamic shared memory that a launch asks for, in bytes.  A kernel whose number is above 48 KiB is
 * prepared for it when it is loaded.  Image and function are names, no strings: the emulated device
 * of the tests compiles its table of kernels from them.
 */
#define LADE__KERNELS(X) \
	X(SELFTEST_ADD, selftest, lade_selftest_add, 0) \
	X(COPY, copy, lade_copy, 0) \
	X(PUT, copy, lade_put, 0) \
	X(PUT_FEW, copy, lade_put_few, 0) \
	X(SLOTS, copy, lade_slots, 0) \
	X(PACKED, copy, lade_packed, 0) \
	X(COMBINE, copy, lade_combine, 0) \
	X(INSET, copy, lade_inset, 0) \
	X(FRAME_PLACE, frame, lade_frame_place, 0) \
	X(FRAME_PACK, frame, lade_frame_pack, 0) \
	X(FRAME_LOOK, frame, lade_frame_look, 0) \
	X(LZ4_DECODE_SOLO, lz4_decode, lade_lz4_decode_solo, 0) \
	X(LZ4_DECODE_TEAM4, lz4_decode, lade_lz4_decode_team4, 0) \
	X(LZ4_DECODE_TEAM8, lz4_decode, lade_lz4_decode_team8, 0) \
	X(LZ4_DECODE_TEAM16, lz4_decode, lade_lz4_decode_team16, 76256) \
	X(LZ4_SIZE, lz4_decode, lade_lz4_size, 0) \
	X(SNAPPY_DECODE_SOLO, snappy_decode, lade_snappy_decode_solo, 0) \
	X(SNAPPY_DECODE_TEAM4, snappy_decode, lade_snappy_decode_team4, 0) \
	X(SNAPPY_DECODE_TEAM8, snappy_decode, lade_snappy_decode_team8, 0) \
	X(SNAPPY_DECODE_TEAM16, snappy_decode, lade_snappy_decode_team16, 80352) \
	X(SNAPPY_SIZE, snappy_decode, lade_snappy_size, 0) \
	X(LZ4_UNSHUFFLE_SOLO, lz4_unshuffle, lade_lz4_unshuffle_solo, 0) \
	X(LZ4_UNSHUFFLE_TEAM4, lz4_unshuffle, lade_lz4_unshuffle_team4, 0) \
	X(LZ4_UNSHUFFLE_TEAM8, lz4_unshuffle, lade_lz4_unshuffle_team8, 0) \
	X(LZ4_UNSHUFFLE_TEAM16, lz4_unshuffle, lade_lz4_unshuffle_team16, 76256) \
	X(SNAPPY_UNSHUFFLE_SOLO, snappy_unshuffle, lade_snappy_unshuffle_solo, 0) \
	X(SNAPPY_UNSHUFFLE_TEAM4, snappy_unshuffle, lade_snappy_unshuffle_team4, 0) \
	X(SNAPPY_UNSHUFFLE_TEAM8, snappy_unshuffle, lade_snappy_unshuffle_team8, 0) \
	X(SNAPPY_UNSHUFFLE_TEAM16, snappy_unshuffle, lade_snappy_unshuffle_team16, 80352) \
	X(LZ4_ENCODE, lz4_encode, lade_lz4_encode, 0) \
	X(SNAPPY_ENCODE, snappy_encode, lade_snappy_encode, 0) \
	X(LZ4_ENCODE_TEAM8, lz4_encode, lade_lz4_encode_team8, 73616) \
	X(LZ4_ENCODE_TEAM16, lz4_encode, lade_lz4_encode_team16, 146832) \
	X(SNAPPY_ENCODE_TEAM8, snappy_encode, lade_snappy_encode_team8, 73616) \
	X(SNAPPY_ENCODE_TEAM16, snappy_encode, lade_snappy_encode_team16, 146832) \
	X(BITSHUFFLE_ENCODE, bitshuffle, lade_bitshuffle_encode, 0) \
	X(BITSHUFFLE_DECODE, bitshuffle, lade_bitshuffle_decode, 0) \
	X(ANS_DECODE, ans_decode, lade_ans_decode, 55296) \
	X(ANS_DECODE_WIDE, ans_decode, lade_ans_decode_wide, 81920) \
	X(ANS_SIZE, ans_decode, lade_ans_size, 0) \
	X(ANS_ENCODE_1, ans_encode, lade_ans_encode_1, 101376) \
	X(ANS_ENCODE_2, ans_encode, lade_ans_encode_2, 70144) \
	X(ANS_ENCODE_4, ans_encode, lade_ans_encode_4, 74752) \
	X(ANS_ENCODE_8, ans_encode, lade_ans_encode_8, 83968) \
	X(ANS_ENCODE_SMALL_2, ans_encode, lade_ans_encode_small_2, 37376) \
	X(ANS_ENCODE_SMALL_4, ans_encode, lade_ans_encode_small_4, 41984) \
	X(ANS_ENCODE_SMALL_8, ans_encode, lade_ans_encode_small_8, 51200) \
	X(SHUFFLE_ENCODE, shuffle, lade_shuffle_encode, 0) \
	X(SHUFFLE_DECODE, shuffle, lade_shuffle_decode, 0) \
	X(STREAM, stream, lade_stream, 0) \
	X(DELTA_RANGES, stream, lade_delta_ranges, 0) \
	X(DELTA_DECODE, stream, lade_delta_decode, 0) \
	X(FILTERS_ENCODE, filters, lade_filters_encode, 0) \
	X(FILTERS_DECODE, filters, lade_filters_decode, 0) \
	X(FILTERS_SUM, filters, lade_filters_sum, 0) \
	X(CRC32_UNITS, checksum, lade_crc32_units, 57344) \
	X(ADLER32_UNITS, checksum, lade_adler32_units, 0) \
	X(XXH64_UNITS, checksum, lade_xxh64_units, 0) \
	X(CHECKSUM_FINISH, checksum, lade_checksum_finish, 0) \
	X(CHECKSUM_COPY, checksum, lade_checksum_copy, 0) \
	X(CASCADED_DECODE, cascaded_decode, lade_cascaded_decode, 65920) \
	X(CASCADED_SIZE, cascaded_decode, lade_cascaded_size, 0) \
	X(CASCADED_ENCODE, cascaded_encode, lade_cascaded_encode, 46080) \
	X(BITCOMP_DECODE, bitcomp_decode, lade_bitcomp_decode, 76224) \
	X(BITCOMP_DECODE_FEW, bitcomp_decode, lade_bitcomp_decode_few, 152192) \
	X(BITCOMP_SIZE, bitcomp_decode, lade_bitcomp_size, 0) \
	X(BITCOMP_ENCODE, bitcomp_encode, lade_bitcomp_encode, 76544)

typedef enum lade__kernel {
#define LADE_X(name, image, function, shared) LADE__KERNEL_##name,
	LADE__KERNELS(LADE_X)
#undef LADE_X
	LADE__KERNEL_COUNT,
} lade__kernel;

#endif
