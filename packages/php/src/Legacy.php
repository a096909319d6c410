<?php

declare(strict_types=1);

namespace Quadrille;

/**
 * The older form of fields, to be read once more and replaced: `base64(ciphertext) # base64(encrypted vector)`, with
 * AES-256-CBC for the ciphertext and AES-256-ECB under a separate key for the vector. It is not authenticated.
 */
final class Legacy
{
    /** @internal */
    public function __construct(
        #[\SensitiveParameter] private readonly string $dataKey,
        #[\SensitiveParameter] private readonly string $vectorKey,
    ) {
        if (strlen($dataKey) !== 32 || strlen($vectorKey) !== 32) {
            throw new \ValueError('the data key and the vector key of the legacy format must be 32 bytes long each');
        }
    }

    /** Decrypts a field of the older form. */
    public function decrypt(string $field): string
    {
        return $this->open($field) ?? throw new DecryptionException('the field cannot be decrypted');
    }

    /** Encrypts a field in the older form, for software that cannot read envelopes yet. */
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
        // Either the bare block, or followed by the padding block of openssl_encrypt.
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

    /** Decodes strict base64: PHP's own decoder accepts some other texts. */
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
