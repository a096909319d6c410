
/*
 * The start of a handshake.  nginx calls SSL_do_handshake() on its own stack
 * as soon as there is data to read.  libssl first calls the info callback, and
 * then finds no data; nginx continues to wait, and later in the same turn of
 * the event loop the handshake starts in a job.
 */


#include "quadrille_async.h"


static int ngx_quadrille_read_nothing(BIO *bio, char *buf, int size);
static int ngx_quadrille_read_failed(BIO *bio, char *buf, int size);
static int ngx_quadrille_write_failed(BIO *bio, const char *buf, int size);
static long ngx_quadrille_ctrl(BIO *bio, int cmd, long num, void *ptr);


/* replaces a connection's BIO: no data is available yet */
static BIO         *ngx_quadrille_empty_bio;
/* replaces the BIO of a closed connection */
static BIO_METHOD  *ngx_quadrille_dead_method;


ngx_int_t
ngx_quadrille_init_deferral(ngx_log_t *log)
{
    BIO_METHOD  *method;

    if (ngx_quadrille_empty_bio != NULL) {
        return NGX_OK;
    }

    method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "quadrille nothing yet");
    ngx_quadrille_dead_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK,
                                             "quadrille connection closed");

    if (method == NULL || ngx_quadrille_dead_method == NULL) {
        goto failed;
    }

    BIO_meth_set_read(method, ngx_quadrille_read_nothing);
    BIO_meth_set_ctrl(method, ngx_quadrille_ctrl);

    BIO_meth_set_read(ngx_quadrille_dead_method, ngx_quadrille_read_failed);
    BIO_meth_set_write(ngx_quadrille_dead_method, ngx_quadrille_write_failed);
    BIO_meth_set_ctrl(ngx_quadrille_dead_method, ngx_quadrille_ctrl);

    ngx_quadrille_empty_bio = BIO_new(method);

    if (ngx_quadrille_empty_bio == NULL) {
        goto failed;
    }

    BIO_set_init(ngx_quadrille_empty_bio, 1);

    return NGX_OK;

failed:

    ngx_ssl_error(NGX_LOG_EMERG, log, 0, "BIO_meth_new() or BIO_new() failed");
    return NGX_ERROR;
}


BIO *
ngx_quadrille_new_dead_bio(void)
{
    BIO  *bio;

    bio = BIO_new(ngx_quadrille_dead_method);

    if (bio != NULL) {
        BIO_set_init(bio, 1);
    }

    return bio;
}


void
ngx_quadrille_info_callback(const SSL *ssl, int where, int ret)
{
    BIO                        *bio;
    SSL                        *s;
    ngx_connection_t           *c;
    ngx_quadrille_handshake_t  *hs;

    s = (SSL *) ssl;
    hs = ngx_quadrille_of(ssl);

    /* nginx's callback uses the connection */

    if (hs != NULL && hs->abandoned) {
        return;
    }

    ngx_quadrille_original_info(ssl, where, ret);

    if (!(where & SSL_CB_HANDSHAKE_START) || hs != NULL
        || ngx_quadrille_is_off(ssl))
    {
        return;
    }

    c = ngx_ssl_get_connection(s);

    if (c == NULL || c->ssl == NULL || c->ssl->connection != s
        || c->ssl->handshaked)
    {
        return;
    }

    /* only sockets are deferred, not for example QUIC */

    bio = SSL_get_rbio(s);

    if (bio == NULL || BIO_method_type(bio) != BIO_TYPE_SOCKET) {
        return;
    }

    hs = ngx_quadrille_attach(s, c);

    if (hs == NULL) {
        return;
    }

    BIO_up_ref(bio);
    hs->deferred_bio = bio;
    BIO_up_ref(ngx_quadrille_empty_bio);
    SSL_set0_rbio(s, ngx_quadrille_empty_bio);

    ngx_post_event(&hs->begin, &ngx_posted_events);
}


void
ngx_quadrille_end_deferral(ngx_quadrille_handshake_t *hs)
{
    SSL_set0_rbio(hs->ssl, hs->deferred_bio);
    hs->deferred_bio = NULL;
}


static int
ngx_quadrille_read_nothing(BIO *bio, char *buf, int size)
{
    BIO_set_retry_read(bio);
    return -1;
}


static int
ngx_quadrille_read_failed(BIO *bio, char *buf, int size)
{
    return -1;
}


static int
ngx_quadrille_write_failed(BIO *bio, const char *buf, int size)
{
    return -1;
}


static long
ngx_quadrille_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    return 0;
}
