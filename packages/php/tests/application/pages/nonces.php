<?php

/**
 * Prints nonces drawn by this worker, in hexadecimal. Preloaded (opcache.preload), it draws some before workers fork.
 */

declare(strict_types=1);

require_once __DIR__ . '/../../../src/autoload.php';

$field = Quadrille\KeyRing::parse("quadrille field keys 1\nkey 3f9a01c2 active " . base64_encode(str_repeat('a', 32))
    . "\nindex " . base64_encode(str_repeat('i', 32)))->field('t', 'c');
echo getmypid(), "\n";
for ($i = 0; $i < 100; $i++) {
    echo bin2hex(substr($field->encrypt('', 1), 37, 24)), "\n";
}
