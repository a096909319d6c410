<?php

declare(strict_types=1);

namespace Quadrille;

use Quadrille\Internal\FieldKey;
use Quadrille\Internal\Xaes256Gcm;

/** One encrypted column. */
final class Field
{
    private const VERSION = "\1";
    /** Length of the header: version, key id, commitment, nonce. */
    private const HEADER_BYTES = 1 + 4 + 32 + Xaes256Gcm::NONCE_BYTES;
    private const OVERHEAD = self::HEADER_BYTES + Xaes256Gcm::TAG_BYTES;
    private const LONGEST_NAME = 255;

    private readonly FieldKey $active;
    /** @var array<string, FieldKey> by the bytes of their ids */
    private array $keys = [];
    private readonly string $index;
    /** Table and column, each with its length. */
    private readonly string $context;

    /**
     * @internal
     * @param list<array{id: string, state: string, material: string}> $keys
     */
    public function __construct(
        #[\SensitiveParameter] array $keys,
        #[\SensitiveParameter] string $index,
        string $table,
        string $column,
    ) {
        foreach ([$table, $column] as $name) {
            if ($name === '' || strlen($name) > self::LONGEST_NAME) {
                throw new \ValueError('table and column must be 1 to 255 bytes long');
            }
        }
        $this->context = chr(strlen($table)) . $table . chr(strlen($column)) . $column;
        $this->index = FieldKey::index($index, $this->context);
        foreach ($keys as ['id' => $id, 'state' => $state, 'material' => $material]) {
            if ($state !== 'retired') {
                $id = hex2bin($id);
                // Prefixed with a letter, or PHP would convert some ids to numbers.
                $this->keys["k$id"] = $key = FieldKey::derive($id, $material, $this->context);
                if ($state === 'active') {
                    $this->active = $key;
                }
            }
        }
    }

    /** Encrypts a value for a row; returns the envelope. */
    public function encrypt(#[\SensitiveParameter] string $plain, int|string $row): string
    {
        $aad = $this->associatedData($row);
        $nonce = random_bytes(Xaes256Gcm::NONCE_BYTES);
        return self::VERSION . $this->active->id . $this->active->commitment . $nonce
            . $this->active->cipher->seal($nonce, $aad, $plain);
    }

    /**
     * Decrypts an envelope.
     *
     * @param string|resource $envelope
     */
    public function decrypt($envelope, int|string $row): string
    {
        $aad = $this->associatedData($row);
        $envelope = self::bytes($envelope);
        $key = $this->find($envelope);
        $plain = $key->cipher->open(
            substr($envelope, self::HEADER_BYTES - Xaes256Gcm::NONCE_BYTES, Xaes256Gcm::NONCE_BYTES),
            $aad,
            substr($envelope, self::HEADER_BYTES, -Xaes256Gcm::TAG_BYTES),
            substr($envelope, -Xaes256Gcm::TAG_BYTES),
        );
        return $plain !== false ? $plain : throw self::unreadable();
    }

    /**
     * Decrypts several envelopes under the same keys; null stays null.
     *
     * @param array<string|resource|null> $envelopes
     * @param array<int|string> $rows in the same order
     * @return array<string|null>
     */
    public function decryptMany(array $envelopes, array $rows): array
    {
        if (count($envelopes) !== count($rows)) {
            throw new \ValueError('there are ' . count($envelopes) . ' envelopes and ' . count($rows) . ' rows');
        }
        $values = [];
        foreach ($envelopes as $key => $envelope) {
            $values[$key] = $envelope === null ? null : $this->decrypt($envelope, current($rows));
            next($rows);
        }
        return $values;
    }

    /** Returns the blind index of a value, for lookups. */
    public function blindIndex(#[\SensitiveParameter] string $plain, int $bits = 64): string
    {
        if ($bits < 8 || $bits > 256 || $bits % 8 !== 0) {
            throw new \ValueError('a blind index has 8 to 256 bits, a multiple of 8');
        }
        return substr(hash_hmac('sha256', $plain, $this->index), 0, intdiv($bits, 4));
    }

    /**
     * Returns whether an envelope is under another key than the active one.
     *
     * @param string|resource $envelope
     */
    public function needsRotation($envelope): bool
    {
        return $this->find(self::bytes($envelope)) !== $this->active;
    }

    /**
     * Re-encrypts an envelope under the active key.
     *
     * @param string|resource $envelope
     */
    public function rotate($envelope, int|string $row): string
    {
        return $this->encrypt($this->decrypt($envelope, $row), $row);
    }

    /** Returns the key of an envelope, if it belongs to this column and its key may be used. */
    private function find(string $envelope): FieldKey
    {
        if (strlen($envelope) < self::OVERHEAD || $envelope[0] !== self::VERSION) {
            throw self::unreadable();
        }
        $key = $this->keys['k' . substr($envelope, 1, 4)] ?? throw self::unreadable();
        return substr_compare($envelope, $key->commitment, 5, 32) === 0 ? $key : throw self::unreadable();
    }

    private function associatedData(int|string $row): string
    {
        $row = (string) $row;
        if ($row === '' || strlen($row) > self::LONGEST_NAME) {
            throw new \ValueError(
                'the row must be identified by 1 to 255 bytes, for instance by its primary key',
            );
        }
        return $this->context . chr(strlen($row)) . $row;
    }

    /** Returns the bytes of an envelope: a string, or a stream, which PDO returns for PostgreSQL's bytea. */
    private static function bytes(mixed $envelope): string
    {
        return match (true) {
            is_string($envelope) => $envelope,
            is_resource($envelope) => (string) stream_get_contents($envelope),
            default => throw new \TypeError(
                'the envelope must be of type string or a stream, ' . get_debug_type($envelope) . ' given',
            ),
        };
    }

    private static function unreadable(): DecryptionException
    {
        return new DecryptionException('the field cannot be decrypted');
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
