
/* counters of all workers, and the page for Prometheus */


#include "quadrille_async.h"
#include <ngx_http.h>


#define NGX_QUADRILLE_PAGE_SIZE  4096


static ngx_int_t ngx_quadrille_status_handler(ngx_http_request_t *r);
static u_char *ngx_quadrille_write_page(u_char *p, u_char *end);
static ngx_uint_t ngx_quadrille_all_jobs(void);


ngx_quadrille_counters_t  *ngx_quadrille_counters;
/* by process slot, so that those of a crashed worker are reset */
ngx_atomic_t              *ngx_quadrille_jobs_of_workers;


/* created once by the master, and kept on a reload */

ngx_int_t
ngx_quadrille_init_counters(ngx_log_t *log)
{
    ngx_shm_t  shm;

    if (ngx_quadrille_counters != NULL) {
        return NGX_OK;
    }

    ngx_memzero(&shm, sizeof(ngx_shm_t));
    shm.size = sizeof(ngx_quadrille_counters_t)
               + NGX_MAX_PROCESSES * sizeof(ngx_atomic_t);
    ngx_str_set(&shm.name, "quadrille_counters");
    shm.log = log;

    if (ngx_shm_alloc(&shm) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_quadrille_counters = (ngx_quadrille_counters_t *) shm.addr;
    ngx_quadrille_jobs_of_workers = (ngx_atomic_t *)
                             (shm.addr + sizeof(ngx_quadrille_counters_t));

    return NGX_OK;
}


void
ngx_quadrille_reset_worker(void)
{
    ngx_quadrille_jobs_of_workers[ngx_process_slot] = 0;
}


char *
ngx_quadrille_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_quadrille_status_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_quadrille_status_handler(ngx_http_request_t *r)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    b = ngx_create_temp_buf(r->pool, NGX_QUADRILLE_PAGE_SIZE);

    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_quadrille_count_batches();

    b->last = ngx_quadrille_write_page(b->last, b->end);
    b->last_buf = (r == r->main) ? 1 : 0;
    b->last_in_chain = 1;

    ngx_str_set(&r->headers_out.content_type, "text/plain; version=0.0.4");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->last - b->pos;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static u_char *
ngx_quadrille_write_page(u_char *p, u_char *end)
{
    ngx_uint_t                 i, mean;
    ngx_quadrille_counters_t  *counters;

    counters = ngx_quadrille_counters;

    struct {
        const char  *name;
        const char  *help;
        ngx_uint_t   value;
    } lines[] = {
        { "handshakes_total", "TLS handshakes started in jobs",
          counters->handshakes },
        { "pauses_total", "times that a job waited for a private key",
          counters->pauses },
        { "wait_microseconds_total", "total time that jobs have waited",
          counters->waited_us },
        { "abandoned_total", "connections that were closed while a job waited",
          counters->abandoned },
        { "wakeups_total", "turns of an event loop in which jobs were resumed",
          counters->wakeups },
        { "operations_total", "private-key operations computed in the workers",
          counters->operations },
        { "batches_total", "batches in which they were computed",
          counters->batches },
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        p = ngx_slprintf(p, end,
                         "# HELP quadrille_%s %s\n"
                         "# TYPE quadrille_%s counter\nquadrille_%s %ui\n",
                         lines[i].name, lines[i].help, lines[i].name,
                         lines[i].name, lines[i].value);
    }

    mean = counters->batches ? counters->operations * 100 / counters->batches
                             : 0;

    return ngx_slprintf(p, end,
                        "# HELP quadrille_batch_mean operations in a batch\n"
                        "# TYPE quadrille_batch_mean gauge\n"
                        "quadrille_batch_mean %ui.%02ui\n"
                        "# HELP quadrille_jobs jobs that are waiting\n"
                        "# TYPE quadrille_jobs gauge\nquadrille_jobs %ui\n",
                        mean / 100, mean % 100, ngx_quadrille_all_jobs());
}


static ngx_uint_t
ngx_quadrille_all_jobs(void)
{
    ngx_uint_t  i, sum;

    sum = 0;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        sum += ngx_quadrille_jobs_of_workers[i];
    }

    return sum;
}
