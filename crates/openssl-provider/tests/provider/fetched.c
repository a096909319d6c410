// Prints the provider of some algorithms, for a program that does not select a provider. Argument: openssl.cnf.
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>

static void print(const char *name, const OSSL_PROVIDER *provider) {
    printf("%s %s\n", name, provider == NULL ? "none" : OSSL_PROVIDER_get0_name(provider));
}

int main(int count, char **arguments) {
    static const char *const keys[] = {"X25519", "RSA", "EC"};
    OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
    if (count != 2 || OSSL_LIB_CTX_load_config(context, arguments[1]) != 1) {
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        EVP_KEYMGMT *fetched = EVP_KEYMGMT_fetch(context, keys[i], NULL);
        print(keys[i], fetched == NULL ? NULL : EVP_KEYMGMT_get0_provider(fetched));
        EVP_KEYMGMT_free(fetched);
    }
    EVP_MD *digest = EVP_MD_fetch(context, "SHA256", NULL);
    print("SHA256", digest == NULL ? NULL : EVP_MD_get0_provider(digest));
    EVP_MD_free(digest);
    OSSL_LIB_CTX_free(context);
    return 0;
}
