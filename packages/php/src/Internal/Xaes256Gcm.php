<?php

declare(strict_types=1);

namespace Quadrille\Internal;

use Quadrille\FieldException;

/**
 * XAES-256-GCM (https://c2sp.org/XAES-256-GCM) over ext-openssl.
 *
 * @internal
 */
final class Xaes256Gcm
{
    public const NONCE_BYTES = 24;
    public const TAG_BYTES = 16;

    /** CMAC's subkey K1. */
    private readonly string $k1;

    public function __construct(#[\SensitiveParameter] private readonly string $key)
    {
        $this->k1 = self::doubled($this->blocks(str_repeat("\0", 16)));
    }

    /** Returns the ciphertext and its tag. */
    public function seal(string $nonce, string $aad, #[\SensitiveParameter] string $plain): string
    {
        $tag = '';
        $ciphertext = openssl_encrypt(
            $plain,
            'aes-256-gcm',
            $this->derived($nonce),
            OPENSSL_RAW_DATA,
            substr($nonce, 12),
            $tag,
            $aad,
        );
        if ($ciphertext === false) {
            throw new FieldException('OpenSSL cannot encrypt with AES-256-GCM');
        }
        return $ciphertext . $tag;
    }

    /** Returns the plaintext, or false. */
    public function open(string $nonce, string $aad, string $ciphertext, string $tag): string|false
    {
        return openssl_decrypt(
            $ciphertext,
            'aes-256-gcm',
            $this->derived($nonce),
            OPENSSL_RAW_DATA,
            substr($nonce, 12),
            $tag,
            $aad,
        );
    }

    /** Derives the key of one message. */
    private function derived(string $nonce): string
    {
        $context = "X\0" . substr($nonce, 0, 12);
        return $this->blocks(("\0\1" . $context) ^ $this->k1) . $this->blocks(("\0\2" . $context) ^ $this->k1);
    }

    /** Encrypts whole blocks with AES-256. */
    private function blocks(string $blocks): string
    {
        $encrypted = openssl_encrypt(
            $blocks,
            'aes-256-ecb',
            $this->key,
            OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING,
        );
        if ($encrypted === false) {
            throw new FieldException('OpenSSL cannot encrypt with AES-256');
        }
        return $encrypted;
    }

    /** Doubles a block in CMAC's field (SP 800-38B, section 6.1), without a branch on it. */
    private static function doubled(#[\SensitiveParameter] string $block): string
    {
        $bytes = array_values(unpack('C16', $block));
        $doubled = '';
        foreach ($bytes as $i => $byte) {
            $carry = $i < 15 ? $bytes[$i + 1] >> 7 : ($bytes[0] >> 7) * 0x87;
            $doubled .= chr(($byte << 1 & 0xff) ^ $carry);
        }
        return $doubled;
    }
}
