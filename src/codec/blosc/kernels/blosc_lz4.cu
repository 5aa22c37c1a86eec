/*
 * blosc_lz4.cu: blocks of LZ4 streams in Blosc1 containers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/kernels/blosc_lz.cuh"

#include "codec/lz4/kernels/lz4_parse.cuh"

/* Maps: blosc_lz.cuh.  The team of 16 has its shared memory as dynamic memory. */
extern "C" __global__ void __launch_bounds__(128, 8) lade_blosc_lz4_solo(lade_blosc_plan p)
{
	lade_blosc_lz_solo<lade_lz4>(p, 1);
}

extern "C" __global__ void __launch_bounds__(128, 8) lade_blosc_lz4_team4(lade_blosc_plan p)
{
	typedef lade_lz_team<lade_lz4, 4> team;
	LADE_SHARED(team, t);
	lade_blosc_lz_team<lade_lz4, 4>(&t, p, 1);
}

extern "C" __global__ void __launch_bounds__(256, 4) lade_blosc_lz4_team8(lade_blosc_plan p)
{
	typedef lade_lz_team<lade_lz4, 8> team;
	LADE_SHARED(team, t);
	lade_blosc_lz_team<lade_lz4, 8>(&t, p, 1);
}

extern "C" __global__ void __launch_bounds__(512, 2) lade_blosc_lz4_team16(lade_blosc_plan p)
{
	typedef lade_lz_team<lade_lz4, 16> team;
	LADE_SHARED_DYNAMIC(team, t);
	lade_blosc_lz_team<lade_lz4, 16>(t, p, 1);
}
