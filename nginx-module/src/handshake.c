
/*
 * Runs a handshake in jobs, and continues in nginx when a job has ended.
 *
 * While a job is paused, nginx may close the connection: at a timeout, or
 * because the peer of a proxied connection has closed.  The job keeps a
 * reference to the SSL object.  When its result is ready it runs to its end
 * without the connection, and releases everything.
 */


#include "quadrille_async.h"
#include <time.h>


static void ngx_quadrille_event(ngx_event_t *ev);
static void ngx_quadrille_run(ngx_quadrille_handshake_t *hs);
static int ngx_quadrille_job(void *data);
static int ngx_quadrille_do_handshake(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_pause(ngx_quadrille_handshake_t *hs);
static ngx_uint_t ngx_quadrille_is_closed(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_abandon(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_ended(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_hand_back(ngx_quadrille_handshake_t *hs);
static ngx_int_t ngx_quadrille_accept_early_data(ngx_connection_t *c,
    u_char byte);
static void ngx_quadrille_ocsp_event(ngx_event_t *ev);
static void ngx_quadrille_wait(ngx_quadrille_handshake_t *hs);
static uint64_t ngx_quadrille_now_ns(void);


/* the handshake whose job runs in this thread */
static __thread ngx_quadrille_handshake_t  *ngx_quadrille_running;


/* posted: starts a deferred handshake, or one that has waited for a job */

void
ngx_quadrille_begin(ngx_event_t *ev)
{
    ngx_connection_t           *c;
    ngx_quadrille_handshake_t  *hs;

    hs = ev->data;

    if (hs->deferred_bio != NULL) {
        ngx_quadrille_end_deferral(hs);

        c = hs->connection;
        c->read->handler = ngx_quadrille_event;
        c->write->handler = ngx_quadrille_event;
    }

    ngx_quadrille_run(hs);
}


/* replaces nginx's own handler for connections in a handshake */

static void
ngx_quadrille_event(ngx_event_t *ev)
{
    ngx_connection_t           *c;
    ngx_quadrille_handshake_t  *hs;

    c = ev->data;

    ngx_log_debug1(NGX_LOG_DEBUG_EVENT, c->log, 0,
                   "quadrille handshake handler: %d", ev->write);

    if (ev->timedout) {
        c->ssl->handler(c);
        return;
    }

    hs = ngx_quadrille_of(c->ssl->connection);

    /* libssl reads all available data when it continues */

    if (hs->paused || hs->in_line || hs->begin.posted) {
        return;
    }

    ngx_quadrille_run(hs);
}


void
ngx_quadrille_resume(ngx_quadrille_handshake_t *hs)
{
    if (!hs->paused) {
        return;
    }

    hs->paused = 0;
    hs->waited_ns += ngx_quadrille_now_ns() - hs->paused_at_ns;

    if (ngx_quadrille_is_closed(hs)) {
        ngx_quadrille_abandon(hs);
    }

    ngx_quadrille_run(hs);
}


static void
ngx_quadrille_run(ngx_quadrille_handshake_t *hs)
{
    int         status, ret;
    ngx_uint_t  is_new;

    is_new = (hs->job == NULL);

    ngx_quadrille_running = hs;

    status = ASYNC_start_job(&hs->job, hs->wait, &ret, ngx_quadrille_job, &hs,
                             sizeof(ngx_quadrille_handshake_t *));

    ngx_quadrille_running = NULL;

    switch (status) {

    case ASYNC_PAUSE:

        if (is_new) {
            ngx_quadrille_job_taken();
        }

        ngx_quadrille_pause(hs);
        return;

    case ASYNC_FINISH:

        hs->job = NULL;

        if (!is_new) {
            ngx_quadrille_job_free();
        }

        break;

    case ASYNC_NO_JOBS:

        if (ngx_quadrille_jobs() > 0) {
            ngx_quadrille_stand_in_line(hs);
            return;
        }

        /* fall through */

    default:

        /* out of memory: nginx waits */
        ERR_clear_error();
        hs->job = NULL;
        (void) ngx_quadrille_do_handshake(hs);
    }

    ngx_quadrille_ended(hs);
}


ngx_uint_t
ngx_quadrille_is_running(ngx_quadrille_handshake_t *hs)
{
    return ngx_quadrille_running == hs;
}


static int
ngx_quadrille_job(void *data)
{
    return ngx_quadrille_do_handshake(*(ngx_quadrille_handshake_t **) data);
}


/* the first part of nginx's ngx_ssl_handshake() */

static int
ngx_quadrille_do_handshake(ngx_quadrille_handshake_t *hs)
{
    int                    n;
    size_t                 size;
    ngx_ssl_connection_t  *ssl;

    ssl = hs->connection->ssl;

    ERR_clear_error();
    ngx_set_errno(0);

    if (ssl->try_early_data) {
        n = SSL_read_early_data(hs->ssl, &hs->early_byte, 1, &size);

        if (n == SSL_READ_EARLY_DATA_SUCCESS) {
            hs->early = 1;
            hs->ssl_error = SSL_ERROR_NONE;
            return 1;
        }

        if (n != SSL_READ_EARLY_DATA_FINISH) {
            hs->err = ngx_errno;
            hs->ssl_error = SSL_get_error(hs->ssl, 0);
            return 1;
        }

        /* no early data; the connection does not try to read it again */

        if (!hs->abandoned) {
            ssl->try_early_data = 0;
        }
    }

    n = SSL_do_handshake(hs->ssl);

    hs->err = ngx_errno;
    hs->ssl_error = SSL_get_error(hs->ssl, n);

    return 1;
}


static void
ngx_quadrille_pause(ngx_quadrille_handshake_t *hs)
{
    if (!hs->holds_ssl) {
        SSL_up_ref(hs->ssl);
        hs->holds_ssl = 1;
    }

    hs->paused = 1;
    hs->paused_at_ns = ngx_quadrille_now_ns();

    ngx_quadrille_count(pauses, 1);
}


/*
 * nginx detaches the SSL object from a connection before it closes it, and a
 * new connection in the same slot has another SSL object.
 */

static ngx_uint_t
ngx_quadrille_is_closed(ngx_quadrille_handshake_t *hs)
{
    ngx_connection_t  *c;

    c = hs->connection;

    return c->ssl == NULL || c->ssl->connection != hs->ssl;
}


/* the descriptor may have been reused: libssl must not use it */

static void
ngx_quadrille_abandon(ngx_quadrille_handshake_t *hs)
{
    BIO  *in, *out;

    hs->abandoned = 1;

    in = ngx_quadrille_new_dead_bio();
    out = ngx_quadrille_new_dead_bio();

    /* if out of memory, the BIO is NULL, which libssl tolerates */

    SSL_set0_rbio(hs->ssl, in);
    SSL_set0_wbio(hs->ssl, out);

    ngx_quadrille_count(abandoned, 1);
}


static void
ngx_quadrille_ended(ngx_quadrille_handshake_t *hs)
{
    SSL               *ssl;
    ngx_connection_t  *c;

    c = hs->connection;
    ssl = hs->ssl;

    if (hs->holds_ssl) {
        hs->holds_ssl = 0;

        if (hs->abandoned) {
            ERR_clear_error();
            ngx_quadrille_detach(hs);
            SSL_free(ssl);
            return;
        }

        SSL_free(ssl);
        hs->batch = ngx_quadrille_take_last_batch();
    }

    switch (hs->ssl_error) {

    case SSL_ERROR_NONE:
    /* nginx retries the callback of another module */
    case SSL_ERROR_WANT_X509_LOOKUP:
    case SSL_ERROR_WANT_CLIENT_HELLO_CB:
        ngx_quadrille_hand_back(hs);
        return;

    case SSL_ERROR_WANT_READ:
        c->read->ready = 0;
        break;

    case SSL_ERROR_WANT_WRITE:
        c->write->ready = 0;
        break;

    default:
        ngx_quadrille_fail(hs);
        return;
    }

    ngx_quadrille_wait(hs);
}


static void
ngx_quadrille_hand_back(ngx_quadrille_handshake_t *hs)
{
    u_char             byte;
    ngx_int_t          rc;
    ngx_uint_t         early;
    ngx_connection_t  *c;

    c = hs->connection;
    early = hs->early;
    byte = hs->early_byte;

    ngx_quadrille_note_cost(hs);
    ngx_quadrille_detach(hs);

    /* for a completed handshake libssl returns at once; nginx does the rest */

    rc = early ? ngx_quadrille_accept_early_data(c, byte)
               : ngx_ssl_handshake(c);

    if (rc != NGX_AGAIN) {
        c->ssl->handler(c);
    }
}


/* like ngx_ssl_try_early_data() after it has read the first byte */

static ngx_int_t
ngx_quadrille_accept_early_data(ngx_connection_t *c, u_char byte)
{
    ngx_int_t  rc;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK
        || ngx_handle_write_event(c->write, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    c->ssl->try_early_data = 0;
    c->ssl->early_buf = byte;
    c->ssl->early_preread = 1;
    c->ssl->in_early = 1;

    c->recv = ngx_ssl_recv;
    c->send = ngx_ssl_write;
    c->recv_chain = ngx_ssl_recv_chain;
    c->send_chain = ngx_ssl_send_chain;

    c->read->ready = 1;
    c->write->ready = 1;

#ifdef BIO_get_ktls_send

    if (BIO_get_ktls_send(SSL_get_wbio(c->ssl->connection)) == 1) {
        c->ssl->sendfile = 1;
    }

#endif

    /* the session's client certificate may since have been revoked */

    rc = ngx_ssl_ocsp_validate(c);

    if (rc == NGX_AGAIN) {
        c->read->handler = ngx_quadrille_ocsp_event;
        c->write->handler = ngx_quadrille_ocsp_event;
    }

    if (rc != NGX_OK) {
        return rc;
    }

    c->ssl->handshaked = 1;

    return NGX_OK;
}


/* like nginx's own handshake handler: waits for the OCSP responder */

static void
ngx_quadrille_ocsp_event(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    if (ev->timedout || ngx_ssl_handshake(c) != NGX_AGAIN) {
        c->ssl->handler(c);
    }
}


/* like ngx_ssl_handshake() when it waits for data of the client */

static void
ngx_quadrille_wait(ngx_quadrille_handshake_t *hs)
{
    ngx_connection_t  *c;

    c = hs->connection;

    c->read->handler = ngx_quadrille_event;
    c->write->handler = ngx_quadrille_event;

    if (ngx_handle_read_event(c->read, 0) != NGX_OK
        || ngx_handle_write_event(c->write, 0) != NGX_OK)
    {
        c->ssl->handler(c);
    }
}


static uint64_t
ngx_quadrille_now_ns(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;
}
