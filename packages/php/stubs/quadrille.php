<?php

/**
 * Declarations of the extension `quadrille`, for editors and static analysis. This file is never loaded.
 */

declare(strict_types=1);

namespace Quadrille;

/** Base class of all errors of encrypted fields; thrown itself if the system has no random numbers. */
class FieldException extends \RuntimeException
{
}

/** A key ring cannot be read: the message names the file, the line, and the remedy. */
class KeyRingException extends FieldException
{
}

/** A field cannot be decrypted. The reason is never given. */
class DecryptionException extends FieldException
{
}

/** A key ring. Created by {@see KeyRing::load()}; neither cloned nor serialized. */
final class KeyRing
{
    /**
     * Loads the key ring of a file, as written by `quadrille field keygen`. The process keeps it until the file
     * changes.
     *
     * The file must be a plain file, belong to this user or to root, and be closed to group and others (mode 0600 or
     * 0400). `open_basedir` applies.
     *
     * @throws KeyRingException
     */
    public static function load(string $path): KeyRing
    {
    }

    /**
     * Parses a key ring from text, for instance from a secret store.
     *
     * @throws KeyRingException
     */
    public static function parse(#[\SensitiveParameter] string $text): KeyRing
    {
    }

    /**
     * Generates a random key.
     *
     * @param int $bytes 1 to 4096
     */
    public static function randomKey(int $bytes = 32): string
    {
    }

    /**
     * Returns one column. Table and column are part of its keys: an envelope does not open under other names.
     *
     * @throws \ValueError unless both are 1 to 255 bytes long
     */
    public function field(string $table, string $column): Field
    {
    }

    /**
     * Returns the keys' ids and states (active, decrypt-only, retired), in the order of the file.
     *
     * @return list<array{id: string, state: string}>
     */
    public function keys(): array
    {
    }

    /**
     * Returns a reader and writer of the older form, for migration.
     *
     * @throws \ValueError unless both keys are 32 bytes long
     */
    public function legacy(#[\SensitiveParameter] string $dataKey, #[\SensitiveParameter] string $vectorKey): Legacy
    {
    }
}

/** One encrypted column. Created by {@see KeyRing::field()}; neither cloned nor serialized. */
final class Field
{
    /**
     * Encrypts a value; returns the envelope: binary, 77 bytes longer than the value.
     *
     * @param int|string $row permanent identifier of the row, usually its primary key; 5 and '5' are equal
     * @throws \ValueError if the row is empty or longer than 255 bytes
     */
    public function encrypt(#[\SensitiveParameter] string $plain, int|string $row): string
    {
    }

    /**
     * Decrypts an envelope.
     *
     * @param string|resource $envelope a string, or a stream, which PDO returns for PostgreSQL's bytea
     * @throws DecryptionException for any defect, without the reason
     */
    public function decrypt($envelope, int|string $row): string
    {
    }

    /**
     * Decrypts several envelopes under the same keys; null stays null.
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
     * Returns the blind index of a value, for lookups: the first bits of a keyed hash, in hexadecimal. Equal values
     * have equal indexes, so normalise (case, spaces) before. Rotating keys does not change it.
     *
     * @param int $bits 8 to 256, a multiple of 8
     */
    public function blindIndex(#[\SensitiveParameter] string $plain, int $bits = 64): string
    {
    }

    /**
     * Returns whether an envelope is under another key than the active one. Only its header is read.
     *
     * @param string|resource $envelope
     * @throws DecryptionException if it is not an envelope of this column, or its key may not be used
     */
    public function needsRotation($envelope): bool
    {
    }

    /**
     * Re-encrypts an envelope under the active key.
     *
     * @param string|resource $envelope
     * @throws DecryptionException
     */
    public function rotate($envelope, int|string $row): string
    {
    }
}

/**
 * The older form of fields. Created by {@see KeyRing::legacy()}. It is not authenticated: read it once and replace
 * it.
 */
final class Legacy
{
    /**
     * Decrypts a field of the older form.
     *
     * @throws DecryptionException for any defect, without the reason
     */
    public function decrypt(string $field): string
    {
    }

    /** Encrypts a field in the older form, for software that cannot read envelopes yet. */
    public function encrypt(#[\SensitiveParameter] string $plain): string
    {
    }
}
