<?php

declare(strict_types=1);

namespace Quadrille;

use Quadrille\Internal\KeyRingText;

/**
 * A key ring.
 *
 * This is the implementation in PHP, over ext-openssl, with the same keys, envelopes and errors as the extension. It
 * is several times slower, and the keys are in PHP's memory.
 */
final class KeyRing
{
    private const LARGEST_FILE = 1 << 20;
    private const LONGEST_KEY = 4096;

    /** @var array<string, array<string, Field>> by table and column */
    private array $fields = [];

    private function __construct(#[\SensitiveParameter] private readonly KeyRingText $text)
    {
    }

    /** Loads the key ring of a file, which must be a plain file and closed to group and others (mode 0600 or 0400). */
    public static function load(string $path): self
    {
        $file = @fopen($path, 'rb');
        if ($file === false) {
            $reason = error_get_last()['message'] ?? 'unknown';
            throw new KeyRingException("$path: cannot read the key ring: $reason");
        }
        $status = fstat($file);
        if (($status['mode'] & 0170000) !== 0100000) {
            throw new KeyRingException("$path: is not a plain file");
        }
        if (($status['mode'] & 077) !== 0) {
            $mode = sprintf('%04o', $status['mode'] & 07777);
            throw new KeyRingException(
                "$path: others may read the keys (mode $mode); close it with: chmod 600 $path",
            );
        }
        $user = function_exists('posix_geteuid') ? posix_geteuid() : $status['uid'];
        if ($user !== 0 && $status['uid'] !== 0 && $status['uid'] !== $user) {
            throw new KeyRingException(
                "$path: belongs to user {$status['uid']}, neither to this one ($user) nor to root",
            );
        }
        $text = stream_get_contents($file, self::LARGEST_FILE + 1);
        if (strlen($text) > self::LARGEST_FILE) {
            throw new KeyRingException("$path: is larger than 1 MiB: not a key ring");
        }
        if (preg_match('//u', $text) !== 1) {
            throw new KeyRingException("$path: is not text: not a key ring");
        }
        return new self(new KeyRingText($text, $path));
    }

    /** Parses a key ring from text, for instance from a secret store. */
    public static function parse(#[\SensitiveParameter] string $text): self
    {
        return new self(new KeyRingText($text, ''));
    }

    /** Generates a random key. */
    public static function randomKey(int $bytes = 32): string
    {
        if ($bytes < 1 || $bytes > self::LONGEST_KEY) {
            throw new \ValueError('a key has 1 to ' . self::LONGEST_KEY . " bytes, not $bytes");
        }
        return random_bytes($bytes);
    }

    /** Returns one column. */
    public function field(string $table, string $column): Field
    {
        return $this->fields[$table][$column]
            ??= new Field($this->text->keys, $this->text->index, $table, $column);
    }

    /**
     * Returns the keys' ids and states, in the order of the file.
     *
     * @return list<array{id: string, state: string}>
     */
    public function keys(): array
    {
        return array_map(static fn (array $key) => ['id' => $key['id'], 'state' => $key['state']], $this->text->keys);
    }

    /** Returns a reader and writer of the older form. */
    public function legacy(#[\SensitiveParameter] string $dataKey, #[\SensitiveParameter] string $vectorKey): Legacy
    {
        return new Legacy($dataKey, $vectorKey);
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
