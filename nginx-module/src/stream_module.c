
/*
 * The directive in stream.  nginx's stream may be a dynamic module or absent,
 * so its symbols are not linked, but looked up by name.
 */


#include "quadrille_async.h"
#include <ngx_stream.h>
#include <dlfcn.h>


/* renamed when stream introduced server names */

#if (nginx_version < 1025005)
#define ngx_stream_ssl_srv_conf_t  ngx_stream_ssl_conf_t
#endif


typedef struct {
    ngx_flag_t  async;
} ngx_quadrille_stream_conf_t;


static ngx_int_t ngx_quadrille_stream_init(ngx_conf_t *cf);
static void *ngx_quadrille_stream_create_conf(ngx_conf_t *cf);
static char *ngx_quadrille_stream_merge_conf(ngx_conf_t *cf, void *parent,
    void *child);


static ngx_command_t  ngx_quadrille_stream_commands[] = {

    { ngx_string("quadrille_async"),
      NGX_STREAM_MAIN_CONF|NGX_STREAM_SRV_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_STREAM_SRV_CONF_OFFSET,
      offsetof(ngx_quadrille_stream_conf_t, async),
      NULL },

      ngx_null_command
};


static ngx_stream_module_t  ngx_quadrille_stream_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_quadrille_stream_init,             /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_quadrille_stream_create_conf,      /* create server configuration */
    ngx_quadrille_stream_merge_conf        /* merge server configuration */
};


ngx_module_t  ngx_quadrille_stream_module = {
    NGX_MODULE_V1,
    &ngx_quadrille_stream_module_ctx,      /* module context */
    ngx_quadrille_stream_commands,         /* module directives */
    NGX_STREAM_MODULE,                     /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_quadrille_stream_init(ngx_conf_t *cf)
{
    ngx_uint_t                     i;
    ngx_module_t                  *core, *ssl;
    ngx_stream_conf_ctx_t         *ctx;
    ngx_stream_ssl_srv_conf_t     *sscf;
    ngx_stream_core_srv_conf_t   **cscfp;
    ngx_stream_core_main_conf_t   *cmcf;
    ngx_quadrille_stream_conf_t   *qcf;

    core = dlsym(RTLD_DEFAULT, "ngx_stream_core_module");
    ssl = dlsym(RTLD_DEFAULT, "ngx_stream_ssl_module");

    if (core == NULL || ssl == NULL) {
        return NGX_OK;
    }

    ctx = cf->ctx;
    cmcf = ctx->main_conf[core->ctx_index];
    cscfp = cmcf->servers.elts;

    for (i = 0; i < cmcf->servers.nelts; i++) {
        ctx = cscfp[i]->ctx;
        qcf = ctx->srv_conf[ngx_quadrille_stream_module.ctx_index];
        sscf = ctx->srv_conf[ssl->ctx_index];

        if (!qcf->async && sscf->ssl.ctx != NULL) {
            ngx_quadrille_context_off(sscf->ssl.ctx);
        }
    }

    return NGX_OK;
}


static void *
ngx_quadrille_stream_create_conf(ngx_conf_t *cf)
{
    ngx_quadrille_stream_conf_t  *qcf;

    qcf = ngx_palloc(cf->pool, sizeof(ngx_quadrille_stream_conf_t));

    if (qcf == NULL) {
        return NULL;
    }

    qcf->async = NGX_CONF_UNSET;

    return qcf;
}


static char *
ngx_quadrille_stream_merge_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_quadrille_stream_conf_t  *prev = parent;
    ngx_quadrille_stream_conf_t  *conf = child;

    ngx_conf_merge_value(conf->async, prev->async, 1);

    return NGX_CONF_OK;
}
