<?php

declare(strict_types=1);

namespace Quadrille\Internal;

use Quadrille\KeyRingException;

/**
 * The text of a key ring file, as written by `quadrille field keygen`.
 *
 * @internal
 */
final class KeyRingText
{
    private const TITLE = 'quadrille field keys 1';
    private const STATES = ['active', 'decrypt-only', 'retired'];

    /** @var list<array{id: string, state: string, material: string}> */
    public array $keys = [];
    public string $index = '';

    /** @param string $where prefix of the line number in errors */
    public function __construct(#[\SensitiveParameter] string $text, private readonly string $where)
    {
        $isTitled = false;
        foreach (preg_split('/\r?\n/', $text) as $i => $line) {
            if ($line === '' || $line[0] === '#') {
                continue;
            }
            if (!$isTitled) {
                $line === self::TITLE or throw $this->error("a key ring begins with the line '" . self::TITLE . "'", $i + 1);
                $isTitled = true;
                continue;
            }
            $this->line(preg_split('/\s+/', trim($line)), $i + 1);
        }
        $isTitled or throw $this->error("a key ring begins with the line '" . self::TITLE . "'", 1);
        $this->count('active') === 1 or throw $this->error('there is no active key');
        $this->index !== '' or throw $this->error('there is no index key');
    }

    /** @param list<string> $words */
    private function line(#[\SensitiveParameter] array $words, int $line): void
    {
        if ($words[0] === 'key' && count($words) === 4) {
            [, $id, $state, $key] = $words;
            preg_match('/^[0-9a-fA-F]{8}$/D', $id) or throw $this->error('a key id is 8 hexadecimal digits', $line);
            $id = strtolower($id);
            in_array($state, self::STATES, true)
                or throw $this->error('the state must be one of active, decrypt-only, retired', $line);
            $material = $this->material($key, $line);
            in_array($id, array_column($this->keys, 'id'), true)
                and throw $this->error("duplicate key $id", $line);
            $state === 'active' && $this->count('active') > 0
                and throw $this->error('there is more than one active key', $line);
            $this->keys[] = ['id' => $id, 'state' => $state, 'material' => $material];
        } elseif ($words[0] === 'index' && count($words) === 2) {
            $this->index === '' or throw $this->error('there is more than one index key', $line);
            $this->index = $this->material($words[1], $line);
        } else {
            throw $this->error("expected 'key ID STATE BASE64' or 'index BASE64'", $line);
        }
    }

    private function material(#[\SensitiveParameter] string $encoded, int $line): string
    {
        $key = base64_decode($encoded, true);
        $isKey = is_string($key) && strlen($key) === 32 && base64_encode($key) === $encoded;
        return $isKey ? $key : throw $this->error('a key is 32 bytes in base64', $line);
    }

    private function count(string $state): int
    {
        return count(array_keys(array_column($this->keys, 'state'), $state, true));
    }

    private function error(string $what, ?int $line = null): KeyRingException
    {
        $place = match (true) {
            $line === null => $this->where === '' ? '' : "$this->where: ",
            $this->where === '' => "line $line: ",
            default => "$this->where:$line: ",
        };
        return new KeyRingException($place . $what);
    }

    public function __debugInfo(): array
    {
        return [];
    }
}
