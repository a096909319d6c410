
/* directives and variables in http */


#include "quadrille_async.h"
#include <ngx_http.h>


typedef struct {
    ngx_flag_t  async;
} ngx_quadrille_http_conf_t;


static ngx_int_t ngx_quadrille_http_init(ngx_conf_t *cf);
static void *ngx_quadrille_http_create_conf(ngx_conf_t *cf);
static char *ngx_quadrille_http_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);


static ngx_command_t  ngx_quadrille_http_commands[] = {

    { ngx_string("quadrille_async"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_SRV_CONF_OFFSET,
      offsetof(ngx_quadrille_http_conf_t, async),
      NULL },

    { ngx_string("quadrille_status"),
      NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS,
      ngx_quadrille_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_quadrille_http_module_ctx = {
    ngx_quadrille_add_variables,           /* preconfiguration */
    ngx_quadrille_http_init,               /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_quadrille_http_create_conf,        /* create server configuration */
    ngx_quadrille_http_merge_conf,         /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_quadrille_http_module = {
    NGX_MODULE_V1,
    &ngx_quadrille_http_module_ctx,        /* module context */
    ngx_quadrille_http_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


/* the default server of an address decides for the address */

static ngx_int_t
ngx_quadrille_http_init(ngx_conf_t *cf)
{
    ngx_uint_t                   i;
    ngx_http_ssl_srv_conf_t     *sscf;
    ngx_http_core_srv_conf_t   **cscfp;
    ngx_http_core_main_conf_t   *cmcf;
    ngx_quadrille_http_conf_t   *qcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    cscfp = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        qcf = ngx_http_conf_get_module_srv_conf(cscfp[i],
                                                ngx_quadrille_http_module);
        sscf = ngx_http_conf_get_module_srv_conf(cscfp[i],
                                                 ngx_http_ssl_module);

        if (!qcf->async && sscf->ssl.ctx != NULL) {
            ngx_quadrille_context_off(sscf->ssl.ctx);
        }
    }

    return NGX_OK;
}


static void *
ngx_quadrille_http_create_conf(ngx_conf_t *cf)
{
    ngx_quadrille_http_conf_t  *qcf;

    qcf = ngx_palloc(cf->pool, sizeof(ngx_quadrille_http_conf_t));

    if (qcf == NULL) {
        return NULL;
    }

    qcf->async = NGX_CONF_UNSET;

    return qcf;
}


static char *
ngx_quadrille_http_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_quadrille_http_conf_t  *prev = parent;
    ngx_quadrille_http_conf_t  *conf = child;

    ngx_conf_merge_value(conf->async, prev->async, 1);

    return NGX_CONF_OK;
}
