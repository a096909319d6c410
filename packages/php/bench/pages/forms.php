<?php

declare(strict_types=1);

/** The forms that the extension is compared with: ext-openssl, and mcrypt, AES in software. */
final class Forms
{
    public static function encryptor(string $form, string $key): ?Closure
    {
        return match ($form) {
            'plain' => null,
            'openssl' => static function (string $plain) use ($key): string {
                $nonce = random_bytes(12);
                $ciphertext = openssl_encrypt($plain, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $nonce, $tag);
                return $nonce . $tag . $ciphertext;
            },
            'mcrypt' => static function (string $plain) use ($key): string {
                $iv = random_bytes(16);
                return $iv . @mcrypt_encrypt(MCRYPT_RIJNDAEL_128, $key, $plain, MCRYPT_MODE_CBC, $iv);
            },
        };
    }

    public static function decryptor(string $form, string $key): ?Closure
    {
        return match ($form) {
            'plain' => null,
            'openssl' => static fn (string $stored): string => openssl_decrypt(
                substr($stored, 28),
                'aes-256-gcm',
                $key,
                OPENSSL_RAW_DATA,
                substr($stored, 0, 12),
                substr($stored, 12, 16),
            ),
            // As mcrypt was used: zero padding, stripped afterwards.
            'mcrypt' => static fn (string $stored): string => rtrim(
                mcrypt_decrypt(MCRYPT_RIJNDAEL_128, $key, substr($stored, 16), MCRYPT_MODE_CBC, substr($stored, 0, 16)),
                "\0",
            ),
        };
    }
}
