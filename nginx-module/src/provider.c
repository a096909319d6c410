
/* the provider in the OpenSSL of this process, if openssl.cnf names it */


#include "quadrille_async.h"
#include "quadrille_provider.h"
#include <openssl/core_dispatch.h>
#include <openssl/provider.h>


static int ngx_quadrille_look_at(OSSL_PROVIDER *provider, void *data);


static quadrille_set_threads_pt      ngx_quadrille_set_threads_fn;
static quadrille_totals_pt           ngx_quadrille_totals_fn;
static quadrille_take_last_batch_pt  ngx_quadrille_take_last_batch_fn;
static quadrille_compute_turn_pt     ngx_quadrille_compute_turn_fn;


ngx_uint_t
ngx_quadrille_find_provider(void)
{
    (void) OSSL_PROVIDER_do_all(NULL, ngx_quadrille_look_at, NULL);

    return ngx_quadrille_take_last_batch_fn != NULL;
}


void
ngx_quadrille_set_threads(ngx_uint_t count)
{
    ngx_quadrille_set_threads_fn(count);
}


ngx_uint_t
ngx_quadrille_take_last_batch(void)
{
    return ngx_quadrille_take_last_batch_fn();
}


void
ngx_quadrille_compute_turn(void)
{
    if (ngx_quadrille_compute_turn_fn != NULL) {
        ngx_quadrille_compute_turn_fn();
    }
}


/* adds the operations that this worker's engine computed since the last call */

void
ngx_quadrille_count_batches(void)
{
    quadrille_totals_t         now;
    static quadrille_totals_t  counted;

    if (ngx_quadrille_totals_fn == NULL) {
        return;
    }

    ngx_quadrille_totals_fn(&now);

    ngx_quadrille_count(operations, now.operations - counted.operations);
    ngx_quadrille_count(batches, now.batches - counted.batches);

    counted = now;
}


static int
ngx_quadrille_look_at(OSSL_PROVIDER *provider, void *data)
{
    const OSSL_DISPATCH  *entry;

    entry = OSSL_PROVIDER_get0_dispatch(provider);

    for ( /* void */ ; entry != NULL && entry->function_id != 0; entry++) {

        switch (entry->function_id) {

        case QUADRILLE_PROVIDER_SET_THREADS:
            ngx_quadrille_set_threads_fn =
                                  (quadrille_set_threads_pt) entry->function;
            break;

        case QUADRILLE_PROVIDER_TOTALS:
            ngx_quadrille_totals_fn = (quadrille_totals_pt) entry->function;
            break;

        case QUADRILLE_PROVIDER_TAKE_LAST_BATCH:
            ngx_quadrille_take_last_batch_fn =
                              (quadrille_take_last_batch_pt) entry->function;
            break;

        case QUADRILLE_PROVIDER_COMPUTE_TURN:
            ngx_quadrille_compute_turn_fn =
                              (quadrille_compute_turn_pt) entry->function;
            break;
        }
    }

    return 1;
}
