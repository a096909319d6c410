/*
 * Encrypts as PHP's mcrypt extension did, with the same library, and writes the input of
 * crates/field/tests/field/mcrypt.rs: cc make.c -lmcrypt && ./a.out > fixtures.txt (Debian: libmcrypt-dev).
 *
 * cipher mode key vector plaintext ciphertext; names as text, the rest in hexadecimal, "-" if empty
 */
#include <mcrypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_hex(const unsigned char *bytes, size_t length)
{
    if (length == 0)
        printf(" -");
    else
        printf(" ");
    for (size_t i = 0; i < length; i++)
        printf("%02x", bytes[i]);
}

/* Like php_mcrypt_do_crypt of PHP 5: zero padding up to a whole block for block modes. */
static void encrypt(const char *cipher, const char *mode, size_t key_length, const char *plain)
{
    MCRYPT handle = mcrypt_module_open((char *)cipher, NULL, (char *)mode, NULL);
    unsigned char key[32], vector[32], data[256] = {0};
    size_t block = mcrypt_enc_get_block_size(handle), length = strlen(plain), padded = length;

    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)(i * 7 + 3);
    for (size_t i = 0; i < sizeof vector; i++)
        vector[i] = (unsigned char)(i * 11 + 5);
    memcpy(data, plain, length);
    if (mcrypt_enc_is_block_mode(handle))
        padded = (length + block - 1) / block * block;
    if (mcrypt_generic_init(handle, key, (int)key_length, vector) < 0)
        exit(1);
    mcrypt_generic(handle, data, (int)padded);
    printf("%s %s", cipher, mode);
    print_hex(key, key_length);
    print_hex(vector, mcrypt_enc_mode_has_iv(handle) ? block : 0);
    print_hex((const unsigned char *)plain, length);
    print_hex(data, padded);
    printf("\n");
    mcrypt_generic_deinit(handle);
    mcrypt_module_close(handle);
}

int main(void)
{
    const char *ciphers[] = {"rijndael-128", "rijndael-192", "rijndael-256"};
    const char *modes[] = {"ecb", "cbc", "cfb", "ncfb"};
    const char *plains[] = {
        "x",
        "+49 30 1234567",
        "exactly thirty-two bytes of text",
        "Stra\xc3\x9f" "e des 17. Juni 135, 10623 Berlin: longer than two blocks of any size, so that they are chained",
    };

    for (int c = 0; c < 3; c++)
        for (int m = 0; m < 4; m++)
            for (size_t key = 16; key <= 32; key += 8)
                for (int p = 0; p < 4; p++)
                    encrypt(ciphers[c], modes[m], key, plains[p]);
    return 0;
}
