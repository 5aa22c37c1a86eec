/*
 * blosc_snappy.cu: blocks of Snappy streams in Blosc1 containers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/kernels/blosc_lz.cuh"

#include "codec/snappy/kernels/snappy_parse.cuh"

/* Maps: blosc_lz.cuh. */
extern "C" __global__ void __launch_bounds__(128, 8) lade_blosc_snappy_solo(lade_blosc_plan p)
{
	lade_blosc_lz_solo<lade_snappy>(p, 2);
}

extern "C" __global__ void __launch_bounds__(256, 4) lade_blosc_snappy_team8(lade_blosc_plan p)
{
	typedef lade_lz_team<lade_snappy, 8> team;
	LADE_SHARED(team, t);
	lade_blosc_lz_team<lade_snappy, 8>(&t, p, 2);
}
