
/*
 * Jobs that are paused only to be computed with others of the event loop, as
 * the provider requests for X25519.  nginx accepts one connection in each turn
 * of its event loop, so they are computed once some turns have added no further
 * job, or enough have accumulated.  They are computed on nginx's own stack: that
 * of a job is too small for lanes.
 */


#include "quadrille_async.h"


/* operations that lanes compute for the price of one */
#define NGX_QUADRILLE_ENOUGH    8

/* turns without a further job after which the gathered ones continue */
#define NGX_QUADRILLE_PATIENCE  4


static void ngx_quadrille_turn_ended(ngx_event_t *ev);


static ngx_queue_t  ngx_quadrille_gathered;
static ngx_uint_t   ngx_quadrille_n_gathered;
static ngx_uint_t   ngx_quadrille_n_turns;
static ngx_event_t  ngx_quadrille_turn_event;


void
ngx_quadrille_init_turn(ngx_log_t *log)
{
    ngx_queue_init(&ngx_quadrille_gathered);
    ngx_quadrille_n_gathered = 0;

    ngx_quadrille_turn_event.handler = ngx_quadrille_turn_ended;
    ngx_quadrille_turn_event.log = log;

    ngx_quadrille_compute_turn();
}


void
ngx_quadrille_gather(ngx_quadrille_handshake_t *hs)
{
    hs->gathered = 1;
    ngx_queue_insert_tail(&ngx_quadrille_gathered, &hs->queue);
    ngx_quadrille_n_gathered++;
    ngx_quadrille_n_turns = 0;

    if (!ngx_quadrille_turn_event.posted) {
        ngx_post_event(&ngx_quadrille_turn_event, &ngx_posted_next_events);
    }
}


/* called if its job could not be paused */

void
ngx_quadrille_leave_turn(ngx_quadrille_handshake_t *hs)
{
    if (hs->gathered) {
        hs->gathered = 0;
        ngx_queue_remove(&hs->queue);
        ngx_quadrille_n_gathered--;
    }
}


static void
ngx_quadrille_turn_ended(ngx_event_t *ev)
{
    ngx_uint_t                  n;
    ngx_queue_t                *q;
    ngx_quadrille_handshake_t  *hs;

    if (++ngx_quadrille_n_turns < NGX_QUADRILLE_PATIENCE
        && ngx_quadrille_n_gathered < NGX_QUADRILLE_ENOUGH)
    {
        ngx_post_event(ev, &ngx_posted_next_events);
        return;
    }

    /* operations submitted meanwhile belong to the next turn */

    ngx_quadrille_compute_turn();

    n = ngx_quadrille_n_gathered;

    while (n-- > 0 && ngx_quadrille_n_gathered > 0) {
        q = ngx_queue_head(&ngx_quadrille_gathered);
        hs = ngx_queue_data(q, ngx_quadrille_handshake_t, queue);
        ngx_quadrille_leave_turn(hs);
        ngx_quadrille_resume(hs);
    }
}
