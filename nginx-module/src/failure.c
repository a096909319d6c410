
/*
 * A handshake that has failed in a job fails again where nginx sees it, so
 * that nginx logs the error with its own message and level, and closes the
 * connection as usual.  For that, an SSL object of ours, which fails with the
 * same errors, replaces the connection's.
 */


#include "quadrille_async.h"


#define NGX_QUADRILLE_MAX_ERRORS  16


typedef struct {
    unsigned long  code;
    char           data[256];
} ngx_quadrille_error_t;


static SSL *ngx_quadrille_new_failing(ngx_quadrille_handshake_t *hs);
static void ngx_quadrille_keep_errors(void);
static void ngx_quadrille_raise_errors(const SSL *ssl, int where, int ret);


static SSL_CTX                *ngx_quadrille_failing_ctx;
static ngx_quadrille_error_t   ngx_quadrille_errors[NGX_QUADRILLE_MAX_ERRORS];
static ngx_uint_t              ngx_quadrille_n_errors;
static ngx_err_t               ngx_quadrille_err;


void
ngx_quadrille_fail(ngx_quadrille_handshake_t *hs)
{
    SSL               *ssl, *failing;
    ngx_connection_t  *c;

    c = hs->connection;
    ssl = hs->ssl;

    ngx_quadrille_keep_errors();
    ngx_quadrille_err = (hs->ssl_error == SSL_ERROR_SYSCALL) ? hs->err : 0;

    ngx_quadrille_note_cost(hs);
    failing = ngx_quadrille_new_failing(hs);
    ngx_quadrille_detach(hs);

    if (failing == NULL) {
        ERR_clear_error();
        c->ssl->no_wait_shutdown = 1;
        c->ssl->no_send_shutdown = 1;
        c->read->eof = 1;

    } else {
        c->ssl->connection = failing;
        (void) ngx_ssl_handshake(c);
        c->ssl->connection = ssl;
        SSL_free(failing);
    }

    c->ssl->handler(c);
}


static SSL *
ngx_quadrille_new_failing(ngx_quadrille_handshake_t *hs)
{
    SSL  *ssl;
    BIO  *in, *out;

    if (ngx_quadrille_failing_ctx == NULL) {
        ngx_quadrille_failing_ctx = SSL_CTX_new(TLS_server_method());

        if (ngx_quadrille_failing_ctx == NULL) {
            return NULL;
        }

        SSL_CTX_set_info_callback(ngx_quadrille_failing_ctx,
                                  ngx_quadrille_raise_errors);
    }

    ssl = SSL_new(ngx_quadrille_failing_ctx);
    in = ngx_quadrille_new_dead_bio();
    out = ngx_quadrille_new_dead_bio();

    if (ssl == NULL || in == NULL || out == NULL) {
        BIO_free(in);
        BIO_free(out);
        SSL_free(ssl);
        return NULL;
    }

    SSL_set0_rbio(ssl, in);
    SSL_set0_wbio(ssl, out);
    SSL_set_accept_state(ssl);

    return ssl;
}


/* stores the errors that nginx logs */

static void
ngx_quadrille_keep_errors(void)
{
    int                     flags;
    const char             *data;
    ngx_quadrille_error_t  *error;

    ngx_quadrille_n_errors = 0;

    while (ngx_quadrille_n_errors < NGX_QUADRILLE_MAX_ERRORS) {
        error = &ngx_quadrille_errors[ngx_quadrille_n_errors];
        error->code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);

        if (error->code == 0) {
            break;
        }

        ngx_cpystrn((u_char *) error->data,
                    (u_char *) ((flags & ERR_TXT_STRING) ? data : ""),
                    sizeof(error->data));

        ngx_quadrille_n_errors++;
    }

    ERR_clear_error();
}


static void
ngx_quadrille_raise_errors(const SSL *ssl, int where, int ret)
{
    ngx_uint_t              i;
    ngx_quadrille_error_t  *error;

    if (!(where & SSL_CB_HANDSHAKE_START)) {
        return;
    }

    for (i = 0; i < ngx_quadrille_n_errors; i++) {
        error = &ngx_quadrille_errors[i];

        ERR_new();
        ERR_set_error(ERR_GET_LIB(error->code), ERR_GET_REASON(error->code),
                      error->data[0] ? "%s" : NULL, error->data);
    }

    /* the dead BIO does not change it */
    ngx_set_errno(ngx_quadrille_err);
}
