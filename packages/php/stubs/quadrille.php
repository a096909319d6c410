<?php

/**
 * What the extension `quadrille` declares, for editors and static analysis. It is never loaded.
 */

declare(strict_types=1);

namespace Quadrille;

/** Whatever goes wrong with encrypted fields: also that the system gives no random numbers. */
class FieldException extends \RuntimeException
{
}

/** A key ring cannot be read: the message names the file, the line, and what mends it. */
class KeyRingException extends FieldException
{
}

/** A field cannot be decrypted; it never says why. */
class DecryptionException extends FieldException
{
}

/** The keys. Made by {@see KeyRing::load()}; neither cloned nor serialized. */
final class KeyRing
{
    /**
     * The key ring of a file, as `quadrille field keygen` writes it. The process keeps it until the file changes.
     *
     * The file must be a plain one, belong to this user or to root, and be closed to group and others (mode 0600 or
     * 0400). `open_basedir` applies.
     *
     * @throws KeyRingException
     */
    public static function load(string $path): KeyRing
    {
    }

    /**
     * The key ring that a text describes, for instance one from a secret store.
     *
     * @throws KeyRingException
     */
    public static function parse(#[\SensitiveParameter] string $text): KeyRing
    {
    }

    /**
     * A new key of random bytes.
     *
     * @param int $bytes 1 to 4096
     */
    public static function randomKey(int $bytes = 32): string
    {
    }

    /**
     * One column. Table and column are part of its keys: an envelope does not open under other names.
     *
     * @throws \ValueError unless both are 1 to 255 bytes long
     */
    public function field(string $table, string $column): Field
    {
    }

    /**
     * The keys' ids and states (active, decrypt-only, retired), in the order of the file.
     *
     * @return list<array{id: string, state: string}>
     */
    public function keys(): array
    {
    }

    /**
     * Reads and writes the older form, for migration.
     *
     * @throws \ValueError unless both keys are 32 bytes long
     */
    public function legacy(#[\SensitiveParameter] string $dataKey, #[\SensitiveParameter] string $vectorKey): Legacy
    {
    }
}

/** One encrypted column. Made by {@see KeyRing::field()}; neither cloned nor serialized. */
final class Field
{
    /**
     * The envelope of a value: binary, 77 bytes longer than the value.
     *
     * @param int|string $row what identifies the row for good, usually its primary key; 5 and '5' are the same
     * @throws \ValueError if the row is empty or longer than 255 bytes
     */
    public function encrypt(#[\SensitiveParameter] string $plain, int|string $row): string
    {
    }

    /**
     * The value of an envelope.
     *
     * @param string|resource $envelope a stream too, as which PDO hands out PostgreSQL's bytea
     * @throws DecryptionException whatever is wrong with it
     */
    public function decrypt($envelope, int|string $row): string
    {
    }

    /**
     * The values of many envelopes, under the same keys; null stays null.
     *
     * @param array<string|resource|null> $envelopes
     * @param array<int|string> $rows in the same order
     * @return array<string|null>
     * @throws DecryptionException if one of them cannot be decrypted
     */
    public function decryptMany(array $envelopes, array $rows): array
    {
    }

    /**
     * By what a value is found: the first bits of a keyed hash, in hexadecimal. Equal values have equal indexes, so
     * normalise (case, spaces) before. Rotating keys does not change it.
     *
     * @param int $bits 8 to 256, a multiple of 8
     */
    public function blindIndex(#[\SensitiveParameter] string $plain, int $bits = 64): string
    {
    }

    /**
     * Whether an envelope is under another key than the active one. Only its header is looked at.
     *
     * @param string|resource $envelope
     * @throws DecryptionException if it is no envelope of this column, or its key may not be used
     */
    public function needsRotation($envelope): bool
    {
    }

    /**
     * The same value under the active key.
     *
     * @param string|resource $envelope
     * @throws DecryptionException
     */
    public function rotate($envelope, int|string $row): string
    {
    }
}

/** The older form of fields. Made by {@see KeyRing::legacy()}. Nothing authenticates it: read it once and replace it. */
final class Legacy
{
    /**
     * The value of an older field.
     *
     * @throws DecryptionException whatever is wrong with it
     */
    public function decrypt(string $field): string
    {
    }

    /** A field in the older form, for software that reads nothing else yet. */
    public function encrypt(#[\SensitiveParameter] string $plain): string
    {
    }
}
