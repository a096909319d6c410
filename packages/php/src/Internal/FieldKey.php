<?php

declare(strict_types=1);

namespace Quadrille\Internal;

/**
 * One key of a ring, derived for one column.
 *
 * @internal
 */
final class FieldKey
{
    /** Separates these keys from other uses of the same key material. */
    private const SALT = 'quadrille field v1';

    private function __construct(
        public readonly string $id,
        public readonly Xaes256Gcm $cipher,
        public readonly string $commitment,
    ) {
    }

    /** Derives the encryption key and its commitment. `$context` is table and column, each with its length. */
    public static function derive(string $id, #[\SensitiveParameter] string $material, string $context): self
    {
        $both = self::hkdf($material, 64, "\x07encrypt" . $context);
        return new self($id, new Xaes256Gcm(substr($both, 0, 32)), substr($both, 32));
    }

    /** Derives the key for blind indexes. */
    public static function index(#[\SensitiveParameter] string $material, string $context): string
    {
        return self::hkdf($material, 32, "\x05index" . $context);
    }

    private static function hkdf(#[\SensitiveParameter] string $material, int $length, string $info): string
    {
        return hash_hkdf('sha256', $material, $length, $info, self::SALT);
    }
}
