/* NCCL's functions, as its documentation has them (NCCL API), and what the stand-ins for CUDA and NCCL share. */
#ifndef STALLSCOPE_STANDIN_NCCL_H
#define STALLSCOPE_STANDIN_NCCL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_STEPS 16

/* A graph of the stand-in: what was asked for while a stream was captured. */
struct standin_graph {
	int number;
	struct {
		int (*launch)(void *comm, const void *task);
		void *comm;
		char task[64];
	} steps[STANDIN_STEPS];
};

/* A stream of the stand-in: operations that are not done yet, and numbers of those that were asked for, and are done: one
 * after the other. Waited for by futex. */
struct standin_stream {
	_Atomic uint32_t pending, asked, done;
	struct standin_graph *captured; /* into this one; NULL: it does what it is asked for */
};

int cudaStreamCreate(struct standin_stream **stream);
int cudaStreamSynchronize(struct standin_stream *stream);
int cudaStreamBeginCapture(struct standin_stream *stream, int mode);
int cudaStreamEndCapture(struct standin_stream *stream, struct standin_graph **graph);
int cudaGraphInstantiate(struct standin_graph **made, struct standin_graph *graph, uint64_t flags);
int cudaGraphLaunch(struct standin_graph *graph, struct standin_stream *stream);

/* Environment variable: "blocking": calls return when the operation is done; "proxy": with the threads of NCCL that poll. */
#define STANDIN_NCCL "STANDIN_NCCL"

enum {
	NCCL_SUCCESS,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_IN_PROGRESS = 7
};
enum {
	NCCL_INT8 = 0,
	NCCL_FLOAT32 = 7
};
enum {
	NCCL_SUM
};

typedef struct standin_comm *ncclComm_t;
typedef struct {
	char internal[128];
} ncclUniqueId;

int ncclGetVersion(int *version);
int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made, void *config);
int ncclCommDestroy(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm);
int ncclCommGetAsyncError(ncclComm_t comm, int *error);
int ncclCommCount(ncclComm_t comm, int *count);
int ncclCommUserRank(ncclComm_t comm, int *rank);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
		  struct standin_stream *s);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm_t comm,
		  struct standin_stream *s);
int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, ncclComm_t comm,
	       struct standin_stream *s);
int ncclAllGather(const void *from, void *to, size_t count, int type, ncclComm_t comm, struct standin_stream *s);
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, ncclComm_t comm,
		      struct standin_stream *s);
int ncclSend(const void *from, size_t count, int type, int peer, ncclComm_t comm, struct standin_stream *s);
int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, struct standin_stream *s);

#endif
