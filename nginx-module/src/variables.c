
/* cost of a connection's private-key operations, for access logs */


#include "quadrille_async.h"
#include <ngx_http.h>


static ngx_int_t ngx_quadrille_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


static int  ngx_quadrille_cost_index = -1;


static ngx_http_variable_t  ngx_quadrille_variables[] = {

    { ngx_string("quadrille_batch"), NULL, ngx_quadrille_variable,
      offsetof(ngx_quadrille_cost_t, batch), 0, 0 },

    { ngx_string("quadrille_wait_us"), NULL, ngx_quadrille_variable,
      offsetof(ngx_quadrille_cost_t, waited_us), 0, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_quadrille_init_costs(ngx_log_t *log)
{
    if (ngx_quadrille_cost_index == -1) {
        ngx_quadrille_cost_index = SSL_get_ex_new_index(0, NULL, NULL, NULL,
                                                        NULL);
    }

    if (ngx_quadrille_cost_index == -1) {
        ngx_ssl_error(NGX_LOG_EMERG, log, 0, "SSL_get_ex_new_index() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_quadrille_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_quadrille_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);

        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* stored for the lifetime of the connection */

void
ngx_quadrille_note_cost(ngx_quadrille_handshake_t *hs)
{
    ngx_quadrille_cost_t  *cost;

    if (hs->waited_ns == 0) {
        return;
    }

    ngx_quadrille_count(waited_us, hs->waited_ns / 1000);

    cost = ngx_palloc(hs->connection->pool, sizeof(ngx_quadrille_cost_t));

    if (cost != NULL) {
        cost->batch = hs->batch;
        cost->waited_us = hs->waited_ns / 1000;
        (void) SSL_set_ex_data(hs->ssl, ngx_quadrille_cost_index, cost);
    }
}


static ngx_int_t
ngx_quadrille_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char                *p;
    ngx_uint_t             number;
    ngx_quadrille_cost_t  *cost;

    cost = NULL;

    if (r->connection->ssl != NULL && ngx_quadrille_cost_index != -1) {
        cost = SSL_get_ex_data(r->connection->ssl->connection,
                               ngx_quadrille_cost_index);
    }

    if (cost == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    number = *(ngx_uint_t *) ((u_char *) cost + data);

    /* key servers do not report their batch sizes */

    if (number == 0) {
        v->not_found = 1;
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT_T_LEN);

    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;
    v->len = ngx_sprintf(p, "%ui", number) - p;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}
