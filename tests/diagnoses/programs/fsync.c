/* Every record that is written is made durable at once, on the disk of the current folder. */
#include "diagnosis.h"

#define RECORD (1 << 12) /* larger ones take longer to copy than a fast disk takes to write them */

static char record[RECORD];

static KEEP void append_record(int file)
{
	need(pwrite(file, record, RECORD, 0) == RECORD, "pwrite");
	need(!fsync(file), "fsync");
}

int main(void)
{
	char name[] = "stallscope-fsync-XXXXXX";
	int file = mkstemp(name);

	need(file >= 0, name);
	unlink(name);
	ready_alone();
	for (;;)
		append_record(file);
}
