
/*
 * What the provider offers to modules of the same server: functions in its
 * dispatch table, under numbers of its own.  The other side is
 * crates/openssl-provider/src/embedding.rs.
 */


#ifndef _QUADRILLE_PROVIDER_H_INCLUDED_
#define _QUADRILLE_PROVIDER_H_INCLUDED_


#include <stdint.h>


#define QUADRILLE_PROVIDER_SET_THREADS      0x514401
#define QUADRILLE_PROVIDER_TOTALS           0x514402
#define QUADRILLE_PROVIDER_TAKE_LAST_BATCH  0x514403
#define QUADRILLE_PROVIDER_COMPUTE_TURN     0x514404


/* what the engine of this process has computed */

typedef struct {
    uint64_t  operations;
    uint64_t  batches;
} quadrille_totals_t;


/* compute threads, if the engine has not begun and openssl.cnf says nothing */
typedef void (*quadrille_set_threads_pt)(unsigned count);

typedef void (*quadrille_totals_pt)(quadrille_totals_t *totals);

/*
 * the size of the batch that this thread's last operation was computed in;
 * 0 if there was none since the last call, or a key server has computed it
 */
typedef unsigned (*quadrille_take_last_batch_pt)(void);

/*
 * computes what handshakes of this thread have handed in, on this stack.  Once
 * it has been called, X25519 of handshakes in jobs is handed in: the function
 * in the wait context is called, and the job paused until the next call
 */
typedef void (*quadrille_compute_turn_pt)(void);


#endif /* _QUADRILLE_PROVIDER_H_INCLUDED_ */
