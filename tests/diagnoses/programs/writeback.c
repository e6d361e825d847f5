/* A checkpoint is written through the page cache in pieces, each of which has to reach the disk before the next. */
#include "diagnosis.h"

#define PIECE (1 << 12) /* larger ones take longer to copy than a fast disk takes to write them */

static KEEP void save_checkpoint(int file, const char *piece, int i)
{
	off_t where = (off_t)(i % 8) * PIECE;

	need(pwrite(file, piece, PIECE, where) == PIECE, "pwrite");
	need(!sync_file_range(file, where, PIECE,
			      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER),
	     "sync_file_range");
}

int main(void)
{
	char name[] = "stallscope-writeback-XXXXXX";
	int file = mkstemp(name);
	char *piece = malloc(PIECE);

	need(file >= 0, name);
	need(piece != NULL, "malloc");
	memset(piece, 'x', PIECE);
	unlink(name);
	ready_alone();
	for (int i = 0;; i++)
		save_checkpoint(file, piece, i);
}
