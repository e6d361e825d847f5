/* Three functions make their records durable at once: each has a part of one trouble, the disk. */
#include "diagnosis.h"

#define RECORD (1 << 12) /* larger ones take longer to copy than a fast disk takes to write them */

static char record[RECORD];

static KEEP void append_journal(int file)
{
	need(pwrite(file, record, RECORD, 0) == RECORD, "pwrite");
	need(!fsync(file), "fsync");
}

static KEEP void append_index(int file)
{
	need(pwrite(file, record, RECORD, RECORD) == RECORD, "pwrite");
	need(!fsync(file), "fsync");
}

static KEEP void append_audit(int file)
{
	need(pwrite(file, record, RECORD, 2 * RECORD) == RECORD, "pwrite");
	need(!fsync(file), "fsync");
}

int main(void)
{
	char name[] = "stallscope-callers-XXXXXX";
	int file = mkstemp(name);

	need(file >= 0, name);
	unlink(name);
	ready_alone();
	for (;;) {
		append_journal(file);
		append_index(file);
		append_audit(file);
	}
}
