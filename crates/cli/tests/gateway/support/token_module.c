/* A PKCS#11 module that passes every call to another one, and has faults while a file of their name exists in
 * $QUADRILLE_TEST_TOKEN:
 *   hang     C_Sign waits
 *   removed  sessions are closed, and the token is not present
 *   wrong    signatures have a flipped bit
 *   reset    the next C_SignInit removes the file and logs out all sessions
 * It appends a byte to `logins` for each C_Login, and to `hanging` for each C_Sign that begins to wait. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef unsigned long CK_RV;
typedef unsigned long CK_ULONG;
typedef unsigned char CK_BYTE;

/* CK_FUNCTION_LIST: its functions in the order of pkcs11f.h. */
enum { GET_TOKEN_INFO = 6, OPEN_SESSION = 12, CLOSE_ALL_SESSIONS = 14, LOGIN = 18, LOGOUT = 19, SIGN_INIT = 42, SIGN = 43, FUNCTIONS = 68 };
struct list {
    CK_BYTE version[2];
    void *functions[FUNCTIONS];
};

#define CKR_DEVICE_REMOVED 0x32
#define CKR_TOKEN_NOT_PRESENT 0xe0

static struct list *real, own;
static CK_ULONG last_slot;

static void path_of(const char *name, char *path, size_t size) {
    snprintf(path, size, "%s/%s", getenv("QUADRILLE_TEST_TOKEN"), name);
}

static int has(const char *fault) {
    char path[4096];
    path_of(fault, path, sizeof path);
    return access(path, F_OK) == 0;
}

static void note(const char *event) {
    char path[4096];
    path_of(event, path, sizeof path);
    FILE *file = fopen(path, "a");
    if (file) {
        fputc('x', file);
        fclose(file);
    }
}

static int is_removed(void) {
    static int was_removed;
    int removed = has("removed");
    if (removed && !__sync_lock_test_and_set(&was_removed, 1))
        ((CK_RV(*)(CK_ULONG))real->functions[CLOSE_ALL_SESSIONS])(last_slot);
    if (!removed)
        was_removed = 0;
    return removed;
}

static CK_RV get_token_info(CK_ULONG slot, void *info) {
    if (is_removed())
        return CKR_TOKEN_NOT_PRESENT;
    return ((CK_RV(*)(CK_ULONG, void *))real->functions[GET_TOKEN_INFO])(slot, info);
}

static CK_RV open_session(CK_ULONG slot, CK_ULONG flags, void *application, void *notify, CK_ULONG *session) {
    if (is_removed())
        return CKR_TOKEN_NOT_PRESENT;
    last_slot = slot;
    return ((CK_RV(*)(CK_ULONG, CK_ULONG, void *, void *, CK_ULONG *))real->functions[OPEN_SESSION])(
        slot, flags, application, notify, session);
}

static CK_RV login(CK_ULONG session, CK_ULONG user, CK_BYTE *pin, CK_ULONG length) {
    note("logins");
    return ((CK_RV(*)(CK_ULONG, CK_ULONG, CK_BYTE *, CK_ULONG))real->functions[LOGIN])(session, user, pin, length);
}

static CK_RV sign_init(CK_ULONG session, void *mechanism, CK_ULONG key) {
    if (is_removed())
        return CKR_DEVICE_REMOVED;
    if (has("reset")) {
        char path[4096];
        path_of("reset", path, sizeof path);
        unlink(path);
        ((CK_RV(*)(CK_ULONG))real->functions[LOGOUT])(session);
    }
    return ((CK_RV(*)(CK_ULONG, void *, CK_ULONG))real->functions[SIGN_INIT])(session, mechanism, key);
}

static CK_RV sign(CK_ULONG session, CK_BYTE *data, CK_ULONG length, CK_BYTE *signature, CK_ULONG *signed_length) {
    if (signature && has("hang")) {
        note("hanging");
        while (has("hang"))
            usleep(5000);
    }
    if (is_removed())
        return CKR_DEVICE_REMOVED;
    CK_RV result = ((CK_RV(*)(CK_ULONG, CK_BYTE *, CK_ULONG, CK_BYTE *, CK_ULONG *))real->functions[SIGN])(
        session, data, length, signature, signed_length);
    if (result == 0 && signature && has("wrong"))
        signature[*signed_length / 2] ^= 1;
    return result;
}

CK_RV C_GetFunctionList(struct list **list) {
    if (!real) {
        void *module = dlopen(getenv("QUADRILLE_TEST_MODULE"), RTLD_NOW);
        CK_RV (*get)(struct list **) = module ? (CK_RV(*)(struct list **))dlsym(module, "C_GetFunctionList") : NULL;
        if (!get) {
            fprintf(stderr, "the module cannot be loaded: %s\n", dlerror());
            return 5;
        }
        CK_RV result = get(&real);
        if (result != 0)
            return result;
        own = *real;
        own.functions[GET_TOKEN_INFO] = get_token_info;
        own.functions[OPEN_SESSION] = open_session;
        own.functions[LOGIN] = login;
        own.functions[SIGN_INIT] = sign_init;
        own.functions[SIGN] = sign;
    }
    *list = &own;
    return 0;
}
