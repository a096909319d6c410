<?php

/**
 * One of many concurrent requests in one process: uses the whole extension, with a key ring that changes meanwhile.
 * It reports failures, and records its nonces.
 */

declare(strict_types=1);

use Quadrille\DecryptionException;
use Quadrille\KeyRing;
use Quadrille\KeyRingException;

return static function (int $request, string $folder): bool {
    $must = static fn (bool $is, string $what) => $is || throw new LogicException($what);
    $throws = static function (string $class, callable $wrong) use ($must): Throwable {
        try {
            $wrong();
        } catch (Throwable $error) {
            $must($error::class === $class, "$class expected, not " . $error::class . ': ' . $error->getMessage());
            return $error;
        }
        throw new LogicException("$class was not thrown");
    };
    try {
        $file = "$folder/fields.keys";
        if ($request % 10 === 5) {
            // Another version of the same keys, whole at each moment.
            $version = tempnam($folder, 'keys');
            file_put_contents($version, file_get_contents("$folder/original.keys") . str_repeat("#\n", random_int(1, 500)));
            chmod($version, 0600);
            rename($version, $file);
        }
        $ring = KeyRing::load($file);
        $must(array_column($ring->keys(), 'state') === ['active', 'decrypt-only'], 'the keys are others');
        $field = $ring->field('users', 'column ' . random_int(0, 9));
        if ($request % 10 === 0) {
            ini_set('display_errors', '0');
            ini_set('memory_limit', (string) (memory_get_usage(true) + (4 << 20)));
            for ($all = []; ;) {
                $all[] = $field->encrypt(str_repeat('x', 50_000), row: 1);
            }
        }
        $nonces = '';
        foreach ([0, 1, 64, 3000] as $length) {
            $plain = $length ? random_bytes($length) : '';
            $envelope = $field->encrypt($plain, row: $length);
            $nonces .= bin2hex(substr($envelope, 37, 24)) . "\n";
            $must($field->decrypt($envelope, row: $length) === $plain, "$length bytes decrypted to other bytes");
            $must($field->decryptMany(['a' => $envelope, 5 => null], [$length, 2]) === ['a' => $plain, 5 => null], 'many');
            $must(!$field->needsRotation($envelope), 'the key is the active one');
            $must($field->decrypt($field->rotate($envelope, row: $length), row: $length) === $plain, 'rotated');
            $throws(DecryptionException::class, static fn () => $field->decrypt($envelope, row: 'another'));
            $throws(DecryptionException::class, static fn () => $field->decrypt(substr($envelope, 1), row: $length));
        }
        file_put_contents("$folder/nonces", $nonces, FILE_APPEND | LOCK_EX);
        $must($field->blindIndex('x') === $field->blindIndex('x'), 'blind indexes');
        $throws(KeyRingException::class, static fn () => KeyRing::parse('nothing'));
        $throws(Error::class, static fn () => clone $field);
        $error = $throws(TypeError::class, static fn () => $field->encrypt('do not show me', row: 1.5));
        $must(!str_contains(print_r($error->getTrace(), true), 'do not show me'), 'a secret is in a backtrace');
        $legacy = $ring->legacy(str_repeat('d', 32), str_repeat('v', 32));
        $must($legacy->decrypt($legacy->encrypt('older')) === 'older', 'the older form');
        return true;
    } catch (Throwable $error) {
        file_put_contents('php://stderr', $error::class . ": {$error->getMessage()}\n");
        return false;
    }
};
