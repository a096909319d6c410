/*
 * A server with a thread per client, the purpose of thread-safe builds of PHP: every thread handles requests in sequence,
 * each a call of request.php's function. host THREADS REQUESTS FOLDER
 *
 * Its settings are those of PHPRC's php.ini. One line counts requests by outcome; the status is 0 if all ended as
 * expected: every tenth runs out of memory.
 */
#include <sapi/embed/php_embed.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

ZEND_TSRMLS_CACHE_DEFINE()

enum { OUT_OF_MEMORY_EACH = 10 };

static int requests;
static const char *folder;
static atomic_int right, wrong, ended;

static void handle(int request)
{
    char code[4096];
    snprintf(code, sizeof code, "(require '%s/request.php')(%d, '%s')", folder, request, folder);
    if (php_request_startup() == FAILURE) {
        wrong++;
        return;
    }
    zval result;
    ZVAL_UNDEF(&result);
    zend_first_try {
        int done = zend_eval_string(code, &result, "request");
        if (done == SUCCESS && Z_TYPE(result) == IS_TRUE)
            right++;
        else
            wrong++;
        zval_ptr_dtor(&result);
    } zend_catch {
        ended++;
    } zend_end_try();
    php_request_shutdown(NULL);
}

static void *thread(void *unused)
{
    ts_resource(0);
    ZEND_TSRMLS_CACHE_UPDATE();
    for (int request = 1; request <= requests; request++)
        handle(request);
    ts_free_thread();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    requests = atoi(argv[2]);
    folder = argv[3];
    if (php_embed_init(1, argv) == FAILURE)
        return 2;
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, thread, NULL))
            return 2;
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    php_embed_shutdown();
    printf("%d threads: %d requests right, %d wrong, %d out of memory\n", threads, right, wrong, ended);
    return !(wrong == 0 && right > 0 && ended == threads * (requests / OUT_OF_MEMORY_EACH));
}
