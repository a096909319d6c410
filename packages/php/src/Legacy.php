<?php

declare(strict_types=1);

namespace Quadrille;

/**
 * The older form of fields, to be read once more and replaced: `base64(ciphertext) # base64(encrypted vector)`, with
 * AES-256-CBC for the one and AES-256-ECB under a key of its own for the other. Nothing authenticates it.
 */
final class Legacy
{
    /** @internal */
    public function __construct(
        #[\SensitiveParameter] private readonly string $dataKey,
        #[\SensitiveParameter] private readonly string $vectorKey,
    ) {
        if (strlen($dataKey) !== 32 || strlen($vectorKey) !== 32) {
            throw new \ValueError('the data key and the vector key of the older form must be 32 bytes long each');
        }
    }

    /** The value of an older field. */
    public function decrypt(string $field): string
    {
        return $this->open($field) ?? throw new DecryptionException('the field cannot be decrypted');
    }

    /** A field in the older form, for software that reads nothing else yet. */
    public function encrypt(#[\SensitiveParameter] string $plain): string
    {
        $vector = random_bytes(16);
        $bare = OPENSSL_RAW_DATA | OPENSSL_ZERO_PADDING;
        return openssl_encrypt($plain, 'aes-256-cbc', $this->dataKey, 0, $vector)
            . '#' . base64_encode(openssl_encrypt($vector, 'aes-256-ecb', $this->vectorKey, $bare));
    }

    private function open(string $field): ?string
    {
        $parts = explode('#', $field);
        if (count($parts) !== 2) {
            return null;
        }
        [$ciphertext, $encrypted] = array_map(self::decoded(...), $parts);
        // Either the bare block, or with a block of padding as openssl_encrypt leaves it.
        $padding = match (strlen($encrypted ?? '')) {
            16 => OPENSSL_ZERO_PADDING,
            32 => 0,
            default => null,
        };
        if ($padding === null || $ciphertext === null || $ciphertext === '' || strlen($ciphertext) % 16 !== 0) {
            return null;
        }
        $vector = openssl_decrypt($encrypted, 'aes-256-ecb', $this->vectorKey, OPENSSL_RAW_DATA | $padding);
        if ($vector === false || strlen($vector) !== 16) {
            return null;
        }
        $plain = openssl_decrypt($ciphertext, 'aes-256-cbc', $this->dataKey, OPENSSL_RAW_DATA, $vector);
        return $plain === false ? null : $plain;
    }

    /** Strict base64: PHP's own decoder lets some other texts pass. */
    private static function decoded(string $text): ?string
    {
        $bytes = base64_decode($text, true);
        return $bytes !== false && base64_encode($bytes) === $text ? $bytes : null;
    }

    public function __serialize(): array
    {
        throw new \Exception("Serialization of '" . self::class . "' is not allowed");
    }

    public function __debugInfo(): array
    {
        return [];
    }

    private function __clone()
    {
    }
}
