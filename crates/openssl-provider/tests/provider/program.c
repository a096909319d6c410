// Loads an openssl.cnf into two library contexts at a time, signs from several threads in both, forks while they sign and signs in
// the child, and frees everything; three times. Arguments: threads, signatures of each, openssl.cnf, key.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *configuration, *key_file;
static int signatures;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            ERR_print_errors_fp(stderr); \
            _exit(1); \
        } \
    } while (0)

struct side {
    OSSL_LIB_CTX *context;
    EVP_PKEY *key;
};

static void sign_once(const struct side *side) {
    static const unsigned char message[] = "a message";
    unsigned char signature[1024];
    size_t length = sizeof signature;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    CHECK(EVP_DigestSignInit_ex(digest, NULL, "SHA256", side->context, NULL, side->key, NULL) == 1);
    CHECK(EVP_DigestSign(digest, signature, &length, message, sizeof message) == 1);
    EVP_MD_CTX_free(digest);
    digest = EVP_MD_CTX_new();
    CHECK(EVP_DigestVerifyInit_ex(digest, NULL, "SHA256", side->context, NULL, side->key, NULL) == 1);
    CHECK(EVP_DigestVerify(digest, signature, length, message, sizeof message) == 1);
    EVP_MD_CTX_free(digest);
}

// OpenSSL's own locks do not survive a fork (fork(2) restricts a child of a multithreaded process to
// async-signal-safe functions), so no thread is inside OpenSSL during it. The module's threads and locks are in any
// state.
static pthread_rwlock_t inside;

static void *worker(void *argument) {
    for (int i = 0; i < signatures; i++) {
        pthread_rwlock_rdlock(&inside);
        sign_once(argument);
        pthread_rwlock_unlock(&inside);
    }
    return NULL;
}

static void open_side(struct side *side) {
    FILE *file = fopen(key_file, "r");
    CHECK(file != NULL);
    side->context = OSSL_LIB_CTX_new();
    CHECK(OSSL_LIB_CTX_load_config(side->context, configuration) == 1);
    side->key = PEM_read_PrivateKey_ex(file, NULL, NULL, NULL, side->context, NULL);
    CHECK(side->key != NULL);
    CHECK(strcmp(OSSL_PROVIDER_get0_name(EVP_PKEY_get0_provider(side->key)), "quadrille") == 0);
    EVP_PKEY *copy = EVP_PKEY_dup(side->key);
    CHECK(copy != NULL && EVP_PKEY_eq(copy, side->key) == 1);
    EVP_PKEY_free(copy);
    fclose(file);
}

static void fork_and_sign(struct side *sides) {
    fflush(stderr);
    pthread_rwlock_wrlock(&inside);
    pid_t child = fork();
    if (child != 0)
        pthread_rwlock_unlock(&inside);
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60);
        for (int i = 0; i < 3; i++)
            sign_once(&sides[i % 2]);
        // The contents of the parent's thread stacks are lost here, which valgrind would report as our leak.
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char **arguments) {
    CHECK(count == 5);
    int threads = atoi(arguments[1]);
    signatures = atoi(arguments[2]);
    configuration = arguments[3];
    key_file = arguments[4];
    static pthread_t running[64];
    CHECK(threads <= 64);
    pthread_rwlockattr_t forks_first;
    pthread_rwlockattr_init(&forks_first);
    pthread_rwlockattr_setkind_np(&forks_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&inside, &forks_first);
    for (int round = 0; round < 3; round++) {
        struct side sides[2];
        open_side(&sides[0]);
        open_side(&sides[1]);
        fork_and_sign(sides);
        for (int i = 0; i < threads; i++)
            CHECK(pthread_create(&running[i], NULL, worker, &sides[i % 2]) == 0);
        for (int i = 0; i < 3; i++)
            fork_and_sign(sides);
        for (int i = 0; i < threads; i++)
            pthread_join(running[i], NULL);
        for (int i = 0; i < 2; i++) {
            EVP_PKEY_free(sides[i].key);
            OSSL_LIB_CTX_free(sides[i].context);
        }
    }
    puts("all good");
    return 0;
}
