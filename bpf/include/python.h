/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's Python interpreter, as user space describes it to the probes, and how Python functions are encoded in
 * stacks. Mirrored in tracers/kernel/python.py. */
#ifndef STALLSCOPE_PYTHON_H
#define STALLSCOPE_PYTHON_H

/* The Python part of a stack follows its native frames: a word PYTHON_PROCESS | id of the process in which it was taken,
 * which is not part of the stack's id; then two words per function, innermost first: PYTHON_CODE | address of the code
 * object, and checksum << 32 | byte of the instruction << 1 | whether the interpreter's function was entered with it.
 * PYTHON_CUT | enum python_end instead of a function: there were more. No address has these highest bytes. */
#define PYTHON_PROCESS (0x50ULL << 56)
#define PYTHON_CODE (0x51ULL << 56)
#define PYTHON_CUT (0x52ULL << 56)
#define PYTHON_ADDRESS ((1ULL << 56) - 1)

enum python_end {
	PYTHON_TOO_DEEP = 1,
	PYTHON_UNREADABLE,
};

/* How a frame shows that the interpreter's function was entered for it. */
enum python_entry {
	ENTRY_ALWAYS, /* each frame has a call of its own (up to 3.10) */
	ENTRY_FLAG,   /* a byte of the frame is 1 (3.11) */
	ENTRY_BELOW,  /* its caller is a frame without a function, whose owner is ENTRY_OWNER or above (from 3.12 on) */
};
#define ENTRY_OWNER 3

enum python_instruction {
	INSTRUCTION_BYTE, /* its place in the code, an int: in bytes (up to 3.9) */
	INSTRUCTION_WORD, /* … or in units of two bytes (3.10) */
	INSTRUCTION_AT,	  /* its address (from 3.11 on) */
};

/* By process. Offsets and sizes in bytes. The fields of one object that are needed are read at once: the first
 * `…_bytes` of it, a multiple of 8, at most PYTHON_WINDOW. */
#define PYTHON_WINDOW 256
/* Frames lie one after another: so many bytes are read at once. No more than scope_walk can request. */
#define PYTHON_BLOCK 1536
#define PYTHON_BLOCK_AT 256
#define PYTHON_WORDS 512
/* Code objects without a version are told apart by the text of their file's name: the last so many bytes of it. */
#define PYTHON_TEXT 192
#define PYTHON_LONG 4096 /* the text of a longer name is not read */
struct python_space {
	u64 interpreters; /* address of the pointer to the first interpreter */
	u32 salt;	  /* the same in processes that were forked from one another; part of checksums */
	u32 interpreter_next;
	u32 interpreter_threads;
	u16 thread_next;
	u16 thread_id;
	u16 thread_frame;
	u16 thread_bytes;
	u16 frame_in; /* what thread_frame leads to has the frame here; NO_STEP: it is the frame */
	u16 frame_code;
	u16 frame_back;
	u16 frame_instruction;
	u16 frame_entry; /* … or its owner */
	u16 frame_bytes;
	u16 code_line;
	u16 code_name;
	u16 code_file;
	u16 code_lines;
	u16 code_first; /* instruction */
	u16 code_bytes;
	u16 code_version; /* a number that no other one has had (from 3.12 on); NO_STEP: it has none */
	u16 name_hash;
	u16 thread_native; /* the kernel's id of the thread (from 3.11 on); NO_STEP: the C library has it */
	u8 entry;	   /* enum python_entry */
	u8 instruction;	   /* enum python_instruction */
	u8 text_ascii;	   /* where the text of a string begins, if that is ASCII */
	u8 text_other;	   /* … and if not */
	/* The interpreter lock (GIL) of the main interpreter: where that has the pointer to it, and where the lock itself
	 * is in it. 0: the interpreter does not have it, or it is not known. */
	u32 gil_at;
	u32 gil_own;
	/* The probes change what follows. */
	u32 freed; /* 1, and one more for each code object that the process has freed; 0: they are not counted */
	u64 gil;   /* address of the lock; 0: not known, or not yet */
};
#define NO_STEP 0xffff

#endif
