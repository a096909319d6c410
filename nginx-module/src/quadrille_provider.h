
/*
 * The provider's interface for modules of the same server: functions in its
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


/* totals of this process's engine */

typedef struct {
    uint64_t  operations;
    uint64_t  batches;
} quadrille_totals_t;


/* sets the compute threads unless the engine runs or openssl.cnf sets them */
typedef void (*quadrille_set_threads_pt)(unsigned count);

typedef void (*quadrille_totals_pt)(quadrille_totals_t *totals);

/*
 * returns the size of the batch of this thread's last operation; 0 if there
 * was no operation since the last call, or a key server computed it
 */
typedef unsigned (*quadrille_take_last_batch_pt)(void);

/*
 * computes the operations submitted by this thread's handshakes, on this
 * stack.  After the first call, X25519 of handshakes in jobs is submitted: the
 * function in the wait context is called, and the job paused until the next
 * call
 */
typedef void (*quadrille_compute_turn_pt)(void);


#endif /* _QUADRILLE_PROVIDER_H_INCLUDED_ */
