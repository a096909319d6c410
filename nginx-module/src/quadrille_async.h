
/*
 * Asynchronous TLS handshakes in an unmodified nginx.
 *
 * SSL_do_handshake() runs in an ASYNC job (ASYNC_start_job(3)), which the
 * provider pauses while a private-key operation is computed; the event loop
 * serves other connections meanwhile.  Only libssl's frames, and those of
 * nginx's callbacks, are ever on the stack of a job.  All other nginx code
 * runs on nginx's own stack, before a job or after it.
 *
 *   deferral    an SSL object starts its handshake: no data is returned, so
 *               that nginx waits, and the handshake starts in a job instead
 *   handshake   runs jobs, and continues in nginx when they have ended
 *   wakeup      notifications of the provider's threads that jobs can continue
 *   turn        jobs of several turns of the event loop continue together
 *   failure     a handshake that has failed in a job fails in nginx
 *   contexts    all SSL_CTX objects, each with the info callback that defers
 *   handshake_pool    wait contexts and jobs, kept for reuse
 *   provider    the provider's functions for modules
 *   core_module, http_module, stream_module, variables, status
 *               directives, variables and counters
 */


#ifndef _QUADRILLE_ASYNC_H_INCLUDED_
#define _QUADRILLE_ASYNC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <openssl/async.h>


typedef struct ngx_quadrille_handshake_s  ngx_quadrille_handshake_t;


/* a handshake from its first byte until nginx takes over again */

struct ngx_quadrille_handshake_s {
    SSL                        *ssl;
    ngx_connection_t           *connection;

    ASYNC_WAIT_CTX             *wait;
    ASYNC_JOB                  *job;

    /* results of a job: of SSL_get_error(), and errno */
    int                         ssl_error;
    ngx_err_t                   err;
    u_char                      early_byte;

    /* the connection's BIO while the handshake is deferred */
    BIO                        *deferred_bio;
    /* posted to start the handshake */
    ngx_event_t                 begin;

    /* set by the provider's threads */
    ngx_uint_t                  woken;
    ngx_quadrille_handshake_t  *next_woken;

    /* in the pool, in the line for a job, or gathered with others */
    ngx_queue_t                 queue;

    uint64_t                    paused_at_ns;
    uint64_t                    waited_ns;
    ngx_uint_t                  batch;

    /* must not be entered: its job waits, or it waits for a job */
    unsigned                    paused:1;
    unsigned                    in_line:1;
    /* its job waits for the end of a turn */
    unsigned                    gathered:1;
    /* we hold a reference to `ssl`, since its job was paused */
    unsigned                    holds_ssl:1;
    /* nginx has closed the connection meanwhile */
    unsigned                    abandoned:1;
    /* a byte of early data was read, and nginx can respond */
    unsigned                    early:1;
};


/* cost of a connection's private-key operations, for variables */

typedef struct {
    ngx_uint_t                  batch;
    ngx_uint_t                  waited_us;
} ngx_quadrille_cost_t;


/* counters of all workers, in shared memory */

typedef struct {
    ngx_atomic_t                handshakes;
    ngx_atomic_t                pauses;
    ngx_atomic_t                abandoned;
    ngx_atomic_t                waited_us;
    ngx_atomic_t                operations;
    ngx_atomic_t                batches;
    ngx_atomic_t                wakeups;
} ngx_quadrille_counters_t;


typedef struct {
    ngx_flag_t                  async;
    ngx_int_t                   threads;
} ngx_quadrille_core_conf_t;


/* contexts.c */

ngx_int_t ngx_quadrille_watch_contexts(ngx_log_t *log);
void ngx_quadrille_context_off(SSL_CTX *ctx);
ngx_uint_t ngx_quadrille_is_off(const SSL *ssl);
void ngx_quadrille_hook_contexts(void);
void ngx_quadrille_original_info(const SSL *ssl, int where, int ret);

/* deferral.c */

ngx_int_t ngx_quadrille_init_deferral(ngx_log_t *log);
void ngx_quadrille_info_callback(const SSL *ssl, int where, int ret);
void ngx_quadrille_end_deferral(ngx_quadrille_handshake_t *hs);
BIO *ngx_quadrille_new_dead_bio(void);

/* handshake.c */

void ngx_quadrille_begin(ngx_event_t *ev);
void ngx_quadrille_resume(ngx_quadrille_handshake_t *hs);
ngx_uint_t ngx_quadrille_is_running(ngx_quadrille_handshake_t *hs);

/* handshake_pool.c */

ngx_int_t ngx_quadrille_init_handshakes(ngx_log_t *log);
ngx_int_t ngx_quadrille_init_pool(ngx_log_t *log);
ngx_quadrille_handshake_t *ngx_quadrille_attach(SSL *ssl, ngx_connection_t *c);
ngx_quadrille_handshake_t *ngx_quadrille_of(const SSL *ssl);
void ngx_quadrille_detach(ngx_quadrille_handshake_t *hs);
void ngx_quadrille_stand_in_line(ngx_quadrille_handshake_t *hs);
void ngx_quadrille_job_taken(void);
void ngx_quadrille_job_free(void);
ngx_uint_t ngx_quadrille_jobs(void);

/* wakeup.c */

ngx_int_t ngx_quadrille_init_wakeup(ngx_cycle_t *cycle);
int ngx_quadrille_wake(void *data);

/* turn.c */

void ngx_quadrille_init_turn(ngx_log_t *log);
void ngx_quadrille_gather(ngx_quadrille_handshake_t *hs);
void ngx_quadrille_leave_turn(ngx_quadrille_handshake_t *hs);

/* failure.c */

void ngx_quadrille_fail(ngx_quadrille_handshake_t *hs);

/* provider.c */

ngx_uint_t ngx_quadrille_find_provider(void);
void ngx_quadrille_set_threads(ngx_uint_t count);
ngx_uint_t ngx_quadrille_take_last_batch(void);
void ngx_quadrille_count_batches(void);
void ngx_quadrille_compute_turn(void);

/* status.c */

ngx_int_t ngx_quadrille_init_counters(ngx_log_t *log);
void ngx_quadrille_reset_worker(void);
char *ngx_quadrille_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* variables.c */

ngx_int_t ngx_quadrille_init_costs(ngx_log_t *log);
ngx_int_t ngx_quadrille_add_variables(ngx_conf_t *cf);
void ngx_quadrille_note_cost(ngx_quadrille_handshake_t *hs);


extern ngx_quadrille_counters_t  *ngx_quadrille_counters;
extern ngx_atomic_t              *ngx_quadrille_jobs_of_workers;
extern ngx_module_t               ngx_quadrille_async_module;


#define ngx_quadrille_count(counter, n)                                       \
    (void) ngx_atomic_fetch_add(&ngx_quadrille_counters->counter, n)


#endif /* _QUADRILLE_ASYNC_H_INCLUDED_ */
