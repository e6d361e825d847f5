/* A library of the system (SQLite) makes every change durable at once; only two functions are the program's own. */
#include <dlfcn.h>

#include "diagnosis.h"

static int (*sql)(void *database, const char *text, void *row, void *argument, char **error);

static KEEP void save_session(void *database)
{
	need(!sql(database, "insert into sessions values (randomblob(60000))", NULL, NULL, NULL), "insert");
	need(!sql(database, "delete from sessions", NULL, NULL, NULL), "delete");
}

static KEEP void answer_requests(void *database)
{
	for (;;)
		save_session(database);
}

int main(void)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW), *database;
	char name[] = "stallscope-sqlite-XXXXXX";
	int (*open_file)(const char *name, void **database);
	int file;

	if (!library) {
		printf("cannot run here: no SQLite (Debian's package libsqlite3-0)\n");
		return 0;
	}
	sql = dlsym(library, "sqlite3_exec");
	open_file = dlsym(library, "sqlite3_open");
	need(sql && open_file, "dlsym");
	file = mkstemp(name);
	need(file >= 0 && !open_file(name, &database), name);
	/* The journal in memory: nothing is left behind but the file, which is removed now. */
	need(!sql(database, "pragma journal_mode = memory; create table sessions (content)", NULL, NULL, NULL), "create");
	unlink(name);
	ready_alone();
	answer_requests(database);
}
