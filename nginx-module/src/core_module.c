
/* process-wide state, and the directives outside http */


#include "quadrille_async.h"


static void *ngx_quadrille_create_conf(ngx_cycle_t *cycle);
static char *ngx_quadrille_init_conf(ngx_cycle_t *cycle, void *conf);
static char *ngx_quadrille_engine(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_quadrille_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_quadrille_init_process(ngx_cycle_t *cycle);


static ngx_command_t  ngx_quadrille_commands[] = {

    { ngx_string("quadrille_async"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      0,
      offsetof(ngx_quadrille_core_conf_t, async),
      NULL },

    { ngx_string("quadrille_engine"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_TAKE1,
      ngx_quadrille_engine,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_core_module_t  ngx_quadrille_module_ctx = {
    ngx_string("quadrille"),
    ngx_quadrille_create_conf,
    ngx_quadrille_init_conf
};


ngx_module_t  ngx_quadrille_async_module = {
    NGX_MODULE_V1,
    &ngx_quadrille_module_ctx,             /* module context */
    ngx_quadrille_commands,                /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_quadrille_init_module,             /* init module */
    ngx_quadrille_init_process,            /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_uint_t  ngx_quadrille_is_on;


static void *
ngx_quadrille_create_conf(ngx_cycle_t *cycle)
{
    ngx_quadrille_core_conf_t  *qcf;

    if (ngx_quadrille_watch_contexts(cycle->log) != NGX_OK) {
        return NULL;
    }

    qcf = ngx_pcalloc(cycle->pool, sizeof(ngx_quadrille_core_conf_t));

    if (qcf == NULL) {
        return NULL;
    }

    qcf->async = NGX_CONF_UNSET;
    qcf->threads = NGX_CONF_UNSET;

    return qcf;
}


static char *
ngx_quadrille_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_quadrille_core_conf_t  *qcf = conf;

    ngx_conf_init_value(qcf->async, 1);

    /*
     * A worker spends more time on a handshake than lanes do on its RSA-2048
     * signature, and one thread fills larger batches than two.
     */
    ngx_conf_init_value(qcf->threads, 1);

    return NGX_CONF_OK;
}


static char *
ngx_quadrille_engine(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                  *value;
    ngx_quadrille_core_conf_t  *qcf = conf;

    if (qcf->threads != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strncmp(value[1].data, "threads=", 8) == 0) {
        qcf->threads = ngx_atoi(value[1].data + 8, value[1].len - 8);

        if (qcf->threads > 0) {
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\": expected threads=NUMBER; "
                       "a key server is selected by the file used in place "
                       "of the key, see \"quadrille provider key --help\"",
                       &value[1]);

    return NGX_CONF_ERROR;
}


static ngx_int_t
ngx_quadrille_init_module(ngx_cycle_t *cycle)
{
    ngx_quadrille_core_conf_t  *qcf;

    qcf = (ngx_quadrille_core_conf_t *)
                    ngx_get_conf(cycle->conf_ctx, ngx_quadrille_async_module);

    if (ngx_quadrille_init_counters(cycle->log) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_quadrille_is_on = 0;

    if (!qcf->async) {
        return NGX_OK;
    }

    if (!ngx_quadrille_find_provider()) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "the quadrille provider is not loaded (OPENSSL_CONF "
                      "does not name an openssl.cnf with it); handshakes "
                      "wait for private keys as they do without "
                      "ngx_quadrille_async_module");
        return NGX_OK;
    }

    if (ngx_quadrille_init_deferral(cycle->log) != NGX_OK
        || ngx_quadrille_init_costs(cycle->log) != NGX_OK
        || ngx_quadrille_init_handshakes(cycle->log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_quadrille_hook_contexts();
    ngx_quadrille_is_on = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_quadrille_init_process(ngx_cycle_t *cycle)
{
    ngx_quadrille_core_conf_t  *qcf;

    if (!ngx_quadrille_is_on
        || (ngx_process != NGX_PROCESS_WORKER
            && ngx_process != NGX_PROCESS_SINGLE))
    {
        return NGX_OK;
    }

    qcf = (ngx_quadrille_core_conf_t *)
                    ngx_get_conf(cycle->conf_ctx, ngx_quadrille_async_module);

    ngx_quadrille_set_threads(qcf->threads);

    ngx_quadrille_reset_worker();

    ngx_quadrille_init_turn(cycle->log);

    if (ngx_quadrille_init_pool(cycle->log) != NGX_OK
        || ngx_quadrille_init_wakeup(cycle) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}

