
/*
 * The provider's threads put handshakes that can continue into a list, and
 * signal one descriptor of the worker.  The event loop resumes all handshakes
 * that are in the list at that time.
 */


#include "quadrille_async.h"
#include <sys/eventfd.h>


static void ngx_quadrille_woken(ngx_event_t *ev);


static int                         ngx_quadrille_eventfd = -1;
/* last in, first out */
static ngx_quadrille_handshake_t  *ngx_quadrille_list;


ngx_int_t
ngx_quadrille_init_wakeup(ngx_cycle_t *cycle)
{
    ngx_int_t          flags;
    ngx_connection_t  *c;

    ngx_quadrille_eventfd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

    if (ngx_quadrille_eventfd == -1) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, ngx_errno,
                      "eventfd() failed");
        return NGX_ERROR;
    }

    c = ngx_get_connection(ngx_quadrille_eventfd, cycle->log);

    if (c == NULL) {
        return NGX_ERROR;
    }

    c->read->handler = ngx_quadrille_woken;
    c->read->log = cycle->log;
    /* open until the process exits, and not a client connection */
    c->read->channel = 1;
    c->write->channel = 1;

    flags = (ngx_event_flags & NGX_USE_CLEAR_EVENT) ? NGX_CLEAR_EVENT
                                                    : NGX_LEVEL_EVENT;

    return ngx_add_event(c->read, NGX_READ_EVENT, flags);
}


/* called by threads of the provider, or by the job itself */

int
ngx_quadrille_wake(void *data)
{
    ssize_t                     n;
    static const uint64_t       one = 1;
    ngx_quadrille_handshake_t  *hs, *first;

    hs = data;

    if (ngx_quadrille_is_running(hs)) {
        ngx_quadrille_gather(hs);
        return 1;
    }

    if (__atomic_exchange_n(&hs->woken, 1, __ATOMIC_ACQ_REL)) {
        return 1;
    }

    first = __atomic_load_n(&ngx_quadrille_list, __ATOMIC_RELAXED);

    do {
        hs->next_woken = first;
    } while (!__atomic_compare_exchange_n(&ngx_quadrille_list, &first, hs, 1,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));

    if (first == NULL) {
        /* fails only if the counter is full, and then it is readable */
        n = write(ngx_quadrille_eventfd, &one, sizeof(one));
        (void) n;
    }

    return 1;
}


static void
ngx_quadrille_woken(ngx_event_t *ev)
{
    ssize_t                     n;
    uint64_t                    count;
    ngx_connection_t           *c;
    ngx_quadrille_handshake_t  *hs, *next, *list;

    c = ev->data;

    if (!(ngx_event_flags & NGX_USE_CLEAR_EVENT)) {
        n = read(c->fd, &count, sizeof(count));
        (void) n;
    }

    hs = __atomic_exchange_n(&ngx_quadrille_list, NULL, __ATOMIC_ACQUIRE);

    for (list = NULL; hs != NULL; hs = next) {
        next = hs->next_woken;
        hs->next_woken = list;
        list = hs;
    }

    ngx_quadrille_count(wakeups, 1);

    for (hs = list; hs != NULL; hs = next) {
        next = hs->next_woken;
        __atomic_store_n(&hs->woken, 0, __ATOMIC_RELEASE);
        ngx_quadrille_resume(hs);
    }

    ngx_quadrille_count_batches();
}
