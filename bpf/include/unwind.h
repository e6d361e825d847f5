/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The unwind tables in the layout that user space prepares for the probes; written by tracers/unwind/store.py.
 *
 * Everything is in shards of equal size: mapping tables, and for each chunk of a file's code its page index and its
 * rows. A position is a word (8 bytes) counted over all shards; data that is read together never spans two of them. */
#ifndef STALLSCOPE_UNWIND_H
#define STALLSCOPE_UNWIND_H

#define SHARD_SHIFT 17
#define SHARD_WORDS (1 << SHARD_SHIFT)
#define SHARDS 4096
#define TABLES 65536
#define PAGE_SHIFT 9 /* bytes of code per entry of the index */

struct shard {
	u64 word[SHARD_WORDS];
};

/* The executable mappings of a process: `count` entries of MAPPING_WORDS words from `first` on, sorted by start.
 * Each ends where the next begins. `version` is incremented with every change. */
struct unwind_space {
	u32 first;
	u32 count;
	u32 version;
	u32 pad;
};

/* Words of an entry: the start; the offset from an address to its place in the chunk; the table's number. */
#define MAPPING_WORDS 3
enum table_number {
	TABLE_UNMAPPED, /* nothing was mapped here when the maps were read */
	TABLE_NONE,	/* code without a table */
	TABLE_FIRST,
};

/* A chunk: the page index begins at word `index`; an entry is (first row's word) | (number of rows) << 32. pages = 0:
 * the rows are not in memory. */
struct unwind_table {
	u32 index;
	u32 pages;
	u32 used;  /* unwind_epoch of its last use */
	u32 empty; /* it has no rows: no need to request them */
};

/* A row as described in tracers/unwind/rows.py: pc u32, cfa s16, rbp s8, rule u8. */
enum cfa_kind {
	CFA_GAP,
	CFA_UNKNOWN,
	CFA_END,
	CFA_RSP,
	CFA_RBP,
	CFA_RSP_DEREF,
	CFA_RBP_DEREF,
	CFA_RSP_DEREF_8,
	CFA_RBP_DEREF_8,
	CFA_PLT,
	CFA_SIGNAL,
};

enum rbp_kind {
	RBP_SAME,
	RBP_AT_CFA,
	RBP_AT_RSP,
	RBP_AT_RBP,
	RBP_UNKNOWN,
};

#endif
