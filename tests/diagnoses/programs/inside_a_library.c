/* Another process has a database (SQLite, a library of the system) locked most of the time. */
#include <dlfcn.h>

#include "diagnosis.h"

static int (*sql)(void *database, const char *text, void *row, void *argument, char **error);
static int (*open_file)(const char *name, void **database);
static int (*wait_for_locks)(void *database, int milliseconds);

static void run(void *database, const char *text)
{
	need(!sql(database, text, NULL, NULL, NULL), text);
}

static void *opened(const char *name)
{
	void *database;

	need(!open_file(name, &database), name);
	wait_for_locks(database, LIMIT_SECONDS * 1000);
	run(database, "pragma synchronous = off; pragma journal_mode = memory");
	return database;
}

static KEEP void save_session(void *database)
{
	run(database, "update sessions set content = content + 1");
}

static KEEP void answer_requests(void *database)
{
	for (;;) {
		save_session(database);
		burn_us(1000); /* or the holder hardly ever finds the database unlocked */
	}
}

static void hold_lock(const char *name)
{
	void *database = opened(name);

	for (;;) {
		run(database, "begin exclusive");
		sleep_us(50000);
		run(database, "commit");
		sleep_us(5000);
	}
}

int main(void)
{
	void *library = dlopen("libsqlite3.so.0", RTLD_NOW), *database;
	char name[] = "stallscope-sqlite-XXXXXX";

	if (!library) {
		printf("cannot run here: no SQLite (Debian's package libsqlite3-0)\n");
		return 0;
	}
	sql = dlsym(library, "sqlite3_exec");
	open_file = dlsym(library, "sqlite3_open");
	wait_for_locks = dlsym(library, "sqlite3_busy_timeout");
	need(sql && open_file && wait_for_locks, "dlsym");
	need(mkstemp(name) >= 0, name);
	database = opened(name);
	run(database, "create table sessions (content); insert into sessions values (0)");
	if (!start_process("holder"))
		hold_lock(name);
	sleep_us(20000);
	unlink(name); /* both have it open by now */
	ready_alone();
	answer_requests(database);
}
