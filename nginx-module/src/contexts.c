
/*
 * The SSL_CTX objects of this process from any creator: http and stream
 * servers, upstreams.  OpenSSL calls back when one is created and freed.
 */


#include "quadrille_async.h"


typedef void (*ngx_quadrille_info_pt)(const SSL *ssl, int where, int ret);


typedef struct {
    ngx_queue_t            queue;
    SSL_CTX               *ctx;
    /* nginx's own info callback, once ours has replaced it */
    ngx_quadrille_info_pt  original;
    ngx_uint_t             off;
} ngx_quadrille_context_t;


static void ngx_quadrille_context_made(void *parent, void *data,
    CRYPTO_EX_DATA *ad, int index, long argl, void *argp);
static ngx_quadrille_context_t *ngx_quadrille_context_of(const SSL *ssl);
static void ngx_quadrille_context_freed(void *parent, void *data,
    CRYPTO_EX_DATA *ad, int index, long argl, void *argp);


static int          ngx_quadrille_context_index = -1;
static ngx_queue_t  ngx_quadrille_contexts;


ngx_int_t
ngx_quadrille_watch_contexts(ngx_log_t *log)
{
    if (ngx_quadrille_context_index != -1) {
        return NGX_OK;
    }

    ngx_queue_init(&ngx_quadrille_contexts);

    ngx_quadrille_context_index = SSL_CTX_get_ex_new_index(0, NULL,
                                                   ngx_quadrille_context_made,
                                                   NULL,
                                                   ngx_quadrille_context_freed);

    if (ngx_quadrille_context_index == -1) {
        ngx_ssl_error(NGX_LOG_EMERG, log, 0,
                      "SSL_CTX_get_ex_new_index() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_quadrille_context_off(SSL_CTX *ctx)
{
    ngx_quadrille_context_t  *context;

    context = SSL_CTX_get_ex_data(ctx, ngx_quadrille_context_index);

    if (context != NULL) {
        context->off = 1;
    }
}


ngx_uint_t
ngx_quadrille_is_off(const SSL *ssl)
{
    ngx_quadrille_context_t  *context;

    context = ngx_quadrille_context_of(ssl);

    return context == NULL || context->off;
}


/*
 * Contexts of a configuration that has just been read; older ones have the
 * callback already.  It is also set where async is off: a waiting handshake may
 * have started elsewhere, and nginx's callback must not see it once its
 * connection is closed.
 */

void
ngx_quadrille_hook_contexts(void)
{
    ngx_queue_t              *q;
    ngx_quadrille_context_t  *context;

    for (q = ngx_queue_head(&ngx_quadrille_contexts);
         q != ngx_queue_sentinel(&ngx_quadrille_contexts);
         q = ngx_queue_next(q))
    {
        context = ngx_queue_data(q, ngx_quadrille_context_t, queue);

        if (context->original == NULL) {
            context->original = SSL_CTX_get_info_callback(context->ctx);

            /* contexts without a callback are not nginx's */

            if (context->original != NULL) {
                SSL_CTX_set_info_callback(context->ctx,
                                          ngx_quadrille_info_callback);
            }
        }
    }
}


void
ngx_quadrille_original_info(const SSL *ssl, int where, int ret)
{
    ngx_quadrille_context_t  *context;

    context = ngx_quadrille_context_of(ssl);

    if (context != NULL && context->original != NULL) {
        context->original(ssl, where, ret);
    }
}


static ngx_quadrille_context_t *
ngx_quadrille_context_of(const SSL *ssl)
{
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl),
                               ngx_quadrille_context_index);
}


static void
ngx_quadrille_context_made(void *parent, void *data, CRYPTO_EX_DATA *ad,
    int index, long argl, void *argp)
{
    ngx_quadrille_context_t  *context;

    context = OPENSSL_zalloc(sizeof(ngx_quadrille_context_t));

    if (context == NULL || CRYPTO_set_ex_data(ad, index, context) == 0) {
        /* its handshakes run without jobs */
        OPENSSL_free(context);
        return;
    }

    context->ctx = parent;
    ngx_queue_insert_tail(&ngx_quadrille_contexts, &context->queue);
}


static void
ngx_quadrille_context_freed(void *parent, void *data, CRYPTO_EX_DATA *ad,
    int index, long argl, void *argp)
{
    ngx_quadrille_context_t  *context;

    context = data;

    if (context != NULL) {
        ngx_queue_remove(&context->queue);
        OPENSSL_free(context);
    }
}
