/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Histograms of how long calls took: of functions, and ioctls. */
#ifndef STALLSCOPE_CALL_BUCKETS_BPF_H
#define STALLSCOPE_CALL_BUCKETS_BPF_H

#include "maps.bpf.h"

/* Latencies are counted in buckets: 4 per factor of two, from 256 ns on. Mirrored in
 * converters/model/calls.py. */
#define CALL_SHIFT 8
#define CALL_OCTAVES 28
#define CALL_BUCKETS (4 * CALL_OCTAVES)

/* Index into `latencies`. Global, so that its paths are not multiplied by its callers'. */
__weak int call_bucket(u64 ns)
{
	u32 octave = 0;

	if (ns >> CALL_SHIFT == 0)
		return 0;
	ns >>= CALL_SHIFT - 2; /* two bits remain below the highest one of the first octave */
	if (ns >> 2 >> 16) {
		ns >>= 16;
		octave += 16;
	}
	if (ns >> 2 >> 8) {
		ns >>= 8;
		octave += 8;
	}
	if (ns >> 2 >> 4) {
		ns >>= 4;
		octave += 4;
	}
	if (ns >> 2 >> 2) {
		ns >>= 2;
		octave += 2;
	}
	if (ns >> 3) {
		ns >>= 1;
		octave += 1;
	}
	if (ns >> 3) /* octave 32 and above */
		return CALL_BUCKETS - 1;
	octave = 4 * octave + (ns & 3);
	return octave < CALL_BUCKETS ? octave : CALL_BUCKETS - 1;
}

#endif
