
/*
 * Resources of handshakes, kept for reuse: the records with their wait
 * contexts here, the jobs with their stacks in OpenSSL.  A record is never
 * freed, because a thread of the provider may still be about to wake it.
 */


#include "quadrille_async.h"


/* concurrent jobs in one worker; each has a stack of 32 KiB */
#define NGX_QUADRILLE_MAX_JOBS   1024

/* idle jobs that OpenSSL keeps after a peak */
#define NGX_QUADRILLE_KEPT_JOBS  128


static ngx_quadrille_handshake_t *ngx_quadrille_new(void);
static void ngx_quadrille_release(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_ssl_freed(void *parent, void *data,
    CRYPTO_EX_DATA *ad, int index, long argl, void *argp);


static int          ngx_quadrille_index = -1;
static ngx_queue_t  ngx_quadrille_pool;
/* handshakes that wait for a job */
static ngx_queue_t  ngx_quadrille_line;
static ngx_uint_t   ngx_quadrille_n_jobs;
static ngx_uint_t   ngx_quadrille_most_jobs;


ngx_int_t
ngx_quadrille_init_handshakes(ngx_log_t *log)
{
    if (ngx_quadrille_index == -1) {
        ngx_quadrille_index = SSL_get_ex_new_index(0, NULL, NULL, NULL,
                                                   ngx_quadrille_ssl_freed);
    }

    if (ngx_quadrille_index == -1) {
        ngx_ssl_error(NGX_LOG_EMERG, log, 0, "SSL_get_ex_new_index() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* in each worker */

ngx_int_t
ngx_quadrille_init_pool(ngx_log_t *log)
{
    ngx_queue_init(&ngx_quadrille_pool);
    ngx_queue_init(&ngx_quadrille_line);

    if (ASYNC_init_thread(NGX_QUADRILLE_MAX_JOBS, 0) != 1) {
        ngx_ssl_error(NGX_LOG_EMERG, log, 0, "ASYNC_init_thread() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_quadrille_handshake_t *
ngx_quadrille_of(const SSL *ssl)
{
    return SSL_get_ex_data(ssl, ngx_quadrille_index);
}


ngx_quadrille_handshake_t *
ngx_quadrille_attach(SSL *ssl, ngx_connection_t *c)
{
    ngx_queue_t                *q;
    ngx_quadrille_handshake_t  *hs;

    if (ngx_queue_empty(&ngx_quadrille_pool)) {
        hs = ngx_quadrille_new();

        if (hs == NULL) {
            return NULL;
        }

    } else {
        q = ngx_queue_head(&ngx_quadrille_pool);
        ngx_queue_remove(q);
        hs = ngx_queue_data(q, ngx_quadrille_handshake_t, queue);
    }

    hs->ssl = ssl;
    hs->connection = c;
    hs->waited_ns = 0;
    hs->batch = 0;
    hs->abandoned = 0;
    hs->early = 0;

    if (SSL_set_ex_data(ssl, ngx_quadrille_index, hs) == 0) {
        ngx_quadrille_release(hs);
        return NULL;
    }

    ngx_quadrille_count(handshakes, 1);

    return hs;
}


void
ngx_quadrille_detach(ngx_quadrille_handshake_t *hs)
{
    SSL_set_ex_data(hs->ssl, ngx_quadrille_index, NULL);
    ngx_quadrille_release(hs);
}


/* first in, first out; closed connections are removed from the line */

void
ngx_quadrille_stand_in_line(ngx_quadrille_handshake_t *hs)
{
    hs->in_line = 1;
    ngx_queue_insert_tail(&ngx_quadrille_line, &hs->queue);
}


void
ngx_quadrille_job_taken(void)
{
    ngx_quadrille_n_jobs++;
    ngx_quadrille_jobs_of_workers[ngx_process_slot] = ngx_quadrille_n_jobs;

    if (ngx_quadrille_n_jobs > ngx_quadrille_most_jobs) {
        ngx_quadrille_most_jobs = ngx_quadrille_n_jobs;
    }
}


void
ngx_quadrille_job_free(void)
{
    ngx_queue_t                *q;
    ngx_quadrille_handshake_t  *hs;

    ngx_quadrille_n_jobs--;
    ngx_quadrille_jobs_of_workers[ngx_process_slot] = ngx_quadrille_n_jobs;

    if (!ngx_queue_empty(&ngx_quadrille_line)) {
        q = ngx_queue_head(&ngx_quadrille_line);
        ngx_queue_remove(q);
        hs = ngx_queue_data(q, ngx_quadrille_handshake_t, queue);
        hs->in_line = 0;
        ngx_post_event(&hs->begin, &ngx_posted_events);
        return;
    }

    if (ngx_quadrille_n_jobs == 0
        && ngx_quadrille_most_jobs > NGX_QUADRILLE_KEPT_JOBS)
    {
        ASYNC_cleanup_thread();
        ASYNC_init_thread(NGX_QUADRILLE_MAX_JOBS, 0);
        ngx_quadrille_most_jobs = 0;
    }
}


ngx_uint_t
ngx_quadrille_jobs(void)
{
    return ngx_quadrille_n_jobs;
}


static ngx_quadrille_handshake_t *
ngx_quadrille_new(void)
{
    ngx_quadrille_handshake_t  *hs;

    hs = ngx_calloc(sizeof(ngx_quadrille_handshake_t), ngx_cycle->log);

    if (hs == NULL) {
        return NULL;
    }

    hs->wait = ASYNC_WAIT_CTX_new();

    if (hs->wait == NULL
        || ASYNC_WAIT_CTX_set_callback(hs->wait, ngx_quadrille_wake, hs) != 1)
    {
        ASYNC_WAIT_CTX_free(hs->wait);
        ngx_free(hs);
        return NULL;
    }

    hs->begin.data = hs;
    hs->begin.handler = ngx_quadrille_begin;
    hs->begin.log = ngx_cycle->log;

    return hs;
}


static void
ngx_quadrille_release(ngx_quadrille_handshake_t *hs)
{
    ngx_quadrille_leave_turn(hs);

    hs->ssl = NULL;
    hs->connection = NULL;

    /* last in, first out: it is in the caches */
    ngx_queue_insert_head(&ngx_quadrille_pool, &hs->queue);
}


/*
 * nginx has closed the connection, and it has no paused job, which would hold
 * a reference to the SSL object.
 */

static void
ngx_quadrille_ssl_freed(void *parent, void *data, CRYPTO_EX_DATA *ad,
    int index, long argl, void *argp)
{
    ngx_quadrille_handshake_t  *hs;

    hs = data;

    if (hs == NULL) {
        return;
    }

    if (hs->begin.posted) {
        ngx_delete_posted_event(&hs->begin);
    }

    if (hs->in_line) {
        hs->in_line = 0;
        ngx_queue_remove(&hs->queue);
    }

    BIO_free(hs->deferred_bio);
    hs->deferred_bio = NULL;

    ngx_quadrille_release(hs);
}
